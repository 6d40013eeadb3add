/*
 * Price locks that are kept, each once for all who have the same.
 *
 * The leases of a job are made at one time, and so are those of many jobs: what they lock is the
 * posted prices of the same slots. A lock is longer than the rest of a lease.
 */
#pragma once

#include "market/price.h"

#include <stddef.h>

/* Zeroed locks are empty. */
struct price_locks {
    struct price_lock_kept **slots;
    size_t slot_count;
    size_t count;
    struct price_lock_kept *last; /* the one that was taken last, and likely is next */
};

/* Frees what is still held too. */
void price_locks_done(struct price_locks *locks);

/* An equal one, held once more. */
const struct price_lock *price_locks_take(struct price_locks *locks, const struct price_lock *lock);
/* One that was taken; NULL is fine. */
void price_locks_give(struct price_locks *locks, const struct price_lock *lock);
