/*
 * Catalogue, inside: how one is filled, row by row.
 */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "cloud/catalogue.h"

#include <stdatomic.h>

struct catalogue {
    atomic_uint users; /* it is freed by the last */
    struct arena *arena;
    char date[11];
    int64_t date_days;
    const char *source;
    struct buffer types;     /* struct catalogue_type */
    struct buffer functions; /* struct catalogue_function */
    struct map by_name;      /* "region/name" to the type's index, a size_t */
};

struct catalogue *catalogue_new(void);
/* The same once more, to be freed once more: one that is filled changes no more. */
struct catalogue *catalogue_share(struct catalogue *catalogue);

/* INVALID for what is no day, or is not plain. */
MUST_CHECK int catalogue_set_date(struct catalogue *catalogue, struct text date,
                                  struct error *error);
MUST_CHECK int catalogue_set_source(struct catalogue *catalogue, struct text source,
                                    struct error *error);

/* Copies the texts, which are ended by a zero byte. CONFLICT for a type that is there already in
 * that region; EXHAUSTED past the maximum. */
MUST_CHECK int catalogue_add_type(struct catalogue *catalogue, const struct catalogue_type *type,
                                  struct error *error);
MUST_CHECK int catalogue_add_function(struct catalogue *catalogue,
                                      const struct catalogue_function *function,
                                      struct error *error);

/* A field of a row: "" is 0. `name` is the column's, for the error. */
MUST_CHECK int catalogue_parse_count(struct text field, const char *name, int64_t *out,
                                     struct error *error);
MUST_CHECK int catalogue_parse_usd(struct text field, const char *name, int64_t *out_micro,
                                   struct error *error);
/* A decimal number times `scale`, rounded: "0.5" GiB is 512 MiB. */
MUST_CHECK int catalogue_parse_scaled(struct text field, const char *name, int64_t scale,
                                      int64_t *out, struct error *error);
/* A name: plain, not empty unless `may_be_empty`, CATALOGUE_NAME_MAX bytes at most; copied. */
MUST_CHECK int catalogue_parse_name(struct arena *arena, struct text field, const char *name,
                                    bool may_be_empty, const char **out, struct error *error);
