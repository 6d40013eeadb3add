#include "sim/siren_lines.h"

#include "base/memory.h"
#include "sim/siren_path.h"

#include <math.h>
#include <stdlib.h>

static const int64_t budget_unbounded_micro = INT64_C(1000000000000000000);
static const double budget_share = 0.93; /* that lines are set to: runs differ */
static const double passing_power = 6;   /* as in siren_rehearse.c */
static const double unreached_times = 10;

/* Ends are powers of the most functions there are, lengths shares of the most epochs. */
static const struct {
    double first, last, length;
} shapes[] = {
    {1 / 6.0, 1 / 6.0, 0}, {2 / 6.0, 2 / 6.0, 0}, {3 / 6.0, 3 / 6.0, 0},   {4 / 6.0, 4 / 6.0, 0},
    {0, 4 / 6.0, 0.3},     {4 / 6.0, 0, 0.3},     {1 / 6.0, 5 / 6.0, 0.3}, {5 / 6.0, 1 / 6.0, 0.3},
    {0, 1, 0.3},           {1, 0, 0.3},           {2 / 6.0, 1, 0.3},       {1, 2 / 6.0, 0.3},
    {0, 4 / 6.0, 0.1},     {4 / 6.0, 0, 0.1},     {1 / 6.0, 5 / 6.0, 0.1}, {5 / 6.0, 1 / 6.0, 0.1},
};
enum { LINES = sizeof(shapes) / sizeof(*shapes), KEPT_LEAST = 3 };

struct line_run {
    uint32_t line;
    bool is_reached;
    uint32_t epoch_count;
    struct epoch_state *states;
};

struct line {
    struct scheduler_decay path;
    double score; /* the less the better */
    bool is_reached;
};

struct lines {
    const struct siren_rehearsals *rehearsals;
    struct epoch_fit *history;
    struct epoch_task task;
    struct line items[LINES];
    struct line_run *runs; /* [rehearsals' count] */
    uint32_t run_count;
};

static void run_line(struct lines *lines, uint32_t line, uint32_t round)
{
    const struct siren_rehearsals *rehearsals = lines->rehearsals;
    const uint32_t levels = epoch_memory_level_count(&lines->task.space);
    struct line_run *run = &lines->runs[lines->run_count];
    struct siren siren;
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_decay(&lines->items[line].path);
    *run = (struct line_run){.line = line};
    run->states = memory_zeroed(lines->task.epoch_max, sizeof(*run->states));
    siren_begin(&siren, &(struct siren_options){.world = rehearsals->world,
                                                .budget_micro = budget_unbounded_micro,
                                                .is_noisy = rehearsals->is_noisy,
                                                .episode = rehearsals->first + round});
    lines->run_count++;
    while (siren.end == SIREN_RUNNING) {
        const uint32_t epoch = siren.state.epoch;
        struct epoch_choice choice = scheduler_choose(scheduler, &siren.state);
        choice.memory_mb = epoch_memory_at(&lines->task.space, epoch % levels);
        siren_step(&siren, choice);
        run->states[epoch] = siren.state;
        epoch_fit_add(lines->history, &siren.state.last);
    }
    run->epoch_count = siren.state.epoch;
    run->is_reached = siren.end == SIREN_REACHED;
}

static double score_run(const struct lines *lines, const struct line_run *run,
                        const struct epoch_model *model, uint32_t memory_mb)
{
    double time_s, cost_micro;
    siren_path_with_memory(&lines->task, model, run->states, run->epoch_count, memory_mb, &time_s,
                           &cost_micro);
    const double spent = cost_micro / (budget_share * (double)lines->task.budget_micro);
    return time_s * (run->is_reached ? 1 : unreached_times) * pow(fmax(spent, 1), passing_power);
}

/* By the mean of its runs, with the memory that is best for them. */
static void score_line(struct lines *lines, const struct epoch_model *model, uint32_t index)
{
    const struct epoch_space *space = &lines->task.space;
    struct line *line = &lines->items[index];
    line->score = HUGE_VAL;
    for (uint32_t level = 0; level < epoch_memory_level_count(space); level++) {
        const uint32_t memory_mb = epoch_memory_at(space, level);
        double sum = 0, count = 0;
        for (uint32_t i = 0; i < lines->run_count; i++) {
            const struct line_run *run = &lines->runs[i];
            if (run->line != index)
                continue;
            sum += score_run(lines, run, model, memory_mb);
            count++;
            line->is_reached |= run->is_reached;
        }
        if (count > 0 && sum / count < line->score) {
            line->score = sum / count;
            line->path.memory_mb = memory_mb;
        }
    }
}

/* `order`: of `count` lines that were run, the best first. */
static void sort_lines(struct lines *lines, uint32_t *order, uint32_t count)
{
    const struct epoch_model model = epoch_fit_solve(lines->history).model;
    for (uint32_t i = 0; i < count; i++)
        score_line(lines, &model, order[i]);
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0; k--) {
            const uint32_t line = order[k];
            if (lines->items[line].score >= lines->items[order[k - 1]].score)
                break;
            order[k] = order[k - 1];
            order[k - 1] = line;
        }
}

static struct scheduler_decay path_of(const struct epoch_task *task, size_t shape)
{
    const struct epoch_space *space = &task->space;
    const double most = space->function_max;
    return (struct scheduler_decay){
        .function_first = epoch_round(space, pow(most, shapes[shape].first), 0).function_count,
        .function_last = epoch_round(space, pow(most, shapes[shape].last), 0).function_count,
        .epoch_count = (uint32_t)lround(fmax(shapes[shape].length * task->epoch_max, 1)),
        .memory_mb = space->memory_max_mb,
    };
}

struct scheduler_decay siren_rehearse_lines(const struct siren_rehearsals *rehearsals,
                                            struct epoch_fit *history)
{
    struct lines lines = {.rehearsals = rehearsals,
                          .history = history,
                          .task = rehearsals->world->task,
                          .runs = memory_zeroed(rehearsals->count, sizeof(*lines.runs))};
    uint32_t order[LINES], kept = rehearsals->count < LINES ? rehearsals->count : LINES;
    lines.task.budget_micro = rehearsals->budget_micro;
    for (uint32_t i = 0; i < LINES; i++) {
        lines.items[i].path = path_of(&lines.task, i);
        order[i] = i;
    }
    for (uint32_t round = 0; lines.run_count < rehearsals->count; round++) {
        for (uint32_t i = 0; i < kept && lines.run_count < rehearsals->count; i++)
            run_line(&lines, order[i], round);
        sort_lines(&lines, order, kept);
        if (kept / 2 >= KEPT_LEAST)
            kept /= 2;
    }
    const struct line *best = &lines.items[order[0]];
    for (uint32_t i = 0; i < lines.run_count; i++)
        free(lines.runs[i].states);
    free(lines.runs);
    return best->is_reached ? best->path : (struct scheduler_decay){0};
}
