/*
 * The rule: by hand, against floating point, within its bounds, in simulated markets, in words;
 * covers price_rule.c, price_explain.c.
 */
#include "base/random.h"
#include "market/fixed.h"
#include "market/price_explain.h"
#include "market/price_meter.h"
#include "market/price_rule.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>

#define CORE_H (INT64_C(1000) * 3600) /* thousandths x seconds */

static struct price_inputs inputs_of(int64_t wanted_h, int64_t offered_h, int64_t borrowers)
{
    return (struct price_inputs){.wanted_milli_s = wanted_h * CORE_H,
                                 .offered_milli_s = offered_h * CORE_H,
                                 .borrower_count = borrowers,
                                 .effective_q16 = (borrowers > 0 ? borrowers : 1) * FIXED_Q16_ONE};
}

static void close_all(struct price_board *board, int of_day, struct price_inputs inputs)
{
    const struct price_inputs all[PRICE_RESOURCE_COUNT] = {inputs, inputs, inputs, inputs};
    price_board_close(board, of_day, all);
}

static int64_t core_price(const struct price_board *board, int of_day)
{
    const struct price_vector no_floor = {0};
    return price_board_price(board, of_day, &no_floor).core_micro;
}

TEST(a_market_starts_at_the_cold_prices_in_every_slot)
{
    struct price_board board;
    price_board_init(&board);
    assert_true(price_board_is_valid(&board));
    const struct price_vector no_floor = {0}, cold = price_cold_start();
    for (int s = 0; s < SLOT_PER_DAY; s++) {
        const struct price_vector price = price_board_price(&board, s, &no_floor);
        assert_memory_equal(&price, &cold, sizeof(cold));
    }
}

TEST(an_update_by_hand)
{
    struct price_board board;
    price_board_init(&board);
    /* n = 10: c = 1/2. Wanted 360, lent 200, target 180: e = log2(2) = 1. */
    const struct price_inputs inputs = inputs_of(360, 200, 10);
    const struct price_working working = price_work(&board, PRICE_CORE, 3, &inputs);
    assert_int_equal(working.credibility_q16, FIXED_Q16_ONE / 2);
    /* Two truncated logarithms: at most one last bit away. */
    assert_true(llabs(working.error_q32 - FIXED_Q32_ONE) <= 1);
    assert_true(llabs(working.level_step_q32 - FIXED_Q32_ONE * 3 / 10) <= 1);
    assert_true(llabs(working.factor_step_q32 - FIXED_Q32_ONE / 20) <= 1);
    assert_true(llabs(working.after.factor_q32[3] - FIXED_Q32_ONE * 3 / 80) <= 1);
    assert_true(llabs(working.after.factor_q32[0] + FIXED_Q32_ONE / 80) <= 1);
    close_all(&board, 3, inputs);
    /* 20000 x 2^(0.3 + 0.0375) = 25271.3; the others 20000 x 2^(0.3 - 0.0125) = 24410.5. */
    assert_int_equal(core_price(&board, 3), 25271);
    assert_int_equal(core_price(&board, 0), 24410);
    assert_int_equal(core_price(&board, 1), 24410);
}

TEST(nothing_wanted_and_nothing_lent_changes_nothing)
{
    struct price_board board, before;
    price_board_init(&board);
    close_all(&board, 1, inputs_of(50, 20, 30));
    before = board;
    close_all(&board, 2, inputs_of(0, 0, 0));
    assert_true(price_board_equal(&board, &before));
    board.curves[PRICE_DISK].factor_q32[3]++;
    assert_false(price_board_equal(&board, &before));
}

TEST(wanted_with_nothing_lent_is_the_largest_error)
{
    struct price_board board;
    price_board_init(&board);
    const struct price_inputs none_lent = inputs_of(1, 0, 3);
    assert_int_equal(price_work(&board, PRICE_GPU, 0, &none_lent).error_q32, 2 * FIXED_Q32_ONE);
    const struct price_inputs none_wanted = inputs_of(0, 1, 0);
    assert_int_equal(price_work(&board, PRICE_GPU, 0, &none_wanted).error_q32, -2 * FIXED_Q32_ONE);
}

