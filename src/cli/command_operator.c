/* What the market's operator does: freezing accounts, inviting, settings. */
#include "base/json.h"
#include "base/units.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <inttypes.h>
#include <string.h>

#define AS_OPERATOR                                                                                \
    "It needs the operator's token, which is in keys/operator.token of the market's folder."

static int find_account(struct cli *cli, struct client *client, const char *name,
                        struct api_account *out_account, struct error *error)
{
    struct json_array accounts;
    struct text json;
    const char *path =
        arena_format(cli->arena, "/v1/accounts?name=%s", client_escape(cli->arena, text_of(name)));
    if (client_list(client, cli->arena, path, &api_account_page_schema, 1, &accounts, &json,
                    error) < 0)
        return -1;
    if (accounts.count == 0)
        return error_set(error, ERROR_NOT_FOUND, "there is no account named \"%.60s\"", name);
    *out_account = *(const struct api_account *)accounts.items;
    return 0;
}

/* ---- freeze, unfreeze -------------------------------------------------------------------------
 */

struct freeze_options {
    const char *account;
    const char *reason;
};

static const struct option freeze_options[] = {
    {"account", OPTION_TEXT, offsetof(struct freeze_options, account), "ACCOUNT",
     .help = "Its name.", .is_positional = true, .is_required = true},
    {"reason", OPTION_TEXT, offsetof(struct freeze_options, reason), "TEXT",
     .help = "Why; its owner is shown this.", .is_required = true},
};

static const struct option unfreeze_options[] = {
    {"account", OPTION_TEXT, offsetof(struct freeze_options, account), "ACCOUNT",
     .help = "Its name.", .is_positional = true, .is_required = true},
};

static int change_account(struct cli *cli, const char *name, const char *verb, struct text body,
                          struct error *error)
{
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    struct client_answer answer = {&api_account_schema, &account, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        find_account(cli, client, name, &account, error) < 0)
        return -1;
    const char *path =
        arena_format(cli->arena, "/v1/accounts/%s/%s", output_number(cli->arena, account.id), verb);
    if (client_send(client, cli->arena, "POST", path, body, &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    output_note(cli, "\"%s\" is %s; it has %s credits, %s more held for jobs.",
                output_text(cli->arena, account.name),
                account.frozen.size ? "frozen" : "not frozen",
                output_credits(cli->arena, account.available_micro),
                output_credits(cli->arena, account.held_micro));
    return 0;
}

static int run_freeze(void *context, const void *options, struct error *error)
{
    const struct freeze_options *wanted = options;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "reason", wanted->reason);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0)
        return error_wrap(error, "--reason");
    return change_account(context, wanted->account, "freeze", buffer_text(&body), error);
}

const struct command command_account_freeze = {
    .name = "account freeze",
    .summary = "Freezes an account (operator).",
    .details = "It keeps every credit and what runs is settled, but nothing new starts: no jobs, "
               "leases, transfers or tokens. " AS_OPERATOR,
    .example = "souk account freeze eve --reason \"sign-ups by a script\"",
    COMMAND_OPTIONS(freeze_options, freeze_options),
    .run = run_freeze,
};

static int run_unfreeze(void *context, const void *options, struct error *error)
{
    const struct freeze_options *wanted = options;
    return change_account(context, wanted->account, "unfreeze", (struct text){0}, error);
}

const struct command command_account_unfreeze = {
    .name = "account unfreeze",
    .summary = "Lets a frozen account go on (operator).",
    .details = AS_OPERATOR,
    .example = "souk account unfreeze eve",
    COMMAND_OPTIONS(unfreeze_options, freeze_options),
    .run = run_unfreeze,
};

static int run_grant(void *context, const void *options, struct error *error)
{
    const struct freeze_options *wanted = options;
    return change_account(context, wanted->account, "grant", (struct text){0}, error);
}

const struct command command_account_grant = {
    .name = "account grant",
    .summary = "Gives an account that waits for its first credits these at once (operator).",
    .details = "As much as the settings say, past the day's limit and the one of its address, "
               "once. " AS_OPERATOR,
    .example = "souk account grant ada",
    COMMAND_OPTIONS(unfreeze_options, freeze_options),
    .run = run_grant,
};

