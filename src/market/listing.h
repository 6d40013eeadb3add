/*
 * Listing: open offers as entries of a book, so that matching looks at few of them.
 *
 * Keys are levels (level.h). An offer's are rounded down and so are a wish's, so that nobody who
 * passes a wish's tests is overlooked; who is found may still fail them.
 *
 * An offer's score, the larger the better:
 *
 *     quality = 4 x reliability / 50 + 2 x half octaves of speed above 0.05 + nearness
 *     score   = quality x 2^40 + (2^40 - 1 - the id of the offer's last lease, or its own)
 *
 * reliability is in thousandths; nearness is 10 less the octaves of the RTT to the market above
 * 1 ms, from 0 to 10 (0: not known): the RTT between two workers is the sum of theirs. Offers of
 * the same quality take turns: the one whose last lease is longest ago comes first. Of the price
 * only this is in it: offers that ask more for some resource than is posted have quality 0. All
 * others are paid the posted price, and a lower minimum wins nothing.
 */
#pragma once

#include "market/book.h"
#include "market/labels.h"
#include "market/wish.h"

/* What most wishes name comes first: a search reads only the rows of keys that its wish names. */
enum listing_key {
    LISTING_CORES, /* free: the first five */
    LISTING_RAM,
    LISTING_DISK,
    LISTING_GPUS,
    LISTING_BANDWIDTH,
    LISTING_OPEN_UNTIL,
    LISTING_MAX_LEASE,
    LISTING_CORE_CHEAPNESS, /* the minimum per core-hour, negated */
    LISTING_SPEED,
    LISTING_RELIABILITY,
    LISTING_GPU_RAM,
    LISTING_NEARNESS, /* the RTT in us, negated */
    LISTING_GPU_CHEAPNESS,
    LISTING_SLOWNESS,  /* the speed, negated */
    LISTING_ALL_CORES, /* offered, whatever is leased of it: the last five */
    LISTING_ALL_RAM,
    LISTING_ALL_DISK,
    LISTING_ALL_GPUS,
    LISTING_ALL_BANDWIDTH,
    LISTING_KEY_COUNT,
};
enum { LISTING_ROOM_KEYS = 5 };

/* Open offers of machines that are online. */
struct listing {
    struct book *book; /* of struct offer */
    struct listing_bounds *bounds;
    struct labels labels;
    struct price_vector price; /* posted */
    int64_t began_ms;          /* the first time there was an offer; 0: never */
};

void listing_init(struct listing *listing);
void listing_done(struct listing *listing);

/* After any change of the offer or its machine: puts it in, changes it or takes it out. */
void listing_update(struct listing *listing, struct offer *offer, int64_t now_ms);
/* After a change of its leases or its machine's reputation alone: the same, but quicker. */
void listing_update_leased(struct listing *listing, struct offer *offer, int64_t now_ms);
void listing_remove(struct listing *listing, struct offer *offer);

int64_t listing_quality(const struct listing *listing, const struct offer *offer);
/* Of its minimum, some part is more than what is posted. */
bool listing_is_dear(const struct price_vector *posted, const struct offer *offer);

/* What an offer must have free now, or must have in all once leases have ended. */
enum listing_room { LISTING_FREE, LISTING_ALL };
/* Who asks more than is posted is left out unless `with_dearer`. */
struct book_wish listing_wish(const struct listing *listing, const struct match_wish *wish,
                              enum machine_role role, enum listing_room room, bool with_dearer);
/* Only those within so much of the market. */
void listing_want_near(const struct listing *listing, struct book_wish *wish, int64_t rtt_us);
/* Only those that offer no other role than server. */
void listing_want_dedicated(struct book_wish *wish);
