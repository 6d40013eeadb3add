/* Orders, what is to be done next, and what is known. */
#include "base/assert.h"
#include "cloud/fleet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UTF8_BYTES_MAX = 4 };
#define HOUR_MS        INT64_C(3600000)
#define BILLED_MIN_MS  INT64_C(60000)
#define FORGET_MS      (24 * HOUR_MS)
#define USD(usd_micro) ((double)(usd_micro) / 1e6)

const char *fleet_state_name(enum fleet_state state)
{
    static const char *const names[FLEET_STATE_COUNT] = {"wanted", "launching", "booting",
                                                         "ready",  "ending",    "gone"};
    return names[state];
}

struct fleet *fleet_new(const struct fleet_options *options)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    ASSERT(fleet);
    fleet->options = *options;
    random_init(&fleet->random, options->seed);
    return fleet;
}

void fleet_free(struct fleet *fleet)
{
    free(fleet);
}

void fleet_note(char out[FLEET_REASON_SIZE], const char *reason)
{
    snprintf(out, FLEET_REASON_SIZE, "%s", reason);
    /* What is saved is read again: no character may be cut in two, and none be another's. */
    const size_t size = strlen(out);
    for (size_t cut = 0; cut < UTF8_BYTES_MAX && cut <= size; cut++)
        if (text_is_utf8((struct text){out, size - cut})) {
            out[size - cut] = '\0';
            return;
        }
    for (char *byte = out; *byte; byte++)
        if ((unsigned char)*byte > 127)
            *byte = '?';
}

struct fleet_order *fleet_order_of(struct fleet *fleet, uint64_t order)
{
    for (size_t i = 0; i < fleet->order_count; i++)
        if (fleet->orders[i].id == order)
            return &fleet->orders[i];
    return NULL;
}

struct fleet_member *fleet_member_of(struct fleet *fleet, uint64_t member)
{
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].id == member)
            return &fleet->members[i];
    return NULL;
}

/* ---- Ordering -------------------------------------------------------------------------------- */

static void forget_order(struct fleet *fleet, size_t index)
{
    const uint64_t id = fleet->orders[index].id;
    size_t kept = 0;
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].order != id)
            fleet->members[kept++] = fleet->members[i];
    fleet->member_count = kept;
    for (size_t i = index + 1; i < fleet->order_count; i++) {
        fleet->orders[i - 1] = fleet->orders[i];
        fleet->orders[i - 1].wish.candidates = fleet->orders[i - 1].candidates;
    }
    fleet->order_count--;
}

static bool is_billed_up(const struct fleet *fleet, uint64_t order)
{
    for (size_t i = 0; i < fleet->member_count; i++) {
        const struct fleet_member *member = &fleet->members[i];
        if (member->order == order &&
            member->billed_usd_micro < fleet_member_cost(fleet, member, member->gone_ms))
            return false;
    }
    return true;
}

/* Its job would be given another, with a budget of its own. */
static bool is_waited_for(const struct fleet_order *order)
{
    return order->wish.job && !order->is_job_over;
}

/* Those that are done, the oldest first: after a day, or when there is no room. */
static void forget_orders(struct fleet *fleet, size_t members_wanted, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->order_count;) {
        const struct fleet_order *order = &fleet->orders[i];
        const bool is_old = order->is_done && now_ms - order->done_ms > FORGET_MS;
        const bool is_in_the_way =
            order->is_done && (fleet->order_count == FLEET_ORDERS_MAX ||
                               fleet->member_count + members_wanted > FLEET_MEMBERS_MAX);
        if ((is_old || is_in_the_way) && !is_waited_for(order) && is_billed_up(fleet, order->id))
            forget_order(fleet, i);
        else
            i++;
    }
}

static int64_t rate_limit(const struct fleet *fleet, const struct fleet_wish *wish)
{
    const int64_t own = wish->usd_micro_per_hour_max;
    const int64_t left = fleet->options.usd_micro_per_hour_max - fleet_rate(fleet);
    return own && own < left ? own : left;
}

