/*
 * Match: finds machines for a whole job at once, or none.
 *
 * Workers go one to a machine, the machines with the most free cores first (then the faster, then
 * the older). The server lease goes to a machine that offers the role, first of all to one that
 * offers nothing else, then to one that is not needed for a worker. Roles are the owner's consent:
 * a machine that does not offer `server` never gets one.
 *
 * A wish for "at least" takes all free cores of its machines; when that would pass the budget, the
 * surplus of all workers is scaled down evenly to the most the budget allows. If even the least
 * passes it, the cheapest machines are tried instead of the biggest.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "market/job.h"

enum match_result {
    MATCH_PLACED,
    MATCH_FEW_MACHINES, /* not enough with room for a worker */
    MATCH_NO_SERVER,    /* none with room for the server lease */
    MATCH_OVER_BUDGET,  /* dearer than the total or the balance allows */
    MATCH_OVER_HOURLY,  /* dearer than the maximum per hour */
    MATCH_RESULT_COUNT,
};

struct match_wish {
    const struct job_request *request;
    uint64_t group; /* of the borrower; 0: none */
    int64_t now_ms;
    struct price_lock lock;  /* over the slots of its span */
    int64_t latest_start_ms; /* a lease may start up to then */
    int64_t budget_micro;    /* over max_run_ms, for all leases */
};

struct match_part {
    struct machine *machine;
    struct offer *offer;
    enum lease_role role;
    uint64_t rank;
    struct resources resources;
    struct price_units units;
    int64_t quote_micro;
};

struct match_placement {
    struct match_part *parts; /* the server first if there is one, then the workers by rank */
    size_t part_count;
    int64_t quote_micro; /* over the longest run */
    int64_t hourly_micro;
};

/* Machines in id order. Parts live in the arena; *out_placement is set only when placed. */
enum match_result match_place(struct arena *arena, struct machine *const *machines,
                              size_t machine_count, const struct match_wish *wish,
                              struct match_placement *out_placement);

/* What the wish costs on reference machines: what is held when the job is submitted. */
struct match_quote {
    int64_t total_micro;
    int64_t hourly_micro;
};
struct match_quote match_quote_wish(const struct match_wish *wish);

/*
 * Why a job was not placed, for people: "needs 3 machines offering at least 0.25 cores and
 * 256 MiB; 2 are online: heron, wren".
 */
void match_explain(struct machine *const *machines, size_t machine_count,
                   const struct match_wish *wish, enum match_result result, struct buffer *out);
