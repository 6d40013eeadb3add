/* Connecting, and what is asked of a market in one request. */
#include "base/memory.h"
#include "base/options.h"
#include "client/api.h"
#include "client/settings.h"
#include "library/handle.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Where the market is ----------------------------------------------------------------------
 */

/* What is told wins over the environment, that over the files; no market gets another's token. No
 * home, no files. */
static int find_market(struct arena *arena, const struct souk_connect_options *wanted,
                       struct client_options *out, struct error *error)
{
    struct settings all;
    struct error absent;
    const struct option_sources sources = {.config_dir = wanted->config_dir};
    *out = (struct client_options){wanted->server, wanted->token, wanted->fingerprint};
    if (wanted->server && wanted->token && wanted->fingerprint)
        return 0;
    if (settings_read(arena, &sources, &all, error) < 0)
        return -1;
    const char *config_dir = wanted->config_dir ? wanted->config_dir : all.config_dir;
    if (!config_dir &&
        options_directory(arena, OPTION_DIRECTORY_CONFIG, NULL, &config_dir, &absent) < 0)
        config_dir = NULL;
    struct market_identity found = {out->server         ? out->server
                                    : all.servers.count ? all.servers.items[0]
                                                        : NULL,
                                    out->token ? out->token : all.token,
                                    out->fingerprint ? out->fingerprint : all.fingerprint, NULL};
    if (!found.server)
        return error_set(error, ERROR_INVALID,
                         "no market is known; name one, set SOUK_SERVER, or run: souk account open "
                         "--server URL --name NAME");
    if (settings_find_identity(arena, config_dir, &found, error) < 0)
        return -1;
    out->server = found.server;
    out->token = out->token ? out->token : found.token;
    out->fingerprint = out->fingerprint ? out->fingerprint : found.fingerprint;
    return 0;
}

int souk_client_connect(const struct souk_connect_options *options, struct souk_client **out_client,
                        struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct souk_connect_options wanted;
    struct client_options found;
    struct error error;
    handle_options(&wanted, sizeof(wanted), options);
    if (find_market(arena, &wanted, &found, &error) < 0)
        return handle_fail(out_error, &error);
    AUTO(client) struct client *client = NULL;
    struct client_answer answer = {0};
    if (client_open(&found, &client, &error) < 0)
        return handle_fail(out_error, &error);
    if (client_get(client, arena, found.token ? "/v1/account" : "/v1/server", &answer, &error) < 0)
        return handle_fail_request(out_error, &error, client);
    struct souk_client *made = memory_zeroed(1, sizeof(*made));
    pthread_mutex_init(&made->mutex, NULL);
    made->client = TAKE(client);
    *out_client = made;
    return 0;
}

void souk_client_free(struct souk_client *client)
{
    if (!client)
        return;
    client_free(client->client);
    pthread_mutex_destroy(&client->mutex);
    free(client);
}

const char *souk_client_server(const struct souk_client *client)
{
    return client_server(client->client);
}

/* ---- Requests ---------------------------------------------------------------------------------
 */

static int ask(struct souk_client *client, bool is_post, const char *path, char **out_json,
               struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct client_answer answer = {0};
    struct error error;
    pthread_mutex_lock(&client->mutex);
    int result = is_post
                     ? client_post(client->client, arena, path, (struct text){0}, &answer, &error)
                     : client_get(client->client, arena, path, &answer, &error);
    if (result < 0)
        handle_fill_request(out_error, &error, client->client);
    pthread_mutex_unlock(&client->mutex);
    if (result == 0 && out_json)
        *out_json = handle_text(answer.json);
    return result;
}

int souk_client_get(struct souk_client *client, const char *path, char **out_json,
                    struct souk_error *error)
{
    if (!path || !text_starts_with(text_of(path), TEXT("/v1/")))
        return handle_fail_with(error, SOUK_INVALID, "the path must begin with /v1/");
    return ask(client, false, path, out_json, error);
}

int souk_client_job(struct souk_client *client, uint64_t job, char **out_json,
                    struct souk_error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    return ask(client, false, arena_format(arena, "/v1/jobs/%" PRIu64, job), out_json, error);
}

int souk_client_cancel(struct souk_client *client, uint64_t job, char **out_json,
                       struct souk_error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    return ask(client, true, arena_format(arena, "/v1/jobs/%" PRIu64 "/cancel", job), out_json,
               error);
}

int souk_client_jobs(struct souk_client *client, size_t count_max, char **out_json,
                     struct souk_error *out_error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct json_array jobs;
    struct text json;
    struct error error;
    pthread_mutex_lock(&client->mutex);
    const int result = client_list(client->client, arena, "/v1/jobs", &api_job_page_schema,
                                   count_max, &jobs, &json, &error);
    if (result < 0)
        handle_fill_request(out_error, &error, client->client);
    pthread_mutex_unlock(&client->mutex);
    if (result == 0)
        *out_json = handle_text(json);
    return result;
}
