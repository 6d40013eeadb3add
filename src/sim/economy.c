#include "sim/economy.h"

#include "base/assert.h"
#include "base/random.h"
#include "market/price_meter.h"
#include "sim/outcome.h"

#include <math.h>
#include <stdlib.h>

enum {
    MEMBERS_FIRST = 240,
    MEMBERS_MAX = 1000,
    SLOTS_PER_WEEK = 28,
    SLOT_HOURS = 6,
    WANTS_MAX = 16,   /* of one member in one slot */
    TARGET_WEEKS = 4, /* of spending in the purse */
    RICH_WEEKS = 8,
};

static const double JOIN_PER_WEEK = 0.010, LEAVE_PER_WEEK = 0.005, STOPS_WHEN_RICH = 0.3;

struct person {
    int64_t balance_micro;
    int64_t locked_micro; /* of the grant, released by earning */
    int64_t lent_micro, spent_micro;
    double lends_cores;
    double wants_cores;  /* mean, at all times */
    double pace;         /* what it is ready to pay, as a share of the worth */
    double weekly_micro; /* spending, smoothed */
    bool stops_when_rich;
    bool has_left;
};

struct want {
    uint32_t person;
    int64_t core_hours_milli;
    double worth_micro; /* per core-hour */
};

struct economy {
    struct economy_options options;
    struct random random;
    struct person people[MEMBERS_MAX];
    uint32_t count;
    struct price_board board;
    struct price_meter meter;
    struct want *wants;
    size_t want_count;
    double wanted, served, blocked, used_h, offered_h, price_sum, price_count;
    int64_t minted_micro;
};

static void join(struct economy *economy)
{
    if (economy->count == MEMBERS_MAX)
        return;
    struct person *person = &economy->people[economy->count++];
    const uint64_t draw = random_below(&economy->random, 4);
    *person = (struct person){.balance_micro = economy->options.grant_micro,
                              .locked_micro = economy->options.earned_grant_micro,
                              .pace = 1,
                              .stops_when_rich = random_unit(&economy->random) < STOPS_WHEN_RICH};
    economy->minted_micro += person->balance_micro;
    /* Half trade, a quarter mostly lend, a quarter mostly borrow. */
    person->lends_cores = draw < 2 ? 4 : draw == 2 ? 8 : 1;
    person->wants_cores = draw < 2 ? 8 : draw == 2 ? 2 : 12;
}

static bool is_rich(const struct person *person)
{
    return (double)person->balance_micro > RICH_WEEKS * person->weekly_micro &&
           person->balance_micro > 20000000;
}

static void gather_wants(struct economy *economy)
{
    const double cold = (double)price_cold_start().core_micro;
    economy->want_count = 0;
    for (uint32_t i = 0; i < economy->count; i++) {
        const struct person *person = &economy->people[i];
        if (person->has_left)
            continue;
        /* Jobs of about two cores for a slot, Poisson by repeated draws. */
        const double mean = person->wants_cores / 2;
        double left = exp(-mean), product = random_unit(&economy->random);
        for (int job = 0; job < WANTS_MAX && product > left; job++) {
            product *= random_unit(&economy->random);
            economy->wants[economy->want_count++] =
                (struct want){.person = i,
                              .core_hours_milli = INT64_C(1000) * SLOT_HOURS *
                                                  (1 + (int64_t)random_below(&economy->random, 3)),
                              .worth_micro = 1.3 * cold * exp(random_normal(&economy->random))};
        }
    }
    for (size_t i = economy->want_count; i > 1; i--) {
        const size_t other = (size_t)random_below(&economy->random, i);
        const struct want swapped = economy->wants[i - 1];
        economy->wants[i - 1] = economy->wants[other];
        economy->wants[other] = swapped;
    }
}

/* Everybody whose hours are offered shares the slot's income by size; the last one gets the rest of
 * the division, so that nothing is lost. */
static void pay_lenders(struct economy *economy, int64_t income_micro, double offered_cores)
{
    int64_t left_micro = income_micro;
    struct person *last = NULL;
    for (uint32_t i = 0; i < economy->count; i++) {
        struct person *person = &economy->people[i];
        if (person->has_left || (person->stops_when_rich && is_rich(person)))
            continue;
        int64_t part = (int64_t)((double)income_micro * person->lends_cores / offered_cores);
        part = part > left_micro ? left_micro : part;
        left_micro -= part;
        person->balance_micro += part;
        person->lent_micro += part;
        const int64_t released = part < person->locked_micro ? part : person->locked_micro;
        person->locked_micro -= released;
        person->balance_micro += released;
        economy->minted_micro += released;
        last = person;
    }
    if (last) {
        last->balance_micro += left_micro;
        last->lent_micro += left_micro;
    }
}

static double offered_cores(const struct economy *economy)
{
    double cores = 0;
    for (uint32_t i = 0; i < economy->count; i++) {
        const struct person *person = &economy->people[i];
        if (!person->has_left && !(person->stops_when_rich && is_rich(person)))
            cores += person->lends_cores;
    }
    return cores;
}

static int64_t posted_price(const struct economy *economy, int of_day)
{
    const struct price_vector none = {0};
    return economy->options.is_price_fixed
               ? price_cold_start().core_micro
               : price_board_price(&economy->board, of_day, &none).core_micro;
}

