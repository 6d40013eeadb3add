/*
 * The core's state, shared by the files of this folder only.
 *
 * core.c owns, lookup.c looks up, index.c keeps what follows, decide*.c turn commands into events,
 * apply*.c change the state, snapshot*.c write it and read it back, check.c walks it.
 */
#pragma once

#include "base/assert.h"
#include "base/map.h"
#include "base/slab.h"
#include "core/core.h"
#include "core/id_list.h"
#include "core/price_state.h"
#include "core/timers.h"
#include "market/line.h"
#include "market/offer_shared.h"
#include "market/price_locks.h"
#include "market/waiting.h"

/* Which of the jobs that want workers are tried after an event, a few in each decision. */
struct worker_turns {
    uint64_t last; /* the job that was tried last */
    size_t left;   /* jobs that are still to be looked at */
};

/* What the booking that was cancelled last, late, costs, and whom it pays. */
struct forfeit {
    uint64_t job; /* 0: none was */
    struct forfeit_part {
        struct machine *machine; /* NULL: nobody would have had it */
        int64_t amount_micro;    /* the operator's part included */
    } * parts;
    size_t count, capacity;
    size_t next; /* the first that is not paid */
};

struct core {
    struct core_settings settings;
    struct price_vector price; /* of the running slot */
    struct core_prices prices;
    uint64_t sequence;   /* of the last event */
    int64_t time_ms;     /* of the last event */
    uint64_t last_id;    /* given out */
    uint64_t last_fence; /* given out */
    struct ledger *ledger;
    /* Entries that the last event calls for: they come next. None between two commands. */
    struct ledger_plan due;
    struct forfeit forfeit; /* scratch, of the command under way */

    /* Owners, by id. Only codes and offers are ever removed, so of the others the order is of ids.
     */
    struct map accounts;
    struct map groups;
    struct map tokens;
    struct map codes;
    struct map machines;
    struct map offers; /* withdrawn ones are removed */
    struct offer_shares offer_shares;
    struct price_locks price_locks;
    struct map jobs;
    struct map leases;

    /* Where the most numerous live. */
    struct slab machine_slab;
    struct slab offer_slab;
    struct slab job_slab;
    struct slab lease_slab;

    /* By other keys; hashes and public keys are texts of raw bytes. */
    struct map accounts_by_name;
    struct map groups_by_name;
    struct map grants_by_block; /* address block -> the account that got a grant there last */
    struct map tokens_by_hash;
    struct map codes_by_hash;
    struct map machines_by_name;
    struct map machines_by_key;
    struct map jobs_by_key; /* account and idempotency hash */

    int64_t day;             /* the last that began, UTC; 0: no account was opened yet */
    int64_t karma_hour;      /* the last that was shared */
    int64_t rules;           /* CORE_RULES_, that what comes now is decided by */
    int64_t grant_day;       /* of the last grant that was not by invitation */
    int64_t grant_day_micro; /* all of that day's together */

    struct id_list waiting_grants;       /* accounts in that state */
    struct id_list code_list;            /* all */
    struct id_list machine_list;         /* all */
    struct id_list pending;              /* jobs in that state */
    struct id_list active;               /* jobs with leases: starting, running, stopping */
    struct id_list short_handed;         /* of them, those that would take more workers */
    struct worker_turns successor_turns; /* scratch */
    struct worker_turns growth_turns;    /* scratch */
    struct id_list
        seekers; /* pending or short-handed jobs that look for machines near each other */
    struct id_list spare_waiting;       /* jobs that wait for spare time */
    struct id_list spare_short;         /* jobs that have some and would take more workers */
    struct worker_turns spare_turns[2]; /* of these two, in the other order; scratch */

    /* Matching. Only the clock is told by events; the rest follows from the state. */
    struct queue_clock queue;
    struct listing listing;        /* open offers of machines that are online */
    struct waiting_list waiting;   /* pending jobs that may start when there is room */
    struct timers job_timers;      /* of pending jobs: when they may start, by when they must */
    struct id_list short_of_money; /* of them, those that may have room but at too high a cost */
    struct wakes *wakes;           /* of all else that has its time */
    struct matcher *matcher;       /* scratch */
    struct match_rounds *rounds;   /* scratch */
    struct line line;              /* of those that wait, whom room may be reserved for; scratch */
};

