/*
 * Karma: each hour every member gets its dues (market/karma.h).
 */
#include "core/core_internal.h"
#include "market/karma.h"

#include <inttypes.h>

enum { HOUR_MS = 3600 * 1000 };

int64_t core_hour(int64_t instant_ms)
{
    return instant_ms / HOUR_MS;
}

static bool is_member(const struct account *account)
{
    return account->id != ACCOUNT_MINT && account->id != ACCOUNT_OPERATOR && !account->deleted_ms &&
           !account_is_frozen(account);
}

/* What an hour of a machine is worth: the most of each part that its open offers lend. */
static int64_t lent_micro(const struct machine *machine)
{
    struct resources lent = {0};
    if (machine->state != MACHINE_STATE_ONLINE)
        return 0;
    for (size_t i = 0; i < machine->offer_count; i++)
        if (machine->offers[i]->is_open)
            lent = resources_larger(lent, machine->offers[i]->terms.resources);
    return price_hourly_micro(price_units(lent, machine_speed_milli(machine)), karma_price());
}

struct core_karma core_karma(const struct core *core)
{
    struct core_karma karma = {0};
    int64_t lent = 0;
    for (size_t i = 0; i < core->accounts.count; i++)
        karma.member_count += is_member(core->accounts.entries[i].value);
    for (size_t i = 0; i < core->machines.count; i++)
        lent = price_add_micro(lent, lent_micro(core->machines.entries[i].value));
    karma.share_micro = karma.member_count ? lent / karma.member_count : 0;
    return karma;
}

int64_t core_karma_wake_ms(const struct core *core)
{
    return core->settings.economy == ECONOMY_KARMA ? (core->karma_hour + 1) * HOUR_MS : INT64_MAX;
}

struct queue_turn core_karma_turn(const struct core *core, uint64_t account)
{
    const int64_t tag = QUEUE_TAG_MAX - ledger_balance_micro(core_balance(core, account));
    return (struct queue_turn){.tag = tag, .finish_tag = tag};
}

static void give_dues(struct decision *decision, const struct account *account,
                      struct karma_dues dues)
{
    const int64_t amount_micro = dues.income_micro + dues.guaranteed_micro;
    struct ledger_plan plan;
    struct error error;
    if (amount_micro == 0)
        return;
    /* Mint is exhausted only by markets that ran for ages: then balances stay as they are. */
    if (ledger_plan_grant(decision->core->ledger, account->id, amount_micro, &plan, &error) == 0)
        decision_emit_plan(decision, &plan, "karma: this hour's share");
}

void decide_share_karma(struct decision *decision)
{
    struct core *core = decision->core;
    if (decision->now_ms < core_karma_wake_ms(core))
        return;
    const struct core_karma karma = core_karma(core);
    struct event event = {.kind = EVENT_KARMA_SHARED,
                          .karma_shared = {.hour = core_hour(decision->now_ms),
                                           .share_micro = karma.share_micro,
                                           .member_count = karma.member_count}};
    const int64_t hours = event.karma_shared.hour - core->karma_hour;
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *account = core->accounts.entries[i].value;
        const int64_t used_micro =
            core_balance(core, account->id)->spent_total_micro - account->karma_spent_micro;
        if (is_member(account))
            give_dues(decision, account,
                      karma_dues(karma.share_micro, hours, used_micro,
                                 core->settings.karma_guarantee_basis_points));
    }
    decision_emit(decision, &event);
    decision->should_match = true;
}

int apply_karma_shared(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->karma_shared) *shared = &event->karma_shared;
    if (event->time_ms < core_karma_wake_ms(core) || shared->hour != core_hour(event->time_ms))
        return apply_misfit(event, "its hour has not come", error);
    const struct core_karma karma = core_karma(core);
    if (shared->share_micro != karma.share_micro || shared->member_count != karma.member_count)
        return apply_misfit(event, "the share does not follow from what is lent", error);
    core->karma_hour = shared->hour;
    for (size_t i = 0; i < core->accounts.count; i++) {
        struct account *account = core->accounts.entries[i].value;
        account->karma_spent_micro = core_balance(core, account->id)->spent_total_micro;
    }
    return 0;
}

void core_set_economy(struct core *core, int64_t now_ms)
{
    const bool is_karma = core->settings.economy == ECONOMY_KARMA;
    core->karma_hour = is_karma ? core_hour(now_ms) : 0;
    core->price = is_karma ? karma_price() : price_cold_start();
    for (int i = 0; i < CORE_PRICE_FORECASTS; i++)
        core->prices.forecasts[i] = core->price;
}
