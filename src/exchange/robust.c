/*
 * Robust: rounds are joined block by block: the values of a block's parameters are sorted over the
 * pushes, all parameters of the block at once where the weights are equal.
 */
#include "exchange/robust.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 64,          /* parameters sorted at once: a few rows of them fit the first cache */
    SORTED_AT_ONCE = 48, /* pushes at most: work grows with the square */
    PART = 4,            /* floats in one register, on any machine */
    LANES = 16,
    SQUARE_BLOCK = 1024, /* floats summed as floats, before doubles take over */
};

static const char *const kind_names[ROBUST_KIND_COUNT] = {
    [ROBUST_NONE] = "none",
    [ROBUST_NORM] = "norm",
    [ROBUST_TRIMMED] = "trimmed",
    [ROBUST_MEDIAN] = "median",
};

const char *robust_kind_name(enum robust_kind kind)
{
    ASSERT(kind < ROBUST_KIND_COUNT);
    return kind_names[kind];
}

int robust_kind_parse(struct text name, enum robust_kind *out_kind, struct error *error)
{
    for (enum robust_kind kind = 0; kind < ROBUST_KIND_COUNT; kind++) {
        if (!text_equal(name, text_of(kind_names[kind])))
            continue;
        *out_kind = kind;
        return 0;
    }
    return error_set(error, ERROR_INVALID,
                     "\"%.*s\" is no way to join pushes: none, norm, trimmed or median",
                     (int)(name.size < 32 ? name.size : 32), name.data);
}

/* ---- Length ---------------------------------------------------------------------------------- */

/* In lanes, so that the order of the sum is fixed and it is vectors all the same. */
static double square_sum_block(const float *restrict values, size_t count)
{
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] += values[i + lane] * values[i + lane];
    double sum = 0;
    for (; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t lane = 0; lane < LANES; lane++)
        sum += (double)lanes[lane];
    return sum;
}

double robust_square_sum(const float *values, size_t count)
{
    double sum = 0;
    for (size_t first = 0; first < count; first += SQUARE_BLOCK)
        sum += square_sum_block(values + first,
                                count - first < SQUARE_BLOCK ? count - first : SQUARE_BLOCK);
    return sum;
}

void robust_norms_init(struct robust_norms *norms)
{
    norms->worker_end = 0;
    for (uint32_t worker = 0; worker < SYNC_WORKER_MAX; worker++)
        robust_norms_forget(norms, worker);
}