static inline struct text core_bytes(const void *bytes, size_t size)
{
    return (struct text){bytes, size};
}

enum { CORE_JOB_KEY_SIZE = 8 + MARKET_HASH_SIZE };
/* False when the request has no idempotency key. */
bool core_job_key(const struct job_request *request, uint8_t out_key[CORE_JOB_KEY_SIZE]);

MUST_CHECK int core_settings_check(const struct core_settings *settings, struct error *error);

/* What a job may cost: its maximum, or what is held for it and the account has besides. */
int64_t core_budget_micro(const struct core *core, const struct job_request *request,
                          int64_t held_micro);

/* For how long a job that rushes past others pays double. */
#define CORE_RUSH_MS INT64_C(3600000)
/* What a rank of a job that ended well left is waited for so long where its machine is not heard.
 */
#define CORE_DELIVER_MS INT64_C(30000)

/* What is asked of the market for a job now; of one that rushes, as if it had to. */
struct match_wish core_wish(const struct core *core, const struct job_request *request,
                            int64_t held_micro, int64_t now_ms);

/* Of a job that waits: no dearer than it booked. */
struct match_wish core_wish_of(const struct core *core, const struct job *job);

/* When one that waits for room is expected to start, if all before it in the line run as long as
 * they may; always later than now. 0: not with the offers there are, or not known. `job`: NULL for
 * a request that is none yet. */
int64_t core_expected_start_ms(const struct core *core, const struct job *job,
                               const struct match_wish *wish);

/* ways_out.c: of a request that costs more than its account has, a line for each way out. */
void core_append_ways_out(const struct core *core, const struct job_request *request,
                          int64_t held_micro, struct buffer *out);

/* Machines in id order, to explain to people. */
struct machine **core_machine_pointers(const struct core *core, struct arena *arena);

#define CORE_DAY_MS (INT64_C(24) * 3600 * 1000)
int64_t core_day(int64_t instant_ms);
/* decide_grant.c: when the next day begins. */
int64_t core_day_wake_ms(const struct core *core);

/* Puts an account, machine, job or lease into every index that its state calls for. */
void core_index_account(struct core *core, struct account *account);
void core_attach_token(struct account *account, struct token *token);
void core_detach_token(struct account *account, const struct token *token);
void core_index_machine(struct core *core, struct machine *machine, int64_t now_ms);
/* After any change of what a machine has, offers or has leased. */
void core_list_offers(struct core *core, struct machine *machine, int64_t now_ms);
/* After a change of the posted price: some lenders are content with it now, others no longer. */
void core_list_price(struct core *core, int64_t now_ms);
void core_index_job(struct core *core, struct job *job);
/* Where machines find it, and in the line. */
void core_let_wait(struct core *core, struct job *job);
/* Among those that wait for spare time, or out of them. */
void core_let_wait_for_spare(struct core *core, struct job *job, bool waits);
/* Whether the job is worth trying when its account has more credits, or prices are lower. */
void core_mark_short(struct core *core, struct job *job, bool is_short);
/* Whether no offers there are would ever do for the job, which waits. */
void core_mark_stuck(struct core *core, struct job *job, bool is_stuck);
/* Whether a job that waits takes its usual turn, since it cannot pay for its rush. */
void core_set_unhurried(struct core *core, struct job *job, bool is_unhurried);
/* A machine came or changed: the jobs that it could serve are not stuck any more. */
void core_unstick_by(struct core *core, const struct machine *machine, int64_t now_ms);
void core_unstick_all(struct core *core);
/* After any change of a job's leases. */
void core_index_workers(struct core *core, struct job *job);
/* With what follows from its terms at that time: whether it is open, and when that turns. */
void core_index_offer(struct core *core, struct offer *offer, int64_t now_ms);
void core_attach_lease(struct core *core, struct job *job, struct machine *machine,
                       struct lease *lease, int64_t now_ms);
void core_detach_lease(struct core *core, struct machine *machine, const struct lease *lease,
                       int64_t now_ms);
