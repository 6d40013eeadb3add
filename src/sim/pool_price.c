#include "sim/pool_price.h"

#include <math.h>

static struct price_vector scaled(struct price_vector price, double factor)
{
    return (struct price_vector){.core_micro = (int64_t)((double)price.core_micro * factor),
                                 .ram_micro = (int64_t)((double)price.ram_micro * factor),
                                 .gpu_micro = (int64_t)((double)price.gpu_micro * factor),
                                 .disk_micro = (int64_t)((double)price.disk_micro * factor)};
}

static void show(struct pool_price *price)
{
    for (int slot = 0; slot < SLOT_PER_DAY; slot++) {
        const struct price_vector posted =
            price->rule == POOL_PRICE_SOUK ? price_board_price(&price->board, slot, &price->floor)
                                           : price->fixed;
        price->now[slot][0] = (double)posted.core_micro;
        price->now[slot][1] = (double)posted.ram_micro;
        price->now[slot][2] = (double)posted.gpu_micro;
    }
}

void pool_price_init(struct pool_price *price, enum pool_price_rule rule, double factor,
                     const struct workload *workload, uint64_t seed)
{
    *price = (struct pool_price){.rule = rule, .fixed = scaled(price_cold_start(), factor)};
    random_init(&price->random, seed);
    price_board_init(&price->board);
    price_meter_init(&price->meter);
    int64_t lowest_milli = INT64_MAX;
    for (size_t i = 0; i < workload->lender_count; i++)
        if (workload->lenders[i].minimum_milli < lowest_milli)
            lowest_milli = workload->lenders[i].minimum_milli;
    price->floor = scaled(price_cold_start(), (double)lowest_milli / 1000);
    show(price);
}

void pool_price_done(struct pool_price *price)
{
    price_meter_done(&price->meter);
}

double pool_price_at(const struct pool_price *price, int resource, int64_t hour)
{
    return price->now[hour / POOL_SLOT_HOURS % SLOT_PER_DAY][resource];
}

static struct price_usage usage_of(const double unit_hours[OUTCOME_RESOURCES])
{
    const struct price_units milli_hours = {.core_milli = (int64_t)(unit_hours[0] * 1000),
                                            .ram_milli = (int64_t)(unit_hours[1] * 1000),
                                            .gpu_milli = (int64_t)(unit_hours[2] * 1000)};
    return price_usage_of(milli_hours, 3600000);
}

void pool_price_want(struct pool_price *price, uint32_t member,
                     const double unit_hours[OUTCOME_RESOURCES])
{
    price_meter_want(&price->meter, (uint64_t)member + 1, usage_of(unit_hours));
}

void pool_price_offer(struct pool_price *price, const double unit_hours[OUTCOME_RESOURCES])
{
    price_meter_offer(&price->meter, usage_of(unit_hours));
}

static double draw(struct random *random)
{
    /* uniform(0.01, 0.0001) in DeepMarket's code, here around the cold start. */
    return (0.0001 + 0.0099 * random_unit(random)) / 0.00505;
}

void pool_price_close(struct pool_price *price, int64_t hour)
{
    struct price_inputs inputs[PRICE_RESOURCE_COUNT];
    price_meter_inputs(&price->meter, inputs);
    price_meter_next_slot(&price->meter, NULL, NULL);
    if (price->rule == POOL_PRICE_SOUK)
        price_board_close(&price->board, (int)((hour / POOL_SLOT_HOURS - 1) % SLOT_PER_DAY),
                          inputs);
    if (price->rule == POOL_PRICE_RANDOM) {
        const struct price_vector cold = price_cold_start();
        price->fixed.core_micro = scaled(cold, draw(&price->random)).core_micro;
        price->fixed.ram_micro = scaled(cold, draw(&price->random)).ram_micro;
        price->fixed.gpu_micro = scaled(cold, draw(&price->random)).gpu_micro;
    }
    show(price);
}
