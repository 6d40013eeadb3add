/* souk machines add, wallet. */
#include "base/clock.h"
#include "cli/account_notice.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <string.h>

/* ---- machines add -----------------------------------------------------------------------------
 */

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
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, "/v1/account", &api_account_schema, &account, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"", output_unit(cli)->column, NULL});
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
