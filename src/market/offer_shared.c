#include "market/offer_shared.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 5 };

/* The five as bytes; the arrays first, for they are aligned. */
static void parts_of(const struct offer_terms *terms, struct text out_parts[PARTS])
{
    out_parts[0] = (struct text){terms->spans.items, terms->spans.count * sizeof(struct span)};
    out_parts[1] =
        (struct text){terms->accounts.items, terms->accounts.count * sizeof(struct offer_account)};
    out_parts[2] = terms->gpu_model;
    out_parts[3] = terms->labels;
    out_parts[4] = terms->schedule;
}

/* FNV-1a over the sizes and the bytes. */
static uint64_t hash_of(const struct text parts[PARTS])
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < PARTS; i++) {
        hash = (hash ^ parts[i].size) * prime;
        for (size_t k = 0; k < parts[i].size; k++)
            hash = (hash ^ (unsigned char)parts[i].data[k]) * prime;
    }
    return hash ^ hash >> 32;
}

static struct offer_terms terms_of(const struct offer_shared *shared)
{
    return (struct offer_terms){.gpu_model = shared->gpu_model,
                                .labels = shared->labels,
                                .schedule = shared->schedule,
                                .accounts = shared->accounts,
                                .spans = shared->spans};
}

static bool is_equal(const struct offer_shared *shared, const struct text parts[PARTS])
{
    const struct offer_terms terms = terms_of(shared);
    struct text own[PARTS];
    parts_of(&terms, own);
    for (int i = 0; i < PARTS; i++)
        if (!text_equal(own[i], parts[i]))
            return false;
    return true;
}

static void grow(struct offer_shares *shares)
{
    const size_t slot_count = shares->slot_count ? 2 * shares->slot_count : 16;
    struct offer_shared **slots = calloc(slot_count, sizeof(struct offer_shared *));
    ASSERT(slots);
    for (size_t i = 0; i < shares->slot_count; i++)
        for (struct offer_shared *shared = shares->slots[i], *next; shared; shared = next) {
            struct offer_shared **slot = &slots[shared->hash & (slot_count - 1)];
            next = shared->next;
            shared->next = *slot;
            *slot = shared;
        }
    free(shares->slots);
    shares->slots = slots;
    shares->slot_count = slot_count;
}

static void *put(char **at, struct text part)
{
    void *start = part.size ? memcpy(*at, part.data, part.size) : NULL;
    *at += part.size;
    return start;
}

static struct offer_shared *shared_new(const struct offer_terms *terms,
                                       const struct text parts[PARTS], uint64_t hash)
{
    size_t size = sizeof(struct offer_shared);
    for (int i = 0; i < PARTS; i++)
        size += parts[i].size;
    struct offer_shared *shared = malloc(size);
    ASSERT(shared);
    char *at = (char *)(shared + 1);
    *shared = (struct offer_shared){.hash = hash};
    shared->spans = (struct json_array){put(&at, parts[0]), terms->spans.count};
    shared->accounts = (struct json_array){put(&at, parts[1]), terms->accounts.count};
    shared->gpu_model = (struct text){put(&at, parts[2]), parts[2].size};
    shared->labels = (struct text){put(&at, parts[3]), parts[3].size};
    shared->schedule = (struct text){put(&at, parts[4]), parts[4].size};
    return shared;
}

const struct offer_shared *offer_shares_take(struct offer_shares *shares,
                                             const struct offer_terms *terms)
{
    struct text parts[PARTS];
    parts_of(terms, parts);
    const uint64_t hash = hash_of(parts);
    if (shares->count >= shares->slot_count)
        grow(shares);
    struct offer_shared **slot = &shares->slots[hash & (shares->slot_count - 1)];
    struct offer_shared *shared = *slot;
    while (shared && (shared->hash != hash || !is_equal(shared, parts)))
        shared = shared->next;
    if (!shared) {
        shared = shared_new(terms, parts, hash);
        shared->next = *slot;
        *slot = shared;
        shares->count++;
    }
    shared->holders++;
    return shared;
}

void offer_shares_give(struct offer_shares *shares, const struct offer_shared *shared)
{
    struct offer_shared **link = &shares->slots[shared->hash & (shares->slot_count - 1)];
    while (*link != shared) {
        ASSERT(*link);
        link = &(*link)->next;
    }
    struct offer_shared *kept = *link;
    if (--kept->holders > 0)
        return;
    *link = kept->next;
    shares->count--;
    free(kept);
}

void offer_shares_done(struct offer_shares *shares)
{
    for (size_t i = 0; i < shares->slot_count; i++)
        for (struct offer_shared *shared = shares->slots[i], *next; shared; shared = next) {
            next = shared->next;
            free(shared);
        }
    free(shares->slots);
    *shares = (struct offer_shares){0};
}
