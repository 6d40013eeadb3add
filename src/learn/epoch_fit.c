#include "learn/epoch_fit.h"

#include "base/assert.h"

#include <math.h>

/* What is assumed until epochs tell: a core comes with about 1,800 MB and more memory brings two
 * fifths of that speed; the floor meets the target near 1,000 functions, or at all of them where
 * there are fewer, and rises like the cube root of their number. Each with a generous deviation. */
static const double core_mb_assumed = 1800, core_mb_deviation = 400;
static const double core_slope_assumed = 0.4, core_slope_deviation = 0.3;
static const double meets_at_assumed = 1000, floor_deviation = 0.6; /* as a share */
static const double power_assumed = 0.3, power_deviation = 0.15;
static const double paging_assumed = 20; /* choices that page are avoided until one was seen */
static const double rate_least = 1e-5;

static const double power_step = 0.01;
enum { CORE_STEPS = 64, CORE_ROUNDS = 2 };
static const double nothing = 1e-18; /* noise of what is exact, squared */

/* The first epochs: numbers and memories that differ, near what any job may want, and where there
 * are few functions shares of those. */
struct probe {
    double function_count, function_share, memory_share;
};
static const struct probe floor_probes[] = {{300, 0.25, 0.55}, {450, 0.5, 0.6}, {200, 0.125, 0.68}};
/* Real jobs have few epochs: those of the first are few functions', which go far, and the second
 * tells what memory is worth where there is a choice. */
static const struct probe work_probes[] = {{1000, 0.125, 1}, {1000, 0.25, 0.5}};

void epoch_fit_init(struct epoch_fit *fit, const struct epoch_task *task)
{
    *fit =
        (struct epoch_fit){.task = *task, .work.loss_scale = task->loss_start - task->loss_target};
}

static void line_add(struct line_sums *sums, double weight, double x, double y)
{
    sums->weight += weight;
    sums->x += weight * x;
    sums->xx += weight * x * x;
    sums->y += weight * y;
    sums->xy += weight * x * y;
    sums->yy += weight * y * y;
}

struct line {
    double at_zero, slope;
};

/* Neither below 0; a flat line while all x are the same. */
static struct line line_fit(const struct line_sums *sums)
{
    if (sums->weight <= 0)
        return (struct line){0, 0};
    const double mean = sums->y / sums->weight;
    const double across = sums->xx * sums->weight - sums->x * sums->x;
    if (across <= 1e-9 * sums->xx * sums->weight)
        return (struct line){mean, 0};
    const double slope = (sums->xy * sums->weight - sums->x * sums->y) / across;
    const double at_zero = (sums->y - slope * sums->x) / sums->weight;
    if (slope < 0)
        return (struct line){mean, 0};
    if (at_zero < 0)
        return (struct line){0, sums->xy / sums->xx};
    return (struct line){at_zero, slope};
}

static void add_loss(struct epoch_fit *fit, const struct epoch_seen *seen)
{
    if (fit->task.loss_form == EPOCH_LOSS_WORK) {
        work_fit_add(&fit->work, seen->choice.function_count, seen->loss_before, seen->loss_after);
        return;
    }
    const double fallen = 1 - seen->loss_after / seen->loss_before;
    const double factor = pow(seen->choice.function_count, power_step);
    double x = 1 / seen->loss_before;
    for (int i = 0; i < EPOCH_FIT_POWERS; i++) {
        line_add(&fit->loss[i], 1, x, fallen);
        x *= factor;
    }
}

static void add_paged(struct epoch_fit *fit, const struct epoch_seen *seen)
{
    if (fit->fetch_weight <= 0 || fit->memory.weight <= 0)
        return;
    const double n = seen->choice.function_count;
    const struct line need = line_fit(&fit->memory);
    const double shortage = (need.at_zero + need.slope / n) / seen->choice.memory_mb - 1;
    const double longer = n * seen->fetch_s * fit->fetch_weight / fit->fetch - 1;
    if (fit->fetch > 0 && shortage > 0 && longer > 0) {
        fit->paging_xx += shortage * shortage;
        fit->paging_xy += shortage * longer;
    }
}

