/*
 * Core: the market as one state machine. A command and the time go in, events come out.
 *
 * Pure: no clock, file, socket, thread or random number; integers only; every loop runs in an order
 * that depends on the events alone. core_apply is the only thing that changes the state, so the
 * same events give the same state, and the same snapshot byte for byte.
 *
 * Money. A job is held for when it is submitted, at its wish (the least cores, reference speed,
 * the longest run), or it is refused: a pending job is always funded. When it is matched the hold
 * becomes the sum of its leases' quotes, raised from the balance or lowered; it is matched only if
 * that keeps to max_total_micro and to what the account has. A lease's bill cannot pass its quote,
 * so a job cannot pass its hold. The rest is voided when the job ends. The grace after max_run_ms
 * is not billed.
 *
 * Ids of accounts, tokens, codes, machines, jobs and leases come from one counter. Pointers given
 * out are the core's own: valid until the next call that changes it.
 *
 * One core belongs to one thread.
 */
#pragma once

#include "core/command.h"
#include "core/event.h"
#include "market/match.h"
#include "market/price_rule.h"

struct core;

/* An empty market: the accounts mint and operator, default settings, cold-start prices. */
struct core *core_new(void);
void core_free(struct core *core); /* NULL is fine */
DEFINE_AUTO(core);

struct core_settings core_default_settings(void);

/*
 * Validates, then appends the events to *out and applies them; out->subject is what the command
 * made. On failure nothing changes: INVALID, NOT_FOUND, CONFLICT (a repeat, an old fence, a name
 * that is taken), REFUSED (not yours), EXHAUSTED (credits). A repeat of a submit with the same
 * idempotency key succeeds without events. When the clock went back, events carry the time of the
 * last one before.
 */
MUST_CHECK int core_decide(struct core *core, const struct command *command, int64_t now_ms,
                           struct event_list *out, struct error *error);

/* For replay. CORRUPT, changing nothing, when the event does not follow from the state. */
MUST_CHECK int core_apply(struct core *core, const struct event *event, struct error *error);

/* When time_passed has something to do; INT64_MAX: never. */
int64_t core_next_wake_ms(const struct core *core);

/*
 * The whole state as JSON lines, the first naming the version and the last event's sequence. Equal
 * states give equal bytes. Size grows with the market, so the buffer's maximum is the caller's.
 */
void core_snapshot_write(const struct core *core, struct buffer *out);
/* Whether this program's version wrote it; core_snapshot_read refuses others. */
bool core_snapshot_is_ours(struct text snapshot);
/* CORRUPT when it does not hang together. */
MUST_CHECK int core_snapshot_read(struct text snapshot, struct core **out_core,
                                  struct error *error);

/* Checks every invariant by walking the whole state: CORRUPT names the first that is broken. */
MUST_CHECK int core_check(const struct core *core, struct error *error);

/* What a request would cost: at its wish, and where it would be placed if submitted now. */
struct core_quote {
    struct match_quote wish;
    enum match_result result;
    struct match_quote placed; /* when the result is MATCH_PLACED; so the next */
    size_t server_machines;    /* different ones, of its servers */
    bool has_replica_room;     /* apart from the lead; true where none is wanted */
};
MUST_CHECK int core_quote(const struct core *core, const struct job_request *request,
                          struct core_quote *out_quote, struct error *error);
/* What the least it asks for would cost if it started then, by the prices known now. Of a request
 * that core_quote took. */
struct match_quote core_quote_at(const struct core *core, const struct job_request *request,
                                 int64_t start_ms);

/* What an offer would give a worker of the request, or its server, and for how much an hour;
 * whatever the request may spend. Where others have leased its room, since when they have, and
 * until when at the latest. Walks over all machines. */
struct core_offered {
    const struct machine *machine;
    enum lease_role role;
    struct resources resources;
    int64_t hourly_micro;
    int64_t busy_since_ms, busy_until_ms; /* 0: there is room now */
};
typedef void core_offered_visitor(void *context, const struct core_offered *offered);
void core_each_offered(const struct core *core, const struct job_request *request,
                       core_offered_visitor *visit, void *context);

/* Why a job is where it is, for people; of a pending one what it waits for. */
void core_explain(const struct core *core, const struct job *job, struct buffer *out);

/* Of a pending job: how many machines each wish left, the nearest change that would place it, and
 * when it is expected to start, and what core_explain says. False: it is not pending. Walks over
 * all machines. */
bool core_explain_wait(const struct core *core, const struct job *job,
                       struct match_explanation *out_explanation, struct buffer *out_words);

/* The same of a job that is not submitted, and the result in words. Walks over all machines. */
void core_explain_request(const struct core *core, const struct job_request *request,
                          enum match_result result, struct match_explanation *out_explanation,
                          struct buffer *out_words);

/* One hour of karma, as things are now. */
struct core_karma {
    int64_t share_micro; /* of each member */
    int64_t member_count;
};
struct core_karma core_karma(const struct core *core);

/* Lookups: NULL when there is none. */
const struct account *core_account(const struct core *core, uint64_t account);
const struct account *core_account_by_name(const struct core *core, struct text name);
const struct ledger_account *core_balance(const struct core *core, uint64_t account);
/*
 * Whom an account counts as where prices ask how many independent borrowers spoke: its group, else
 * its address block, else itself. 0 when there is no such account.
 */
uint64_t core_borrower(const struct core *core, uint64_t account);
/* Payer and payee are one account, of one group, or of one address block that is known. A lease
 * that was made then is paid like any other, and counts in no price, grant or reputation, whatever
 * groups they join or leave later. */