static void trade(struct economy *economy, int64_t price_micro, double offered)
{
    double free_h = offered * SLOT_HOURS;
    int64_t income_micro = 0;
    for (size_t i = 0; i < economy->want_count; i++) {
        const struct want *want = &economy->wants[i];
        struct person *person = &economy->people[want->person];
        const double hours = (double)want->core_hours_milli / 1000;
        economy->wanted += want->worth_micro * hours;
        if (want->worth_micro * person->pace < (double)price_micro)
            continue;
        const int64_t cost_micro = want->core_hours_milli * price_micro / 1000;
        if (cost_micro > person->balance_micro) {
            economy->blocked += want->worth_micro * hours;
            continue;
        }
        price_meter_want(
            &economy->meter, want->person + 1,
            (struct price_usage){.milli_s = {[PRICE_CORE] = want->core_hours_milli * 3600}});
        if (hours > free_h)
            continue;
        free_h -= hours;
        economy->used_h += hours;
        economy->served += want->worth_micro * hours;
        person->balance_micro -= cost_micro;
        person->spent_micro += cost_micro;
        person->weekly_micro += (double)cost_micro;
        income_micro += cost_micro;
    }
    economy->offered_h += offered * SLOT_HOURS;
    price_meter_offer(&economy->meter,
                      (struct price_usage){.milli_s = {[PRICE_CORE] = (int64_t)(offered * 1000) *
                                                                      SLOT_HOURS * 3600}});
    pay_lenders(economy, income_micro, offered);
}

static void keep_pace(struct economy *economy)
{
    for (uint32_t i = 0; i < economy->count; i++) {
        struct person *person = &economy->people[i];
        person->weekly_micro *= 1 - 1.0 / SLOTS_PER_WEEK;
        const bool is_poor = (double)person->balance_micro < TARGET_WEEKS * person->weekly_micro;
        person->pace = fmin(1, fmax(0.01, person->pace * (is_poor ? 0.98 : 1.02)));
    }
}

static void come_and_go(struct economy *economy)
{
    const uint32_t before = economy->count;
    for (uint32_t i = 0; i < before; i++) {
        if (economy->people[i].has_left)
            continue;
        if (random_unit(&economy->random) < LEAVE_PER_WEEK)
            economy->people[i].has_left = true;
        if (random_unit(&economy->random) < JOIN_PER_WEEK)
            join(economy);
    }
}

static void pass_slot(struct economy *economy, int64_t slot)
{
    const int of_day = (int)(slot % SLOT_PER_DAY);
    const int64_t price_micro = posted_price(economy, of_day);
    gather_wants(economy);
    trade(economy, price_micro, offered_cores(economy));
    keep_pace(economy);
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(&economy->meter, inputs);
    price_meter_next_slot(&economy->meter, NULL, NULL);
    price_board_close(&economy->board, of_day, inputs);
    if (slot >= (economy->options.weeks - 4) * SLOTS_PER_WEEK) {
        economy->price_sum += (double)price_micro / (double)price_cold_start().core_micro;
        economy->price_count++;
    }
    if (slot % SLOTS_PER_WEEK == SLOTS_PER_WEEK - 1)
        come_and_go(economy);
}

static struct economy_outcome sum_up(const struct economy *economy)
{
    static double balances[MEMBERS_MAX], ratios[MEMBERS_MAX];
    double broke = 0, within_two = 0;
    size_t count = 0, both = 0;
    int64_t unbalanced_micro = -economy->minted_micro, traded_micro = 0;
    for (uint32_t i = 0; i < economy->count; i++) {
        const struct person *person = &economy->people[i];
        unbalanced_micro += person->balance_micro;
        traded_micro += person->spent_micro - person->lent_micro;
        if (person->has_left)
            continue;
        balances[count++] = (double)person->balance_micro;
        broke += person->balance_micro < 100000;
        if (person->spent_micro == 0)
            continue;
        const double ratio = (double)person->lent_micro / (double)person->spent_micro;
        within_two += ratio > 0.5 && ratio < 2;
        ratios[both++] = ratio;
    }
    return (struct economy_outcome){
        .served = economy->served / economy->wanted,
        .blocked = economy->blocked / economy->wanted,
        .broke = broke / (double)count,
        .gini = outcome_gini(balances, count),
        .price = economy->price_sum / economy->price_count,
        .utilisation = economy->used_h / economy->offered_h,
        .ratio_p10 = outcome_quantile(ratios, both, 0.1),
        .ratio_p50 = outcome_quantile(ratios, both, 0.5),
        .ratio_p90 = outcome_quantile(ratios, both, 0.9),
        .within_two = within_two / (double)both,
        .unbalanced_micro = unbalanced_micro != 0 ? unbalanced_micro : traded_micro,
    };
}

struct economy_outcome economy_run(const struct economy_options *options)
{
    struct economy *economy = calloc(1, sizeof(*economy));
    ASSERT(economy);
    economy->options = *options;
    economy->wants = calloc((size_t)MEMBERS_MAX * WANTS_MAX, sizeof(*economy->wants));
    ASSERT(economy->wants);
    random_init(&economy->random, options->seed);
    price_board_init(&economy->board);
    price_meter_init(&economy->meter);
    for (int i = 0; i < MEMBERS_FIRST; i++)
        join(economy);
    for (int64_t slot = 0; slot < options->weeks * SLOTS_PER_WEEK; slot++)
        pass_slot(economy, slot);
    const struct economy_outcome outcome = sum_up(economy);
    price_meter_done(&economy->meter);
    free(economy->wants);
    free(economy);
    return outcome;
}