/* The lease's own; NULL of an empty one, as most are. */
char *core_copy_reason(const char *reason);
/* By when all its leases have ended, as far as is known. */
void core_set_lease_ends(struct core *core, struct job *job);

/* wakes.c: after any change of the time at which something is due. */
struct wakes *wakes_new(void);
void wakes_free(struct wakes *wakes);
void core_wake_code(struct core *core, const struct code *code);
void core_wake_machine(struct core *core, const struct machine *machine);
void core_wake_offer(struct core *core, const struct offer *offer);
void core_wake_job(struct core *core, const struct job *job);
void core_wake_lease(struct core *core, const struct lease *lease);
/* The one that is due first: a code that has expired, a machine silent for too long, an offer that
 * opens or closes. NULL: none is. */
const struct code *core_due_code(const struct core *core, int64_t now_ms);
struct machine *core_due_machine(const struct core *core, int64_t now_ms);
const struct offer *core_due_offer(const struct core *core, int64_t now_ms);
bool core_wakes_are_sound(const struct core *core); /* compared with a walk over everything */

/* One event's change of the state: the table in event.c names them. */
typedef int event_apply(struct core *core, const struct event *event, struct error *error);
event_apply *event_apply_function(enum event_kind kind);
event_apply apply_account_deleted, apply_account_frozen, apply_account_seen, apply_account_unfrozen,
    apply_day_began, apply_karma_shared, apply_dormancy_advanced, apply_grant_given,
    apply_cost_billed, apply_grant_released, apply_group_created, apply_group_joined,
    apply_group_left, apply_password_set, apply_rules_changed;
event_apply apply_settings_changed, apply_account_opened, apply_token_added, apply_token_revoked,
    apply_code_added, apply_code_removed, apply_machine_enrolled, apply_machine_probed,
    apply_pair_measured, apply_machine_state_changed, apply_machine_yielded, apply_machine_proven,
    apply_offer_set, apply_offer_paused, apply_offer_renewed, apply_offer_turned,
    apply_offer_withdrawn, apply_job_submitted, apply_job_due, apply_job_waits, apply_job_noted,
    apply_job_state_changed, apply_lease_offered, apply_lease_started, apply_lease_ticked,
    apply_lease_stop_wanted, apply_lease_extended, apply_lease_renewed, apply_job_extended,
    apply_job_resized, apply_lease_ended, apply_lease_promoted, apply_booking_forfeited,
    apply_entry_posted, apply_slot_closed;

/* What was withheld of the payment that is due. */
int64_t core_due_withheld_micro(const struct core *core);

/* apply.c: what the others share. */
void apply_say_misfit(const struct event *event, const char *what, struct error *error);
static inline int apply_misfit(const struct event *event, const char *what, struct error *error)
{
    apply_say_misfit(event, what, error);
    return -1; /* here, where compilers and analyzers see it */
}
/* A check of what the event carries failed: names the event in the message. */
int apply_unfit(const struct event *event, struct error *error);
bool apply_is_next_id(const struct core *core, uint64_t id);
int apply_find_account(const struct core *core, const struct event *event, uint64_t id,
                       struct account **out_account, struct error *error);
/* Something of the account's was used: it is not dormant. */
void apply_see_account(struct core *core, uint64_t id, int64_t time_ms);
int apply_find_machine(const struct core *core, const struct event *event, uint64_t id,
                       struct machine **out_machine, struct error *error);

/* One command on its way to events. */
enum { DECISION_CREDITED_MAX = 8 };

struct decision {
    struct core *core;
    int64_t now_ms;
    struct event_list *out;
    uint64_t subject;
    bool should_match; /* something changed that a pending job may have waited for */
    bool is_repriced;  /* whatever jobs were too dear for may be cheaper now */
    /* Accounts that have more than before, whose jobs may have waited for it. */
    uint64_t credited[DECISION_CREDITED_MAX];
    size_t credited_count;
    uint64_t admitted;   /* an account that more offers are open to; 0: none */
    size_t looks, tries; /* of matching, so far */
};

/* Applies the event and appends it. What was validated must apply: anything else is our mistake. */
void decision_emit(struct decision *decision, struct event *event);
void decision_emit_plan(struct decision *decision, const struct ledger_plan *plan,
                        const char *memo);