TEST(one_whale_moves_a_price_by_nine_percent_at_most)
{
    struct price_board board;
    price_board_init(&board);
    int64_t before = core_price(&board, 0);
    for (int slot = 0; slot < 20; slot++) {
        close_all(&board, slot % 4, inputs_of(1000000, 1, 1));
        const int64_t after = core_price(&board, slot % 4);
        assert_true(after * 100 <= before * 109 + 100);
        before = core_price(&board, (slot + 1) % 4);
    }
}

TEST(no_update_passes_its_bounds)
{
    struct random random;
    random_init(&random, 5);
    struct price_board board;
    price_board_init(&board);
    for (int slot = 0; slot < 20000; slot++) {
        const struct price_board before = board;
        /* Months of one kind, so that every end is reached. */
        const bool is_greedy = slot / 400 % 2;
        close_all(&board, slot % 4,
                  inputs_of((int64_t)random_below(&random, is_greedy ? 100000 : 100),
                            (int64_t)random_below(&random, is_greedy ? 100 : 100000),
                            (int64_t)random_below(&random, 1000000)));
        assert_true(price_board_is_valid(&board));
        const struct price_vector no_floor = {0}, cold = price_cold_start();
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            const double level = (double)(board.curves[r].level_q32 - before.curves[r].level_q32);
            assert_true(fabs(level / 4294967296.0) <= log2(1.5) + 1e-9);
            for (int s = 0; s < SLOT_PER_DAY; s++) {
                const double factor =
                    (double)(board.curves[r].factor_q32[s] - before.curves[r].factor_q32[s]);
                assert_true(exp2(fabs(factor / 4294967296.0)) <= 1.15);
                const struct price_vector price = price_board_price(&board, s, &no_floor);
                assert_true(price_vector_get(&price, r) >= price_vector_get(&cold, r) / 64);
                assert_true(price_vector_get(&price, r) >= 1);
                assert_true(price_vector_get(&price, r) <= price_vector_get(&cold, r) * 64);
            }
        }
    }
}

TEST(a_year_of_idling_is_forgotten_within_two_days)
{
    struct price_board board;
    price_board_init(&board);
    for (int slot = 0; slot < 1461; slot++)
        close_all(&board, slot % 4, inputs_of(0, 100, 0));
    assert_int_equal(core_price(&board, 0), 20000 / 64);
    for (int slot = 0; slot < 8; slot++)
        close_all(&board, slot % 4, inputs_of(200, 100, 200));
    assert_true(core_price(&board, 0) > 20000 / 4);
}

TEST(no_price_lies_below_the_lowest_minimum)
{
    struct price_board board;
    price_board_init(&board);
    const struct price_vector floor = {.core_micro = 25000, .gpu_micro = 1};
    const struct price_vector price = price_board_price(&board, 0, &floor);
    assert_int_equal(price.core_micro, 25000);
    assert_int_equal(price.gpu_micro, 180000);
}

/* The same rule in floating point. */
struct reference {
    double level;
    double factor[SLOT_PER_DAY];
};

static double within(double value, double bound)
{
    return fmin(fmax(value, -bound), bound);
}

static void reference_close(struct reference *reference, int k, double wanted, double offered,
                            double n, double cold)
{
    if (wanted <= 0 && offered <= 0)
        return;
    const double c = n / (n + 10);
    const double e = wanted <= 0    ? -2
                     : offered <= 0 ? 2
                                    : within(log2(wanted / (0.9 * offered)), 2);
    reference->level =
        log2(cold) + within(reference->level + within(0.6 * c * e, log2(1.5)) - log2(cold), 6);
    reference->factor[k] += 0.1 * c * e;
    double mean = 0;
    for (int s = 0; s < SLOT_PER_DAY; s++)
        mean += reference->factor[s] / SLOT_PER_DAY;
    for (int s = 0; s < SLOT_PER_DAY; s++)
        reference->factor[s] = within(reference->factor[s] - mean, 2);
}

