/* What the files of matching share. */
#pragma once

#include "market/match.h"

/* What is free at the offer for a lease that goes on beyond the reservation's start, so that it
 * leaves the reserved room free then; every lease may run as long as it may. */
struct resources match_free_beside(const struct match_reservation *reservation,
                                   const struct offer *offer);
/* The same of the whole machine. */
struct resources match_machine_free_beside(const struct match_reservation *reservation,
                                           const struct machine *machine);

/* An offer that is taken for a worker, or for a server. */
struct candidate {
    struct offer *offer;
    struct resources free;
    int64_t surplus_milli; /* cores a worker may take on top of its wish */
    bool is_at_minimum;
};

/* One attempt at a placement. */
struct attempt {
    struct matcher *matcher;
    const struct match_wish *wish;
    const struct match_reservation *ahead;
    struct book_sort sort;
    int64_t max_rtt_us;        /* of each worker to the market; 0: any */
    struct candidate *workers; /* in the order taken */
    size_t worker_count;
    size_t worker_max;     /* and one to spare for each server that may need a machine */
    size_t pool_max;       /* so many may be collected though fewer are taken; 0: no more */
    const void **machines; /* a set of those taken: open addressing */
    size_t machine_mask;
    bool needs_worker; /* a machine that could take a server is needed for a worker */
    struct candidate servers[JOB_SERVERS_MAX]; /* by rank */
    size_t server_count;
};

/* ---- match.c: workers ---- */
/* Nobody is taken. */
void match_start_attempt(struct attempt *attempt);
/* Takes those that fit, `most` in all. */
void match_collect_workers(struct attempt *attempt, const struct book_wish *wish,
                           struct book_sort sort, size_t most, bool with_dearer);
/* The first so many of those taken; the others are left. */
void match_keep_workers(struct attempt *attempt, size_t count);

bool match_is_taken(const struct attempt *attempt, const struct machine *machine);
void match_leave_machine(struct attempt *attempt, const struct machine *machine);
bool match_names_maximum(const struct job_request *request);
struct book_sort match_by_minimum(struct resources wanted);
/* What is free of the machine for this job, besides the servers that were found. */
struct resources match_machine_free_for(const struct attempt *attempt,
                                        const struct machine *machine);
int64_t match_surplus_milli(const struct attempt *attempt, const struct candidate *candidate);
bool match_fits(const struct attempt *attempt, enum machine_role role, struct offer *offer,
                bool with_dearer, struct candidate *out_candidate);

/* ---- match_server.c ---- */
/* As many as are asked for; leaves no more workers than may be used. */
bool match_find_servers(struct attempt *attempt);

/* ---- match_near.c ---- */
/* Takes workers that are all within the longest RTT of each other. */
bool match_find_near(struct attempt *attempt, struct book_wish *found, int64_t max_us);

/* The parts of what was found; workers have no size yet. */
void match_make_parts(struct attempt *attempt, struct match_placement *out_placement);
/* Gives workers as much as the limits allow, and leaves as many as they do. */
enum match_result match_fit_cost(struct match_placement *placement, const struct attempt *attempt);

/* ---- Why a job waits ------------------------------------------------------------------------- */

/* One change of the job file. */
struct match_change {
    enum wish_test test; /* the field; WISH_TEST_COUNT: num_nodes */
    int64_t value;       /* asked for instead; a wish that is no number is given up */
    int64_t size_milli;  /* of what was asked for */
};

/* The number that the test looks at; NULL: it looks at none. */
int64_t *match_change_field(struct job_request *request, enum wish_test test);
/* What a borrower can change; the rest is up to the lenders. */
bool match_change_is_possible(enum wish_test test);
/* Down to what is said in words. */
int64_t match_change_round(enum wish_test test, int64_t value);
void match_change_apply(const struct match_change *change, struct job_request *request);
void match_change_words(const struct match_change *change, const struct job_request *request,
                        char out_words[MATCH_NEAREST_SIZE]);

/* What would help; empty when no single change would. */
void match_find_nearest(struct matcher *matcher, struct machine *const *machines,
                        size_t machine_count, const struct match_wish *wish,
                        const struct match_reservation *ahead, enum match_result result,
                        char out_words[MATCH_NEAREST_SIZE]);

void match_append_resources(struct buffer *out, struct resources resources);

/* Who of the machines with room is too far from whom, if that is what is in the way. */
void match_append_far(struct machine *const *machines, size_t machine_count,
                      const struct match_wish *wish, struct buffer *out);
/* Whether some offer passes every test; or all but that it is free. */
bool match_has_offer(const struct machine *machine, const struct match_wish *wish,
                     enum machine_role role, bool is_free);
