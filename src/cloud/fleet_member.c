/* The life of an instance, and what the cloud's answers do to it. */
#include "base/assert.h"
#include "cloud/fleet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HOUR_MS      INT64_C(3600000)
#define WAIT_MS      INT64_C(5000)
#define PAUSE_MS     INT64_C(1000)
#define PAUSE_MS_MAX INT64_C(60000)

int64_t fleet_pause(struct fleet *fleet, uint32_t failures)
{
    int64_t pause_ms = PAUSE_MS;
    for (uint32_t i = 1; i < failures && pause_ms < PAUSE_MS_MAX; i++)
        pause_ms *= 2;
    if (pause_ms > PAUSE_MS_MAX)
        pause_ms = PAUSE_MS_MAX;
    return pause_ms / 2 + (int64_t)random_below(&fleet->random, (uint64_t)pause_ms / 2 + 1);
}

void fleet_set_state(struct fleet_member *member, enum fleet_state state, int64_t now_ms)
{
    member->state = state;
    member->since_ms = now_ms;
}

struct fleet_member *fleet_add_member(struct fleet *fleet, uint64_t order, int64_t now_ms)
{
    if (fleet->member_count == FLEET_MEMBERS_MAX)
        return NULL;
    struct fleet_member *member = &fleet->members[fleet->member_count++];
    *member = (struct fleet_member){.id = ++fleet->last_id, .order = order, .since_ms = now_ms};
    return member;
}

void fleet_end_member(struct fleet_member *member, const char *reason, int64_t now_ms)
{
    if (member->state == FLEET_GONE || member->state == FLEET_ENDING)
        return;
    fleet_note(member->reason, reason);
    /* A launch that is not under way and left nothing open was not done. */
    const bool is_nothing =
        member->state == FLEET_WANTED ||
        (member->state == FLEET_LAUNCHING && !member->is_asked && !member->is_open);
    fleet_set_state(member, is_nothing ? FLEET_GONE : FLEET_ENDING, now_ms);
    member->failures = 0;
    member->pause_ms = 0;
    if (is_nothing) {
        member->asked_ms = 0;
        member->gone_ms = now_ms;
        member->allowance_usd_micro = 0;
    }
}

void fleet_member_gone(struct fleet *fleet, struct fleet_member *member, int64_t now_ms)
{
    struct fleet_order *order = fleet_order_of(fleet, member->order);
    if (member->state == FLEET_GONE)
        return;
    fleet_set_state(member, FLEET_GONE, now_ms);
    member->gone_ms = now_ms;
    /* One that was never there costs nothing. */
    if (!member->instance[0])
        member->asked_ms = 0;
    order->spent_usd_micro += fleet_member_cost(fleet, member, now_ms);
    member->allowance_usd_micro = 0;
}

/* Another takes its place, at the next candidate, if that may be. */
static void replace(struct fleet *fleet, const struct fleet_member *lost, int64_t now_ms)
{
    struct fleet_order *order = fleet_order_of(fleet, lost->order);
    const uint32_t candidate = (lost->candidate + 1) % (uint32_t)order->wish.candidate_count;
    if (order->is_stopping || !order->replacements_left)
        return;
    struct fleet_member *member = fleet_add_member(fleet, order->id, now_ms);
    if (!member)
        return;
    order->replacements_left--;
    member->candidate = candidate;
}

void fleet_lose_member(struct fleet *fleet, struct fleet_member *member, const char *reason,
                       int64_t now_ms)
{
    const bool was_wanted = member->state == FLEET_BOOTING || member->state == FLEET_READY;
    if (was_wanted)
        fleet_note(member->reason, reason);
    fleet_member_gone(fleet, member, now_ms);
    if (was_wanted)
        replace(fleet, member, now_ms);
}

/* ---- The budget ------------------------------------------------------------------------------ */

/* What the order may still promise, and to how many. */
static int64_t budget_left(const struct fleet *fleet, const struct fleet_order *order,
                           uint32_t *out_sharing)
{
    int64_t left = order->wish.usd_micro_max - order->spent_usd_micro;
    *out_sharing = 0;
    for (size_t i = 0; i < fleet->member_count; i++) {
        const struct fleet_member *member = &fleet->members[i];
        if (member->order != order->id)
            continue;
        left -= member->allowance_usd_micro;
        *out_sharing += member->state == FLEET_WANTED && !member->allowance_usd_micro;
    }
    return left;
}

