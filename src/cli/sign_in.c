#include "cli/sign_in.h"

#include "base/file.h"
#include "base/json_schema.h"
#include "client/settings.h"

#include <stdlib.h>
#include <string.h>

enum { MARKETS_MAX = 100, MARKETS_SIZE_MAX = 1 << 18 };

/* ---- The markets before ---------------------------------------------------------------------- */

struct kept_market {
    struct text server, fingerprint, token;
};
static const struct json_field market_fields[] = {
    {"server", JSON_TEXT, offsetof(struct kept_market, server), .is_required = true,
     .size_max = 1024},
    {"fingerprint", JSON_TEXT, offsetof(struct kept_market, fingerprint)},
    {"token", JSON_TEXT, offsetof(struct kept_market, token), .is_required = true,
     .size_max = 1024},
};
static const struct json_schema market_schema =
    JSON_SCHEMA("market", market_fields, struct kept_market);

struct kept_markets {
    struct json_array markets;
};
static const struct json_field markets_fields[] = {
    {"markets", JSON_ARRAY, offsetof(struct kept_markets, markets), .is_required = true,
     .size_max = MARKETS_MAX, .schema = &market_schema},
};
static const struct json_schema markets_schema =
    JSON_SCHEMA("markets", markets_fields, struct kept_markets);

static const char *markets_path(const struct cli *cli)
{
    return arena_format(cli->arena, "%s/markets", cli->common.config_dir);
}