bool core_is_self_trade(const struct core *core, uint64_t payer, uint64_t payee);
const struct group *core_group(const struct core *core, uint64_t group);
const struct group *core_group_by_name(const struct core *core, struct text name);
const struct token *core_token(const struct core *core, uint64_t token);
const struct token *core_token_by_hash(const struct core *core,
                                       const uint8_t hash[MARKET_HASH_SIZE]);
const struct code *core_code_by_hash(const struct core *core, const uint8_t hash[MARKET_HASH_SIZE]);
const struct machine *core_machine(const struct core *core, uint64_t machine);
const struct machine *core_machine_by_name(const struct core *core, struct text name);
const struct machine *core_machine_by_key(const struct core *core,
                                          const uint8_t public_key[MACHINE_KEY_SIZE]);
const struct offer *core_offer(const struct core *core, uint64_t offer);
const struct job *core_job(const struct core *core, uint64_t job);
const struct lease *core_lease(const struct core *core, uint64_t lease);
/* What is still held for a job. */
int64_t core_held_micro(const struct core *core, uint64_t job);
/* The lease has not ended, but its machine is silent. */
bool core_lease_is_unreachable(const struct core *core, const struct lease *lease);

/* Jobs that lack workers and may only have machines near each other: 0 .. count - 1. What is told
 * of their round trips by report_pair may serve them. */
struct core_seeker {
    uint64_t job;
    int64_t max_rtt_us;
    const struct machine *machines[MATCH_NEAR_MAX]; /* with room for a worker, or with one of it */
    size_t machine_count;
    size_t worker_count; /* of them, the last ones: where it has a worker */
};
size_t core_seeker_count(const struct core *core);
/* The same of a request that is no job yet. */
void core_seeker_of(const struct core *core, const struct job_request *request,
                    struct core_seeker *out_seeker);
void core_seeker(const struct core *core, size_t index, struct core_seeker *out_seeker);

/* Iteration, in the order of ids: 0 .. count - 1. */
size_t core_account_count(const struct core *core);
const struct account *core_account_at(const struct core *core, size_t index);
size_t core_group_count(const struct core *core);
const struct group *core_group_at(const struct core *core, size_t index);
size_t core_token_count(const struct core *core);
const struct token *core_token_at(const struct core *core, size_t index);
size_t core_machine_count(const struct core *core);
const struct machine *core_machine_at(const struct core *core, size_t index);
/* In an order that changes when one is withdrawn. */
size_t core_offer_count(const struct core *core);
const struct offer *core_offer_at(const struct core *core, size_t index);
size_t core_job_count(const struct core *core);
const struct job *core_job_at(const struct core *core, size_t index);
size_t core_lease_count(const struct core *core);
const struct lease *core_lease_at(const struct core *core, size_t index);

enum {
    CORE_PRICE_FORECASTS = 8, /* slots after the running one: 48 hours */
    CORE_PRICE_CLOSES = 28,   /* kept: 7 days */
};

/* A slot that ended: what it cost, where prices stood then, and what moved them. */
struct core_price_close {
    int64_t slot;
    struct price_vector price;
    struct price_board before;
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
};

/* The running slot's prices: final. No slot runs before the first event. */
struct price_vector core_price(const struct core *core);
int64_t core_price_slot(const struct core *core);
/* The same, but an idle market hears of a new slot only with its next event: for it, the clock's.
 */
int64_t core_price_slot_at(const struct core *core, int64_t now_ms);
/* A slot has ended, whether its event has come or not: settings.slot_offset_ms stays. */
bool core_slots_are_fixed(const struct core *core, int64_t now_ms);
/* Final for the running slot, a forecast for a later one. */
struct price_vector core_price_of_slot(const struct core *core, int64_t slot);
/* Whether prices, forecasts and averages may differ after this event from what they were before. */
bool core_price_follows(const struct event *event);
/* The prices of the slots that a run between two instants touches, of the first PRICE_LOCK_SLOTS
 * at most. */
struct price_lock core_price_lock(const struct core *core, int64_t from_ms, int64_t until_ms);
const struct price_board *core_price_board(const struct core *core);
/* Slots that ended since the market began, and those of them that are kept, oldest first. */
uint64_t core_price_close_count(const struct core *core);
size_t core_price_close_kept(const struct core *core);
const struct core_price_close *core_price_close_at(const struct core *core, size_t index);
/* NULL when that slot is not kept, or passed while the market lay idle. */
const struct core_price_close *core_price_close_of(const struct core *core, int64_t slot);

/* A slot's price with the updates it came from: the last one before it, which set the level, and
 * the last one of the same time of day, which set the factor. */
struct core_price_story {
    int64_t slot;
    struct price_vector price;
    struct price_board board; /* that the price was made of */
    bool has_level;
    struct core_price_close level;
    bool has_factor;
    struct core_price_close factor;
};
/* Of a slot that is kept, or of the running or a later one. */
struct core_price_story core_price_story(const struct core *core, int64_t slot);

/* Over the slots of the last 7 days, or those of one time of day; -1: all. False: there is none. */
bool core_price_average(const struct core *core, int of_day, struct price_vector *out_average);

/* Machines with an offer that suits a worker of the job, whatever is free; and those of them whose
 * labels have this one, too. */
struct core_suiting {
    size_t machines, labelled;
};
struct core_suiting core_count_suiting(const struct core *core, const struct job_request *request,
                                       struct text label);

const struct core_settings *core_settings(const struct core *core);
uint64_t core_sequence(const struct core *core); /* of the last event; 0: none */
/* Over all accounts: zero. */
int64_t core_ledger_sum_micro(const struct core *core);