/* The entries that the last event calls for. */
void decision_emit_due(struct decision *decision, const char *memo);

/* What a command's function is: checks all first, then emits. */
typedef int decide_command(struct decision *decision, const struct command *command,
                           struct error *error);

/* decide_account.c */
decide_command decide_change_settings, decide_open_account, decide_set_password,
    decide_freeze_account, decide_unfreeze_account, decide_delete_account, decide_see_account;
/* An account that is open; what is active is not frozen either. */
MUST_CHECK int decide_find_account(const struct core *core, uint64_t account, struct error *error);
MUST_CHECK int decide_find_active_account(const struct core *core, uint64_t account,
                                          struct error *error);
MUST_CHECK int decide_check_instant(int64_t instant_ms, const char *noun, struct error *error);
/* Of a text that is known to fit. */
void decide_copy(struct text text, char *out, size_t out_size);

/* decide_group.c */
decide_command decide_create_group, decide_join_group, decide_leave_group;
void decision_leave_group(struct decision *decision, const struct account *account);

/* decide_grant.c */
decide_command decide_give_grant;
/* If it waits for a grant and may have it now. */
void decide_first_grant(struct decision *decision, const struct account *account, bool is_invited);
void decide_waiting_grants(struct decision *decision);
/* Of a lease that ended: what it earned releases as much of the payee's grant. */
void decide_release_grant(struct decision *decision, const struct lease *lease);
/* Before the first payment that comes out otherwise by the newest rules, those begin to hold. */
void decide_own_pay(struct decision *decision, uint64_t payer, uint64_t payee);
void decide_new_day(struct decision *decision);

/* decide_fault.c */
/* Whether what these two leases agree on, as a parameter server says, is enough to call another
 * faulty. */
bool fault_is_proven(const struct core *core, const struct lease *accused, uint64_t accuser,
                     const uint64_t agreeing[2]);
/* What a faulty lease was paid, back to its borrower. */
void decide_pay_back(struct decision *decision, const struct lease *lease);

/* decide_token.c */
decide_command decide_add_token, decide_revoke_token, decide_add_code, decide_use_code;
void decision_revoke_token(struct decision *decision, uint64_t token);
MUST_CHECK int decide_find_code(const struct decision *decision, enum code_kind kind,
                                const uint8_t *hash, const struct code **out_code,
                                struct error *error);
void decide_remove_code(struct decision *decision, uint64_t code, bool is_used);
void decide_expire_codes(struct decision *decision);

/* decide_machine.c */
decide_command decide_enrol_machine, decide_report_probe, decide_report_pair,
    decide_machine_connected, decide_machine_silent, decide_machine_yields, decide_machine_gone;
MUST_CHECK int decide_find_machine(const struct decision *decision, uint64_t id,
                                   struct machine **out_machine, struct error *error);
MUST_CHECK int decide_find_own_machine(const struct decision *decision, uint64_t account,
                                       uint64_t id, struct machine **out_machine,
                                       struct error *error);
void decide_lose_machines(struct decision *decision);

/* Of what the job pays the machine's owner: nothing of what one pays itself, nor where there is no
 * money to run off with. */
int64_t core_withheld_basis_points(const struct core *core, const struct job *job,
                                   const struct machine *machine);
/* Unproven so far, and has earned enough since. */
bool core_is_proven_now(const struct core *core, const struct machine *machine);
/* If it is: what was withheld goes to its owner. */
void decide_prove_machine(struct decision *decision, const struct machine *machine);

/* decide_offer.c */
decide_command decide_set_offer, decide_pause_offer, decide_renew_offer, decide_withdraw_offer;
/* `offer` 0: a new one. The terms must have been checked. */
uint64_t decision_emit_offer(struct decision *decision, uint64_t offer, uint64_t machine,
                             const struct offer_terms *terms);
/* Offers larger than the machine turned out to be shrink to what there is. */
void decide_shrink_offers(struct decision *decision, const struct machine *machine,
                          struct resources found);
void decide_turn_offers(struct decision *decision);

