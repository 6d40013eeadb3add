/* The choices of FC²'s section 8, from its tables and the bandwidths that imply them. */
#include "base/random.h"
#include "recommend/cluster.h"
#include "testing/testing.h"

#include <stdbool.h>
#include <string.h>

enum { TYPES_MAX = 8, ROUNDS = 20000 };

#define MBPS INT64_C(1000)

/* In ten-thousandths of a dollar. */
static const struct recommend_type m4_large = {"m4.large", 1250, 450 * MBPS, 0},
                                   m4_2xlarge = {"m4.2xlarge", 5000, 1000 * MBPS, 0},
                                   m4_10xlarge = {"m4.10xlarge", 25000, 10000 * MBPS, 0};

static struct recommend_type used(const char *name, int64_t cost, int64_t mbps)
{
    return (struct recommend_type){name, cost, 0, mbps * MBPS};
}

#define M4(mbps) used("m4.xlarge", 2500, mbps)
#define T2(mbps) used("t2.xlarge", 2336, mbps)
#define C4(mbps) used("c4.xlarge", 2310, mbps)
#define C8(mbps) used("c4.8xlarge", 18480, mbps)
#define P2(mbps) used("p2.xlarge", 17180, mbps)
#define G3(mbps) used("g3.4xlarge", 16700, mbps)

static const struct recommend_wish six = {.worker_max = 6, .share_milli = RECOMMEND_SHARE_DEFAULT};

#define TYPES(list) ((struct recommend_types){(list), sizeof(list) / sizeof *(list)})

static void assert_cluster(const struct recommend_cluster *cluster, const char *worker,
                           uint32_t count)
{
    assert_string_equal(cluster->worker->name, worker);
    assert_int_equal(cluster->worker_count, count);
    assert_int_equal(cluster->cost, cluster->server->cost + count * cluster->worker->cost);
}

static void assert_extremes(struct recommend_types types, const struct recommend_type *server,
                            const char *dearest, const char *cheapest)
{
    struct error error;
    struct recommend_cluster cluster;
    ASSERT_OK(recommend_time_opt(types, server, &six, &cluster, &error));
    assert_cluster(&cluster, dearest, 6);
    ASSERT_OK(recommend_cost_opt(types, server, &six, &cluster, &error));
    assert_cluster(&cluster, cheapest, 6);
}

static void assert_scala(struct recommend_types types, const struct recommend_type *server,
                         const char *worker, uint32_t count)
{
    struct error error;
    struct recommend_cluster cluster;
    ASSERT_OK(recommend_scala_opt(types, server, &six, &cluster, &error));
    assert_cluster(&cluster, worker, count);
}

TEST(server_has_the_largest_bandwidth)
{
    struct error error;
    const struct recommend_type types[] = {m4_large, m4_10xlarge, m4_2xlarge};
    const struct recommend_type twins[] = {{"dear", 9, 5, 0}, {"cheap", 7, 5, 0}};
    const struct recommend_type *server;
    ASSERT_OK(recommend_server(TYPES(types), &server, &error));
    assert_string_equal(server->name, "m4.10xlarge");
    ASSERT_OK(recommend_server(TYPES(twins), &server, &error));
    assert_string_equal(server->name, "cheap");
    ASSERT_FAILS(recommend_server((struct recommend_types){0}, &server, &error), ERROR_NOT_FOUND);
}

TEST(cpu_only)
{
    const struct recommend_type batch_64[] = {T2(180), M4(150), C4(140)};
    const struct recommend_type batch_128[] = {T2(120), M4(110), C4(100)};
    assert_extremes(TYPES(batch_64), &m4_large, "m4.xlarge", "c4.xlarge");
    assert_scala(TYPES(batch_64), &m4_large, "t2.xlarge", 2);
    assert_scala(TYPES(batch_128), &m4_large, "t2.xlarge", 3);
}

TEST(cpu_and_one_gpu)
{
    const struct recommend_type batch_128[] = {T2(90), M4(80), C4(70), P2(200)};
    const struct recommend_type batch_512[] = {T2(60), M4(50), C4(50), P2(140)};
    const struct recommend_type batch_1280[] = {T2(40), M4(40), C4(30), P2(80)};
    assert_extremes(TYPES(batch_128), &m4_large, "p2.xlarge", "c4.xlarge");
    assert_scala(TYPES(batch_128), &m4_large, "p2.xlarge", 2);
    assert_scala(TYPES(batch_512), &m4_large, "p2.xlarge", 3);
    assert_scala(TYPES(batch_1280), &m4_large, "p2.xlarge", 5);
}

TEST(high_performance)
{
    const struct recommend_type batch_128[] = {C8(200), P2(300), G3(400)};
    const struct recommend_type batch_512[] = {C8(100), P2(180), G3(220)};
    assert_extremes(TYPES(batch_128), &m4_2xlarge, "c4.8xlarge", "g3.4xlarge");
    assert_scala(TYPES(batch_128), &m4_2xlarge, "g3.4xlarge", 2);
    assert_scala(TYPES(batch_512), &m4_2xlarge, "g3.4xlarge", 4);
}

TEST(large_server_feeds_all_and_the_cheapest_of_equals_wins)
{
    const struct recommend_type types[] = {C8(200), P2(300), G3(400)};
    assert_extremes(TYPES(types), &m4_10xlarge, "c4.8xlarge", "g3.4xlarge");
    assert_scala(TYPES(types), &m4_10xlarge, "g3.4xlarge", 6);
}

