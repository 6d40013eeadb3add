/*
 * Fleet: which instances of a cloud are to be started and ended, decided from what was ordered,
 * what the cloud answers and the time. Pure: no clock, no socket; whoever drives it does the
 * actions and tells their outcomes.
 *
 * What holds whatever fails:
 *     an order's instances together never cost more per hour, nor in all, than it allows: each gets
 *     a part of the budget before it is asked for, from which follows when it ends by itself, also
 *     if nobody tells it to;
 *     whatever carries the market's tag and is not one of ours that lives is ended (strays);
 *     a launch whose outcome is not known is asked for again by the same token, which the cloud
 *     starts once, or is looked for in its list;
 *     a market that dies and starts again goes on with all of it, if whoever drives it keeps what
 *     fleet_save writes before it does an action that launches or ends one.
 *
 * Amounts are millionths of a dollar, times UTC milliseconds. An instance is billed by the second,
 * a minute at least, from the moment it was asked for.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/random.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FLEET_ORDERS_MAX = 64,
    FLEET_MEMBERS_MAX = 1024, /* those that are gone included */
    FLEET_CANDIDATES_MAX = 64,
    FLEET_NAME_SIZE = 48,
    FLEET_REASON_SIZE = 200,
    FLEET_KEY_SIZE = 32,
    FLEET_LIFE_MINUTES_MIN = 5, /* less is not worth the start */
    FLEET_SAVED_MAX = 8 << 20,
};

enum fleet_state {
    FLEET_WANTED,    /* to be asked for */
    FLEET_LAUNCHING, /* asked for, and no answer that settles it */
    FLEET_BOOTING,   /* there, and its lender has not enrolled */
    FLEET_READY,     /* enrolled */
    FLEET_ENDING,    /* to be ended */
    FLEET_GONE,
    FLEET_STATE_COUNT,
};
const char *fleet_state_name(enum fleet_state state);

/* What an action's failure says of it. */
enum fleet_failure {
    FLEET_CAPACITY,  /* there is none of this type in this zone now */
    FLEET_THROTTLED, /* not done, ask later */
    FLEET_LIMIT,     /* the account may have no more */
    FLEET_REFUSED,   /* not done, and asking again does not help */
    FLEET_UNCERTAIN, /* no answer, or none that says whether it was done */
    FLEET_ABSENT,    /* of ending one: there is no such instance, now */
};

/* A type in a zone. */
struct fleet_candidate {
    char type[FLEET_NAME_SIZE];
    char zone[FLEET_NAME_SIZE];
    int64_t usd_micro_per_hour; /* > 0: more is not paid */
};

struct fleet_wish {
    uint32_t count;
    bool is_spot;
    int64_t usd_micro_per_hour_max;           /* of all together; 0: the fleet's */
    int64_t usd_micro_max;                    /* in all; 0: the rate for hours_max */
    uint64_t job;                             /* ends with it; 0: none */
    uint64_t account;                         /* for whom alone; 0: for anyone */
    const struct fleet_candidate *candidates; /* the best first; copied */
    size_t candidate_count;
    uint8_t key[FLEET_KEY_SIZE];     /* the same again is the same order; all zero: none */
    uint8_t request[FLEET_KEY_SIZE]; /* what was asked for under the key */
};

struct fleet_order {
    uint64_t id;
    struct fleet_wish wish; /* its candidates are the order's own */
    struct fleet_candidate candidates[FLEET_CANDIDATES_MAX];
    int64_t made_ms, done_ms;
    int64_t spent_usd_micro; /* of those that are gone */
    uint32_t replacements_left;
    bool is_stopping; /* nothing more is started for it */
    bool is_done;
    bool is_job_over;               /* not saved: told again after a start */
    char reason[FLEET_REASON_SIZE]; /* why it stops, or has fewer than it wants; "": neither */
};

struct fleet_member {
    uint64_t id; /* the cloud's tag */
    uint64_t order;
    enum fleet_state state;
    uint32_t candidate; /* of the order's */
    uint32_t attempt;   /* another token with each; the same asked for again is the same attempt */
    uint32_t failures;  /* in a row */
    char instance[FLEET_NAME_SIZE];
    int64_t asked_ms;    /* first; 0: never. Billed from here */
    int64_t answered_ms; /* of the last answer to a launch */
    int64_t since_ms;    /* of the state */
    int64_t pause_ms;    /* nothing is asked for it before */
    int64_t gone_ms;     /* 0: not gone */
    int64_t allowance_usd_micro;
    int64_t ends_ms;          /* by then at the latest */
    int64_t billed_usd_micro; /* taken by fleet_take_cost */
    int64_t taken_ms;
    uint64_t machine; /* as the market knows it; 0: not yet */
    uint32_t lease_count;
    uint32_t unseen; /* lists in a row that should have had it */
    bool is_asked;   /* an action of it is under way */
    bool is_open;    /* an answer left open whether it was launched */
    char reason[FLEET_REASON_SIZE];
};

struct fleet_options {
    uint32_t instances_max;
    int64_t usd_micro_per_hour_max;
    int64_t hours_max;         /* that an instance lives */
    int64_t boot_ms;           /* until its lender has enrolled */
    int64_t idle_ms;           /* without a lease; 0: for ever */
    int64_t list_ms;           /* between two looks at the cloud's list */
    int64_t bill_ms;           /* between two parts of a bill */
    char run[FLEET_NAME_SIZE]; /* tells its instances from those of orders that it has lost */
    uint64_t seed;             /* of the pauses */
};

