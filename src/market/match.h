/*
 * Match: finds machines for a whole job at once, or none.
 *
 * Workers go one to a machine: at least num_nodes or nothing, up to num_nodes_max while the budget
 * lasts. Offers are taken by their score (listing.h). A wish for "at least" takes all free cores of
 * its machines, those with the most first; when that would pass the budget, the surplus of all
 * workers is scaled down evenly to the most the budget allows. If even the least passes it, the
 * slowest machines, which are the cheapest, are tried instead.
 *
 * The RTT between two workers is the smaller of a direct path's, if that was measured (pair.h), and
 * the sum of theirs to the market. With a longest RTT, those within half of it of the market are
 * taken by score; if they are too few, the nearest to it are; then those who are near to each other
 * though not to the market.
 *
 * A server lease goes to a machine that offers the role, first of all to one that offers nothing
 * else, then to one that is not needed for a worker. Several go to different machines where there
 * is room, else to the same. A replica is no part of it: it is placed alone, once the job has the
 * rest. Roles are the owner's consent: a machine that does not offer `server` never gets one.
 *
 * Lenders who are content with the posted price come first and are paid the posted price. If they
 * are too few even with nothing leased of them, and the job names a maximum, others follow, the
 * lowest minimum first, each at its own minimum. If they are only busy the job waits for them.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "market/waiting.h"

enum match_result {
    MATCH_PLACED,
    MATCH_FEW_MACHINES, /* not enough with room for a worker */
    MATCH_NO_SERVER,    /* none with room for a server lease */
    MATCH_OVER_BUDGET,  /* dearer than the total or the balance allows */
    MATCH_OVER_HOURLY,  /* dearer than the maximum per hour */
    MATCH_RESULT_COUNT,
};

struct match_part {
    struct machine *machine;
    struct offer *offer;
    enum lease_role role;
    uint64_t rank;
    struct resources resources;
    struct price_units units;
    bool is_at_minimum; /* the lender asks more than is posted, and gets it */
    int64_t quote_micro;
    int64_t hourly_micro; /* in the dearest slot */
};

struct match_placement {
    struct match_part *parts; /* the servers by rank if there are any, then the workers by rank */
    size_t part_count;
    int64_t quote_micro; /* over the longest run */
    int64_t hourly_micro;
};

/* What matching works with, kept from call to call to save allocations. Zeroed, then init. */
struct matcher {
    struct listing *listing;
    struct arena *arena; /* of the call under way */
    struct book_search search;
    int64_t lacking; /* workers too few of, in the last call that found too few machines; >= 1 */
};

void matcher_init(struct matcher *matcher, struct listing *listing);
void matcher_done(struct matcher *matcher);

/*
 * A reservation: by when a job that waits will have room, and where, if every lease runs for as
 * long as it may. It is found among the oldest MATCH_RESERVE_LOOKS offers that suit; leases of
 * later jobs may not put it off.
 */
enum { MATCH_RESERVE_LOOKS = 256 }; /* and four for each worker */

struct match_reserved {
    struct machine *machine;
    const struct offer *offer;
    struct resources resources;
};

struct match_reservation {
    uint64_t job;
    int64_t start_ms;
    struct match_reserved *parts; /* one for each worker and server, by machine and offer */
    size_t part_count;
};

/* False when the offers there are would never do. Parts live in `arena`. */
bool match_reserve(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                   struct match_reservation *out_reservation);

bool match_is_reserved(const struct match_reservation *reservation, const struct machine *machine);

/* Whether the new reservation may leave others more than part `part` of the old one did there. */
bool match_leaves_more(const struct match_reservation *reservation,
                       const struct match_reservation *before, size_t part);

/* The leases that jobs which wait will have, in their order, if all run as long as they may. */
struct match_line {
    struct lease *leases;
    size_t count;
    size_t capacity;
};