/* The number of instances that an amount pays for, of the candidate that is best. */
static int check_budget(const struct fleet *fleet, const struct fleet_wish *wish,
                        struct error *error)
{
    const struct fleet_candidate *best = &wish->candidates[0];
    const int64_t rate = best->usd_micro_per_hour * wish->count;
    const int64_t limit = rate_limit(fleet, wish);
    const int64_t fitting = limit / best->usd_micro_per_hour;
    if (rate > limit)
        return error_set(error, ERROR_EXHAUSTED,
                         "%u × %s cost $%.4f an hour, and $%.4f is left: %s%.0" PRId64 "%s",
                         wish->count, best->type, USD(rate), USD(limit > 0 ? limit : 0),
                         fitting > 0 ? "at most " : "raise the budget to at least the price of one",
                         fitting > 0 ? fitting : 0, fitting > 0 ? " fit" : "");
    const int64_t least = best->usd_micro_per_hour *
                              (FLEET_LIFE_MINUTES_MIN * INT64_C(60000) + FLEET_MARGIN_MS) /
                              HOUR_MS +
                          1;
    if (wish->usd_micro_max && wish->usd_micro_max / wish->count < least)
        return error_set(error, ERROR_EXHAUSTED,
                         "$%.4f in all do not pay for %u × %s for %d minutes: that takes $%.4f",
                         USD(wish->usd_micro_max), wish->count, best->type, FLEET_LIFE_MINUTES_MIN,
                         USD(least * wish->count));
    return 0;
}

int fleet_check(const struct fleet *fleet, const struct fleet_wish *wish, struct error *error)
{
    if (wish->count < 1 || !wish->candidate_count || wish->candidate_count > FLEET_CANDIDATES_MAX)
        return error_set(error, ERROR_INVALID,
                         "there has to be a count, and 1 to %d types and zones",
                         FLEET_CANDIDATES_MAX);
    for (size_t i = 0; i < wish->candidate_count; i++)
        if (wish->candidates[i].usd_micro_per_hour <= 0)
            return error_set(error, ERROR_INVALID, "nobody knows what \"%s\" costs",
                             wish->candidates[i].type);
    const size_t living = fleet_living(fleet);
    if (living + wish->count > fleet->options.instances_max)
        return error_set(error, ERROR_EXHAUSTED,
                         "%u more instances are too many: %zu run, and %u are the most",
                         wish->count, living, fleet->options.instances_max);
    return check_budget(fleet, wish, error);
}

static const struct fleet_order *find_key(const struct fleet *fleet, const struct fleet_wish *wish)
{
    static const uint8_t none[FLEET_KEY_SIZE];
    if (memcmp(wish->key, none, FLEET_KEY_SIZE) == 0)
        return NULL;
    for (size_t i = 0; i < fleet->order_count; i++)
        if (memcmp(fleet->orders[i].wish.key, wish->key, FLEET_KEY_SIZE) == 0)
            return &fleet->orders[i];
    return NULL;
}

int fleet_order(struct fleet *fleet, const struct fleet_wish *wish, int64_t now_ms,
                uint64_t *out_order, struct error *error)
{
    const struct fleet_order *same = find_key(fleet, wish);
    if (same && memcmp(same->wish.request, wish->request, FLEET_KEY_SIZE) != 0)
        return error_set(error, ERROR_CONFLICT,
                         "this Idempotency-Key was used for another request; take a new one");
    if (same) {
        *out_order = same->id;
        return 0;
    }
    if (fleet_check(fleet, wish, error) < 0)
        return -1;
    forget_orders(fleet, wish->count, now_ms);
    if (fleet->order_count == FLEET_ORDERS_MAX ||
        fleet->member_count + wish->count > FLEET_MEMBERS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "there are too many orders: stop some first");
    struct fleet_order *order = &fleet->orders[fleet->order_count++];
    *order = (struct fleet_order){.id = ++fleet->last_id,
                                  .wish = *wish,
                                  .made_ms = now_ms,
                                  .replacements_left = 3 * wish->count};
    memcpy(order->candidates, wish->candidates, wish->candidate_count * sizeof(*wish->candidates));
    order->wish.candidates = order->candidates;
    if (!order->wish.usd_micro_per_hour_max)
        order->wish.usd_micro_per_hour_max = fleet->options.usd_micro_per_hour_max;
    if (!order->wish.usd_micro_max)
        order->wish.usd_micro_max =
            order->candidates[0].usd_micro_per_hour * wish->count * fleet->options.hours_max;
    for (uint32_t i = 0; i < wish->count; i++)
        ASSERT(fleet_add_member(fleet, order->id, now_ms));
    *out_order = order->id;
    return 0;
}

