/*
 * Shared terms: what of offers' terms is long and often the same (texts, accounts, spans), kept
 * once for all offers that have it.
 *
 * A schedule of eight weeks is a kilobyte of spans, and a lab of a thousand machines has one.
 */
#pragma once

#include "market/offer.h"

struct offer_shared {
    struct text gpu_model; /* as in struct offer_terms; all in one block with this */
    struct text labels;
    struct text schedule;
    struct json_array accounts;
    struct json_array spans;
    struct offer_shared *next; /* of the same slot */
    uint64_t hash;
    size_t holders;
};

/* Zeroed shares are empty. */
struct offer_shares {
    struct offer_shared **slots;
    size_t slot_count;
    size_t count;
};

/* Frees what is still held too. */
void offer_shares_done(struct offer_shares *shares);

/* What these terms have of it, held once more. */
const struct offer_shared *offer_shares_take(struct offer_shares *shares,
                                             const struct offer_terms *terms);
void offer_shares_give(struct offer_shares *shares, const struct offer_shared *shared);
