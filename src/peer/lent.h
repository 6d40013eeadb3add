/*
 * Lent: what of this machine is lent now, and whether one more lease fits into it.
 *
 * Two bounds hold at once. The ceiling is the owner's own word on this machine, the options of
 * `souk lend`: nothing the market says goes past it. Below it are the machine's offers as the
 * market told them last over the link, so that an offer changed on the web holds without a restart.
 * Both bound the sum of all running leases, not each one alone.
 *
 * Of functions elsewhere what is lent is not this machine's, but the processes of their leases are:
 * those have a room of its memory together, and a lease whose process does not fit is refused.
 */
#pragma once

#include "base/error.h"
#include "market/offer.h" /* enum offer_network */
#include "runtime/lease_message.h"
#include "runtime/native.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lease_limits {
    int64_t cores_milli;
    int64_t ram_bytes;
    int64_t disk_bytes;
    uint32_t gpus;              /* bits: 1 << the N of /dev/nvidiaN, all of one model */
    uint32_t roles;             /* bits: 1 << enum lease_role */
    enum offer_network network; /* the most that a lease may reach */
    bool has_images;            /* a lease may bring an image to run in */
    enum offer_install install; /* what may be installed for a lease */
    bool forbids_programs;      /* functions do the work: training and nothing else */
    int64_t process_bytes;      /* of leases on functions elsewhere; 0: all that is lent is here */
};

struct lent {
    struct lease_limits ceiling;
    struct lent_offer offers[LEASE_OFFERS_MAX];
    size_t offer_count;
    bool is_told; /* the market has said what the offers are */
};

void lent_init(struct lent *lent, const struct lease_limits *ceiling);
void lent_set_offers(struct lent *lent, const struct offers_message *offers);

/* The ceiling as the market is told it. */
struct resources lent_ceiling(const struct lent *lent);

/* What a lease that runs takes, and under which offer. */
struct lent_use {
    uint64_t offer;
    struct resources resources;
    uint32_t gpus; /* which it has; bits as above */
};
struct lent_use lent_use_of(const struct lease_document *document);

/*
 * REFUSED when the lease, on top of those that run, takes more than its offer or the ceiling, when
 * its role is not lent, when its offer is none of this machine's, or there is no room for its
 * process.
 */
MUST_CHECK int lent_check(const struct lent *lent, const struct lease_document *document,
                          const struct lent_use *running, size_t running_count,
                          struct error *error);

/* Whether there is room for the process of any lease. */
bool lent_has_room(const struct lent *lent, const struct lent_use *running, size_t running_count);

/* REFUSED when the lease reaches further, or brings more, than the owner lets any, whatever the
 * market says. Part of lent_check; alone for leases that run already. */
MUST_CHECK int lent_check_permissions(const struct lent *lent,
                                      const struct lease_document *document, struct error *error);

/* Which GPUs the lease gets: whole ones that no other has, or a part of one that others have parts
 * of. REFUSED when there are too few. */
MUST_CHECK int lent_choose_gpus(const struct lent *lent, int64_t gpus_milli,
                                const struct lent_use *running, size_t running_count,
                                uint32_t *out_gpus, struct error *error);
