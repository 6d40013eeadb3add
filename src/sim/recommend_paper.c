#include "sim/recommend_paper.h"

#include "base/assert.h"
#include "base/memory.h"
#include "recommend/cluster.h"
#include "recommend/frontier.h"
#include "sim/recommend_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    T2_XLARGE,
    M4_XLARGE,
    C4_XLARGE,
    C4_8XLARGE,
    P2_XLARGE,
    G3_4XLARGE,
    TYPES,
    WORKERS_MAX = 6,
    TRIAL_STEPS = 30,
    BATCH_UNIT = 64,
};
static const double model_bytes = 4.3e6, steps_all = 1000, jitter = 0.05;
static const double unit_s = 0.046; /* of 64 samples on a t2.xlarge: 0.6 of a model's way to it */
static const double overhead = 0.05, later_most = 1.1, auto_later = 1.25, same_cost = 0.01;

/*
 * The paper's workers: dollars an hour; speeds beside a t2.xlarge by ECU, a GPU's by what it chose
 * at its batches: a p2.xlarge 8 times, a g3.4xlarge 10 times one.
 */
static const struct candidate types[TYPES] = {
    [T2_XLARGE] = {"t2.xlarge", CANDIDATE_ON_DEMAND, 1000, 1000, 0, 0, 233600, 0, 94e6, 1e-4, 0, 0,
                   0},
    [M4_XLARGE] = {"m4.xlarge", CANDIDATE_ON_DEMAND, 1080, 1000, 0, 0, 250000, 0, 94e6, 1e-4, 0, 0,
                   0},
    [C4_XLARGE] = {"c4.xlarge", CANDIDATE_ON_DEMAND, 1330, 1000, 0, 0, 231000, 0, 94e6, 1e-4, 0, 0,
                   0},
    [C4_8XLARGE] = {"c4.8xlarge", CANDIDATE_ON_DEMAND, 5500, 1000, 0, 0, 1848000, 0, 1.25e9, 1e-4,
                    0, 0, 0},
    [P2_XLARGE] = {"p2.xlarge", CANDIDATE_ON_DEMAND, 8000, 1000, 0, 0, 1718000, 0, 150e6, 1e-4, 0,
                   0, 0},
    [G3_4XLARGE] = {"g3.4xlarge", CANDIDATE_ON_DEMAND, 10000, 1000, 0, 0, 1670000, 0, 1.25e9, 1e-4,
                    0, 0, 0},
};

static const char *const policies[] = {"tap", "adsp"}; /* the first is everybody's */
enum { POLICIES = sizeof(policies) / sizeof(*policies) };

static const struct server_place servers[] = {
    {"m4.large", 125000, 450e6 / 8},
    {"m4.2xlarge", 500000, 1e9 / 8},
    {"m4.10xlarge", 2500000, 10e9 / 8},
};

static const struct setting {
    const char *set;
    uint32_t mask; /* of types */
    uint32_t server;
    uint32_t batch;
} settings[PAPER_CASES] = {
    {"t2, m4, c4", 0x07, 0, 16},       {"t2, m4, c4", 0x07, 0, 32},
    {"t2, m4, c4", 0x07, 0, 64},       {"t2, m4, c4", 0x07, 0, 128},
    {"t2, m4, c4, p2", 0x17, 0, 128},  {"t2, m4, c4, p2", 0x17, 0, 512},
    {"t2, m4, c4, p2", 0x17, 0, 1280}, {"g3, p2, c4.8", 0x38, 1, 128},
    {"g3, p2, c4.8", 0x38, 1, 512},    {"g3, p2, c4.8", 0x38, 2, 128},
    {"g3, p2, c4.8", 0x38, 2, 512},
};