enum fleet_action_kind { FLEET_LIST, FLEET_LAUNCH, FLEET_END };

/* What to do, and then to tell of by one of the functions below. */
struct fleet_action {
    enum fleet_action_kind kind;
    uint64_t member;  /* of a launch; of an end, 0 for a stray */
    uint32_t attempt; /* of a launch: with run and member, its token */
    bool is_spot;
    int64_t life_minutes; /* of a launch: it ends itself so long after it booted */
    struct fleet_candidate candidate;
    char instance[FLEET_NAME_SIZE]; /* of an end */
    int64_t now_ms;
};

/* What the cloud's list says of an instance with the market's tag. */
struct fleet_listed {
    char instance[FLEET_NAME_SIZE];
    char run[FLEET_NAME_SIZE];
    uint64_t member;     /* 0: the tag is none */
    bool is_alive;       /* pending or running: it is billed */
    bool is_interrupted; /* taken back by the cloud */
};

struct fleet;

struct fleet *fleet_new(const struct fleet_options *options);
/* All that the market's next start has to know; what is equal gives equal bytes. At most
 * FLEET_SAVED_MAX of them. */
void fleet_save(const struct fleet *fleet, struct buffer *out);
/* By what fleet_save wrote, its run included. CORRUPT, with the place: anything else. How many
 * leases run is to be told anew. */
MUST_CHECK int fleet_load(const struct fleet_options *options, struct text saved, int64_t now_ms,
                          struct fleet **out_fleet, struct error *error);
void fleet_free(struct fleet *fleet); /* NULL is fine */
DEFINE_AUTO(fleet);

/* With the key of one before it is that one. INVALID: no count or candidate; EXHAUSTED: past a
 * limit, with what would fit; CONFLICT: the key was another request's. */
MUST_CHECK int fleet_order(struct fleet *fleet, const struct fleet_wish *wish, int64_t now_ms,
                           uint64_t *out_order, struct error *error);
/* Whether it would be taken now. */
MUST_CHECK int fleet_check(const struct fleet *fleet, const struct fleet_wish *wish,
                           struct error *error);
/* One for which nothing was asked yet was never made. */
void fleet_take_back(struct fleet *fleet, uint64_t order);
/* Ends all of it. NOT_FOUND: there is no such order. */
MUST_CHECK int fleet_stop(struct fleet *fleet, uint64_t order, const char *reason, int64_t now_ms,
                          struct error *error);
void fleet_stop_all(struct fleet *fleet, const char *reason, int64_t now_ms);
void fleet_job_ended(struct fleet *fleet, uint64_t job, int64_t now_ms);
/* At the next occasion, and not when its time comes. */
void fleet_sweep(struct fleet *fleet);

/* Its lender has enrolled as this machine. */
void fleet_enrolled(struct fleet *fleet, uint64_t member, uint64_t machine, int64_t now_ms);
/* How many leases run on the machine. */
void fleet_leased(struct fleet *fleet, uint64_t machine, uint32_t lease_count, int64_t now_ms);

/* False: nothing to do now. */
bool fleet_next(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action);

/* Outcomes. */
void fleet_launched(struct fleet *fleet, const struct fleet_action *action, const char *instance,
                    int64_t now_ms);
void fleet_ended(struct fleet *fleet, const struct fleet_action *action, int64_t now_ms);
void fleet_listed(struct fleet *fleet, const struct fleet_action *action,
                  const struct fleet_listed *instances, size_t count, int64_t now_ms);
void fleet_failed(struct fleet *fleet, const struct fleet_action *action,
                  enum fleet_failure failure, const char *reason, int64_t now_ms);

/* A part of an instance's bill, once. */
struct fleet_cost {
    uint64_t member, machine;
    const char *instance, *type;
    int64_t usd_micro;
};
bool fleet_take_cost(struct fleet *fleet, int64_t now_ms, struct fleet_cost *out_cost);

/* ---- Looking --------------------------------------------------------------------------------- */

const char *fleet_run(const struct fleet *fleet);
size_t fleet_order_count(const struct fleet *fleet);
const struct fleet_order *fleet_order_at(const struct fleet *fleet, size_t index);
const struct fleet_order *fleet_find_order(const struct fleet *fleet, uint64_t order);
size_t fleet_member_count(const struct fleet *fleet);
const struct fleet_member *fleet_member_at(const struct fleet *fleet, size_t index);
const struct fleet_member *fleet_find_member(const struct fleet *fleet, uint64_t member);
const struct fleet_candidate *fleet_member_candidate(const struct fleet *fleet,
                                                     const struct fleet_member *member);
/* So far, of one that was asked for. */
int64_t fleet_member_cost(const struct fleet *fleet, const struct fleet_member *member,
                          int64_t now_ms);
/* It may run: it is billed, or not known not to be. */
bool fleet_member_lives(const struct fleet_member *member);
size_t fleet_living(const struct fleet *fleet);
int64_t fleet_rate(const struct fleet *fleet); /* per hour, of all that live */
/* When the cloud's list was last seen, 0: never; and how many strays were found in all. */
int64_t fleet_listed_ms(const struct fleet *fleet);
uint64_t fleet_stray_count(const struct fleet *fleet);
size_t fleet_strays_left(const struct fleet *fleet); /* of those: that are not ended yet */
