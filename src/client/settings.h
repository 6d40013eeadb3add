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