static int read_markets(const struct cli *cli, struct kept_markets *out, struct error *error)
{
    const char *path = markets_path(cli);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, MARKETS_SIZE_MAX);
    *out = (struct kept_markets){0};
    if (file_read(path, &json, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    if (json_read(cli->arena, buffer_text(&json), &markets_schema, out, error) < 0)
        return error_wrap(error, "\"%.100s\"", path);
    return 0;
}

static struct text plain(struct text url)
{
    while (url.size && url.data[url.size - 1] == '/')
        url.size--;
    return url;
}

static bool is_same(struct text left, struct text right)
{
    return text_equal(plain(left), plain(right));
}

/* Writes all but the one of `server`, and `added`, which may be NULL. */
static int change_markets(const struct cli *cli, const char *server,
                          const struct kept_market *added, struct error *error)
{
    struct kept_markets before;
    if (read_markets(cli, &before, error) < 0)
        return -1;
    if (before.markets.count == 0 && !added)
        return 0;
    const struct kept_market *markets = before.markets.items;
    struct kept_market *after =
        arena_alloc(cli->arena, (before.markets.count + 1) * sizeof(*after));
    size_t count = 0;
    for (size_t i = 0; i < before.markets.count; i++)
        if (!is_same(markets[i].server, text_of(server)) &&
            !(added && is_same(markets[i].server, added->server)))
            after[count++] = markets[i];
    if (added)
        after[count++] = *added;
    if (count > MARKETS_MAX)
        return error_set(error, ERROR_EXHAUSTED,
                         "tokens of %d markets are kept in %.100s already: sign out of one",
                         MARKETS_MAX, markets_path(cli));
    const struct kept_markets written = {.markets = {after, count}};
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, MARKETS_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &markets_schema, &written);
    if (buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    return file_replace(markets_path(cli), &part, 1, 0600, error);
}

/* ---- What each source says ------------------------------------------------------------------- */

/* Of the files; and of the environment, which goes before them. */
static int read_settings(const struct cli *cli, bool has_environment, struct settings *out,
                         struct error *error)
{
    static char *const nothing[] = {NULL};
    const struct option_sources sources = {.environment = has_environment ? NULL : nothing,
                                           .config_dir = cli->common.config_dir};
    return settings_read(cli->arena, &sources, out, error);
}

static bool has_server(const struct settings *settings, const char *server)
{
    for (size_t i = 0; i < settings->servers.count; i++)
        if (is_same(text_of(settings->servers.items[i]), text_of(server)))
            return true;
    return false;
}

static bool is_equal(const char *left, const char *right)
{
    return left == right || (left && right && !strcmp(left, right));
}

/* Whether what is found belongs to the server that is meant. */
static bool is_for_server(const char *found, const char *of_files, const char *of_environment,
                          const struct settings *files, const struct settings *environment,
                          const char *server)
{
    if (is_equal(found, of_files))
        return has_server(files, server);
    if (!is_equal(found, of_environment))
        return true;                           /* the command line's */
    const char *named = getenv("SOUK_SERVER"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return !named || !named[0] || has_server(environment, server);
}

static const char *string_of(struct arena *arena, struct text text)
{
    return text.size ? arena_copy_string(arena, text) : NULL;
}

int sign_in_find(struct cli *cli, struct error *error)
{
    struct cli_common *common = &cli->common;
    struct settings files, environment;
    struct kept_markets kept;
    if (!common->server)
        return 0;
    if (read_settings(cli, /* has_environment= */ false, &files, error) < 0 ||
        read_settings(cli, /* has_environment= */ true, &environment, error) < 0 ||
        read_markets(cli, &kept, error) < 0)
        return -1;
    if (common->fingerprint &&
        !is_for_server(common->fingerprint, files.fingerprint, environment.fingerprint, &files,
                       &environment, common->server))
        common->fingerprint = NULL;
    if (common->token && !is_for_server(common->token, files.token, environment.token, &files,
                                        &environment, common->server)) {
        common->token = NULL;
        common->elsewhere = files.servers.count ? files.servers.items[0] : NULL;
    }
    /* A market that is told to have another key than the one signed in to is another. */
    if (common->token && is_equal(common->token, files.token) && files.fingerprint &&
        !is_equal(common->fingerprint, files.fingerprint))
        common->token = NULL;
    const struct kept_market *markets = kept.markets.items;
    for (size_t i = 0; i < kept.markets.count && !common->token; i++) {
        const char *fingerprint = string_of(cli->arena, markets[i].fingerprint);
        if (!is_same(markets[i].server, text_of(common->server)) ||
            (common->fingerprint && fingerprint && !is_equal(common->fingerprint, fingerprint)))
            continue;
        common->token = string_of(cli->arena, markets[i].token);
        common->fingerprint = common->fingerprint ? common->fingerprint : fingerprint;
    }
    return 0;
}

int sign_in_find_before(const struct cli *cli, const char **out_token, struct error *error)
{
    struct kept_markets kept;
    *out_token = NULL;
    if (read_markets(cli, &kept, error) < 0)
        return -1;
    const struct kept_market *markets = kept.markets.items;
    for (size_t i = 0; i < kept.markets.count; i++)
        if (is_same(markets[i].server, text_of(cli->common.server)))
            *out_token = string_of(cli->arena, markets[i].token);
    return 0;
}

/* ---- Signing in and out ---------------------------------------------------------------------- */

/* The old token goes before the server changes, and the new one comes after: whenever it breaks
 * off, no token stands beside a server that it is not for. */
static int store_sign_in(const char *folder, const struct option_setting settings[2],
                         const char *token, struct error *error)
{
    const struct option_setting none = {"token", NULL}, secret = {"token", token};
    if (options_file_store(folder, /* is_secret= */ true, &none, 1, error) < 0 ||
        options_file_store(folder, /* is_secret= */ false, settings, 2, error) < 0)
        return -1;
    return options_file_store(folder, /* is_secret= */ true, &secret, 1, error);
}

int sign_in_keep(const struct cli *cli, const char *token, struct error *error)
{
    const struct cli_common *common = &cli->common;
    const struct option_setting settings[] = {
        {"server", common->server},
        {"fingerprint", common->fingerprint}, /* NULL: removes an old one */
    };
    struct settings files;
    if (read_settings(cli, /* has_environment= */ false, &files, error) < 0)
        return -1;
    const bool is_moving =
        files.token && files.servers.count > 0 && !has_server(&files, common->server);
    const struct kept_market before = {
        .server = is_moving ? text_of(files.servers.items[0]) : (struct text){0},
        .fingerprint = files.fingerprint ? text_of(files.fingerprint) : (struct text){0},
        .token = files.token ? text_of(files.token) : (struct text){0}};
    if (change_markets(cli, common->server, is_moving ? &before : NULL, error) < 0)
        return -1;
    return store_sign_in(common->config_dir, settings, token, error);
}

int sign_in_forget(const struct cli *cli, struct error *error)
{
    const struct option_setting secret = {"token", NULL};
    struct settings files;
    if (read_settings(cli, /* has_environment= */ false, &files, error) < 0)
        return -1;
    if (files.servers.count > 0 && !has_server(&files, cli->common.server))
        return change_markets(cli, cli->common.server, NULL, error);
    return options_file_store(cli->common.config_dir, /* is_secret= */ true, &secret, 1, error);
}
