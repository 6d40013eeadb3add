#include "market/price_locks.h"

#include "base/assert.h"

#include <stdlib.h>

struct price_lock_kept {
    struct price_lock lock;       /* first: who holds it knows only this */
    struct price_lock_kept *next; /* of the same slot */
    uint64_t hash;
    size_t holders;
};

static uint64_t add_to_hash(uint64_t hash, int64_t value)
{
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Over what price_lock_equal compares. */
static uint64_t hash_of(const struct price_lock *lock)
{
    const int64_t whole[] = {lock->first_slot, lock->offset_ms,    lock->slot_count, lock->rush_ms,
                             lock->from_ms,    lock->before_micro, lock->before_rest};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        hash = add_to_hash(hash, whole[i]);
    for (int64_t i = 0; i < lock->slot_count; i++)
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
            hash = add_to_hash(hash, price_vector_get(&lock->slots[i], r));
    return hash;
}

static void grow(struct price_locks *locks)
{
    const size_t slot_count = locks->slot_count ? 2 * locks->slot_count : 16;
    struct price_lock_kept **slots = calloc(slot_count, sizeof(struct price_lock_kept *));
    ASSERT(slots);
    for (size_t i = 0; i < locks->slot_count; i++)
        for (struct price_lock_kept *kept = locks->slots[i], *next; kept; kept = next) {
            struct price_lock_kept **slot = &slots[kept->hash & (slot_count - 1)];
            next = kept->next;
            kept->next = *slot;
            *slot = kept;
        }
    free(locks->slots);
    locks->slots = slots;
    locks->slot_count = slot_count;
}

static struct price_lock_kept *find(struct price_locks *locks, const struct price_lock *lock)
{
    if (locks->last && price_lock_equal(&locks->last->lock, lock))
        return locks->last;
    if (locks->count >= locks->slot_count)
        grow(locks);
    const uint64_t hash = hash_of(lock);
    struct price_lock_kept **slot = &locks->slots[hash & (locks->slot_count - 1)];
    struct price_lock_kept *kept = *slot;
    while (kept && (kept->hash != hash || !price_lock_equal(&kept->lock, lock)))
        kept = kept->next;
    if (kept)
        return kept;
    kept = malloc(sizeof(*kept));
    ASSERT(kept);
    *kept = (struct price_lock_kept){.lock = *lock, .next = *slot, .hash = hash};
    *slot = kept;
    locks->count++;
    return kept;
}

const struct price_lock *price_locks_take(struct price_locks *locks, const struct price_lock *lock)
{
    struct price_lock_kept *kept = find(locks, lock);
    kept->holders++;
    locks->last = kept;
    return &kept->lock;
}

void price_locks_give(struct price_locks *locks, const struct price_lock *lock)
{
    if (!lock)
        return;
    const uint64_t hash = ((const struct price_lock_kept *)lock)->hash;
    struct price_lock_kept **link = &locks->slots[hash & (locks->slot_count - 1)];
    while (*link && &(*link)->lock != lock)
        link = &(*link)->next;
    struct price_lock_kept *kept = *link;
    ASSERT(kept);
    if (--kept->holders > 0)
        return;
    *link = kept->next;
    locks->count--;
    if (locks->last == kept)
        locks->last = NULL;
    free(kept);
}

void price_locks_done(struct price_locks *locks)
{
    for (size_t i = 0; i < locks->slot_count; i++)
        for (struct price_lock_kept *kept = locks->slots[i], *next; kept; kept = next) {
            next = kept->next;
            free(kept);
        }
    free(locks->slots);
    *locks = (struct price_locks){0};
}