const char *paper_rule_name(enum paper_rule rule)
{
    static const char *const names[PAPER_RULE_COUNT] = {
        [PAPER_COST] = "cost-opt", [PAPER_TIME] = "time-opt",           [PAPER_SCALA] = "scala-opt",
        [PAPER_AUTO] = "auto",     [PAPER_AUTO_POLICY] = "auto-policy", [PAPER_BEST] = "best",
    };
    ASSERT(rule < PAPER_RULE_COUNT);
    return names[rule];
}

/* One case while it is worked on. */
struct paper {
    struct world *world;
    const struct setting *setting;
    struct world_run job;
    struct observation seen[TYPES];
    uint32_t seen_count;
    struct recommend_type offers[TYPES]; /* of the set */
    uint32_t offer_types[TYPES];
    uint32_t offer_count;
};

/* The world's first job is made the paper's, its kinds the paper's types. */
static int world_of_paper(uint64_t seed, struct world **out_world, struct error *error)
{
    AUTO(world) struct world *world = NULL;
    if (world_open(seed, 1, &world, error) < 0)
        return -1;
    struct world_family *family = &world->families[0];
    for (uint32_t i = 0; i < TYPES; i++)
        world->kinds[i] = types[i];
    for (uint32_t i = 0; i < WORLD_KINDS; i++)
        world->kind_factors[i] = family->kind_factors[i] = 1;
    family->work_s = unit_s * (1 - overhead) / BATCH_UNIT;
    family->overhead_s = unit_s * overhead;
    family->efficiency = 1;
    family->jitter = jitter;
    family->size *= model_bytes / (sizeof(float) * (double)family->signature.parameter_count);
    family->signature.parameter_count = (uint64_t)llround(model_bytes / sizeof(float));
    *out_world = TAKE(world);
    return 0;
}

/* Of one worker of each type: a short run, as in the paper. */
static int measure(struct paper *paper, struct error *error)
{
    for (uint32_t i = 0; i < TYPES; i++) {
        struct world_run run = paper->job;
        struct world_outcome outcome;
        if (!(paper->setting->mask >> i & 1))
            continue;
        run.counts[i] = 1;
        run.samples = TRIAL_STEPS * (double)run.batch;
        if (world_run(paper->world, &run, &outcome, error) < 0)
            return -1;
        const double bits = 8 * model_bytes * (double)outcome.observation.pushes;
        outcome.observation.end = OBSERVATION_CUT;
        paper->seen[paper->seen_count++] = outcome.observation;
        paper->offer_types[paper->offer_count] = i;
        paper->offers[paper->offer_count++] = (struct recommend_type){
            .name = types[i].name,
            .cost = types[i].price_micro_per_hour,
            .bandwidth_kbps = llround(types[i].bytes_per_s * 8 / 1000),
            .used_kbps = llround(bits / outcome.observation.seconds / 1000),
        };
    }
    return 0;
}

static int train(struct paper *paper, const uint32_t *counts, const char *policy,
                 struct paper_choice *choice, struct error *error)
{
    struct world_run run = paper->job;
    struct world_outcome outcome;
    size_t used = 0;
    memcpy(run.counts, counts, sizeof(run.counts));
    run.policy = policy;
    if (world_run(paper->world, &run, &outcome, error) < 0)
        return -1;
    choice->seconds = outcome.seconds;
    choice->cost_micro = outcome.cost_micro;
    for (uint32_t i = 0; i < TYPES; i++)
        if (counts[i] > 0 && used < sizeof(choice->cluster))
            used += (size_t)snprintf(choice->cluster + used, sizeof(choice->cluster) - used,
                                     "%s%u %s", used > 0 ? " + " : "", counts[i], types[i].name);
    return 0;
}