/* decide_karma.c */
int64_t core_hour(int64_t instant_ms);
int64_t core_karma_wake_ms(const struct core *core);
void decide_share_karma(struct decision *decision);
/* Who has most credits goes first. */
struct queue_turn core_karma_turn(const struct core *core, uint64_t account);
/* Prices and the first hour as the settings say. */
void core_set_economy(struct core *core, int64_t now_ms);

/* decide_price.c */
void decide_close_slots(struct decision *decision);
int64_t decide_price_wake_ms(const struct core *core);

/* decide_job.c */
decide_command decide_submit_job, decide_cancel_job;
void decide_job_times(struct decision *decision);
void decision_copy_reason(struct text reason, char out[LEASE_REASON_SIZE]);
/* What a pending job waits for, unless that is known. */
void decision_note_wait(struct decision *decision, const struct job *job, bool is_short,
                        bool is_unhurried);
void decision_emit_job_state(struct decision *decision, const struct job *job, enum job_state state,
                             enum job_state outcome, const char *reason);
/* After anything that ended a lease: draws the consequences for its job. Safe to repeat. */
void decision_settle_job(struct decision *decision, const struct job *job);
/* It ends as well as it can: its server first, so that what was done is kept. */
void decision_stop_job(struct decision *decision, const struct job *job, const char *reason);
void decision_finish_job(struct decision *decision, const struct job *job, enum job_state outcome,
                         const char *reason);
void decision_hold_more(struct decision *decision, const struct job *job, int64_t amount_micro);

/* decide_lease.c */
decide_command decide_lease_running, decide_tick_lease, decide_end_lease, decide_release_lease,
    decide_reclaim_leases;
void decision_end_lease(struct decision *decision, const struct lease *lease,
                        enum lease_outcome outcome, const char *reason);
/* The same of a worker that its job does not want for its next epoch. */
void decision_let_go(struct decision *decision, const struct lease *lease, const char *reason);
/* Asks an open lease to stop, once. A machine that cannot be asked is not waited for. */
void decision_want_stop(struct decision *decision, const struct lease *lease, const char *reason);
void decision_want_all_stopped(struct decision *decision, const struct job *job,
                               const char *reason);
void decide_end_leases(struct decision *decision, struct machine *machine,
                       enum lease_outcome outcome, const char *reason);
void decide_late_leases(struct decision *decision, const struct job *job);

/* decide_resize.c */
decide_command decide_resize_job;

/* decide_start.c */
/* When a job for the cheapest slot that is submitted now starts, and what it costs there at most.
 */
struct booking {
    int64_t start_ms; /* 0: at once */
    struct match_quote quote;
};
struct booking decide_booking(const struct decision *decision, const struct job_request *request,
                              bool is_rush);
/* The prices of the slots from that instant on, as they are forecast now. */
struct price_lock core_booked_lock(const struct core *core, int64_t start_ms);
/* Lowers what is dearer than the job booked. */
void core_keep_booked(const struct job *job, struct price_lock *lock);
/* It found no room in the slot it chose, and as wished would cost more than was shown. */
bool core_passes_booking(const struct job *job, const struct match_wish *wish);
void decide_job_starts(struct decision *decision);
void core_set_job_timers(struct core *core, const struct job *job);
void core_skip_job_timers(struct core *core); /* those that mean nothing any more */

/* forfeit.c */
bool core_is_cancelled_late(const struct job *job, int64_t now_ms);
/* All that cancelling it costs was paid. */
bool core_is_forfeited(const struct core *core, const struct job *job);
/* What a booking that is cancelled late costs, paid to those who would have had its leases. */
void decide_forfeit(struct decision *decision, const struct job *job);

/* decide_credit.c */
decide_command decide_transfer, decide_bill_cost;

/* decide_extend.c */
decide_command decide_extend_job;

/* decide_renew.c */
void decide_renewals(struct decision *decision);

/* lease_terms.c: what a lease that runs comes to cost; its quote is never less than before. */
struct lease_terms {
    struct price_lock lock;
    int64_t max_run_ms;
    int64_t quote_micro;
};
bool lease_terms_equal(const struct lease_terms *left, const struct lease_terms *right);
struct core_forecast core_forecast(const struct core *core);
struct lease_terms core_extended_terms(const struct lease *lease, int64_t more_ms, int64_t now_ms,
                                       const struct core_forecast *forecast);
