/*
 * Frontier, the search: every number of workers of every candidate, then mixtures of the best.
 *
 * Clusters are kept in buckets of time, 64 to an octave, the cheapest in each; so the list stays
 * short however many are weighed, and two that differ by less than a hundredth in time count as
 * equally fast. Numbers of one candidate end where more of it has brought nothing for a while.
 */
#include "base/assert.h"
#include "recommend/frontier_internal.h"
#include "recommend/predict_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS_PER_OCTAVE_BITS = 6,
    OCTAVES = 64, /* from 2^-24 s: none is faster, nor slower than 2^40 */
    OCTAVE_FIRST = -24,
    BUCKET_COUNT = OCTAVES << BUCKETS_PER_OCTAVE_BITS,
    PATIENCE = 8,    /* numbers of workers that bring nothing, one after the other */
    VALUE_KINDS = 8, /* with the best value that are mixed in pairs */
    SPEED_KINDS = 4, /* and of the fastest */
    PAIR_KINDS = VALUE_KINDS + SPEED_KINDS, /* each at most CLUSTER_KINDS_MAX */
};
static const double gain_least = 1e-3; /* of the time: less is nothing */

struct bucket {
    double seconds, cost_micro; /* cost 0: empty, seconds too */
    struct cluster_plan plan;
    const struct fit *fit;
};

struct search {
    const struct frontier_request *request;
    struct bucket *buckets;
    size_t considered;
    uint32_t worker_max;
    struct rated *rated; /* of all candidates, by the fit at hand */
    uint32_t *order;     /* of candidates */
    struct flow_server link;
};

/* The upper bits of a double rise with its logarithm. */
static uint32_t bucket_of(double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof(bits));
    const int64_t exponent_bias = 1023 + OCTAVE_FIRST;
    const int64_t place = (int64_t)(bits >> (52 - BUCKETS_PER_OCTAVE_BITS)) -
                          (exponent_bias << BUCKETS_PER_OCTAVE_BITS);
    return (uint32_t)(place < 0 ? 0 : place >= BUCKET_COUNT ? BUCKET_COUNT - 1 : place);
}

static bool is_within(const struct search *search, double price_micro_per_hour)
{
    const int64_t budget = search->request->wish.budget_micro_per_hour;
    return budget == 0 ||
           price_micro_per_hour + (double)search->request->server.price_micro_per_hour <=
               (double)budget;
}

/* True when it is the cheapest of its time; what it is made of is then to be told. */
static bool bucket_take(struct search *search, const struct fit *fit, const struct outlook *outlook,
                        struct bucket **out_bucket)
{
    const double seconds = outlook->start_s + outlook->work_s;
    struct bucket *bucket = &search->buckets[bucket_of(seconds)];
    search->considered++;
    *out_bucket = bucket;
    if (bucket->fit && (bucket->cost_micro < outlook->cost_micro ||
                        (bucket->cost_micro <= outlook->cost_micro && bucket->seconds <= seconds)))
        return false;
    bucket->seconds = seconds;
    bucket->cost_micro = outlook->cost_micro;
    bucket->fit = fit;
    return true;
}

static uint32_t count_most(const struct search *search, const struct candidate *candidate)
{
    const uint32_t there = candidate->count_max;
    return there > 0 && there < search->worker_max ? there : search->worker_max;
}

/* ---- One kind -------------------------------------------------------------------------------- */

static void search_kind(struct search *search, const struct fit *fit, struct rated rated)
{
    const uint32_t most = count_most(search, rated.candidate);
    const double price = (double)rated.candidate->price_micro_per_hour;
    double best_s = HUGE_VAL;
    uint32_t idle = 0;
    for (uint32_t n = 1; n <= most && idle < PATIENCE && is_within(search, n * price); n++) {
        struct bucket *bucket;
        rated.kind.count = n;
        const struct outlook outlook =
            outlook_of(fit, &rated, 1, &search->link, &search->request->server);
        if (bucket_take(search, fit, &outlook, &bucket))
            bucket->plan = (struct cluster_plan){.parts = {{rated.candidate, n}}, .part_count = 1};
        const double seconds = outlook.start_s + outlook.work_s;
        idle = seconds < (1 - gain_least) * best_s ? 0 : idle + 1;
        best_s = fmin(best_s, seconds);
    }
}

/* ---- Mixtures -------------------------------------------------------------------------------- */

static void mixture_take(struct search *search, const struct fit *fit, const struct rated *parts,
                         uint32_t count)
{
    struct bucket *bucket;
    double price = 0;
    for (uint32_t i = 0; i < count; i++)
        price += parts[i].kind.count * (double)parts[i].candidate->price_micro_per_hour;
    if (!is_within(search, price))
        return;
    const struct outlook outlook =
        outlook_of(fit, parts, count, &search->link, &search->request->server);
    if (!bucket_take(search, fit, &outlook, &bucket))
        return;
    bucket->plan.part_count = count;
    for (uint32_t i = 0; i < count; i++)
        bucket->plan.parts[i] =
            (struct cluster_part){parts[i].candidate, (uint32_t)parts[i].kind.count};
}

