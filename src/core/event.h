/*
 * Event: one thing that happened. The log of events is the truth; state is what they add up to.
 *
 * One table (event.c) gives each kind its name, its JSON fields and how it changes the state. The
 * encoding is canonical: one JSON object, "kind" first, then "sequence", "time_ms" and the kind's
 * fields in table order, so equal events give equal bytes and a hash chain over them is stable.
 *
 * What each kind asks of the server:
 *
 *     lease_offered      send the machine the signed lease (now, or when its link is up again)
 *     job_resized        nothing; leases that are offered or to stop follow
 *     lease_stop_wanted  send LEASE_STOP with its fence, grace and reason
 *     lease_ended        forget its tickets and streams; if the machine still reports that fence
 *                        as running, send LEASE_STOP again
 *     lease_promoted     it leads its job now: workers and other servers dial it
 *     lease_extended     send the machine the lease signed anew, with its later end
 *     lease_ticked       live bill; the money itself is in entry_posted
 *     job_state_changed  live events, the job's row; a final state also ends followers' streams
 *     booking_forfeited  nothing; the money itself is in entry_posted
 *     entry_posted       one row of the statement
 *     slot_closed        the running slot's prices; computed again and compared by every replay
 *     machine_enrolled   a higher generation: older links of that machine are closed
 *     token_revoked      sessions of that token end
 *     the others         rows of the query tables
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "core/command.h"
#include "ledger/ledger.h"
#include "market/price_rule.h"

/*
 * Of a log of events; kept with it, and a program opens only logs of its own. Raise it with every
 * change after which a log written before does not replay: a field that is required or gone, a kind
 * that is gone, a rule that comes to another result. A new kind, or a field that may be left out
 * and then means what was before, needs none.
 */
enum { EVENT_LOG_VERSION = 1 };

/*
 * Rules that came later than logs that are still read. A log begins by the first, and goes on by
 * each from the rules_changed on that names it: what was before replays as it was.
 */
enum {
    CORE_RULES_FIRST = 0,
    CORE_RULES_OWN_PAY = 1, /* what an account pays itself stays granted if it was */
    CORE_RULES_NEWEST = CORE_RULES_OWN_PAY,
};

enum event_kind {
    EVENT_SETTINGS_CHANGED,
    EVENT_ACCOUNT_OPENED,
    EVENT_PASSWORD_SET,
    EVENT_ACCOUNT_FROZEN,
    EVENT_ACCOUNT_UNFROZEN,
    EVENT_ACCOUNT_DELETED, /* what it had, its tokens, codes and group went before */
    EVENT_ACCOUNT_SEEN,
    EVENT_GROUP_CREATED,
    EVENT_GROUP_JOINED,
    EVENT_GROUP_LEFT,
    EVENT_GRANT_GIVEN,       /* the credits themselves are in entry_posted; so below */
    EVENT_GRANT_RELEASED,    /* the part that is earned by lending */
    EVENT_DORMANCY_ADVANCED, /* a notice, or a part that goes back to mint */
    EVENT_KARMA_SHARED,      /* an hour's dues have been given */
    EVENT_DAY_BEGAN,         /* accounts that wait for grants or are dormant were looked through */
    EVENT_TOKEN_ADDED,
    EVENT_TOKEN_REVOKED,
    EVENT_CODE_ADDED,
    EVENT_CODE_REMOVED, /* used or expired */
    EVENT_MACHINE_ENROLLED,
    EVENT_MACHINE_PROBED,
    EVENT_PAIR_MEASURED, /* how far two machines are from one another */
    EVENT_MACHINE_STATE_CHANGED,
    EVENT_MACHINE_YIELDED, /* its owner leaves more or less of it */
    EVENT_MACHINE_PROVEN,  /* what was withheld of its earnings is its owner's */
    EVENT_OFFER_SET,       /* made or changed */
    EVENT_OFFER_PAUSED,    /* or resumed */
    EVENT_OFFER_RENEWED,
    EVENT_OFFER_TURNED, /* opened or closed as its time came */
    EVENT_OFFER_WITHDRAWN,
    EVENT_JOB_SUBMITTED,
    EVENT_JOB_DUE,   /* the slot it waited for began */
    EVENT_JOB_WAITS, /* a pending one: for money, or for room; one that rushes, in which turn */
    EVENT_JOB_NOTED, /* of one that runs: what it lacks */
    EVENT_JOB_STATE_CHANGED,
    EVENT_LEASE_OFFERED,
    EVENT_LEASE_STARTED,
    EVENT_LEASE_TICKED,
    EVENT_LEASE_STOP_WANTED,
    EVENT_LEASE_ENDED,
    EVENT_LEASE_PROMOTED, /* a replica took the place of a lead that is gone */
    EVENT_JOB_EXTENDED,
    EVENT_JOB_RESIZED,       /* its lead wants another number of workers for the next epoch */
    EVENT_LEASE_EXTENDED,    /* one for each that is open */
    EVENT_LEASE_RENEWED,     /* its price lock ran out: at the next slots' prices it goes on */
    EVENT_BOOKING_FORFEITED, /* a part of what cancelling it late costs */
    EVENT_ENTRY_POSTED,
    EVENT_SLOT_CLOSED,
    EVENT_RULES_CHANGED, /* what follows is by later rules than what came before */
    EVENT_COST_BILLED,   /* outside, for a machine; the two entries of it follow */
    EVENT_KIND_COUNT,
};