static int64_t rate_of_others(const struct fleet *fleet, const struct fleet_member *own,
                              uint64_t order)
{
    int64_t rate = 0;
    for (size_t i = 0; i < fleet->member_count; i++) {
        const struct fleet_member *member = &fleet->members[i];
        if (member != own && fleet_member_lives(member) && (!order || member->order == order))
            rate += fleet_member_candidate(fleet, member)->usd_micro_per_hour;
    }
    return rate;
}

static bool fits(const struct fleet *fleet, const struct fleet_member *member,
                 const struct fleet_order *order, int64_t price)
{
    size_t living = 0;
    for (size_t i = 0; i < fleet->member_count; i++)
        living += fleet_member_lives(&fleet->members[i]);
    return living < fleet->options.instances_max &&
           rate_of_others(fleet, member, order->id) + price <= order->wish.usd_micro_per_hour_max &&
           rate_of_others(fleet, member, 0) + price <= fleet->options.usd_micro_per_hour_max;
}

static void give_up(struct fleet_order *order, struct fleet_member *member, const char *reason,
                    int64_t now_ms)
{
    fleet_end_member(member, reason, now_ms);
    fleet_note(order->reason, reason);
}

/* What is being ended gives back its part of the budget: as long as there is such, it waits. */
static bool waits_for_others(const struct fleet *fleet, struct fleet_member *member, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].state == FLEET_ENDING) {
            member->pause_ms = now_ms + WAIT_MS;
            return true;
        }
    return false;
}

/* The first candidate that the rate allows, from the one it stands at; the count: there is none. */
static uint32_t find_candidate(const struct fleet *fleet, const struct fleet_member *member,
                               const struct fleet_order *order)
{
    uint32_t candidate = member->candidate;
    while (candidate < order->wish.candidate_count &&
           !fits(fleet, member, order, order->candidates[candidate].usd_micro_per_hour))
        candidate++;
    return candidate;
}

bool fleet_allow(struct fleet *fleet, struct fleet_member *member, int64_t now_ms)
{
    struct fleet_order *order = fleet_order_of(fleet, member->order);
    uint32_t sharing;
    const uint32_t candidate = find_candidate(fleet, member, order);
    if (candidate == order->wish.candidate_count) {
        if (!waits_for_others(fleet, member, now_ms))
            give_up(order, member, "the budget per hour does not pay for another", now_ms);
        return false;
    }
    const int64_t left = budget_left(fleet, order, &sharing);
    const int64_t share = sharing > 0 && left > 0 ? left / sharing : 0;
    const int64_t price = order->candidates[candidate].usd_micro_per_hour;
    const int64_t most_ms = fleet->options.hours_max * HOUR_MS;
    const __int128 paid_ms = (__int128)share * HOUR_MS / price - FLEET_MARGIN_MS;
    int64_t life_ms = paid_ms < most_ms ? (int64_t)paid_ms : most_ms;
    if (life_ms < FLEET_LIFE_MINUTES_MIN * INT64_C(60000)) {
        if (!waits_for_others(fleet, member, now_ms))
            give_up(order, member, "the budget is used up", now_ms);
        return false;
    }
    member->candidate = candidate;
    life_ms -= life_ms % 60000;
    member->allowance_usd_micro = (life_ms + FLEET_MARGIN_MS) * price / HOUR_MS + 1;
    member->ends_ms = now_ms + life_ms;
    return true;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void advance_member(struct fleet *fleet, struct fleet_member *member, int64_t now_ms)
{
    const struct fleet_options *options = &fleet->options;
    /* An open launch may be one, and is nothing to be asked for again by then. */
    const bool is_there = member->state == FLEET_BOOTING || member->state == FLEET_READY ||
                          (member->state == FLEET_LAUNCHING && member->is_open);
    if (is_there && now_ms >= member->ends_ms) {
        fleet_end_member(member, "its part of the budget is used up", now_ms);
    } else if (member->state == FLEET_BOOTING && now_ms - member->since_ms > options->boot_ms) {
        fleet_end_member(member, "its lender did not enrol in time", now_ms);
        replace(fleet, member, now_ms);
    } else if (member->state == FLEET_READY && options->idle_ms && !member->lease_count &&
               now_ms - member->since_ms > options->idle_ms) {
        fleet_end_member(member, "it was idle", now_ms);
    }
}

static void settle_order(struct fleet *fleet, struct fleet_order *order, int64_t now_ms)
{
    const char *last = "";
    for (size_t i = 0; i < fleet->member_count; i++) {
        if (fleet->members[i].order != order->id)
            continue;
        if (fleet->members[i].state != FLEET_GONE)
            return;
        last = fleet->members[i].reason;
    }
    order->is_done = order->is_stopping = true;
    order->done_ms = now_ms;
    if (!order->reason[0])
        fleet_note(order->reason, last);
}

void fleet_advance(struct fleet *fleet, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->member_count; i++)
        advance_member(fleet, &fleet->members[i], now_ms);
    for (size_t i = 0; i < fleet->order_count; i++)
        if (!fleet->orders[i].is_done)
            settle_order(fleet, &fleet->orders[i], now_ms);
}