void epoch_fit_add(struct epoch_fit *fit, const struct epoch_seen *seen)
{
    const double n = seen->choice.function_count;
    const double start_s = seen->total_s - seen->fetch_s - seen->compute_s - seen->update_s;
    fit->function_least = fit->seen_count ? fmin(fit->function_least, n) : n;
    fit->function_most = fmax(fit->function_most, n);
    fit->seen_count++;
    fit->start += start_s;
    fit->start_squares += start_s * start_s;
    line_add(&fit->fetch_line, 1, 1 / n, seen->fetch_s);
    line_add(&fit->update_line, 1, n, seen->update_s);
    line_add(&fit->start_line, 1, n, fmax(start_s, 0));
    if (seen->cost_micro > 0) {
        fit->cost_seen += (double)seen->cost_micro;
        fit->cost_formed += (double)epoch_cost_micro(&fit->task, seen->choice, seen->total_s);
    }
    /* Times differ by shares, so that what is longer weighs less. */
    if (seen->update_s > 0)
        line_add(&fit->update, 1 / pow(n * seen->update_s, 2), sqrt(n), n * seen->update_s);
    add_loss(fit, seen);
    if (seen->memory_use >= 1) {
        add_paged(fit, seen);
        return;
    }
    line_add(&fit->memory, 1, 1 / n, seen->memory_use * seen->choice.memory_mb);
    fit->fetch_weight += 1;
    fit->fetch += n * seen->fetch_s;
    const struct epoch_space *space = &fit->task.space;
    const uint32_t level = (seen->choice.memory_mb - space->memory_min_mb) / space->memory_step_mb;
    ASSERT(level < EPOCH_MEMORY_LEVELS_MAX);
    fit->compute_weight[level] += 1;
    fit->compute[level] += n * seen->compute_s;
}

bool epoch_fit_probe(const struct epoch_fit *fit, struct epoch_choice *out_choice)
{
    const struct epoch_space *space = &fit->task.space;
    const bool is_work = fit->task.loss_form == EPOCH_LOSS_WORK;
    const bool has_memories = space->memory_min_mb < space->memory_max_mb;
    const uint64_t probe_count = !is_work       ? sizeof(floor_probes) / sizeof(*floor_probes)
                                 : has_memories ? 2
                                                : 1;
    if (fit->seen_count >= probe_count)
        return false;
    const struct probe *probe =
        is_work ? &work_probes[fit->seen_count] : &floor_probes[fit->seen_count];
    *out_choice =
        epoch_round(space, fmin(probe->function_count, probe->function_share * space->function_max),
                    probe->memory_share * space->memory_max_mb);
    return true;
}

static double time_noise(const struct epoch_fit *fit)
{
    const double count = (double)fit->seen_count;
    const double mean = fit->start / count;
    if (fit->seen_count < 2 || !(mean > 0))
        return 0;
    const double variance = (fit->start_squares - count * mean * mean) / (count - 1);
    return sqrt(fmax(variance, 0)) / mean;
}

/* a = 1/C, b = core_slope/C: s/C = a x + b z with x = min(m, core)/core, z = max(0, m/core - 1).
 * Minimises the squares of (C/s seen) (a x + b z) - 1, and what is assumed of b/a. */
struct core_fit {
    double compute_s, slope, squares;
};

static struct core_fit fit_core(const struct epoch_fit *fit, double core_mb, double assumed_weight)
{
    const uint32_t level_count = epoch_memory_level_count(&fit->task.space);
    double xx = 0, xz = 0, zz = 0, x1 = 0, z1 = 0, weight = 0;
    for (uint32_t level = 0; level < level_count; level++) {
        if (fit->compute_weight[level] <= 0)
            continue;
        const double seen_s = fit->compute[level] / fit->compute_weight[level];
        const double cores = epoch_memory_at(&fit->task.space, level) / core_mb;
        const double x = seen_s * fmin(cores, 1), z = seen_s * fmax(cores - 1, 0);
        const double w = fit->compute_weight[level];
        weight += w;
        xx += w * x * x, xz += w * x * z, zz += w * z * z, x1 += w * x, z1 += w * z;
    }
    /* (b - slope a)^2 / (deviation a)^2, with a as the first power alone gives it */
    const double first = x1 / xx;
    const double c = assumed_weight / pow(core_slope_deviation * first, 2);
    const double s = core_slope_assumed;
    const double axx = xx + c * s * s, axz = xz - c * s, azz = zz + c;
    const double across = axx * azz - axz * axz;
    double a = (x1 * azz - z1 * axz) / across;
    double b = (z1 * axx - x1 * axz) / across;
    if (!(b >= 0) || !(a > 0))
        a = first, b = 0;
    else if (b > a)
        a = b = (x1 + z1) / (xx + 2 * xz + zz);
    const double squares =
        a * a * xx + 2 * a * b * xz + b * b * zz - 2 * (a * x1 + b * z1) + weight;
    const double off = (core_mb - core_mb_assumed) / core_mb_deviation;
    const double off_slope = (b / a - core_slope_assumed) / core_slope_deviation;
    return (struct core_fit){1 / a, b / a,
                             squares + assumed_weight * (off * off + off_slope * off_slope)};
}

static void set_core(const struct epoch_fit *fit, struct epoch_model *model)
{
    const struct epoch_space *space = &fit->task.space;
    const double noise = time_noise(fit);
    const double assumed_weight = fmax(noise * noise, 1e-9);
    double low = 0.3 * space->memory_max_mb, high = space->memory_max_mb;
    struct core_fit best = {.squares = HUGE_VAL};
    if (fit->fetch_weight <= 0)
        return;
    for (int round = 0; round < CORE_ROUNDS; round++) {
        const double step = (high - low) / CORE_STEPS;
        for (int i = 0; i <= CORE_STEPS; i++) {
            const struct core_fit tried = fit_core(fit, low + step * i, assumed_weight);
            if (tried.squares < best.squares) {
                best = tried;
                model->core_mb = low + step * i;
            }
        }
        low = model->core_mb - step;
        high = model->core_mb + step;
    }
    model->compute_s = best.compute_s;
    model->core_slope = best.slope;
}