static void search_pair(struct search *search, const struct fit *fit, uint32_t left, uint32_t right)
{
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    enum { COUNTS = sizeof(counts) / sizeof(*counts) };
    struct rated parts[2] = {search->rated[left], search->rated[right]};
    const uint32_t most[2] = {count_most(search, parts[0].candidate),
                              count_most(search, parts[1].candidate)};
    for (uint32_t i = 0; i < COUNTS && counts[i] <= most[0]; i++)
        for (uint32_t n = 0; n < COUNTS && counts[n] <= most[1]; n++) {
            if (counts[i] + counts[n] > search->worker_max)
                break;
            parts[0].kind.count = counts[i];
            parts[1].kind.count = counts[n];
            mixture_take(search, fit, parts, 2);
        }
}

/* Everything there is of the first, then of the next: for lenders, of whom there are few each. */
static void search_fill(struct search *search, const struct fit *fit)
{
    struct rated parts[CLUSTER_KINDS_MAX];
    uint32_t count = 0, workers = 0;
    const size_t candidates = search->request->candidate_count;
    for (size_t i = 0; i < candidates && count < CLUSTER_KINDS_MAX && workers < search->worker_max;
         i++) {
        const struct rated *next = &search->rated[search->order[i]];
        const uint32_t most = count_most(search, next->candidate);
        parts[count] = *next;
        parts[count++].kind.count = 0;
        for (uint32_t n = 0; n < most && workers < search->worker_max; n++, workers++) {
            parts[count - 1].kind.count++;
            mixture_take(search, fit, parts, count);
        }
    }
}

static double value_of(const struct rated *rated)
{
    return (double)rated->candidate->price_micro_per_hour * rated->kind.step_s;
}

/* The order's first `wanted` by value, or by speed. */
static void order_first(struct search *search, size_t wanted, bool is_by_speed)
{
    const size_t count = search->request->candidate_count;
    for (size_t i = 0; i < count; i++)
        search->order[i] = (uint32_t)i;
    for (size_t i = 0; i < wanted && i < count; i++) {
        size_t best = i;
        for (size_t n = i + 1; n < count; n++) {
            const struct rated *left = &search->rated[search->order[n]];
            const struct rated *right = &search->rated[search->order[best]];
            if (is_by_speed ? left->kind.step_s < right->kind.step_s
                            : value_of(left) < value_of(right))
                best = n;
        }
        const uint32_t kept = search->order[i];
        search->order[i] = search->order[best];
        search->order[best] = kept;
    }
}

static void search_mixtures(struct search *search, const struct fit *fit)
{
    uint32_t kinds[PAIR_KINDS];
    const size_t candidates = search->request->candidate_count;
    uint32_t count = 0;
    order_first(search, CLUSTER_KINDS_MAX, true);
    search_fill(search, fit);
    for (size_t i = 0; i < SPEED_KINDS && i < candidates; i++)
        kinds[count++] = search->order[i];
    order_first(search, CLUSTER_KINDS_MAX, false);
    search_fill(search, fit);
    for (size_t i = 0; i < VALUE_KINDS && i < candidates; i++)
        kinds[count++] = search->order[i];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t n = i + 1; n < count; n++)
            if (kinds[i] != kinds[n])
                search_pair(search, fit, kinds[i], kinds[n]);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static struct choice choice_of(const struct frontier_request *request, const struct bucket *bucket)
{
    struct choice choice = {.plan = bucket->plan, .fit = bucket->fit};
    choice.price_micro_per_hour =
        cluster_plan_price_micro_per_hour(&bucket->plan) + request->server.price_micro_per_hour;
    predict(bucket->fit, &bucket->plan, &request->server, &choice.prediction);
    return choice;
}

/* From the fastest on: who is slower must be cheaper. */
static void gather(struct arena *arena, const struct search *search, struct frontier *frontier)
{
    size_t count = 0;
    double cheapest = HUGE_VAL;
    for (uint32_t i = 0; i < BUCKET_COUNT; i++)
        if (search->buckets[i].fit && search->buckets[i].cost_micro < cheapest) {
            cheapest = search->buckets[i].cost_micro;
            count++;
        }
    frontier->choices = arena_alloc(arena, (count + 1) * sizeof(*frontier->choices));
    cheapest = HUGE_VAL;
    for (uint32_t i = 0; i < BUCKET_COUNT; i++)
        if (search->buckets[i].fit && search->buckets[i].cost_micro < cheapest) {
            cheapest = search->buckets[i].cost_micro;
            frontier->choices[frontier->choice_count++] =
                choice_of(search->request, &search->buckets[i]);
        }
    ASSERT(frontier->choice_count == count);
}

void frontier_search(struct arena *arena, const struct frontier_request *request,
                     struct frontier *frontier)
{
    const uint32_t wanted = request->wish.worker_max;
    const size_t candidates = request->candidate_count;
    struct search search = {
        .request = request,
        .buckets = arena_alloc(arena, BUCKET_COUNT * sizeof(struct bucket)),
        .worker_max = wanted > 0 && wanted < CLUSTER_WORKERS_MAX ? wanted : CLUSTER_WORKERS_MAX,
        .rated = arena_alloc(arena, candidates * sizeof(struct rated)),
        .order = arena_alloc(arena, candidates * sizeof(uint32_t)),
    };
    for (size_t f = 0; f < request->fit_count; f++) {
        const struct fit *fit = &request->fits[f];
        search.link = rate_server(fit, &request->server);
        for (size_t i = 0; i < candidates; i++) {
            search.rated[i] = rate_candidate(fit, &request->candidates[i]);
            search_kind(&search, fit, search.rated[i]);
        }
        search_mixtures(&search, fit);
    }
    frontier->considered = search.considered;
    gather(arena, &search, frontier);
}
