/*
 * Settings: what environment and files say of the market and who one is there, for whoever is no
 * command of its own.
 */
#pragma once

#include "base/options.h"

/* The options of every command: their file may name any of them. */
struct settings {
    bool json, is_wide, quiet, no_color;
    const char *config_dir, *token, *fingerprint;
    struct option_list servers;
};

MUST_CHECK int settings_read(struct arena *arena, const struct option_sources *sources,
                             struct settings *out, struct error *error);
/* Without the environment; no folder, no settings. */
MUST_CHECK int settings_read_files(struct arena *arena, const char *config_dir,
                                   struct settings *out, struct error *error);
bool settings_has_server(const struct settings *settings, const char *server);

/* Who one is at which market. */
struct market_identity {
    const char *server;
    const char *token, *fingerprint; /* NULL: none */
    const char *elsewhere; /* the market that one is signed in at, as the token was that one's */
};

/* Leaves token and fingerprint where they are for the server, and puts those kept for it in their
 * place otherwise. The files' are for the files' market; the environment's for SOUK_SERVER, or for
 * any where that is not set; any others for the server they were told with. */
MUST_CHECK int settings_find_identity(struct arena *arena, const char *config_dir,
                                      struct market_identity *identity, struct error *error);