bool core_is_renewal_due(const struct lease *lease, int64_t now_ms);
/* False when it was verified so little that no slot could be added. */
bool core_renewed_terms(const struct core *core, const struct lease *lease,
                        struct lease_terms *out_terms);

/* decide_worker.c */
void decision_replace_lost(struct decision *decision, const struct job *job);
void decision_grow(struct decision *decision, const struct job *job);
bool decide_is_bereaved(const struct job *job);
/* The servers of a machine that is not reachable, where another has room for them. */
void decide_move_servers(struct decision *decision, const struct machine *machine);
/* Has the jobs of its workers say that it is not heard, or is again. */
void decide_note_silence(struct decision *decision, const struct machine *machine);
/* The jobs of a list that want workers, beginning after the one that was tried last, a few at a
 * time. */
void decide_each(struct decision *decision, const struct id_list *jobs, struct worker_turns *turns,
                 int tries_max, bool (*wants)(const struct job *),
                 void (*function)(struct decision *, const struct job *));
/* is_better: there may be room or money now that was not there before. */
void decide_successors(struct decision *decision, bool is_better);
void decide_growth(struct decision *decision, bool is_better);

/* match_rounds.c: machines that got better since the command began, and whom to try for it. */
struct match_rounds *match_rounds_new(void);
void match_rounds_free(struct match_rounds *rounds);
void match_rounds_begin(struct match_rounds *rounds);
void match_rounds_end(struct match_rounds *rounds);
/* A new job is tried before it waits anywhere: most never do. */
void match_rounds_expect(struct match_rounds *rounds, struct job *job);
bool match_rounds_expects(const struct match_rounds *rounds, const struct job *job);
void match_rounds_touch(struct match_rounds *rounds, struct machine *machine);
/* It waits no more, or is withdrawn: what was reserved for it, or there, is free for others. */
void match_rounds_forget_job(struct match_rounds *rounds, const struct job *job);
void match_rounds_forget_offer(struct match_rounds *rounds, const struct offer *offer);
/* A lease there ends sooner than thought, which leaves more beside what is reserved. */
void match_rounds_ends_sooner(struct match_rounds *rounds, struct machine *machine);
void match_rounds_try(struct match_rounds *rounds, struct job *job);
/* There may be spare time for somebody who waits for it. */
void match_rounds_spare(struct match_rounds *rounds);
/* A job lost spare time to one who pays: what follows for it is for the end of the decision. */
void match_rounds_preempt(struct match_rounds *rounds, struct job *job);
void match_rounds_sweep_short(struct match_rounds *rounds);     /* all that were too dear */
void match_rounds_sweep_all(struct match_rounds *rounds);       /* whatever they wait for */
bool match_rounds_is_better(const struct match_rounds *rounds); /* some machine is */
/* There is more to try than one decision could. */
bool match_rounds_are_open(const struct match_rounds *rounds);
/* More jobs are to be tried at this instant than one decision took. */
bool core_tries_are_open(const struct core *core);
/* decide_match.c */
void decision_offer_lease(struct decision *decision, const struct job *job,
                          const struct match_part *part, const struct match_wish *wish);
void decide_match(struct decision *decision);
/* Those of its jobs that were too dear: it has more now. */
void decide_try_short_of(struct core *core, uint64_t account);
/* Those whom machines could serve that were touched. */
void decide_touched(struct decision *decision);
/* decide_spare.c */
/* Members with less than this may have spare time. */
#define CORE_SPARE_BELOW_MICRO INT64_C(1000000)
/* Nothing is held for a job of spare time, so its account's credits do not bound them. */
enum { CORE_SPARE_WAITING_MAX = 16 };
bool core_may_have_spare(const struct core *core, uint64_t account);
/* Before a lease that is paid for is offered: ends those of spare time that are in its way. */
void decide_preempt(struct decision *decision, const struct match_part *part);
/* Last of all: jobs that lost spare time, and what is left of it for those who wait. */
void decide_spare(struct decision *decision);
/* The account has less than before. */
void decide_spare_for(struct decision *decision, uint64_t account);
/* decide_ahead.c: some job waits for room that will be there some day. */
bool decide_has_line(struct decision *decision);
