/* souk token, souk session: who may act for the account: listing, making, revoking. */
#include "base/clock.h"
#include "base/json.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

static int list(struct cli *cli, const char *path, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    struct json_array tokens;
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_list(cli, client, path, &api_token_page_schema, 1000, &tokens, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){">ID", "~NAME", "SCOPES", "/9MADE", "/8LAST USED", "EXPIRES",
                                     "", NULL});
    for (size_t i = 0; i < tokens.count; i++) {
        const struct api_token *token = (const struct api_token *)tokens.items + i;
        TABLE_ROW(&table, output_number(cli->arena, token->id),
                  output_text(cli->arena, token->name),
                  output_texts(cli->arena, &token->scopes, ","),
                  output_instant(cli->arena, token->created_ms),
                  output_instant(cli->arena, token->last_used_ms),
                  token->expires_ms ? output_instant(cli->arena, token->expires_ms) : "never",
                  token->is_current ? "this" : "");
    }
    table_show(&table, cli);
    return 0;
}

static int run_token_list(void *context, const void *options, struct error *error)
{
    (void)options;
    return list(context, "/v1/tokens", error);
}

const struct command command_token_list = {
    .name = "token list",
    .summary = "Lists the account's tokens and when each was used last.",
    .example = "souk token list",
    .run = run_token_list,
};

static int run_session_list(void *context, const void *options, struct error *error)
{
    (void)options;
    return list(context, "/v1/sessions", error);
}

const struct command command_session_list = {
    .name = "session list",
    .summary = "Lists where the account is signed in.",
    .example = "souk session list",
    .run = run_session_list,
};

/* ---- make -------------------------------------------------------------------------------------
 */

struct token_make_options {
    const char *name;
    struct option_list scopes;
    int64_t expires_in_ms;
};

static const struct option make_options[] = {
    {"name", OPTION_TEXT, offsetof(struct token_make_options, name), "NAME",
     .help = "What the token is for.", .is_positional = true, .is_required = true},
    {"scopes", OPTION_LIST, offsetof(struct token_make_options, scopes), "SCOPES",
     .help = "What it may do: read, lend, borrow, operate.", .is_required = true},
    {"expires_in", OPTION_DURATION, offsetof(struct token_make_options, expires_in_ms), "SPAN",
     .help = "How long it works; without, until it is revoked.", .fields = "expires_ms",
     .minimum = 1000, .maximum = INT64_C(3162240000000)},
};

static int run_make(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct token_make_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 8192);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "name", wanted->name);
    json_key(&writer, "scopes");
    json_array_begin(&writer);
    for (size_t i = 0; i < wanted->scopes.count; i++)
        json_string(&writer, wanted->scopes.items[i]);
    json_array_end(&writer);
    if (wanted->expires_in_ms > 0)
        json_field_i64(&writer, "expires_ms", clock_utc_ms(&clock_system) + wanted->expires_in_ms);
    json_object_end(&writer);
    struct api_token token = {0};
    struct client_answer answer = {&api_token_schema, &token, {0}};
    if (buffer_check(&body, error) < 0 ||
        client_post(client, cli->arena, "/v1/tokens", buffer_text(&body), &answer, error) < 0)
        return -1;
    if (cli->common.json) {
        output_json(answer.json);
        return 0;
    }
    printf("%s\n", output_text(cli->arena, token.token));
    output_note(cli, "It is shown this once; the market keeps only its hash.");
    return 0;
}

const struct command command_token_make = {
    .name = "token make",
    .summary = "Makes a token with the scopes given.",
    .example = "souk token make laptop --scopes read,borrow --expires-in 90d",
    COMMAND_OPTIONS(make_options, token_make_options),
    .run = run_make,
};

/* ---- revoke, end ------------------------------------------------------------------------------
 */

struct token_id_options {
    uint64_t id;
};

static const struct option id_options[] = {
    {"id", OPTION_U64, offsetof(struct token_id_options, id), "ID", .help = "As the list shows it.",
     .is_positional = true, .is_required = true},
};

static int end(struct cli *cli, const char *kind, uint64_t id, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const char *path = arena_format(cli->arena, "/v1/%ss/%s", kind, output_number(cli->arena, id));
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_send(client, cli->arena, "DELETE", path, (struct text){0}, NULL, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(
            text_of(arena_format(cli->arena, "{\"id\":%s}", output_number(cli->arena, id))));
    output_note(cli, "The %s works no more.", kind);
    return 0;
}

static int run_revoke(void *context, const void *options, struct error *error)
{
    return end(context, "token", ((const struct token_id_options *)options)->id, error);
}

const struct command command_token_revoke = {
    .name = "token revoke",
    .summary = "Revokes a token at once.",
    .example = "souk token revoke 12",
    COMMAND_OPTIONS(id_options, token_id_options),
    .run = run_revoke,
};

static int run_session_end(void *context, const void *options, struct error *error)
{
    return end(context, "session", ((const struct token_id_options *)options)->id, error);
}

const struct command command_session_end = {
    .name = "session end",
    .summary = "Signs the account out somewhere else.",
    .example = "souk session end 31",
    COMMAND_OPTIONS(id_options, token_id_options),
    .run = run_session_end,
};
