/*
 * Price state: the slots' prices within the core, and what is counted towards the next ones.
 *
 * price_count.c counts, apply_price.c changes, decide_price.c ends slots, price_view.c answers.
 *
 * What stays the same is not counted as it goes, but once: when it changes, or when its slot ends.
 * So whoever changes a machine, an offer, a job or a lease calls the matching function below
 * *before* the change; everything up to that instant then counts as it was. No event comes after
 * the end of the running slot but the one that ends it: core_apply sees to that.
 */
#pragma once

#include "core/core.h"
#include "market/price_meter.h"

struct core_slot_end;

/* Of the slots after one. */
struct core_forecast {
    int64_t slot;
    struct price_vector prices[CORE_PRICE_FORECASTS];
};

struct core_prices {
    int64_t slot; /* the running one; no meaning before the first event */
    struct price_board board;
    struct price_vector forecasts[CORE_PRICE_FORECASTS]; /* of the slots after it */
    struct price_meter meter;                            /* of the running one */
    uint64_t close_count;
    struct core_price_close closes[CORE_PRICE_CLOSES]; /* the last ones, oldest first */
    size_t close_kept;
    /* While a decision emits the end of a slot: what it has just computed, for apply to take
     * instead of walking the whole market twice. NULL in a replay, which computes for itself. */
    struct core_slot_end *prepared;
    /* What a command that closed slots on its way had seen before: a job is extended at the prices
     * that its maximum was held against. Of the last instant only, and not kept. */
    struct core_forecast seen;
    int64_t seen_ms;
};

void core_prices_init(struct core *core);
void core_prices_done(struct core *core);

/* The first event begins the first slot. */
void core_prices_begin(struct core *core, int64_t now_ms);

int64_t core_slot_start_ms(const struct core *core);
int64_t core_slot_end_ms(const struct core *core);

/* Nothing is wanted or lent, and nothing is about to be: slots pass without a trace. */
bool core_prices_are_idle(const struct core *core);

/* Before the machine, its probe or one of its offers changes. */
void core_count_machine(struct core *core, struct machine *machine, int64_t now_ms);
/* Before the machine has the lease, and while it still has it. */
void core_count_lease_start(struct core *core, const struct lease *lease, int64_t now_ms);
void core_count_lease_end(struct core *core, const struct lease *lease, enum lease_outcome outcome,
                          int64_t now_ms);
/* When it runs: its machine does what it offers. */
void core_count_lease_running(struct core *core, const struct lease *lease, int64_t now_ms);
/* Before the job leaves the queue. One that is cancelled before its deadline has not waited. */
void core_count_wait(struct core *core, const struct job *job, bool is_cancelled, int64_t now_ms);
/* Once the job is there, and once it is in a final state. */
void core_count_submitted(struct core *core, const struct job *job);
void core_count_ended(struct core *core, const struct job *job);
/* Of a job that counts evenly over slots: whether it would pay the running one's price. */
price_would_pay core_spread_would_pay;

/* What the end of the running slot comes to. */
struct core_slot_end {
    struct price_meter meter; /* with all that counts up to the end */
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    struct price_board board;
    int64_t next_slot;
    struct price_vector price; /* of the next slot */
    struct price_vector forecasts[CORE_PRICE_FORECASTS];
};
void core_slot_end_prepare(const struct core *core, int64_t now_ms, struct core_slot_end *out);
void core_slot_end_done(struct core_slot_end *end);