/* ---- The market's side ----------------------------------------------------------------------- */

void fleet_enrolled(struct fleet *fleet, uint64_t member, uint64_t machine, int64_t now_ms)
{
    struct fleet_member *found = fleet_member_of(fleet, member);
    if (!found)
        return;
    found->machine = machine;
    /* The answer to its launch may come later than its lender. */
    if (found->state == FLEET_BOOTING)
        fleet_set_state(found, FLEET_READY, now_ms);
}

void fleet_leased(struct fleet *fleet, uint64_t machine, uint32_t lease_count, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->member_count; i++) {
        struct fleet_member *member = &fleet->members[i];
        if (!machine || member->machine != machine || member->state == FLEET_GONE)
            continue;
        if (member->lease_count && !lease_count && member->state == FLEET_READY)
            member->since_ms = now_ms; /* idle from now on */
        member->lease_count = lease_count;
    }
}

/* ---- The cloud's answers --------------------------------------------------------------------- */

static void stop_asking(struct fleet *fleet, const struct fleet_action *action)
{
    struct fleet_member *member = fleet_member_of(fleet, action->member);
    if (member)
        member->is_asked = false;
}

static void take_instance(struct fleet_member *member, const char *instance, int64_t now_ms)
{
    snprintf(member->instance, sizeof(member->instance), "%s", instance);
    member->failures = 0;
    member->pause_ms = 0;
    if (member->state == FLEET_LAUNCHING)
        fleet_set_state(member, member->machine ? FLEET_READY : FLEET_BOOTING, now_ms);
}

void fleet_launched(struct fleet *fleet, const struct fleet_action *action, const char *instance,
                    int64_t now_ms)
{
    struct fleet_member *member = fleet_member_of(fleet, action->member);
    stop_asking(fleet, action);
    ASSERT(member && member->state != FLEET_WANTED);
    member->answered_ms = now_ms;
    /* One that was given up meanwhile is found by the list, and ended. */
    if (member->state != FLEET_GONE)
        take_instance(member, instance, now_ms);
}

static struct fleet_stray *find_stray(struct fleet *fleet, const char *instance)
{
    for (size_t i = 0; i < fleet->stray_count; i++)
        if (strcmp(fleet->strays[i].instance, instance) == 0)
            return &fleet->strays[i];
    return NULL;
}

static void drop_stray(struct fleet *fleet, struct fleet_stray *stray)
{
    *stray = fleet->strays[--fleet->stray_count];
}

void fleet_ended(struct fleet *fleet, const struct fleet_action *action, int64_t now_ms)
{
    struct fleet_member *member = fleet_member_of(fleet, action->member);
    stop_asking(fleet, action);
    if (member) {
        fleet_member_gone(fleet, member, now_ms);
        return;
    }
    struct fleet_stray *stray = find_stray(fleet, action->instance);
    if (stray)
        drop_stray(fleet, stray);
}

