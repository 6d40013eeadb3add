#include "sim/recommend_draw.h"

#include "base/assert.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST_KIND = 2 /* lender-desktop */, FIRST_STEPS = 1500, COUNTS = 8 };

static const char *const policies[] = {"bsp", "ssp", "tap", "adsp", "pace"};
static const uint32_t batches[] = {16, 32, 64};
enum { POLICIES = sizeof(policies) / sizeof(*policies), BATCHES = 3 };

static const struct server_place servers[] = {
    {"narrow", 30000, 12.5e6},
    {"middle", 60000, 50e6},
    {"wide", 125000, 125e6},
};
enum { SERVERS = sizeof(servers) / sizeof(*servers) };

static struct random random_of(const struct world *world, uint64_t what, uint64_t index)
{
    struct random random;
    random_init(&random, world->seed ^ (what + 1) * 0x9e3779b97f4a7c15 ^
                             (index + 1) * UINT64_C(0xbf58476d1ce4e5b9));
    return random;
}

struct world_run draw_first(const struct world *world, uint32_t family)
{
    struct random random = random_of(world, 1, family);
    struct world_run run = {
        .family = family,
        .batch = world->families[family].signature.batch,
        .rate = world->families[family].signature.rate,
        .policy = "bsp",
        .server = servers[SERVERS - 1],
        .has_curve = true,
        .seed = random_u64(&random),
    };
    run.samples = FIRST_STEPS * (double)run.batch;
    run.counts[FIRST_KIND] = 1;
    return run;
}

static uint32_t draw_count(struct random *random, const struct candidate *offer)
{
    static const uint32_t counts[] = {1, 2, 2, 3, 4, 6};
    const uint32_t count = counts[random_below(random, sizeof(counts) / sizeof(*counts))];
    return offer->count_max > 0 && count > offer->count_max ? offer->count_max : count;
}

struct world_run draw_earlier(const struct world *world, uint32_t family, uint32_t index)
{
    struct random random = random_of(world, 2, family * CASE_EARLIER + index);
    struct world_run run = {
        .family = family,
        .batch = batches[random_below(&random, BATCHES)],
        .rate = world->families[family].signature.rate * (random_unit(&random) < 0.3 ? 0.5 : 1),
        .policy = policies[(family + index) % POLICIES],
        .server = servers[random_below(&random, SERVERS)],
        .target_loss = world->families[family].target_loss,
        .has_curve = true,
        .seed = random_u64(&random),
    };
    const uint32_t kind = (uint32_t)random_below(&random, WORLD_KINDS);
    run.counts[kind] = draw_count(&random, &world->kinds[kind]);
    if (random_unit(&random) < 0.3)
        run.counts[random_below(&random, WORLD_KINDS)] = 1;
    return run;
}

static void add_cluster(const struct world *world, struct recommend_case *drawn, uint32_t left,
                        uint32_t right)
{
    const uint32_t counts[2] = {left, right};
    struct world_run run = drawn->job;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t most = world->kinds[drawn->kinds[i]].count_max;
        if (most > 0 && counts[i] > most)
            return;
        run.counts[drawn->kinds[i]] = counts[i];
    }
    ASSERT(drawn->cluster_count < CASE_CLUSTERS_MAX);
    drawn->clusters[drawn->cluster_count++].run = run;
}

void draw_case(const struct world *world, uint32_t index, struct recommend_case *out_case)
{
    static const uint32_t counts[COUNTS][2] = {{1, 0}, {2, 0}, {4, 0}, {8, 0},
                                               {0, 1}, {0, 3}, {0, 6}, {2, 2}};
    struct random random = random_of(world, 3, index);
    const uint32_t family = index % world->family_count;
    const bool has_target = index / world->family_count % 2 > 0;
    const uint32_t batch = batches[random_below(&random, BATCHES)];
    const double steps = 300 * exp(random_unit(&random) * log(8));
    *out_case = (struct recommend_case){
        .job = {.family = family,
                .batch = batch,
                .rate = world->families[family].signature.rate,
                .policy = policies[random_below(&random, POLICIES)],
                .server = servers[random_below(&random, SERVERS)],
                .samples = has_target ? 0 : steps * 32,
                .target_loss = has_target ? world->families[family].target_loss : 0,
                .has_curve = has_target,
                .seed = random_u64(&random)},
        .wish = {.kind = index % 3 == 1 ? WISH_FASTEST : WISH_CHEAPEST},
    };
    out_case->wish.deadline_s = index % 3 == 2 ? 1 : 0; /* set by draw_limits */
    out_case->kinds[0] = (uint32_t)random_below(&random, WORLD_KINDS);
    out_case->kinds[1] =
        (out_case->kinds[0] + 1 + (uint32_t)random_below(&random, WORLD_KINDS - 1)) % WORLD_KINDS;
    for (uint32_t i = 0; i < COUNTS; i++)
        add_cluster(world, out_case, counts[i][0], counts[i][1]);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int64_t price_of(const struct world *world, const struct world_run *run)
{
    int64_t price = run->server.price_micro_per_hour;
    for (uint32_t i = 0; i < WORLD_KINDS; i++)
        price += run->counts[i] * world->kinds[i].price_micro_per_hour;
    return price;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* A deadline that some keep and some miss, a budget an hour that some are within: the middle of
 * what its clusters take, and a tenth more. */
void draw_limits(const struct world *world, struct recommend_case *drawn)
{
    double seconds[CASE_CLUSTERS_MAX], prices[CASE_CLUSTERS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < drawn->cluster_count; i++) {
        prices[i] = (double)price_of(world, &drawn->clusters[i].run);
        if (drawn->clusters[i].outcome.is_done)
            seconds[count++] = drawn->clusters[i].outcome.seconds;
    }
    qsort(seconds, count, sizeof(*seconds), compare_doubles);
    qsort(prices, drawn->cluster_count, sizeof(*prices), compare_doubles);
    if (drawn->wish.deadline_s > 0)
        drawn->wish.deadline_s = count > 0 ? 1.1 * seconds[count / 2] : 1;
    if (drawn->wish.kind == WISH_FASTEST)
        drawn->wish.budget_micro_per_hour = llround(1.1 * prices[drawn->cluster_count / 2]);
}
