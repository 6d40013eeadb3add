#include "sim/recommend_bench.h"

#include "base/assert.h"
#include "base/random.h"
#include "recommend/frontier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double samples_asked = 5e7;
enum { OBSERVATIONS = 40, SIZES = 8, NAME_SIZE = 24 };

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Families of eight sizes, each with its speed, price a core and link; a third of them spot. */
static struct candidate *make_types(struct arena *arena, uint32_t count)
{
    struct candidate *types = arena_alloc(arena, count * sizeof(*types));
    struct random random;
    random_init(&random, 1354);
    double weight = 0, price = 0, link = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t size = i % SIZES;
        if (size == 0) {
            weight = 600 + 800 * random_unit(&random);
            price = 30000 + 60000 * random_unit(&random);
            link = 4e7 * (0.5 + random_unit(&random));
        }
        const bool is_spot = i / SIZES % 3 == 2;
        char *name = arena_alloc(arena, NAME_SIZE);
        (void)snprintf(name, NAME_SIZE, "family%u.%u", i / SIZES, size);
        types[i] = (struct candidate){
            .name = name,
            .source = is_spot ? CANDIDATE_SPOT : CANDIDATE_ON_DEMAND,
            .speed_weight = (uint32_t)weight,
            .cores_milli = 500U << size,
            .price_micro_per_hour = llround(price * (is_spot ? 0.4 : 1) * (0.5 * (1U << size))),
            .bytes_per_s = link * (1U << size),
            .rtt_s = 0.001,
            .start_s = 45,
            .losses_per_hour = is_spot ? 0.05 : 0,
        };
    }
    return types;
}

static struct observation *make_observations(struct arena *arena, const struct candidate *types,
                                             uint32_t count, const struct signature *job)
{
    struct observation *seen = arena_alloc(arena, OBSERVATIONS * sizeof(*seen));
    struct random random;
    random_init(&random, 40);
    for (uint32_t i = 0; i < OBSERVATIONS; i++) {
        const struct candidate *type = &types[random_below(&random, count)];
        struct observed_kind *kind = &seen[i].kinds[0];
        seen[i].signature = *job;
        seen[i].signature.batch = 16U << random_below(&random, 3);
        seen[i].worker_count = 1 + (uint32_t)random_below(&random, 8);
        seen[i].kind_count = 1;
        (void)snprintf(kind->name, sizeof(kind->name), "%s", type->name);
        kind->speed_weight = type->speed_weight;
        kind->cores_milli = type->cores_milli;
        kind->steps = 500;
        kind->step_s = 0.02 * seen[i].signature.batch / (type->speed_weight / 1000.0) /
                       pow(type->cores_milli / 1000.0, 0.8) * exp(0.1 * random_normal(&random));
        seen[i].points[0] = (struct observed_point){0, 0, 2};
        seen[i].points[1] = (struct observed_point){
            100, (uint64_t)(50000.0 * (1 + seen[i].worker_count * 0.5)), 0.4};
        seen[i].point_count = 2;
    }
    return seen;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(*values), compare_doubles);
    return values[count / 2];
}

/* The search takes longest where every worker more makes a job faster: one that ends by epochs. */
static void fit_epochs(struct fit *fit)
{
    for (uint32_t n = 0; n <= CLUSTER_WORKERS_MAX; n++)
        fit->samples_expected[n] = samples_asked;
}

int recommend_bench(const struct recommend_bench_options *options,
                    struct recommend_bench_result *out_result, struct error *error)
{
    static const char *const policies[RECOMMEND_BENCH_POLICIES] = {"tap", "bsp", "adsp"};
    double fits_ms[RECOMMEND_BENCH_ROUNDS_MAX], searches_ms[RECOMMEND_BENCH_ROUNDS_MAX];
    ASSERT(options->rounds > 0 && options->rounds <= RECOMMEND_BENCH_ROUNDS_MAX);
    ASSERT(options->policy_count > 0 && options->policy_count <= RECOMMEND_BENCH_POLICIES);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct recommend_job job = {
        .signature =
            {.model = "cnn", .data = "images", .parameter_count = 600000, .batch = 64, .rate = 0.1},
        .target_loss = 0.5,
    };
    struct candidate *types = make_types(arena, options->type_count);
    struct observation *seen = make_observations(arena, types, options->type_count, &job.signature);
    struct fit *fits = arena_alloc(arena, options->policy_count * sizeof(*fits));
    struct frontier frontier = {0};
    for (uint32_t round = 0; round < options->rounds; round++) {
        AUTO(arena) struct arena *scratch = arena_new(0);
        const double begin_ms = cpu_ms();
        for (uint32_t i = 0; i < options->policy_count; i++) {
            (void)snprintf(job.signature.policy, sizeof(job.signature.policy), "%s", policies[i]);
            fit_observations(&job, seen, OBSERVATIONS, NULL, &fits[i]);
        }
        const double fitted_ms = cpu_ms();
        for (uint32_t i = 0; i < options->policy_count; i++)
            fit_epochs(&fits[i]);
        const double searched_ms = cpu_ms();
        const struct frontier_request request = {
            .candidates = types,
            .candidate_count = options->type_count,
            .fits = fits,
            .fit_count = options->policy_count,
            .server = {"server", 100000, 1.25e9},
            .wish = {.kind = WISH_CHEAPEST, .worker_max = options->worker_max},
        };
        if (frontier_find(scratch, &request, &frontier, error) < 0)
            return -1;
        fits_ms[round] = fitted_ms - begin_ms;
        searches_ms[round] = cpu_ms() - searched_ms;
    }
    *out_result = (struct recommend_bench_result){
        .search_cpu_ms = median(searches_ms, options->rounds),
        .fit_cpu_ms = median(fits_ms, options->rounds),
        .considered = frontier.considered,
        .frontier = (uint32_t)frontier.choice_count,
    };
    return 0;
}