void fleet_take_back(struct fleet *fleet, uint64_t order)
{
    for (size_t i = 0; i < fleet->order_count; i++)
        if (fleet->orders[i].id == order) {
            forget_order(fleet, i);
            return;
        }
}

static void stop_order(struct fleet *fleet, struct fleet_order *order, const char *reason,
                       int64_t now_ms)
{
    if (order->is_stopping)
        return;
    order->is_stopping = true;
    fleet_note(order->reason, reason);
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].order == order->id)
            fleet_end_member(&fleet->members[i], reason, now_ms);
}

int fleet_stop(struct fleet *fleet, uint64_t order, const char *reason, int64_t now_ms,
               struct error *error)
{
    struct fleet_order *found = fleet_order_of(fleet, order);
    if (!found)
        return error_set(error, ERROR_NOT_FOUND, "there is no order %" PRIu64, order);
    stop_order(fleet, found, reason, now_ms);
    return 0;
}

void fleet_stop_all(struct fleet *fleet, const char *reason, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->order_count; i++)
        stop_order(fleet, &fleet->orders[i], reason, now_ms);
}

void fleet_job_ended(struct fleet *fleet, uint64_t job, int64_t now_ms)
{
    for (size_t i = 0; i < fleet->order_count; i++)
        if (job && fleet->orders[i].wish.job == job) {
            fleet->orders[i].is_job_over = true;
            stop_order(fleet, &fleet->orders[i], "its job has ended", now_ms);
        }
}

void fleet_sweep(struct fleet *fleet)
{
    fleet->list_pause_ms = 0;
}

/* ---- What is next ---------------------------------------------------------------------------- */

static bool next_stray(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action)
{
    for (size_t i = 0; i < fleet->stray_count; i++) {
        struct fleet_stray *stray = &fleet->strays[i];
        if (stray->is_asked || now_ms < stray->pause_ms)
            continue;
        stray->is_asked = true;
        *out_action = (struct fleet_action){.kind = FLEET_END, .now_ms = now_ms};
        memcpy(out_action->instance, stray->instance, sizeof(stray->instance));
        return true;
    }
    return false;
}

static bool next_end(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action)
{
    for (size_t i = 0; i < fleet->member_count; i++) {
        struct fleet_member *member = &fleet->members[i];
        if (member->state != FLEET_ENDING || member->is_asked || !member->instance[0] ||
            now_ms < member->pause_ms)
            continue;
        member->is_asked = true;
        *out_action =
            (struct fleet_action){.kind = FLEET_END, .member = member->id, .now_ms = now_ms};
        memcpy(out_action->instance, member->instance, sizeof(member->instance));
        return true;
    }
    return next_stray(fleet, now_ms, out_action);
}

static bool next_launch(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action)
{
    for (size_t i = 0; i < fleet->member_count; i++) {
        struct fleet_member *member = &fleet->members[i];
        if ((member->state != FLEET_WANTED && member->state != FLEET_LAUNCHING) ||
            member->is_asked || now_ms < member->pause_ms)
            continue;
        if (member->state == FLEET_WANTED && !fleet_allow(fleet, member, now_ms))
            continue;
        const struct fleet_order *order = fleet_order_of(fleet, member->order);
        if (member->state == FLEET_WANTED)
            fleet_set_state(member, FLEET_LAUNCHING, now_ms);
        if (!member->is_open) { /* what was asked before is known not to run */
            member->ends_ms += now_ms - (member->asked_ms ? member->asked_ms : now_ms);
            member->asked_ms = now_ms;
        }
        member->is_asked = true;
        *out_action = (struct fleet_action){
            .kind = FLEET_LAUNCH,
            .member = member->id,
            .attempt = member->attempt,
            .is_spot = order->wish.is_spot,
            .life_minutes = (member->ends_ms - member->asked_ms) / 60000,
            .candidate = order->candidates[member->candidate],
            .now_ms = now_ms,
        };
        return true;
    }
    return false;
}

static bool next_list(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action)
{
    if (fleet->is_listing || now_ms < fleet->list_pause_ms)
        return false;
    fleet->is_listing = true;
    *out_action = (struct fleet_action){.kind = FLEET_LIST, .now_ms = now_ms};
    return true;
}

