/*
 * Wish: what a job asks of one machine, as a row of tests that an offer passes or not.
 *
 * The tests are the truth; the book (listing.h) only finds quickly who may pass them. Each is
 * named, so that `explain` can say how many machines every one of them removed.
 */
#pragma once

#include "market/job.h"

/* All that matching one job looks at, besides the offers. */
struct match_wish {
    const struct job_request *request;
    uint64_t group; /* of the borrower; 0: none */
    int64_t now_ms;
    struct price_lock lock;   /* over the slots of its span */
    int64_t latest_start_ms;  /* a lease may start up to then */
    int64_t latest_end_ms;    /* and has ended by then */
    int64_t budget_micro;     /* over max_run_ms, for all leases */
    const struct job *beside; /* one more lease of this job: not where it has one; or NULL */
    uint64_t apart_from;      /* a machine where a server must not go; 0: none */
    /* Where its workers are, whom one more must be near; only with a longest RTT. */
    const struct machine *const *others;
    size_t other_count;
};

/* In the order in which explain shows them. */
enum wish_test {
    WISH_TEST_ROLE,
    WISH_TEST_AUDIENCE,
    WISH_TEST_SPARE, /* its unsold time is free */
    WISH_TEST_ONLINE,
    WISH_TEST_OPEN,
    WISH_TEST_RUN_TIME, /* ends within the open span, and within the longest lease */
    WISH_TEST_CORES,
    WISH_TEST_RAM,
    WISH_TEST_GPUS,
    WISH_TEST_GPU_MODEL,
    WISH_TEST_GPU_RAM,
    WISH_TEST_DISK,
    WISH_TEST_BANDWIDTH,
    WISH_TEST_LABELS,
    WISH_TEST_NETWORK,
    WISH_TEST_INSTALL,
    WISH_TEST_IMAGE,
    WISH_TEST_PROGRAM,
    WISH_TEST_SPEED,
    WISH_TEST_RELIABILITY,
    WISH_TEST_RTT,
    WISH_TEST_PRICE, /* the posted price reaches the lender's minimum */
    WISH_TEST_ROOM,  /* enough of it is free */
    WISH_TEST_COUNT,
};

const char *wish_test_name(enum wish_test test); /* as the field is called: "gpu_ram" */

/* Whether the wish says anything there at all, for that role. */
bool wish_has(const struct match_wish *wish, enum machine_role role, enum wish_test test);
bool wish_passes(const struct match_wish *wish, enum machine_role role, enum wish_test test,
                 const struct offer *offer);
/* Everything but the price and the room, which depend on the day. */
bool wish_suits(const struct match_wish *wish, enum machine_role role, const struct offer *offer);

struct resources wish_resources(const struct match_wish *wish, enum machine_role role);
/* Only a worker's machine must be more than large enough. */
int64_t wish_max_rtt_us(const struct match_wish *wish, enum machine_role role);

/* A lender is willing when what is posted reaches its minimum, over the run as a whole. */
bool wish_is_accepted(const struct match_wish *wish, const struct offer *offer,
                      struct resources resources);
