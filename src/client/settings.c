#include "client/settings.h"

#include "client/markets.h"

#include <stdlib.h>
#include <string.h>

static const struct option setting_options[] = {
    {"json", OPTION_FLAG, offsetof(struct settings, json)},
    {"wide", OPTION_FLAG, offsetof(struct settings, is_wide)},
    {"quiet", OPTION_FLAG, offsetof(struct settings, quiet)},
    {"no_color", OPTION_FLAG, offsetof(struct settings, no_color), .environment = "NO_COLOR"},
    {"server", OPTION_LIST, offsetof(struct settings, servers), "URL"},
    {"fingerprint", OPTION_TEXT, offsetof(struct settings, fingerprint), "HEX"},
    {"token", OPTION_TEXT, offsetof(struct settings, token), "TOKEN", .is_secret = true},
    {"config_dir", OPTION_PATH, offsetof(struct settings, config_dir), "DIR"},
};

static const struct command no_command = {.name = "settings"};
static const struct command *const no_commands[] = {&no_command, NULL};
static const struct program settings_program = {
    .name = "souk",
    .common = setting_options,
    .common_count = sizeof(setting_options) / sizeof(*setting_options),
    .commands = no_commands,
    .has_others = true,
};

int settings_read(struct arena *arena, const struct option_sources *sources, struct settings *out,
                  struct error *error)
{
    bool wants_help;
    int none = 0;
    *out = (struct settings){0};
    return options_parse(arena, &settings_program, &no_command, sources, out, &none, &wants_help,
                         error);
}

int settings_read_files(struct arena *arena, const char *config_dir, struct settings *out,
                        struct error *error)
{
    static char *const nothing[] = {NULL};
    const struct option_sources sources = {.environment = nothing, .config_dir = config_dir};
    *out = (struct settings){0};
    if (!config_dir)
        return 0;
    return settings_read(arena, &sources, out, error);
}

bool settings_has_server(const struct settings *settings, const char *server)
{
    for (size_t i = 0; i < settings->servers.count; i++)
        if (markets_is_same(text_of(settings->servers.items[i]), text_of(server)))
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
        return settings_has_server(files, server);
    if (!is_equal(found, of_environment))
        return true;                           /* told with the server */
    const char *named = getenv("SOUK_SERVER"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return !named || !named[0] || settings_has_server(environment, server);
}

static const char *string_of(struct arena *arena, struct text text)
{
    return text.size ? arena_copy_string(arena, text) : NULL;
}

/* A market that is told to have another key than the one kept is another. */
static void take_kept(struct arena *arena, const struct kept_markets *kept,
                      struct market_identity *identity)
{
    const struct kept_market *markets = kept->markets.items;
    for (size_t i = 0; i < kept->markets.count && !identity->token; i++) {
        const char *fingerprint = string_of(arena, markets[i].fingerprint);
        if (!markets_is_same(markets[i].server, text_of(identity->server)) ||
            (identity->fingerprint && fingerprint && !is_equal(identity->fingerprint, fingerprint)))
            continue;
        identity->token = string_of(arena, markets[i].token);
        identity->fingerprint = identity->fingerprint ? identity->fingerprint : fingerprint;
    }
}

int settings_find_identity(struct arena *arena, const char *config_dir,
                           struct market_identity *identity, struct error *error)
{
    struct settings files, environment;
    struct kept_markets kept = {0};
    const struct option_sources all = {.config_dir = config_dir};
    if (settings_read_files(arena, config_dir, &files, error) < 0 ||
        settings_read(arena, &all, &environment, error) < 0 ||
        (config_dir && markets_read(arena, config_dir, &kept, error) < 0))
        return -1;
    if (identity->fingerprint &&
        !is_for_server(identity->fingerprint, files.fingerprint, environment.fingerprint, &files,
                       &environment, identity->server))
        identity->fingerprint = NULL;
    if (identity->token && !is_for_server(identity->token, files.token, environment.token, &files,
                                          &environment, identity->server)) {
        identity->token = NULL;
        identity->elsewhere = files.servers.count ? files.servers.items[0] : NULL;
    }
    if (identity->token && is_equal(identity->token, files.token) && files.fingerprint &&
        !is_equal(identity->fingerprint, files.fingerprint))
        identity->token = NULL;
    take_kept(arena, &kept, identity);
    return 0;
}
