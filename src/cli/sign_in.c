#include "cli/sign_in.h"

#include "client/markets.h"
#include "client/settings.h"

int sign_in_find(struct cli *cli, struct error *error)
{
    struct cli_common *common = &cli->common;
    struct market_identity found = {common->server, common->token, common->fingerprint, NULL};
    if (!common->server)
        return 0;
    if (settings_find_identity(cli->arena, common->config_dir, &found, error) < 0)
        return -1;
    common->token = found.token;
    common->fingerprint = found.fingerprint;
    common->elsewhere = found.elsewhere;
    return 0;
}

int sign_in_find_before(const struct cli *cli, const char **out_token, struct error *error)
{
    struct kept_markets kept;
    *out_token = NULL;
    if (markets_read(cli->arena, cli->common.config_dir, &kept, error) < 0)
        return -1;
    const struct kept_market *markets = kept.markets.items;
    for (size_t i = 0; i < kept.markets.count; i++)
        if (markets_is_same(markets[i].server, text_of(cli->common.server)))
            *out_token = arena_copy_string(cli->arena, markets[i].token);
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
    if (settings_read_files(cli->arena, cli->common.config_dir, &files, error) < 0)
        return -1;
    const bool is_moving =
        files.token && files.servers.count > 0 && !settings_has_server(&files, common->server);
    const struct kept_market before = {
        .server = is_moving ? text_of(files.servers.items[0]) : (struct text){0},
        .fingerprint = files.fingerprint ? text_of(files.fingerprint) : (struct text){0},
        .token = files.token ? text_of(files.token) : (struct text){0}};
    if (markets_change(cli->arena, cli->common.config_dir, common->server,
                       is_moving ? &before : NULL, error) < 0)
        return -1;
    return store_sign_in(common->config_dir, settings, token, error);
}

int sign_in_forget(const struct cli *cli, struct error *error)
{
    const struct option_setting secret = {"token", NULL};
    struct settings files;
    if (settings_read_files(cli->arena, cli->common.config_dir, &files, error) < 0)
        return -1;
    if (files.servers.count > 0 && !settings_has_server(&files, cli->common.server))
        return markets_change(cli->arena, cli->common.config_dir, cli->common.server, NULL, error);
    return options_file_store(cli->common.config_dir, /* is_secret= */ true, &secret, 1, error);
}