TEST(a_random_year_follows_the_floating_point_rule)
{
    const struct price_vector cold = price_cold_start(), no_floor = {0};
    struct price_board board;
    price_board_init(&board);
    struct reference reference[PRICE_RESOURCE_COUNT] = {0};
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        reference[r].level = log2((double)price_vector_get(&cold, r));
    struct random random;
    random_init(&random, 2026);
    double worst = 0;
    for (int slot = 0; slot < 1461; slot++) {
        struct price_inputs inputs[PRICE_RESOURCE_COUNT];
        const double season = exp2(5 * sin(slot / 90.0));
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            inputs[r] = (struct price_inputs){
                .wanted_milli_s = (int64_t)(1e9 * season * random_unit(&random)),
                .offered_milli_s = (int64_t)random_below(&random, 1000000000),
                .borrower_count = 1000,
                .effective_q16 = FIXED_Q16_ONE + (int64_t)random_below(&random, 200 << 16)};
            if (random_below(&random, 50) == 0)
                inputs[r].wanted_milli_s = 0;
            if (random_below(&random, 50) == 0)
                inputs[r].offered_milli_s = 0;
            reference_close(&reference[r], slot % 4, (double)inputs[r].wanted_milli_s,
                            (double)inputs[r].offered_milli_s,
                            (double)inputs[r].effective_q16 / 65536,
                            (double)price_vector_get(&cold, r));
        }
        price_board_close(&board, slot % 4, inputs);
        const struct price_vector price = price_board_price(&board, (slot + 1) % 4, &no_floor);
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            const double first = (double)price_vector_get(&cold, r);
            const double exact =
                fmin(fmax(exp2(reference[r].level + reference[r].factor[(slot + 1) % 4]),
                          fmax(first / 64, 1)),
                     first * 64);
            const double ours = (double)price_vector_get(&price, r);
            /* Whole microcredits: half of one, and what a year of truncation adds up to. */
            assert_true(fabs(ours - exact) <= 0.51 + exact * 0.0002);
            if (r == PRICE_CORE)
                worst = fmax(worst, fabs(ours / exact - 1));
        }
    }
    assert_true(worst <= 0.0017);
}

/* Slots until a price is within 10 % of its new place for good, after demand has doubled or
 * halved, when demand falls with the price to the power of the elasticity. */
static int slots_to_settle(int64_t borrowers, double elasticity, double demand)
{
    struct price_board board;
    price_board_init(&board);
    const double target = 20000 * pow(demand, 1 / elasticity);
    int settled = 0;
    for (int slot = 0; slot < 100; slot++) {
        const double price = (double)core_price(&board, slot % 4);
        if (price > target * 1.1 || price < target / 1.1)
            settled = slot + 1;
        struct price_inputs inputs = inputs_of(0, 1000, borrowers);
        inputs.wanted_milli_s =
            (int64_t)(900.0 * CORE_H * demand * pow(price / 20000, -elasticity));
        close_all(&board, slot % 4, inputs);
    }
    return settled;
}

static void assert_settles(int64_t borrowers, double elasticity, int expected)
{
    const int up = slots_to_settle(borrowers, elasticity, 2);
    const int down = slots_to_settle(borrowers, elasticity, 0.5);
    if (abs(up - expected) > 1 || abs(down - expected) > 1)
        fail_msg("%d borrowers, elasticity %g: %d slots up, %d down, expected %d", (int)borrowers,
                 elasticity, up, down, expected);
}

TEST(a_step_in_demand_settles_as_fast_as_the_elasticity_allows)
{
    assert_settles(200, 0.5, 8);
    assert_settles(200, 0.75, 4);
    assert_settles(200, 1, 3);
    assert_settles(200, 1.5, 1);
    assert_settles(200, 2, 1);
}