void robust_norms_forget(struct robust_norms *norms, uint32_t worker)
{
    ASSERT(worker < SYNC_WORKER_MAX);
    norms->norms[worker] = -1;
    norms->steps[worker] = 0;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The upper one: of two workers the smaller may not hold the other down. 0: nobody has pushed. */
static double median_of(const struct robust_norms *norms, const double *values)
{
    double sorted[SYNC_WORKER_MAX];
    size_t count = 0;
    for (uint32_t worker = 0; worker < norms->worker_end; worker++)
        if (norms->norms[worker] >= 0)
            sorted[count++] = values[worker];
    if (count == 0)
        return 0;
    qsort(sorted, count, sizeof(*sorted), compare_doubles);
    return sorted[count / 2];
}

double robust_norms_limit(const struct robust_norms *norms, uint32_t steps)
{
    const double usual = median_of(norms, norms->norms);
    const double usual_steps = median_of(norms, norms->steps);
    if (usual <= 0)
        return 0;
    const double ratio =
        fmin(fmax(steps / usual_steps, 1 / ROBUST_STEPS_FACTOR), ROBUST_STEPS_FACTOR);
    return ROBUST_NORM_FACTOR * usual * pow(ratio, 0.75);
}

double robust_norms_take(struct robust_norms *norms, uint32_t worker, uint32_t steps, double norm,
                         const float *model, size_t count)
{
    ASSERT(worker < SYNC_WORKER_MAX && steps > 0 && norm >= 0);
    double limit = robust_norms_limit(norms, steps);
    if (limit == 0)
        limit = sqrt(fmax(robust_square_sum(model, count), (double)count));
    const double factor = norm > limit ? limit / norm : 1;
    norms->norms[worker] = factor * norm;
    norms->steps[worker] = steps;
    if (worker >= norms->worker_end)
        norms->worker_end = worker + 1;
    return factor;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

struct kept_push {
    float *values;
    double weight;
};

struct robust_round {
    struct robust_options options;
    size_t count;
    struct kept_push *pushes; /* those from push_count on hold memory for the next rounds */
    size_t push_count, kept_count, capacity;
    struct weighted *column; /* [capacity] */
};

struct weighted {
    float value;
    double weight;
};

struct robust_round *robust_round_new(const struct robust_options *options, size_t count)
{
    ASSERT(options->kind == ROBUST_TRIMMED || options->kind == ROBUST_MEDIAN);
    ASSERT(options->trim >= 0 && options->trim < 0.5);
    struct robust_round *round = calloc(1, sizeof(*round));
    ASSERT(round);
    round->options = *options;
    if (round->options.trim == 0)
        round->options.trim = ROBUST_TRIM;
    round->count = count;
    return round;
}

void robust_round_free(struct robust_round *round)
{
    if (!round)
        return;
    for (size_t i = 0; i < round->kept_count; i++)
        free(round->pushes[i].values);
    free(round->pushes);
    free(round->column);
    free(round);
}

int robust_round_add(struct robust_round *round, const float *update, double weight,
                     struct error *error)
{
    if (round->push_count == round->capacity) {
        round->capacity = round->capacity ? 2 * round->capacity : 8;
        round->pushes = reallocarray(round->pushes, round->capacity, sizeof(*round->pushes));
        round->column = reallocarray(round->column, round->capacity, sizeof(*round->column));
        ASSERT(round->pushes && round->column);
    }
    if (round->push_count == round->kept_count) {
        float *values = malloc(round->count * sizeof(*values));
        if (!values)
            return error_set(error, ERROR_EXHAUSTED,
                             "no memory to keep one more push of %zu floats", round->count);
        round->pushes[round->kept_count++].values = values;
    }
    struct kept_push *push = &round->pushes[round->push_count++];
    push->weight = weight;
    memcpy(push->values, update, round->count * sizeof(*update));
    return 0;
}

size_t robust_round_count(const struct robust_round *round)
{
    return round->push_count;
}

void robust_round_empty(struct robust_round *round)
{
    round->push_count = 0;
}

/* How many are cut off at each end. */
static size_t cut_of(const struct robust_round *round)
{
    const size_t count = round->push_count;
    if (count < 3)
        return 0;
    if (round->options.kind == ROBUST_MEDIAN)
        return (count - 1) / 2;
    const size_t cut = (size_t)(round->options.trim * (double)count);
    return cut < 1 ? 1 : cut;
}

static bool is_sorted_at_once(const struct robust_round *round)
{
    if (round->push_count > SORTED_AT_ONCE)
        return false;
    for (size_t i = 1; i < round->push_count; i++)
        if (round->pushes[i].weight != round->pushes[0].weight)
            return false;
    return true;
}

typedef float row_part __attribute__((vector_size(PART * sizeof(float))));
typedef int32_t row_bits __attribute__((vector_size(PART * sizeof(float))));

/* The smaller of each pair goes to `low`. By masks: compilers leave a loop of choices as it is. */
static inline void order_rows(row_part *low, row_part *high)
{
    for (size_t i = 0; i < BLOCK / PART; i++) {
        const row_bits left = (row_bits)low[i], right = (row_bits)high[i];
        const row_bits swapped = (left ^ right) & (high[i] < low[i]);
        low[i] = (row_part)(left ^ swapped);
        high[i] = (row_part)(right ^ swapped);
    }
}

/* Odd-even transposition: the same comparisons whatever the values, so they are done for a whole
 * row of parameters at once. */
static void sort_rows(row_part rows[][BLOCK / PART], size_t count)
{
    for (size_t pass = 0; pass < count; pass++)
        for (size_t i = pass % 2; i + 1 < count; i += 2)
            order_rows(rows[i], rows[i + 1]);
}

static void join_block(const struct robust_round *round, size_t first, size_t size, size_t cut,
                       float *out)
{
    row_part rows[SORTED_AT_ONCE][BLOCK / PART];
    for (size_t i = 0; i < round->push_count; i++) {
        memset(rows[i], 0, sizeof(rows[i]));
        memcpy(rows[i], round->pushes[i].values + first, size * sizeof(float));
    }
    sort_rows(rows, round->push_count);
    row_part sums[BLOCK / PART] = {0};
    for (size_t i = cut; i < round->push_count - cut; i++)
        for (size_t part = 0; part < BLOCK / PART; part++)
            sums[part] += rows[i][part];
    /* Times the sum of the weights, which are equal. */
    const size_t left = round->push_count - 2 * cut;
    const double factor = round->pushes[0].weight * (double)round->push_count / (double)left;
    for (size_t part = 0; part < BLOCK / PART; part++)
        sums[part] *= (float)factor;
    memcpy(out, sums, size * sizeof(float));
}

static int compare_weighted(const void *left, const void *right)
{
    const float a = ((const struct weighted *)left)->value;
    const float b = ((const struct weighted *)right)->value;
    return (a > b) - (a < b);
}

/* Half of the weight lies on either side. */
static double weighted_median(const struct weighted *column, size_t count, double half)
{
    double below = 0;
    for (size_t i = 0; i < count; i++) {
        below += column[i].weight;
        if (below > half)
            return (double)column[i].value;
        if (below == half && i + 1 < count)
            return ((double)column[i].value + (double)column[i + 1].value) / 2;
    }
    return (double)column[count - 1].value;
}

static double weighted_mean(const struct weighted *column, size_t count)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        sum += column[i].weight * (double)column[i].value;
        weight += column[i].weight;
    }
    return sum / weight;
}

static void join_columns(struct robust_round *round, size_t cut, float *out_sum)
{
    const size_t count = round->push_count;
    double weight = 0;
    for (size_t i = 0; i < count; i++)
        weight += round->pushes[i].weight;
    const bool is_median = round->options.kind == ROBUST_MEDIAN && count >= 3;
    for (size_t parameter = 0; parameter < round->count; parameter++) {
        for (size_t i = 0; i < count; i++)
            round->column[i] =
                (struct weighted){round->pushes[i].values[parameter], round->pushes[i].weight};
        qsort(round->column, count, sizeof(*round->column), compare_weighted);
        const double middle = is_median ? weighted_median(round->column, count, weight / 2)
                                        : weighted_mean(round->column + cut, count - 2 * cut);
        out_sum[parameter] = (float)(weight * middle);
    }
}

void robust_round_sum(struct robust_round *round, float *out_sum)
{
    ASSERT(round->push_count > 0);
    const size_t cut = cut_of(round);
    if (!is_sorted_at_once(round)) {
        join_columns(round, cut, out_sum);
        return;
    }
    for (size_t first = 0; first < round->count; first += BLOCK) {
        const size_t size = round->count - first < BLOCK ? round->count - first : BLOCK;
        join_block(round, first, size, cut, out_sum + first);
    }
}
