/* souk machines, wallet: looking around in the market. */
#include "base/clock.h"
#include "cli/account_notice.h"
#include "cli/api.h"
#include "cli/connect.h"
#include "cli/offer_view.h"
#include "cli/output.h"
#include "cli/table.h"

#include <string.h>

/* ---- machines ---------------------------------------------------------------------------------
 */

struct machines_options {
    bool is_mine;
    uint64_t limit;
};

static const struct option machines_options[] = {
    {"mine", OPTION_FLAG, offsetof(struct machines_options, is_mine),
     .help = "Only those this account lends."},
    {"limit", OPTION_U64, offsetof(struct machines_options, limit), "COUNT", "1000",
     "Show at most so many.", .minimum = 1, .maximum = 100000},
};

/* What a borrower finds: a machine that is there shows whether it takes leases. */
static const char *machine_state(struct arena *arena, const struct api_machine *machine)
{
    const bool is_known = machine->offer_state.size > 0; /* an older market says less */
    const bool is_online = text_equal(machine->state, TEXT("online"));
    /* "low" is no state: it takes leases and runs them, if slowly. */
    if (is_online && machine->yield.size > 0 && !text_equal(machine->yield, TEXT("none")) &&
        !text_equal(machine->yield, TEXT("low")))
        return output_text(arena, machine->yield);
    if (!is_online || !is_known ||
        text_equal(machine->offer_state, TEXT("open")))
        return output_text(arena, machine->state);
    if (text_equal(machine->offer_state, TEXT("none")))
        return "no offer";
    return offer_view_state_words(arena, machine->offer_state, machine->offer_state_until_ms);
}

/* What it lends now: an older market does not say whether any. */
static bool lends_now(const struct api_machine *machine)
{
    return machine->offer_state.size == 0 || text_equal(machine->offer_state, TEXT("open"));
}

static void add_machine(struct table *table, struct arena *arena, const struct api_machine *machine)
{
    TABLE_ROW(table, output_number(arena, machine->id), output_text(arena, machine->name),
              output_text(arena, machine->account_name), machine_state(arena, machine),
              lends_now(machine) ? output_cores(arena, machine->offer.cores_milli) : "-",
              output_cores(arena, machine->leased_cores_milli),
              lends_now(machine) ? output_bytes(arena, machine->offer.ram_bytes) : "-",
              output_cores(arena, machine->probe.speed_weight_milli),
              output_credits(arena, machine->earned_micro));
}

static int run_machines(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct machines_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct json_array machines;
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_list(cli, client, wanted->is_mine ? "/v1/machines?mine=true" : "/v1/machines",
                 &api_machine_page_schema, wanted->limit, &machines, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){">ID", "~NAME", "~LENDER", "STATE", ">CORES", ">LEASED",
                                     ">/7MEMORY", ">/8SPEED", ">/9EARNED", NULL});
    for (size_t i = 0; i < machines.count; i++)
        add_machine(&table, cli->arena, (const struct api_machine *)machines.items + i);
    table_show(&table, cli);
    if (machines.count == 0)
        output_note(cli, "No machine is lent yet; \"souk machines add\" shows how to lend one.");
    return 0;
}

const struct command command_machines = {
    .name = "machines",
    .summary = "Lists the machines lent in the market.",
    .example = "souk machines --mine",
    COMMAND_OPTIONS(machines_options, machines_options),
    .run = run_machines,
};

static int run_machines_add(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_machine_code code = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_post(cli, client, "/v1/machines/codes", &api_machine_code_schema, &code, &is_done,
                 error) < 0)
        return -1;
    if (is_done)
        return 0;
    const char *server = client_server(client);
    const bool is_secure = !strncmp(server, "https://", strlen("https://"));
    output_note(cli, "Run this on the machine to lend, before %s; the code works once:",
                output_instant(cli->arena, code.expires_ms));
    printf("souk lend --server %s%s%s --code %s\n", server,
           is_secure && code.fingerprint.size ? " --fingerprint " : "",
           is_secure ? output_text(cli->arena, code.fingerprint) : "",
           output_text(cli->arena, code.code));
    return 0;
}

const struct command command_machines_add = {
    .name = "machines add",
    .summary = "Makes a one-time code and prints the command that lends a machine.",
    .example = "souk machines add",
    .run = run_machines_add,
};

/* ---- wallet -----------------------------------------------------------------------------------
 */

static int run_wallet(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    bool is_done, has_karma = false;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, "/v1/account", &api_account_schema, &account, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_has_karma(cli, client, &has_karma, error) < 0)
        return -1;
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){"", has_karma ? ">KARMA" : ">CREDITS", NULL});
    TABLE_ROW(&table, "available", output_credits(cli->arena, account.available_micro));
    TABLE_ROW(&table, "  of it granted", output_credits(cli->arena, account.granted_micro));
    if (account.withheld_micro > 0)
        TABLE_ROW(&table, "withheld until proven",
                  output_credits(cli->arena, account.withheld_micro));
    TABLE_ROW(&table, "held for jobs", output_credits(cli->arena, account.held_micro));
    TABLE_ROW(&table, "earned so far", output_credits(cli->arena, account.earned_micro));
    TABLE_ROW(&table, "spent so far", output_credits(cli->arena, account.spent_micro));
    table_show(&table, cli);
    if (account.frozen.size)
        output_note(cli,
                    "Frozen: %s. Its credits stay; nothing moves or starts until the operator "
                    "lifts this.",
                    output_text(cli->arena, account.frozen));
    const char *notice = account_notice(cli->arena, &account, clock_utc_ms(&clock_system));
    if (notice)
        output_note(cli, "Notice: %s.", notice);
    return 0;
}

const struct command command_wallet = {
    .name = "wallet",
    .summary = "Shows the account's credits.",
    .example = "souk wallet",
    .run = run_wallet,
};