TEST(a_step_settles_more_slowly_with_fewer_borrowers)
{
    assert_settles(5, 1, 10); /* borrowers of equal size; 11 were seen with unequal ones */
    assert_settles(10, 1, 7);
    assert_settles(20, 1, 4);
    assert_settles(50, 1, 4);
    assert_settles(200, 1, 3);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

enum { HERD_BORROWERS = 200, HERD_DAYS = 120, HERD_WARM_DAYS = 20 };

/* A day of which a share of all demand runs in the slot that is cheapest today. */
static void herd_day(struct price_board *board, struct price_meter *meter, struct random *random,
                     double chasing, bool counts_evenly, double out_prices[SLOT_PER_DAY])
{
    static const double pattern[SLOT_PER_DAY] = {0.7, 0.9, 1.1, 1.3};
    int cheapest = 0;
    for (int s = 1; s < SLOT_PER_DAY; s++)
        if (core_price(board, s) < core_price(board, cheapest))
            cheapest = s;
    for (int s = 0; s < SLOT_PER_DAY; s++) {
        const double price = (double)core_price(board, s) / 20000;
        out_prices[s] = price;
        for (uint64_t id = 1; id <= HERD_BORROWERS; id++) {
            const double noise = 0.5 + random_unit(random);
            const double own = 4.5e6 * noise * pattern[s] * (1 - chasing) / price;
            price_meter_want(meter, id, (struct price_usage){.milli_s = {(int64_t)own}});
            const struct price_usage whole_day = {
                .milli_s = {(int64_t)(4.5e6 * noise * 4 * chasing / price)}};
            if (counts_evenly && s == 0)
                price_meter_spread(meter, id, id, whole_day, SLOT_PER_DAY, true);
            else if (!counts_evenly && s == cheapest)
                price_meter_want(meter, id, whole_day);
        }
        price_meter_offer(meter, (struct price_usage){.milli_s = {1000000000}});
        struct price_inputs inputs[PRICE_RESOURCE_COUNT];
        price_meter_inputs(meter, inputs);
        price_board_close(board, s, inputs);
        price_meter_next_slot(meter, NULL, NULL);
    }
}

/* The median over days of how far a slot's price is from the same slot's the day before. */
static double herd_move(double chasing, bool counts_evenly)
{
    struct price_board board;
    price_board_init(&board);
    struct price_meter meter;
    price_meter_init(&meter);
    struct random random;
    random_init(&random, 77);
    double moves[HERD_DAYS * SLOT_PER_DAY], before[SLOT_PER_DAY] = {1, 1, 1, 1};
    size_t count = 0;
    for (int day = 0; day < HERD_WARM_DAYS + HERD_DAYS; day++) {
        double prices[SLOT_PER_DAY];
        herd_day(&board, &meter, &random, chasing, counts_evenly, prices);
        for (int s = 0; s < SLOT_PER_DAY; s++) {
            if (day >= HERD_WARM_DAYS)
                moves[count++] = fabs(log2(prices[s] / before[s]));
            before[s] = prices[s];
        }
    }
    price_meter_done(&meter);
    qsort(moves, count, sizeof(moves[0]), compare_doubles);
    return exp2(moves[count / 2]) - 1;
}

TEST(jobs_that_choose_their_slot_do_not_make_prices_swing)
{
    const double shares[] = {0.1, 0.3, 0.5};
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        assert_true(herd_move(shares[i], /* counts_evenly= */ true) <= 0.06);
    /* What the even count is for: counted where it runs, the same demand passes the bound. */
    assert_true(herd_move(0.3, /* counts_evenly= */ false) > 0.06);
    assert_true(herd_move(0.5, /* counts_evenly= */ false) > 0.09);
}

static const char *explained(struct buffer *buffer, const struct price_working *working,
                             const struct price_board *board)
{
    buffer_clear(buffer);
    price_explain_price(board, working->resource, working->of_day,
                        core_price(board, working->of_day), buffer);
    buffer_append_byte(buffer, '\n');
    price_explain_update(working, buffer);
    buffer_append_byte(buffer, '\n');
    price_explain_sums(working, "  ", buffer);
    return buffer_string(buffer);
}

TEST(an_update_is_explained_so_that_it_can_be_redone)
{
    struct price_board board;
    price_board_init(&board);
    struct price_inputs inputs = inputs_of(412, 390, 31);
    inputs.effective_q16 = 22 * FIXED_Q16_ONE;
    const struct price_working working = price_work(&board, PRICE_CORE, 3, &inputs);
    close_all(&board, 3, inputs);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 4096);
    assert_string_equal(
        explained(&buffer, &working, &board),
        "core 18-24: 0.021544 = level 0.021367 x evening 1.00830\n"
        "412.000 core-h wanted by 31 borrowers (worth 22.00000 equal ones), 390.000 lent; 90 % of "
        "that is 351.000; wanted/target 1.174 -> level +6.8 %\n"
        "  n = 22.00000\n"
        "  c = n / (n + 10) = 0.68750\n"
        "  e = log2(412.000 / (0.9 x 390.000)) = 0.231173\n"
        "  level: 0.6 x c x e, at most 0.584963 either way, = 0.095359\n"
        "    0.020000 x 2^0.095359 = 0.021367\n"
        "  evening: 0.1 x c x e = 0.015893, then a quarter of that off all four:\n"
        "    night     log2 0.000000 -> -0.003973, factor 1.00000 -> 0.99725\n"
        "    morning   log2 0.000000 -> -0.003973, factor 1.00000 -> 0.99725\n"
        "    afternoon log2 0.000000 -> -0.003973, factor 1.00000 -> 0.99725\n"
        "    evening   log2 0.000000 -> 0.011920, factor 1.00000 -> 1.00830\n");
}