static int follow_rule(struct paper *paper, enum paper_rule rule, struct paper_choice *choice,
                       struct error *error)
{
    const struct server_place *place = &servers[paper->setting->server];
    const struct recommend_type server = {.name = place->name,
                                          .cost = place->price_micro_per_hour,
                                          .bandwidth_kbps = llround(place->bytes_per_s * 8 / 1000)};
    const struct recommend_types offers = {paper->offers, paper->offer_count};
    const struct recommend_wish wish = {.worker_max = WORKERS_MAX,
                                        .share_milli = RECOMMEND_SHARE_DEFAULT};
    struct recommend_cluster cluster;
    uint32_t counts[WORLD_KINDS] = {0};
    const int found =
        rule == PAPER_COST   ? recommend_cost_opt(offers, &server, &wish, &cluster, error)
        : rule == PAPER_TIME ? recommend_time_opt(offers, &server, &wish, &cluster, error)
                             : recommend_scala_opt(offers, &server, &wish, &cluster, error);
    if (found < 0)
        return -1;
    counts[paper->offer_types[cluster.worker - paper->offers]] = cluster.worker_count;
    return train(paper, counts, paper->job.policy, choice, error);
}

/* As late as Scala-Opt was and a quarter, and as cheap as that allows. */
static int follow_auto(struct paper *paper, double deadline_s, uint32_t policy_count,
                       struct paper_choice *choice, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct candidate *offers = arena_alloc(arena, paper->offer_count * sizeof(*offers));
    struct fit *fits = arena_alloc(arena, policy_count * sizeof(*fits));
    struct frontier frontier;
    uint32_t counts[WORLD_KINDS] = {0};
    for (uint32_t i = 0; i < paper->offer_count; i++)
        offers[i] = types[paper->offer_types[i]];
    for (uint32_t i = 0; i < policy_count; i++) {
        struct world_run run = paper->job;
        run.policy = policies[i];
        const struct recommend_job job = {.signature = world_signature(paper->world, &run),
                                          .samples = run.samples};
        fit_observations(&job, paper->seen, paper->seen_count, NULL, &fits[i]);
    }
    const struct frontier_request request = {
        .candidates = offers,
        .candidate_count = paper->offer_count,
        .fits = fits,
        .fit_count = policy_count,
        .server = servers[paper->setting->server],
        .wish = {.kind = WISH_CHEAPEST, .deadline_s = deadline_s, .worker_max = WORKERS_MAX},
    };
    if (frontier_find(arena, &request, &frontier, error) < 0)
        return -1;
    for (uint32_t i = 0; i < frontier.chosen.plan.part_count; i++)
        counts[paper->offer_types[frontier.chosen.plan.parts[i].candidate - offers]] =
            frontier.chosen.plan.parts[i].count;
    return train(paper, counts, frontier.chosen.fit->policy->name, choice, error);
}

static int follow_both(struct paper *paper, struct paper_case *about, struct error *error)
{
    const double deadline_s = auto_later * about->choices[PAPER_SCALA].seconds;
    return follow_auto(paper, deadline_s, 1, &about->choices[PAPER_AUTO], error) < 0 ||
                   follow_auto(paper, deadline_s, POLICIES, &about->choices[PAPER_AUTO_POLICY],
                               error) < 0
               ? -1
               : 0;
}

/* The next of all clusters of the set, counted as by an odometer; false after the last. */
static bool next_cluster(const struct paper *paper, uint32_t *counts)
{
    uint32_t workers = 0;
    for (uint32_t i = 0; i < paper->offer_count; i++)
        workers += counts[paper->offer_types[i]];
    for (uint32_t i = 0; i < paper->offer_count; i++) {
        uint32_t *count = &counts[paper->offer_types[i]];
        if (workers < WORKERS_MAX) {
            (*count)++;
            return true;
        }
        workers -= *count;
        *count = 0;
    }
    return false;
}

/* The least that any cluster costs within the time that auto has, by what it takes and not by what
 * is foretold: nobody can choose better. */
