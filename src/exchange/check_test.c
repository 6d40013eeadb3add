/* Distances by hand, and who is found wrong: never one who agrees with another, whoever lies. */
#include "base/random.h"
#include "exchange/check.h"
#include "testing/testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64 };

TEST(distances_are_relative_to_the_longer)
{
    static const float zero[2], unit[2] = {1, 0}, turned[2] = {-1, 0}, other[2] = {0, 1};
    assert_true(check_distance(zero, zero, 2) == 0);
    assert_true(check_distance(unit, unit, 2) == 0);
    assert_true(check_distance(zero, unit, 2) == 1);
    assert_true(check_distance(unit, turned, 2) == 2);
    assert_true(fabs(check_distance(unit, other, 2) - sqrt(2)) < 1e-9);
    assert_true(check_near(CODEC_TOPK) < 0 && check_near(CODEC_1BIT) < 0);
}

static const float truth[COUNT] = {3, -1, 2, 0.5F, -4};

static void add_honest(struct check *check, uint64_t lease, struct random *random)
{
    float *values = malloc(sizeof truth);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = truth[i] + 1e-3F * (float)random_normal(random);
    check_add(check, lease, values, CODEC_F32);
}

static void add_noise(struct check *check, uint64_t lease, struct random *random)
{
    float *values = malloc(sizeof truth);
    const double size = exp(4 * random_normal(random));
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (float)(size * random_normal(random));
    check_add(check, lease, values, CODEC_F32);
}

TEST(one_recomputation_clears_and_two_convict)
{
    struct random random;
    random_init(&random, 1);
    struct check check = {.count = COUNT};
    add_honest(&check, 10, &random);
    assert_false(check_judge(&check).is_decided);
    add_honest(&check, 11, &random);
    assert_true(check_judge(&check).is_decided);
    check_clear(&check);

    add_noise(&check, 10, &random);
    add_honest(&check, 11, &random);
    assert_false(check_judge(&check).is_decided); /* one of them lies */
    assert_true(check_has(&check, 11) && !check_has(&check, 12));
    add_honest(&check, 12, &random);
    const struct check_verdict verdict = check_judge(&check);
    assert_true(verdict.is_decided && verdict.right[0] == 1 && verdict.right[1] == 2);
    assert_true(verdict.is_wrong[0] && !verdict.is_wrong[1] && !verdict.is_wrong[2]);
    assert_true(verdict.distance[0] > 0.9);
    check_clear(&check);
}

TEST(who_recomputes_wrongly_is_found_too)
{
    struct random random;
    random_init(&random, 2);
    struct check check = {.count = COUNT};
    add_honest(&check, 10, &random);
    add_noise(&check, 11, &random);
    add_honest(&check, 12, &random);
    const struct check_verdict verdict = check_judge(&check);
    assert_true(verdict.is_decided && verdict.is_wrong[1]);
    assert_false(verdict.is_wrong[0] || verdict.is_wrong[2]);
    check_clear(&check);
}

/* Further off than rounding explains, nearer than garbage: nobody is named. */
TEST(what_lies_between_proves_nothing)
{
    struct random random;
    random_init(&random, 3);
    struct check check = {.count = COUNT};
    float *slack = malloc(sizeof truth);
    for (size_t i = 0; i < COUNT; i++)
        slack[i] = 0.7F * truth[i];
    check_add(&check, 10, slack, CODEC_F32);
    add_honest(&check, 11, &random);
    assert_false(check_judge(&check).is_decided);
    add_honest(&check, 12, &random);
    const struct check_verdict verdict = check_judge(&check);
    assert_true(verdict.is_decided && !verdict.is_wrong[0]);
    check_clear(&check);
}

/* Any order, any number of liars that do not agree on their lies: no honest one is found wrong. */
TEST(liars_that_do_not_agree_never_convict_an_honest_one)
{
    struct random random;
    random_init(&random, 4);
    uint32_t found = 0, decided = 0;
    for (int round = 0; round < 5000; round++) {
        struct check check = {.count = COUNT};
        bool lies[CHECK_RESULTS_MAX];
        struct check_verdict verdict = {0};
        while (!verdict.is_decided && check.result_count < CHECK_RESULTS_MAX) {
            const uint32_t at = check.result_count;
            lies[at] = random_below(&random, 3) == 0;
            (lies[at] ? add_noise : add_honest)(&check, at + 1, &random);
            verdict = check_judge(&check);
        }
        decided += verdict.is_decided;
        for (uint32_t i = 0; i < check.result_count; i++) {
            assert_false(verdict.is_wrong[i] && !lies[i]);
            assert_true(!verdict.is_decided || verdict.is_wrong[i] == lies[i]);
            found += verdict.is_wrong[i];
        }
        check_clear(&check);
    }
    assert_true(decided > 4500 && found > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_relative_to_the_longer),
        cmocka_unit_test(one_recomputation_clears_and_two_convict),
        cmocka_unit_test(who_recomputes_wrongly_is_found_too),
        cmocka_unit_test(what_lies_between_proves_nothing),
        cmocka_unit_test(liars_that_do_not_agree_never_convict_an_honest_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
