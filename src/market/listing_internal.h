/* What the books of offers and of waiting jobs share. */
#pragma once

#include "market/listing.h"

/* Bits above those of labels. */
#define LISTING_BIT_WORKER         (UINT64_C(1) << 44)
#define LISTING_BIT_SERVER         (UINT64_C(1) << 45)
#define LISTING_BIT_DEDICATED      (UINT64_C(1) << 46) /* to the role server */
#define LISTING_BIT_NETWORK_JOB    (UINT64_C(1) << 47) /* at least */
#define LISTING_BIT_NETWORK_OPEN   (UINT64_C(1) << 48)
#define LISTING_BIT_INSTALL_WHEELS (UINT64_C(1) << 49)
#define LISTING_BIT_INSTALL_INDEX  (UINT64_C(1) << 50)
#define LISTING_BIT_ANYONE         (UINT64_C(1) << 51)
#define LISTING_BIT_OF_ACCOUNT(id) (UINT64_C(1) << (52 + (id) % 6)) /* one of them may use it */
#define LISTING_BIT_OF_GROUP(id)   (UINT64_C(1) << (58 + (id) % 5))
#define LISTING_BIT_SPARE          (UINT64_C(1) << 63)
_Static_assert(LABELS_BITS + 2 == 44, "labels end where the other bits begin");

/* An offer's keys and bits. */
struct book_point listing_point(struct listing *listing, const struct offer *offer, int64_t now_ms);

/* All that does not change with the hour: of a request, for one role. `bounds` NULL: as it will be
 * asked for by offers yet to come. */
struct book_wish listing_standing_wish(const struct listing *listing,
                                       const struct listing_bounds *bounds,
                                       const struct job_request *request, enum machine_role role);
void listing_want_room(const struct listing_bounds *bounds, struct book_point *least,
                       enum listing_key first, struct resources room);

/* What decides where an entry lies. */
struct listing_likeness {
    struct resources free;
    struct resources all;
    int64_t gpu_ram_bytes;
    uint64_t bits;
    int64_t quality;
    uint64_t since; /* the last lease */
};
uint64_t listing_order(const struct listing_likeness *like);