TEST(budget_is_shared_with_the_server)
{
    struct error error;
    struct recommend_cluster cluster;
    const struct recommend_type types[] = {T2(180), M4(150), C4(140)};
    const struct recommend_wish two = {.budget = 20000, .share_milli = 1000};
    ASSERT_OK(recommend_cost_opt(TYPES(types), &m4_large, &two, &cluster, &error));
    assert_cluster(&cluster, "c4.xlarge", 8); /* 1.875 / 0.231 */
    ASSERT_OK(recommend_time_opt(TYPES(types), &m4_large, &two, &cluster, &error));
    assert_cluster(&cluster, "m4.xlarge", 7);
    ASSERT_OK(recommend_scala_opt_m(&types[1], &m4_large, &two, &cluster, &error));
    assert_cluster(&cluster, "m4.xlarge", 3); /* 450 / 150, all of the bandwidth */
    const struct recommend_wish both = {.budget = 20000, .worker_max = 2, .share_milli = 1000};
    ASSERT_OK(recommend_scala_opt_m(&types[1], &m4_large, &both, &cluster, &error));
    assert_cluster(&cluster, "m4.xlarge", 2);
}

TEST(one_worker_is_fed_however_much_it_uses)
{
    struct error error;
    struct recommend_cluster cluster;
    const struct recommend_type greedy = T2(900);
    ASSERT_OK(recommend_scala_opt_m(&greedy, &m4_large, &six, &cluster, &error));
    assert_cluster(&cluster, "t2.xlarge", 1);
}

TEST(what_cannot_be_is_said)
{
    struct error error;
    struct recommend_cluster cluster;
    const struct recommend_type types[] = {T2(180), M4(0), C4(140)};
    const struct recommend_wish nothing = {.share_milli = 1000},
                                poor = {.budget = 3559, .share_milli = 1000},
                                enough = {.budget = 3560, .share_milli = 1000};
    ASSERT_FAILS(recommend_cost_opt(TYPES(types), &m4_large, &nothing, &cluster, &error),
                 ERROR_INVALID);
    ASSERT_FAILS(recommend_cost_opt(TYPES(types), &m4_large, &poor, &cluster, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "3560 an hour"));
    ASSERT_FAILS(recommend_scala_opt(TYPES(types), &m4_large, &poor, &cluster, &error),
                 ERROR_EXHAUSTED);
    assert_non_null(strstr(error.message, "one worker c4.xlarge: 3560"));
    /* The type that it does not pay for is not asked about. */
    ASSERT_OK(recommend_scala_opt(TYPES(types), &m4_large, &enough, &cluster, &error));
    assert_cluster(&cluster, "c4.xlarge", 1);
    ASSERT_FAILS(recommend_scala_opt(TYPES(types), &m4_large, &six, &cluster, &error),
                 ERROR_NOT_FOUND);
    assert_non_null(strstr(error.message, "m4.xlarge"));
    ASSERT_FAILS(recommend_time_opt((struct recommend_types){0}, &m4_large, &six, &cluster, &error),
                 ERROR_NOT_FOUND);
}

/* Whatever is asked: the wish holds, and one more worker of the type would break it. */
TEST(no_wish_is_passed)
{
    struct error error;
    struct random random;
    random_init(&random, 8);
    uint32_t chosen = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct recommend_type types[TYPES_MAX];
        const size_t count = 1 + random_below(&random, TYPES_MAX);
        for (size_t i = 0; i < count; i++)
            types[i] = (struct recommend_type){"type", 1 + (int64_t)random_below(&random, 5000), 0,
                                               1 + (int64_t)random_below(&random, 300000)};
        const struct recommend_wish wish = {
            .budget = (int64_t)random_below(&random, 40000),
            .worker_max = (uint32_t)random_below(&random, 20),
            .share_milli = 1 + (uint32_t)random_below(&random, RECOMMEND_SHARE_ALL)};
        struct recommend_cluster cluster;
        if (recommend_scala_opt((struct recommend_types){types, count}, &m4_large, &wish, &cluster,
                                &error) < 0)
            continue;
        const uint32_t n = cluster.worker_count;
        const bool is_paid = wish.budget == 0 || cluster.cost <= wish.budget;
        const bool is_few = wish.worker_max == 0 || n <= wish.worker_max;
        const bool is_fed = n == 1 || n * cluster.worker->used_kbps * 1000 <=
                                          m4_large.bandwidth_kbps * wish.share_milli;
        const bool may_grow =
            (wish.budget == 0 || cluster.cost + cluster.worker->cost <= wish.budget) &&
            (wish.worker_max == 0 || n < wish.worker_max) &&
            (n + 1) * cluster.worker->used_kbps * 1000 <=
                m4_large.bandwidth_kbps * wish.share_milli;
        assert_true(is_paid && is_few && is_fed && !may_grow);
        chosen++;
    }
    assert_in_range(chosen, ROUNDS / 2, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_has_the_largest_bandwidth),
        cmocka_unit_test(cpu_only),
        cmocka_unit_test(cpu_and_one_gpu),
        cmocka_unit_test(high_performance),
        cmocka_unit_test(large_server_feeds_all_and_the_cheapest_of_equals_wins),
        cmocka_unit_test(budget_is_shared_with_the_server),
        cmocka_unit_test(one_worker_is_fed_however_much_it_uses),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(no_wish_is_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