TEST(a_price_that_a_bound_holds_says_so)
{
    struct price_board board;
    price_board_init(&board);
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 4096);
    price_explain_price(&board, PRICE_CORE, 0, 25000, &buffer);
    assert_string_equal(buffer_string(&buffer), "core 00-06: 0.025000; level 0.020000 x night "
                                                "1.00000 is 0.020000, but no lender asks for less");
    board.curves[PRICE_CORE].level_q32 -= 6 * FIXED_Q32_ONE;
    board.curves[PRICE_CORE].factor_q32[0] = -FIXED_Q32_ONE;
    buffer_clear(&buffer);
    price_explain_price(&board, PRICE_CORE, 0, 312, &buffer);
    assert_string_equal(buffer_string(&buffer),
                        "core 00-06: 0.000312; level 0.000312 x night 0.50000 is 0.000156, and no "
                        "price goes further than 64 times from its first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_market_starts_at_the_cold_prices_in_every_slot),
        cmocka_unit_test(an_update_by_hand),
        cmocka_unit_test(nothing_wanted_and_nothing_lent_changes_nothing),
        cmocka_unit_test(wanted_with_nothing_lent_is_the_largest_error),
        cmocka_unit_test(one_whale_moves_a_price_by_nine_percent_at_most),
        cmocka_unit_test(no_update_passes_its_bounds),
        cmocka_unit_test(a_year_of_idling_is_forgotten_within_two_days),
        cmocka_unit_test(no_price_lies_below_the_lowest_minimum),
        cmocka_unit_test(a_random_year_follows_the_floating_point_rule),
        cmocka_unit_test(a_step_in_demand_settles_as_fast_as_the_elasticity_allows),
        cmocka_unit_test(a_step_settles_more_slowly_with_fewer_borrowers),
        cmocka_unit_test(jobs_that_choose_their_slot_do_not_make_prices_swing),
        cmocka_unit_test(an_update_is_explained_so_that_it_can_be_redone),
        cmocka_unit_test(a_price_that_a_bound_holds_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