/* Nothing more can be had for the order: what it has goes on. */
static void give_up_rest(struct fleet *fleet, struct fleet_order *order, const char *reason,
                         int64_t now_ms)
{
    fleet_note(order->reason, reason);
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].order == order->id && fleet->members[i].state == FLEET_WANTED)
            fleet_end_member(&fleet->members[i], reason, now_ms);
}

/* It is known not to run, and may be asked for elsewhere. */
static void back_to_wanted(struct fleet_member *member, int64_t now_ms)
{
    member->asked_ms = 0;
    member->allowance_usd_micro = 0;
    member->failures = 0;
    member->attempt++;
    fleet_set_state(member, FLEET_WANTED, now_ms);
}

static void ask_again(struct fleet *fleet, struct fleet_order *order, struct fleet_member *member,
                      const char *reason, int64_t now_ms)
{
    member->pause_ms = now_ms + fleet_pause(fleet, ++member->failures);
    if (!member->is_open || member->failures < FLEET_UNCERTAIN_MAX)
        return;
    fleet_note(order->reason, reason);
    fleet_end_member(member, reason, now_ms);
}

/* Of this type and zone, or of this account, there is none to be had. */
static void do_without(struct fleet *fleet, struct fleet_order *order, struct fleet_member *member,
                       enum fleet_failure failure, const char *reason, int64_t now_ms)
{
    const bool is_last = member->candidate + 1 >= order->wish.candidate_count;
    if (member->is_open) {
        /* It may run by an earlier asking: the list says, and until then it has its part. */
        fleet_end_member(member, reason, now_ms);
        if (failure == FLEET_CAPACITY && !is_last)
            replace(fleet, member, now_ms);
        else
            fleet_note(order->reason, reason);
    } else {
        back_to_wanted(member, now_ms);
        if (failure == FLEET_CAPACITY && !is_last)
            member->candidate++;
        else
            give_up(order, member, reason, now_ms);
    }
    if (failure != FLEET_CAPACITY)
        give_up_rest(fleet, order, reason, now_ms);
}

static void launch_failed(struct fleet *fleet, struct fleet_member *member,
                          enum fleet_failure failure, const char *reason, int64_t now_ms)
{
    struct fleet_order *order = fleet_order_of(fleet, member->order);
    member->answered_ms = now_ms;
    if (member->state != FLEET_LAUNCHING) {
        /* It is being ended: where it is open the list says whether it is there. */
        member->is_open = member->is_open || failure == FLEET_UNCERTAIN || failure == FLEET_ABSENT;
        if (!member->is_open && !member->instance[0])
            fleet_member_gone(fleet, member, now_ms);
        return;
    }
    switch (failure) {
    case FLEET_UNCERTAIN:
    case FLEET_ABSENT:
        member->is_open = true;
        ask_again(fleet, order, member, reason, now_ms);
        return;
    case FLEET_THROTTLED:
        ask_again(fleet, order, member, reason, now_ms);
        return;
    case FLEET_CAPACITY:
    case FLEET_LIMIT:
    case FLEET_REFUSED:
        do_without(fleet, order, member, failure, reason, now_ms);
        return;
    }
}

static void end_failed(struct fleet *fleet, const struct fleet_action *action,
                       enum fleet_failure failure, int64_t now_ms)
{
    struct fleet_member *member = fleet_member_of(fleet, action->member);
    struct fleet_stray *stray = member ? NULL : find_stray(fleet, action->instance);
    uint32_t *failures = member ? &member->failures : stray ? &stray->failures : NULL;
    if (!failures)
        return;
    if (stray && failure == FLEET_ABSENT) {
        drop_stray(fleet, stray); /* if it is there all the same, a list has it again */
        return;
    }
    const int64_t pause_ms = now_ms + fleet_pause(fleet, ++*failures);
    if (member) {
        member->pause_ms = pause_ms;
    } else {
        stray->pause_ms = pause_ms;
        stray->is_asked = false;
    }
}

static void list_failed(struct fleet *fleet, enum fleet_failure failure, const char *reason,
                        int64_t now_ms)
{
    fleet->is_listing = false;
    fleet->list_pause_ms = now_ms + fleet_pause(fleet, ++fleet->list_failures);
    if (failure != FLEET_REFUSED)
        return;
    for (size_t i = 0; i < fleet->order_count; i++)
        give_up_rest(fleet, &fleet->orders[i], reason, now_ms);
}