/* 1 - loss'/loss = K - K phi/loss, K = 1 - exp(-rate), phi = loss_floor n^power: for each power a
 * line with a slope of -K loss_floor. */
struct loss_fit {
    double fall, drag; /* K, K loss_floor */
    double squares;
};

static struct loss_fit fit_loss(const struct line_sums *sums, double noise_squared, double drag,
                                double power)
{
    /* The assumed drag weighs as an observation with its deviation. */
    const double weight = noise_squared / pow(floor_deviation * drag, 2);
    const double xx = sums->xx + weight;
    const double xy = -sums->xy + weight * drag;
    const double across = sums->weight * xx - sums->x * sums->x;
    double fall = (xx * sums->y + sums->x * xy) / across;
    double slope = (sums->weight * xy + sums->x * sums->y) / across;
    if (!(slope >= 0)) {
        slope = 0;
        fall = sums->y / sums->weight;
    }
    const double off = (power - power_assumed) / power_deviation;
    const double squares = sums->yy - 2 * fall * sums->y + 2 * slope * sums->xy +
                           fall * fall * sums->weight - 2 * fall * slope * sums->x +
                           slope * slope * sums->xx;
    return (struct loss_fit){fall, slope,
                             squares + noise_squared * off * off + weight * pow(slope - drag, 2)};
}

/* The deviation of what is left over. */
static double set_loss(const struct epoch_fit *fit, struct epoch_model *model)
{
    const double count = (double)fit->seen_count;
    const double meets_at = fmin(meets_at_assumed, fit->task.space.function_max);
    double noise_squared = nothing;
    double fall = fmax(fit->loss[0].y / count, rate_least);
    /* The noise is what is left over, the assumed drag goes with the rate: a few rounds settle. */
    for (int round = 0; round < 4; round++) {
        struct loss_fit best = {.squares = HUGE_VAL};
        for (int i = 0; i < EPOCH_FIT_POWERS; i++) {
            const double power = i * power_step;
            const double drag = fall * fit->task.loss_target / pow(meets_at, power);
            const struct loss_fit tried = fit_loss(&fit->loss[i], noise_squared, drag, power);
            if (tried.squares < best.squares) {
                best = tried;
                model->loss_power = power;
            }
        }
        fall = fmin(fmax(best.fall, rate_least), 0.9);
        model->loss_rate = -log(1 - fall);
        model->loss_floor = best.drag / fall;
        noise_squared = fmax(best.squares / fmax(count - 3, 1), nothing);
    }
    return sqrt(noise_squared);
}

/* Functions of real jobs fetch and put whole models, however many there are. */
static void set_each(const struct epoch_fit *fit, struct epoch_model *model)
{
    const struct line fetch = line_fit(&fit->fetch_line), update = line_fit(&fit->update_line);
    const struct line start = line_fit(&fit->start_line);
    model->fetch_each_s = fetch.at_zero;
    model->fetch_s = fetch.slope;
    model->update_each_s = update.at_zero;
    model->update_rise_s = update.slope;
    model->update_s = model->contention_s = 0;
    model->start_s = start.at_zero;
    model->start_rise_s = start.slope;
}

double epoch_fit_price(const struct epoch_fit *fit)
{
    const double share = fit->cost_formed > 0 ? fit->cost_seen / fit->cost_formed : 1;
    return share * fit->task.price;
}

struct epoch_fitted epoch_fit_solve(const struct epoch_fit *fit)
{
    ASSERT(fit->seen_count > 0);
    const struct line update = line_fit(&fit->update);
    const struct line need = line_fit(&fit->memory);
    struct epoch_model model = {
        .start_s = fmax(fit->start / (double)fit->seen_count, 0),
        .fetch_s = fit->fetch_weight > 0 ? fit->fetch / fit->fetch_weight : 0,
        .update_s = update.at_zero,
        .contention_s = update.slope,
        .memory_base_mb = need.at_zero,
        .memory_spread_mb = need.slope,
        .paging = fit->paging_xx > 0 ? fit->paging_xy / fit->paging_xx : paging_assumed,
        .core_mb = core_mb_assumed,
        .core_slope = core_slope_assumed,
    };
    set_core(fit, &model);
    if (fit->task.loss_form == EPOCH_LOSS_WORK) {
        set_each(fit, &model);
        model.loss_form = EPOCH_LOSS_WORK;
        model.work = work_fit_solve(&fit->work);
        return (struct epoch_fitted){model, time_noise(fit), model.work.deviation};
    }
    const double loss_noise = set_loss(fit, &model);
    return (struct epoch_fitted){model, time_noise(fit), loss_noise};
}
