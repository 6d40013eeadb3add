/*
 * Lease: one machine's part, lent to one job, under one fence.
 *
 *     offered -> running -> ended
 *     offered ------------> ended
 *
 * A fence number is never used twice in a market, so a report under an old fence is known as such.
 * An unreachable machine's leases are not ended by silence itself (lease_is_unreachable).
 */
#pragma once

#include "market/lease_outcome.h"
#include "market/machine.h"
#include "market/price.h"

enum lease_state {
    LEASE_STATE_OFFERED, /* the machine has been asked to start it */
    LEASE_STATE_RUNNING,
    LEASE_STATE_ENDED,
    LEASE_STATE_COUNT,
};

enum lease_role { LEASE_ROLE_WORKER, LEASE_ROLE_SERVER, LEASE_ROLE_COUNT };

const char *lease_state_name(enum lease_state state);
const char *lease_role_name(enum lease_role role);
/* Whose log it is: "0", "1" of workers; "server", "server-1" of servers, whose lead is the first.
 */
enum { LEASE_RANK_NAME_SIZE = 32 };
const char *lease_rank_name(enum lease_role role, uint64_t rank, char out[LEASE_RANK_NAME_SIZE]);

enum { LEASE_REASON_SIZE = 160, LEASE_EXIT_CODE_MAX = 255 };

/* How the reason begins of a parameter server that ended because training came to nothing: neither
 * it nor its machine is to blame. */
#define LEASE_REASON_DIVERGED "the loss is not finite"

struct lease {
    uint64_t id;
    uint64_t job;
    uint64_t machine;
    uint64_t offer; /* under which it was made; may be gone since */
    uint64_t payee; /* the machine's owner when it was matched */
    uint64_t fence;
    enum lease_role role;
    uint64_t rank; /* within its role, from 0; a replica's becomes 0 when it takes the lead */
    enum lease_state state;
    enum lease_outcome outcome;
    int64_t exit_code;      /* of its process once it ended, 128 + n by signal n; 0: none, or 0 */
    char *reason;           /* why it ended, less than LEASE_REASON_SIZE; NULL: nothing is said */
    int64_t stop_wanted_ms; /* when it was asked to stop; 0: it was not */
    bool is_reclaimed;      /* by the machine's owner */
    bool is_surplus;        /* its job wants fewer workers: its rank may be wanted again */
    bool is_self_trade;     /* payer and payee counted as one when it was made */
    bool is_spare;          /* free, and over as soon as one who pays needs the room */
    bool is_former;         /* its job has waited again since */
    int64_t max_run_ms;     /* what its quote covers, from its start */
    struct resources resources;
    struct price_units units;      /* what is billed, speed weighed in */
    const struct price_lock *lock; /* what it costs, whatever prices do meanwhile */
    int64_t quote_micro;           /* over its longest run: never passed by the bill */
    int64_t fee_basis_points; /* the operator's part, as it was when it was made; so the next */
    int64_t withheld_basis_points; /* of the rest, as long as its machine is not proven */
    int64_t offered_ms;
    int64_t start_by_ms;    /* what its quote covers */
    int64_t started_ms;     /* 0: not yet */
    int64_t ended_ms;       /* 0: not yet */
    int64_t ends_ms;        /* at the latest, as far as is known; follows from the job */
    uint64_t tick_index;    /* the last one billed; 0: none, the first is 1 */
    int64_t wall_ms;        /* billed so far */
    int64_t posted_micro;   /* billed so far, fee included */
    int64_t fee_micro;      /* the operator's part of it */
    int64_t withheld_micro; /* of the rest, ever */
};

bool lease_is_open(const struct lease *lease);
const char *lease_reason(const struct lease *lease); /* empty: nothing is said */

/* CONFLICT for an old fence, or for a lease that has ended. */
MUST_CHECK int lease_check_fence(const struct lease *lease, uint64_t fence, struct error *error);

/*
 * The billable part of a reported wall time: no more than has passed since the lease started, nor
 * than the longest run, nor less than was billed before.
 */
int64_t lease_billable_ms(const struct lease *lease, int64_t wall_ms, int64_t now_ms);

/* What `wall_ms` in all come to, and how much of it is new. The fee is rounded down on the whole
 * bill: many small ticks cost as much as one. */
struct lease_bill {
    int64_t bill_micro;
    int64_t amount_micro; /* not posted before */
    int64_t fee_micro;    /* of the amount */
};
struct lease_bill lease_bill(const struct lease *lease, int64_t wall_ms);

/* Of what the bill brings its lender, how much is withheld: of the whole, less what was before. */
int64_t lease_withholds_micro(const struct lease *lease, const struct machine *machine,
                              const struct lease_bill *bill);

/* It ended before its work was done, and nobody wanted that who pays for it. */
bool lease_wants_successor(const struct lease *lease);