void fleet_failed(struct fleet *fleet, const struct fleet_action *action,
                  enum fleet_failure failure, const char *reason, int64_t now_ms)
{
    struct fleet_member *member = fleet_member_of(fleet, action->member);
    stop_asking(fleet, action);
    if (action->kind == FLEET_LIST)
        list_failed(fleet, failure, reason, now_ms);
    else if (action->kind == FLEET_END)
        end_failed(fleet, action, failure, now_ms);
    else if (member)
        launch_failed(fleet, member, failure, reason, now_ms);
}

/* ---- The cloud's list ------------------------------------------------------------------------ */

static void add_stray(struct fleet *fleet, const char *instance)
{
    if (find_stray(fleet, instance) || fleet->stray_count == FLEET_STRAYS_MAX)
        return;
    struct fleet_stray *stray = &fleet->strays[fleet->stray_count++];
    *stray = (struct fleet_stray){0};
    snprintf(stray->instance, sizeof(stray->instance), "%s", instance);
    fleet->stray_total++;
}

static void see_alive(struct fleet *fleet, struct fleet_member *member,
                      const struct fleet_listed *listed, int64_t now_ms)
{
    if (!member || member->state == FLEET_GONE || member->state == FLEET_WANTED ||
        (member->instance[0] && strcmp(member->instance, listed->instance) != 0)) {
        add_stray(fleet, listed->instance);
        return;
    }
    if (!member->instance[0])
        take_instance(member, listed->instance, now_ms);
    member->unseen = 0;
}

static void see_dead(struct fleet *fleet, struct fleet_member *member,
                     const struct fleet_listed *listed, int64_t now_ms)
{
    struct fleet_stray *stray = find_stray(fleet, listed->instance);
    if (stray && !stray->is_asked)
        drop_stray(fleet, stray);
    if (!member || member->state == FLEET_GONE || member->state == FLEET_WANTED)
        return;
    if (!member->instance[0])
        snprintf(member->instance, sizeof(member->instance), "%s", listed->instance);
    if (strcmp(member->instance, listed->instance) == 0)
        fleet_lose_member(
            fleet, member,
            listed->is_interrupted ? "the cloud took it back" : "it has ended by itself", now_ms);
}

/* One that no list has, long after it should be there, is not there. */
static void miss_member(struct fleet *fleet, struct fleet_member *member, int64_t listed_ms,
                        int64_t now_ms)
{
    const bool is_there = member->state == FLEET_BOOTING || member->state == FLEET_READY ||
                          member->state == FLEET_ENDING;
    const int64_t settled_ms =
        (member->answered_ms > member->asked_ms ? member->answered_ms : member->asked_ms) +
        FLEET_SETTLE_MS;
    if (!is_there || listed_ms < settled_ms || ++member->unseen < 2)
        return;
    fleet_lose_member(fleet, member, "the cloud does not have it any more", now_ms);
}

static bool is_listed(const struct fleet_listed *instances, size_t count, const struct fleet *fleet,
                      const struct fleet_member *member)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(instances[i].run, fleet->options.run) == 0 && instances[i].member == member->id)
            return true;
    return false;
}

void fleet_listed(struct fleet *fleet, const struct fleet_action *action,
                  const struct fleet_listed *instances, size_t count, int64_t now_ms)
{
    fleet->is_listing = false;
    fleet->list_failures = 0;
    fleet->listed_ms = now_ms;
    fleet->list_pause_ms = now_ms + fleet->options.list_ms;
    for (size_t i = 0; i < count; i++) {
        const bool is_own = strcmp(instances[i].run, fleet->options.run) == 0;
        struct fleet_member *member = is_own ? fleet_member_of(fleet, instances[i].member) : NULL;
        if (instances[i].is_alive)
            see_alive(fleet, member, &instances[i], now_ms);
        else
            see_dead(fleet, member, &instances[i], now_ms);
    }
    const size_t known = fleet->member_count; /* replacements come behind it */
    for (size_t i = 0; i < known; i++)
        if (!is_listed(instances, count, fleet, &fleet->members[i]))
            miss_member(fleet, &fleet->members[i], action->now_ms, now_ms);
}
