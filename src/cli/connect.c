#include "cli/connect.h"

#include "cli/output.h"
#include "client/api.h"

static int refuse(const struct cli *cli, struct error *error)
{
    const char *server = cli->common.server;
    if (!cli->common.elsewhere)
        return error_set(
            error, ERROR_REFUSED,
            "not signed in at %.100s; sign in: souk account login --name NAME; or open an "
            "account: souk account open --name NAME",
            server);
    return error_set(error, ERROR_REFUSED,
                     "not signed in at %.60s, but at %.60s; sign in: souk account login --server "
                     "%.60s --name NAME; or open an account (souk account open)",
                     server, cli->common.elsewhere, server);
}

int cli_connect(const struct cli *cli, bool needs_token, struct client **out_client,
                struct error *error)
{
    const struct client_options options = {
        .server = cli->common.server,
        .token = cli->common.token,
        .fingerprint = cli->common.fingerprint,
    };
    if (needs_token && cli->common.server && !cli->common.token)
        return refuse(cli, error);
    return client_open(&options, out_client, error);
}

int cli_get(const struct cli *cli, struct client *client, const char *path,
            const struct json_schema *schema, void *value, bool *out_is_done, struct error *error)
{
    struct client_answer answer = {cli->common.json ? NULL : schema, value, {0}};
    if (client_get(client, cli->arena, path, &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    *out_is_done = cli->common.json;
    return 0;
}

int cli_has_karma(const struct cli *cli, struct client *client, bool *out_has_karma,
                  struct error *error)
{
    struct api_server server = {0};
    struct client_answer answer = {&api_server_schema, &server, {0}};
    if (client_get(client, cli->arena, "/v1/server", &answer, error) < 0)
        return -1;
    *out_has_karma = text_equal(server.economy, TEXT("karma"));
    return 0;
}

int cli_learn_unit(struct cli *cli, struct client *client, struct error *error)
{
    bool has_karma = false;
    if (cli->common.json || cli->unit)
        return 0;
    if (cli_has_karma(cli, client, &has_karma, error) < 0)
        return -1;
    cli->unit = has_karma ? &output_unit_karma : &output_unit_credits;
    return 0;
}

int cli_list(const struct cli *cli, struct client *client, const char *path,
             const struct json_schema *schema, size_t count_max, struct json_array *out_items,
             bool *out_is_done, struct error *error)
{
    struct text json;
    if (client_list(client, cli->arena, path, schema, count_max, out_items, &json, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(json);
    *out_is_done = cli->common.json;
    return 0;
}

int cli_post(const struct cli *cli, struct client *client, const char *path,
             const struct json_schema *schema, void *value, bool *out_is_done, struct error *error)
{
    struct client_answer answer = {cli->common.json ? NULL : schema, value, {0}};
    if (client_post(client, cli->arena, path, (struct text){0}, &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    *out_is_done = cli->common.json;
    return 0;
}
