/*
 * Markets: the tokens of markets that one is signed in at besides the one of the settings, by their
 * address and key, in the file `markets` of the settings' folder, mode 0600:
 *
 *     {"markets":[{"server":"https://market.example","fingerprint":"...","token":"..."}]}
 */
#pragma once

#include "base/json_schema.h"

struct kept_market {
    struct text server, fingerprint, token;
};

struct kept_markets {
    struct json_array markets; /* struct kept_market */
};

/* No file: none. */
MUST_CHECK int markets_read(struct arena *arena, const char *config_dir, struct kept_markets *out,
                            struct error *error);
/* Writes all but the one of `server`, and `added`, which may be NULL. */
MUST_CHECK int markets_change(struct arena *arena, const char *config_dir, const char *server,
                              const struct kept_market *added, struct error *error);

/* Addresses of the same market: a slash at the end says nothing. */
bool markets_is_same(struct text left, struct text right);
