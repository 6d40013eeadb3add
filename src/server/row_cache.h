/*
 * Row cache: rows that nearly every request looks up (tokens, accounts, machines), by the value
 * they were found by, each good until it changes. Main thread.
 */
#pragma once

#include "base/arena.h"
#include "server/version.h"

struct row_cache;

struct row_cache *row_cache_new(const struct versions *versions, size_t bytes_max);
void row_cache_free(struct row_cache *cache); /* NULL is fine */

/* Whether rows of this table are kept when found by this column. */
bool row_cache_takes(enum table table, const struct store_filter *filter);

/* A copy in the arena; NULL: not here, or it may have changed. */
const struct store_value *row_cache_find(struct row_cache *cache, struct arena *arena,
                                         enum table table, const struct store_filter *filter);
/* Keeps a copy of what was read after the marks were made. */
void row_cache_put(struct row_cache *cache, enum table table, const struct store_filter *filter,
                   const struct version_marks *marks, const struct store_value *values);