static int run_invite(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_code code = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_post(cli, client, "/v1/invites", &api_code_schema, &code, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    printf("%s\n", output_text(cli->arena, code.invite));
    output_note(cli, "Good for one account before %s: souk account open --name NAME --invite CODE",
                output_instant(cli->arena, code.expires_ms));
    return 0;
}

const struct command command_account_invite = {
    .name = "account invite",
    .summary = "Makes an invitation: one account with its grant at once (operator).",
    .details = AS_OPERATOR,
    .example = "souk account invite",
    .run = run_invite,
};

/* ---- settings ---------------------------------------------------------------------------------
 */

enum setting_unit { SETTING_CREDITS, SETTING_SPAN, SETTING_NUMBER };

struct settings {
    int64_t values[16];
};

/* To add one: a row, as the API names it; the unit follows from the name's end. */
static const struct {
    const char *name, *field, *help;
    enum setting_unit unit;
} settings_rows[] = {
    {"grant", "grant_microcredits", "a new account gets at once", SETTING_CREDITS},
    {"grant-earned", "grant_earned_microcredits", "more, as its lending earns as much",
     SETTING_CREDITS},
    {"grant-daily", "grant_daily_microcredits", "all first grants of a day, or 1 % of all credits",
     SETTING_CREDITS},
    {"fee-basis-points", "fee_basis_points", "the operator's part of each payment, in 1/100 %",
     SETTING_NUMBER},
    {"proving", "proving_microcredits", "a machine that earned so much is proven", SETTING_CREDITS},
    {"withheld-basis-points", "withheld_basis_points", "of its earnings until then, in 1/100 %",
     SETTING_NUMBER},
    {"dormant", "dormant_ms", "an account not used for so long is dormant", SETTING_SPAN},
    {"dormant-step", "dormant_step_ms", "between its notices, and its parts going back",
     SETTING_SPAN},
    {"dormant-basis-points", "dormant_basis_points", "each such part, in 1/100 %", SETTING_NUMBER},
    {"silence", "silence_ms",
     "a machine with leases not heard for so long is unreachable, an idle one 15 s later",
     SETTING_SPAN},
    {"lost", "lost_ms", "unreachable for so long, its leases are lost", SETTING_SPAN},
    {"start", "start_ms", "a lease has to run by then", SETTING_SPAN},
    {"grace", "grace_ms", "a lease has so long to end", SETTING_SPAN},
    {"slot-offset", "slot_offset_ms",
     "of the price slots from UTC; fixed from the first job or slot's end on", SETTING_SPAN},
    {"karma-guarantee-basis-points", "karma_guarantee_basis_points",
     "of an equal share, free for each member of a karma market, in 1/100 %", SETTING_NUMBER},
};

enum { SETTING_COUNT = sizeof(settings_rows) / sizeof(*settings_rows) };

/* The same rows as a schema of one int64 each. */
static struct json_schema settings_schema(struct json_field out_fields[SETTING_COUNT])
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        out_fields[i] =
            (struct json_field){.name = settings_rows[i].field,
                                .kind = JSON_I64,
                                .offset = offsetof(struct settings, values) + i * sizeof(int64_t)};
    return (struct json_schema){.name = "settings",
                                .fields = out_fields,
                                .field_count = SETTING_COUNT,
                                .struct_size = sizeof(struct settings),
                                .is_lenient = true};
}

static const char *show_value(struct arena *arena, enum setting_unit unit, int64_t value)
{
    switch (unit) {
    case SETTING_CREDITS:
        return arena_format(arena, "%s credits", output_credits(arena, value));
    case SETTING_SPAN:
        return output_duration(arena, value);
    case SETTING_NUMBER:
        return arena_format(arena, "%" PRId64, value);
    }
    return "";
}

static void print_settings(struct cli *cli, const struct settings *settings, struct text json)
{
    if (cli->common.json) {
        output_json(json);
        return;
    }
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"NAME", ">VALUE", "+WHAT IT IS", NULL});
    for (size_t i = 0; i < SETTING_COUNT; i++)
        TABLE_ROW(&table, settings_rows[i].name,
                  show_value(cli->arena, settings_rows[i].unit, settings->values[i]),
                  settings_rows[i].help);
    table_show(&table, cli);
}

static int run_settings(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct json_field fields[SETTING_COUNT];
    const struct json_schema schema = settings_schema(fields);
    struct settings settings = {0};
    struct client_answer answer = {&schema, &settings, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/settings", &answer, error) < 0)
        return -1;
    print_settings(cli, &settings, answer.json);
    return 0;
}

const struct command command_settings = {
    .name = "settings",
    .summary = "Shows the market's settings (operator).",
    .details = AS_OPERATOR,
    .example = "souk settings",
    .run = run_settings,
};

struct set_options {
    const char *name;
    const char *value;
};

static const struct option set_options[] = {
    {"name", OPTION_TEXT, offsetof(struct set_options, name), "NAME",
     .help = "As `souk settings` shows it.", .is_positional = true, .is_required = true},
    {"value", OPTION_TEXT, offsetof(struct set_options, value), "VALUE",
     .help = "Credits, a span like 180d, or a number.", .is_positional = true, .is_required = true},
};

static int parse_value(enum setting_unit unit, const char *value, int64_t *out, struct error *error)
{
    switch (unit) {
    case SETTING_CREDITS:
        return units_parse_credits(text_of(value), out, error);
    case SETTING_SPAN:
        return units_parse_signed_duration(text_of(value), out, error);
    case SETTING_NUMBER:
        break;
    }
    return text_parse_i64(text_of(value), out, error);
}

static int run_set(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct set_options *wanted = options;
    size_t at = 0;
    while (at < SETTING_COUNT && strcmp(settings_rows[at].name, wanted->name) != 0)
        at++;
    if (at == SETTING_COUNT)
        return error_set(error, ERROR_INVALID,
                         "there is no setting \"%.40s\"; \"souk settings\" shows them all",
                         wanted->name);
    int64_t value;
    if (parse_value(settings_rows[at].unit, wanted->value, &value, error) < 0)
        return error_wrap(error, "%s", wanted->name);
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_i64(&writer, settings_rows[at].field, value);
    json_object_end(&writer);
    AUTO(client) struct client *client = NULL;
    struct json_field fields[SETTING_COUNT];
    const struct json_schema schema = settings_schema(fields);
    struct settings settings = {0};
    struct client_answer answer = {&schema, &settings, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_send(client, cli->arena, "PUT", "/v1/settings", buffer_text(&body), &answer, error) <
            0) {
        options_name_field(error, settings_rows[at].field, settings_rows[at].name);
        return -1;
    }
    print_settings(cli, &settings, answer.json);
    return 0;
}

const struct command command_settings_set = {
    .name = "settings set",
    .summary = "Changes one of the market's settings (operator).",
    .details = AS_OPERATOR,
    .example = "souk settings set grant 5",
    COMMAND_OPTIONS(set_options, set_options),
    .run = run_set,
};