static int find_best(struct paper *paper, double deadline_s, struct paper_choice *best,
                     struct error *error)
{
    uint32_t counts[WORLD_KINDS] = {0};
    best->cost_micro = HUGE_VAL;
    while (next_cluster(paper, counts)) {
        struct paper_choice choice = {0};
        if (train(paper, counts, paper->job.policy, &choice, error) < 0)
            return -1;
        if (choice.seconds <= deadline_s && choice.cost_micro < best->cost_micro)
            *best = choice;
    }
    ASSERT(isfinite(best->cost_micro)); /* Scala-Opt's own is in time */
    return 0;
}

static int run_case(struct world *world, const struct setting *setting, bool has_best,
                    struct paper_case *about, struct error *error)
{
    struct paper *paper = memory_zeroed(1, sizeof(*paper));
    int result = 0;
    *about = (struct paper_case){.set = setting->set,
                                 .server = servers[setting->server].name,
                                 .batch = setting->batch,
                                 .is_cpu = setting->mask == 0x07};
    paper->world = world;
    paper->setting = setting;
    paper->job = (struct world_run){.batch = setting->batch,
                                    .rate = world->families[0].signature.rate,
                                    .policy = policies[0],
                                    .server = servers[setting->server],
                                    .samples = steps_all * setting->batch,
                                    .seed = world->seed};
    result = measure(paper, error);
    for (int rule = 0; result == 0 && rule < PAPER_AUTO; rule++)
        result = follow_rule(paper, (enum paper_rule)rule, &about->choices[rule], error);
    if (result == 0)
        result = follow_both(paper, about, error);
    if (result == 0 && has_best)
        result = find_best(paper, auto_later * about->choices[PAPER_SCALA].seconds,
                           &about->choices[PAPER_BEST], error);
    free(paper);
    return result;
}

static void count_auto(const struct paper_case *about, struct paper_result *result)
{
    const double scala = about->choices[PAPER_SCALA].cost_micro;
    const double over = about->choices[PAPER_AUTO].cost_micro / scala;
    const double policy = about->choices[PAPER_AUTO_POLICY].cost_micro / scala;
    const double share = 1.0 / result->case_count;
    result->auto_cheaper += over < 1 - same_cost ? share : 0;
    result->auto_no_dearer += over <= 1 + same_cost ? share : 0;
    result->auto_cost += over * share;
    result->policy_cheaper += policy < 1 - same_cost ? share : 0;
    result->policy_cost += policy * share;
}

static void count_best(const struct paper_case *about, struct paper_result *result)
{
    const double best = about->choices[PAPER_BEST].cost_micro;
    const double over = best / about->choices[PAPER_SCALA].cost_micro;
    const double share = 1.0 / result->case_count;
    result->best_cheaper += over < 1 - same_cost ? share : 0;
    result->best_cost += over * share;
    result->auto_over_best =
        fmax(result->auto_over_best, about->choices[PAPER_AUTO].cost_micro / best);
}

int recommend_paper(const struct paper_options *options, struct paper_result *out_result,
                    struct error *error)
{
    ASSERT(options->case_count > 0 && options->case_count <= PAPER_CASES);
    AUTO(world) struct world *world = NULL;
    struct paper_result result = {.case_count = options->case_count};
    if (!options->has_best)
        result.best_cheaper = result.best_cost = result.auto_over_best = NAN;
    if (world_of_paper(options->seed, &world, error) < 0)
        return -1;
    for (uint32_t i = 0; i < result.case_count; i++) {
        struct paper_case *about = &result.cases[i];
        if (run_case(world, &settings[i], options->has_best, about, error) < 0)
            return error_wrap(error, "%s, batch %u", settings[i].set, settings[i].batch);
        const struct paper_choice *scala = &about->choices[PAPER_SCALA];
        const struct paper_choice *time = &about->choices[PAPER_TIME];
        count_auto(about, &result);
        if (options->has_best)
            count_best(about, &result);
        if (about->is_cpu && scala->seconds <= later_most * time->seconds)
            result.saved_most = fmax(result.saved_most, 1 - scala->cost_micro / time->cost_micro);
    }
    *out_result = result;
    return 0;
}
