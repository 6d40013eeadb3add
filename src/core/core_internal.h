/*
 * The core's state, shared by the files of this folder only.
 *
 * core.c owns and looks up, decide*.c turn commands into events, apply.c changes the state,
 * snapshot.c writes it and reads it back, check.c walks it.
 */
#pragma once

#include "base/assert.h"
#include "base/map.h"
#include "core/core.h"
#include "core/id_list.h"

struct core {
    struct core_settings settings;
    struct price_vector price;
    uint64_t sequence;   /* of the last event */
    int64_t time_ms;     /* of the last event */
    uint64_t last_id;    /* given out */
    uint64_t last_fence; /* given out */
    struct ledger *ledger;

    /* Owners, by id. Nothing but codes is ever removed, so of the others the order is of ids. */
    struct map accounts;
    struct map tokens;
    struct map codes;
    struct map machines;
    struct map jobs;
    struct map leases;

    /* By other keys; hashes and public keys are texts of raw bytes. */
    struct map accounts_by_name;
    struct map tokens_by_hash;
    struct map codes_by_hash;
    struct map machines_by_name;
    struct map machines_by_key;
    struct map jobs_by_key; /* account and idempotency hash */

    struct id_list code_list;    /* all */
    struct id_list machine_list; /* all */
    struct id_list unreachable;  /* machines in that state */
    struct id_list pending;      /* jobs in that state */
    struct id_list active;       /* jobs with leases: starting, running, stopping */
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

/* Machines in id order, for matching. */
struct machine **core_machine_pointers(const struct core *core, struct arena *arena);

/* Puts a machine, job or lease into every index that its state calls for. */
void core_index_machine(struct core *core, struct machine *machine);
void core_index_job(struct core *core, struct job *job);
void core_attach_lease(struct job *job, struct machine *machine, struct lease *lease);
void core_detach_lease(struct machine *machine, const struct lease *lease);

/* One event's change of the state: the table in event.c names them. */
typedef int event_apply(struct core *core, const struct event *event, struct error *error);
event_apply *event_apply_function(enum event_kind kind);
event_apply apply_settings_changed, apply_account_opened, apply_token_added, apply_token_revoked,
    apply_code_added, apply_code_removed, apply_machine_enrolled, apply_machine_probed,
    apply_machine_state_changed, apply_offer_set, apply_offer_withdrawn, apply_job_submitted,
    apply_job_state_changed, apply_lease_offered, apply_lease_started, apply_lease_ticked,
    apply_lease_stop_wanted, apply_lease_ended, apply_entry_posted;

/* One command on its way to events. */
struct decision {
    struct core *core;
    int64_t now_ms;
    struct event_list *out;
    uint64_t subject;
    bool should_match; /* something changed that a pending job may have waited for */
};

/* Applies the event and appends it. What was validated must apply: anything else is our mistake. */
void decision_emit(struct decision *decision, struct event *event);
void decision_emit_plan(struct decision *decision, const struct ledger_plan *plan,
                        const char *memo);

/* decide_job.c */
MUST_CHECK int decide_submit_job(struct decision *decision, const struct job_request *request,
                                 struct error *error);
MUST_CHECK int decide_lease_running(struct decision *decision, const struct command *command,
                                    struct error *error);
MUST_CHECK int decide_tick_lease(struct decision *decision, const struct command *command,
                                 struct error *error);
MUST_CHECK int decide_end_lease(struct decision *decision, const struct command *command,
                                struct error *error);
MUST_CHECK int decide_cancel_job(struct decision *decision, const struct command *command,
                                 struct error *error);
void decide_job_times(struct decision *decision);
void decide_lose_leases(struct decision *decision, struct machine *machine, const char *reason);
void decide_match(struct decision *decision);