/* When a job will have room behind all in the line, which it joins: its capacity is enough for
 * that. 0, and it does not join, when the offers there are would never do. */
int64_t match_expect(struct matcher *matcher, struct arena *arena, const struct match_wish *wish,
                     struct match_line *line);

/* Parts live until the next call; *out_placement is set only when placed. `ahead`: of a job that
 * goes first, or NULL. */
enum match_result match_place(struct matcher *matcher, const struct match_wish *wish,
                              const struct match_reservation *ahead,
                              struct match_placement *out_placement);

/* The same for one server of a job that has its workers: the request's num_nodes is 0. */
enum match_result match_place_server(struct matcher *matcher, const struct match_wish *wish,
                                     const struct match_reservation *ahead,
                                     struct match_placement *out_placement);

/* Machines with room for a worker, the nearest to the market first, whether they are near each
 * other or not: whom to try with one another. Returns how many, at most MATCH_NEAR_MAX. */
enum { MATCH_NEAR_MAX = 256 };
size_t match_near_candidates(struct matcher *matcher, const struct match_wish *wish,
                             const struct machine *out_machines[MATCH_NEAR_MAX]);

/* Whether the offer has room for a worker or the server of it, whatever it may cost. */
bool match_could_use(const struct match_wish *wish, const struct offer *offer,
                     const struct match_reservation *ahead);

/* The prices a part's lease locks. */
struct price_lock match_part_lock(const struct match_part *part, const struct match_wish *wish);

/* What the wish costs on reference machines: what is held when the job is submitted. */
struct match_quote {
    int64_t total_micro;
    int64_t hourly_micro;
};
struct match_quote match_quote_wish(const struct match_wish *wish);
/* Of its replica alone, which no placement counts. */
struct match_quote match_quote_replica(const struct match_wish *wish);

/* ---- Why a job waits ------------------------------------------------------------------------- */

/* Machines with an offer that passes this test and all before it. */
struct match_row {
    enum machine_role role;
    enum wish_test test;
    size_t machines_left;
};

/* Too few machines could ever serve, whoever is online, open, content with the price or free now.
 */
struct match_lack {
    enum machine_role role;
    enum wish_test test; /* one that too few pass by itself; WISH_TEST_COUNT: too few pass all */
    size_t found, wanted;
};

bool match_is_lacking(struct machine *const *machines, size_t machine_count,
                      const struct match_wish *wish, enum machine_role role,
                      struct match_lack *out_lack);

/* "no machine here offers 64 cores". */
void match_lack_words(const struct match_wish *wish, const struct match_lack *lack,
                      struct buffer *out);

enum { MATCH_ROWS_MAX = 2 * WISH_TEST_COUNT, MATCH_NEAREST_SIZE = 160 };

struct match_explanation {
    enum match_result result;
    size_t machine_count; /* of all states */
    struct match_row rows[MATCH_ROWS_MAX];
    size_t row_count;
    /* "with 2 GiB instead of 4 GiB of RAM it would start now", which was tried; or that it waits
     * for a machine for the server. */
    char nearest[MATCH_NEAREST_SIZE];
    /* If all before it in the line run as long as they may; for the caller to set, who knows the
     * line. 0: not with the offers there are now, or not known. */
    int64_t expected_start_ms;
    bool is_lacking; /* too few machines here could ever serve it */
};

/* Walks over all machines, so only for answers to people. `ahead`: as in match_place. */
void match_explain(struct matcher *matcher, struct machine *const *machines, size_t machine_count,
                   const struct match_wish *wish, const struct match_reservation *ahead,
                   enum match_result result, struct match_explanation *out_explanation);

/*
 * The result in words: "needs 3 machines offering at least 0.25 cores and 256 MiB; 2 are online:
 * heron, wren".
 */
void match_explain_words(struct machine *const *machines, size_t machine_count,
                         const struct match_wish *wish, enum match_result result,
                         struct buffer *out);