struct event {
    enum event_kind kind;
    uint64_t sequence; /* 1, 2, 3 ... without a gap */
    int64_t time_ms;   /* UTC; never goes back */
    union {
        struct core_settings settings_changed;
        struct {
            uint64_t account;
            char name[MARKET_NAME_SIZE];
            uint64_t address_block;
            bool is_grant_due;
        } account_opened;
        struct {
            uint64_t account;
            char password[ACCOUNT_PASSWORD_SIZE];
        } password_set;
        struct {
            uint64_t account;
            char reason[ACCOUNT_REASON_SIZE];
        } account_frozen;
        struct {
            uint64_t account;
        } account_unfrozen;
        struct {
            uint64_t account;
        } account_deleted;
        struct {
            uint64_t account;
        } account_seen;
        struct {
            uint64_t group;
            uint64_t account; /* its owner and first member */
            char name[MARKET_NAME_SIZE];
        } group_created;
        struct {
            uint64_t group;
            uint64_t account;
        } group_joined;
        struct {
            uint64_t group;
            uint64_t account;
            uint64_t owner; /* from now on; 0: nobody is left */
        } group_left;
        struct {
            uint64_t account;
            int64_t amount_micro;
            int64_t to_earn_micro;
            bool is_invited; /* beside the day's grants */
        } grant_given;
        struct {
            uint64_t account;
            uint64_t lease;
            int64_t amount_micro;
        } grant_released;
        struct {
            uint64_t account;
            int64_t step;         /* 1, 2: notices */
            int64_t amount_micro; /* that goes back */
        } dormancy_advanced;
        struct {
            int64_t day; /* since 1970, UTC */
        } day_began;
        struct {
            int64_t rules; /* CORE_RULES_ */
        } rules_changed;
        struct {
            int64_t hour; /* since 1970 */
            int64_t share_micro;
            int64_t member_count;
        } karma_shared;
        struct {
            uint64_t token;
            uint64_t account;
            uint8_t hash[MARKET_HASH_SIZE];
            uint64_t scopes;
            int64_t expires_ms;
            char label[MARKET_LABEL_SIZE];
            bool is_session;
        } token_added;
        struct {
            uint64_t token;
        } token_revoked;
        struct {
            uint64_t code;
            enum code_kind code_kind;
            uint64_t account;
            uint8_t hash[MARKET_HASH_SIZE];
            int64_t expires_ms;
            uint64_t group;
        } code_added;
        struct {
            uint64_t code;
            bool is_used; /* false: expired */
        } code_removed;
        struct {
            uint64_t machine;
            uint64_t owner;
            char name[MARKET_NAME_SIZE];
            uint8_t public_key[MACHINE_KEY_SIZE];
            uint64_t generation; /* more than 1: a machine that was known */
            struct probe probe;
        } machine_enrolled;
        struct {
            uint64_t machine;
            struct probe probe;
        } machine_probed;
        struct {
            uint64_t low, high; /* machines */
            int64_t rtt_us;     /* on a direct path */
        } pair_measured;
        struct {
            uint64_t machine;
            enum machine_state state;
        } machine_state_changed;
        struct {
            uint64_t machine;
            enum machine_yield yield;
        } machine_yielded;
        struct {
            uint64_t machine;
            uint64_t owner;
            int64_t amount_micro;
        } machine_proven;
        struct {
            uint64_t offer;
            uint64_t machine;
            struct offer_terms terms;
        } offer_set;
        struct {
            uint64_t offer;
            uint64_t machine;
            int64_t until_ms;
        } offer_paused;
        struct {
            uint64_t offer;
            uint64_t machine;
            struct json_array spans;
        } offer_renewed;
        struct {
            uint64_t offer;
            uint64_t machine;
            bool is_open;
        } offer_turned;
        struct {
            uint64_t offer;
            uint64_t machine;
        } offer_withdrawn;
        struct {
            uint64_t job;
            struct job_request request;
            int64_t start_ms;    /* not before; 0: at once */
            int64_t quote_micro; /* at its wish: what is held */
        } job_submitted;
        struct {
            uint64_t job;
        } job_due;
        struct {
            uint64_t job;
            bool is_short;
            bool is_unhurried;
        } job_waits;
        struct {
            uint64_t job;
            char reason[JOB_REASON_SIZE]; /* "": nothing any more */
        } job_noted;
        struct {
            uint64_t job;
            enum job_state state;
            enum job_state outcome; /* while stopping: where it goes; else the state again */
            char reason[JOB_REASON_SIZE];
        } job_state_changed;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t machine;
            uint64_t offer;
            uint64_t payee;
            uint64_t fence;
            enum lease_role role;
            uint64_t rank;
            struct resources resources;
            struct price_units units;
            struct price_lock lock;
            int64_t max_run_ms;
            int64_t start_by_ms;
            int64_t quote_micro;
        } lease_offered;
        struct {
            uint64_t lease;
            uint64_t fence;
        } lease_started;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t fence;
            uint64_t tick_index;
            int64_t wall_ms;      /* billed so far */
            int64_t bill_micro;   /* so far, this tick included */
            int64_t amount_micro; /* this tick's part; 0 makes no entry */
            int64_t fee_micro;    /* of the amount */
        } lease_ticked;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t machine;
            uint64_t fence;
            int64_t grace_ms;
            bool is_reclaim; /* by the machine's owner */
            char reason[LEASE_REASON_SIZE];
            bool is_surplus; /* its job wants fewer workers */
        } lease_stop_wanted;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t machine;
            uint64_t fence;
            enum lease_outcome outcome;
            char reason[LEASE_REASON_SIZE];
            int64_t exit_code; /* of its process; 0: none, or 0 */
        } lease_ended;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t fence;
        } lease_promoted;
        struct {
            uint64_t job;
            int64_t max_run_ms;
        } job_extended;
        struct {
            uint64_t job;
            int64_t workers; /* that it wants from now on */
        } job_resized;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t machine;
            uint64_t fence;
            int64_t max_run_ms;
            struct price_lock lock;
            int64_t quote_micro;
        } lease_extended;
        struct {
            uint64_t lease;
            uint64_t job;
            uint64_t machine;
            uint64_t fence;
            struct price_lock lock;
            int64_t quote_micro;
        } lease_renewed;
        struct {
            uint64_t job;
            uint64_t machine;     /* whose owner is paid; 0: nobody would have had it */
            int64_t amount_micro; /* the operator's part included */
        } booking_forfeited;
        struct {
            uint64_t account; /* whose bill it is */
            uint64_t machine; /* that it is for; 0: it never enrolled */
            int64_t usd_micro;
            int64_t amount_micro;        /* the same in microcredits */
            char bill[LEDGER_MEMO_SIZE]; /* the seller's name for it: "i-0123 m5.large" */
        } cost_billed;
        struct ledger_entry entry_posted;
        struct {
            int64_t slot;      /* that ended */
            int64_t next_slot; /* that runs now; further on when the market lay idle */
            struct price_inputs inputs[PRICE_RESOURCE_COUNT];
            struct price_board board;  /* after the update */
            struct price_vector price; /* of the next slot: final */
        } slot_closed;
    };
};

const char *event_kind_name(enum event_kind kind);

/* Appends the event's canonical JSON, no line end. */
void event_encode(const struct event *event, struct buffer *out);

/* Texts longer than the struct (a job's spec) live in the arena. INVALID for anything else,
 * and *out_event is of no use then. */
MUST_CHECK int event_decode(struct arena *arena, struct text json, struct event *out_event,
                            struct error *error);

/* Events with the texts they point to. */
struct event_list {
    struct arena *arena;
    struct event *items;
    size_t count;
    size_t capacity;
    uint64_t subject; /* of the last decision: the id it made or found; 0: none */
};

void event_list_init(struct event_list *list);
void event_list_done(struct event_list *list);
void event_list_clear(struct event_list *list); /* keeps the memory */
/* Copies the event and its texts. */
void event_list_append(struct event_list *list, const struct event *event);