bool fleet_next(struct fleet *fleet, int64_t now_ms, struct fleet_action *out_action)
{
    fleet_advance(fleet, now_ms);
    if (next_end(fleet, now_ms, out_action) || next_list(fleet, now_ms, out_action))
        return true;
    /* Nothing is started before it is known what is left of another run, and that keys work. */
    return fleet->listed_ms > 0 && next_launch(fleet, now_ms, out_action);
}

/* ---- Looking --------------------------------------------------------------------------------- */

const char *fleet_run(const struct fleet *fleet)
{
    return fleet->options.run;
}

size_t fleet_order_count(const struct fleet *fleet)
{
    return fleet->order_count;
}

const struct fleet_order *fleet_order_at(const struct fleet *fleet, size_t index)
{
    ASSERT(index < fleet->order_count);
    return &fleet->orders[index];
}

const struct fleet_order *fleet_find_order(const struct fleet *fleet, uint64_t order)
{
    for (size_t i = 0; i < fleet->order_count; i++)
        if (fleet->orders[i].id == order)
            return &fleet->orders[i];
    return NULL;
}

size_t fleet_member_count(const struct fleet *fleet)
{
    return fleet->member_count;
}

const struct fleet_member *fleet_member_at(const struct fleet *fleet, size_t index)
{
    ASSERT(index < fleet->member_count);
    return &fleet->members[index];
}

const struct fleet_member *fleet_find_member(const struct fleet *fleet, uint64_t member)
{
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].id == member)
            return &fleet->members[i];
    return NULL;
}

const struct fleet_candidate *fleet_member_candidate(const struct fleet *fleet,
                                                     const struct fleet_member *member)
{
    const struct fleet_order *order = fleet_find_order(fleet, member->order);
    ASSERT(order && member->candidate < order->wish.candidate_count);
    return &order->candidates[member->candidate];
}

int64_t fleet_member_cost(const struct fleet *fleet, const struct fleet_member *member,
                          int64_t now_ms)
{
    if (!member->asked_ms)
        return 0;
    const int64_t end_ms = member->gone_ms ? member->gone_ms : now_ms;
    const int64_t elapsed_ms = end_ms - member->asked_ms;
    const int64_t billed_ms = elapsed_ms > BILLED_MIN_MS ? elapsed_ms : BILLED_MIN_MS;
    const int64_t price = fleet_member_candidate(fleet, member)->usd_micro_per_hour;
    return (price * ((billed_ms + 999) / 1000) + 3599) / 3600;
}

bool fleet_member_lives(const struct fleet_member *member)
{
    return member->state != FLEET_GONE && member->state != FLEET_WANTED;
}

/* Those to come included. */
size_t fleet_living(const struct fleet *fleet)
{
    size_t count = 0;
    for (size_t i = 0; i < fleet->member_count; i++)
        count += fleet->members[i].state != FLEET_GONE;
    return count;
}

int64_t fleet_rate(const struct fleet *fleet)
{
    int64_t rate = 0;
    for (size_t i = 0; i < fleet->member_count; i++)
        if (fleet->members[i].state != FLEET_GONE)
            rate += fleet_member_candidate(fleet, &fleet->members[i])->usd_micro_per_hour;
    return rate;
}

int64_t fleet_listed_ms(const struct fleet *fleet)
{
    return fleet->listed_ms;
}

uint64_t fleet_stray_count(const struct fleet *fleet)
{
    return fleet->stray_total;
}

size_t fleet_strays_left(const struct fleet *fleet)
{
    return fleet->stray_count;
}

bool fleet_take_cost(struct fleet *fleet, int64_t now_ms, struct fleet_cost *out_cost)
{
    for (size_t i = 0; i < fleet->member_count; i++) {
        struct fleet_member *member = &fleet->members[i];
        const int64_t due = fleet_member_cost(fleet, member, now_ms) - member->billed_usd_micro;
        const int64_t since_ms = member->taken_ms ? member->taken_ms : member->asked_ms;
        if (due <= 0 || !member->instance[0] ||
            (!member->gone_ms && now_ms - since_ms < fleet->options.bill_ms))
            continue;
        member->billed_usd_micro += due;
        member->taken_ms = now_ms;
        *out_cost = (struct fleet_cost){.member = member->id,
                                        .machine = member->machine,
                                        .instance = member->instance,
                                        .type = fleet_member_candidate(fleet, member)->type,
                                        .usd_micro = due};
        return true;
    }
    return false;
}
