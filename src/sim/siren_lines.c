#include "sim/siren_lines.h"

#include "base/memory.h"
#include "sim/siren_path.h"

#include <math.h>
#include <stdlib.h>

static const int64_t budget_unbounded_micro = INT64_C(1000000000000000000);
static const double trying_share = 0.7;  /* of the rehearsals; the others are of the best */
static const double budget_share = 0.93; /* that lines are set to: runs differ */
static const double passing_power = 6;   /* as in siren_rehearse.c */
static const double unreached_times = 10;
static const double folds_around = 1.5; /* doublings that an end is drawn around the best's */
static const double length_least = 0.3, length_most = 1.2; /* of the best's epochs */

struct line_run {
    uint32_t line;
    bool is_reached;
    uint32_t epoch_count;
    struct epoch_state *states;
};

struct lines {
    const struct siren_rehearsals *rehearsals;
    struct epoch_fit *history;
    struct epoch_task task;
    struct scheduler_decay *items; /* [rehearsals' count], as the next */
    struct line_run *runs;
    uint32_t item_count, run_count;
    struct random random;
};

static void run_line(struct lines *lines, uint32_t line)
{
    const struct siren_rehearsals *rehearsals = lines->rehearsals;
    const uint32_t levels = epoch_memory_level_count(&lines->task.space);
    struct line_run *run = &lines->runs[lines->run_count];
    struct siren siren;
    AUTO(scheduler) struct scheduler *scheduler = scheduler_new_decay(&lines->items[line]);
    *run = (struct line_run){.line = line};
    run->states = memory_zeroed(lines->task.epoch_max, sizeof(*run->states));
    siren_begin(&siren, &(struct siren_options){.world = rehearsals->world,
                                                .budget_micro = budget_unbounded_micro,
                                                .is_noisy = rehearsals->is_noisy,
                                                .episode = rehearsals->first + lines->run_count});
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

struct lead {
    uint32_t line;
    uint32_t memory_mb;
    uint32_t epoch_count; /* of its last run */
    bool is_reached;
    double score; /* the less the better */
};

/* The best line by the mean of its runs, with its best memory. */
static struct lead find_lead(const struct lines *lines)
{
    const struct epoch_model model = epoch_fit_solve(lines->history).model;
    const struct epoch_space *space = &lines->task.space;
    struct lead lead = {.score = HUGE_VAL};
    for (uint32_t line = 0; line < lines->item_count; line++)
        for (uint32_t level = 0; level < epoch_memory_level_count(space); level++) {
            struct lead tried = {.line = line, .memory_mb = epoch_memory_at(space, level)};
            uint32_t count = 0;
            for (uint32_t i = 0; i < lines->run_count; i++) {
                const struct line_run *run = &lines->runs[i];
                if (run->line != line)
                    continue;
                tried.score += score_run(lines, run, &model, tried.memory_mb);
                tried.epoch_count = run->epoch_count;
                tried.is_reached |= run->is_reached;
                count++;
            }
            tried.score /= count;
            if (tried.score < lead.score)
                lead = tried;
        }
    return lead;
}

static double draw(struct lines *lines, double least, double most)
{
    return least + (most - least) * random_unit(&lines->random);
}

static void add_line(struct lines *lines, double first, double last, double epoch_count)
{
    const struct epoch_space *space = &lines->task.space;
    lines->items[lines->item_count] = (struct scheduler_decay){
        .function_first = epoch_round(space, first, 0).function_count,
        .function_last = epoch_round(space, last, 0).function_count,
        .epoch_count = (uint32_t)lround(fmax(epoch_count, 1)),
        .memory_mb = space->memory_max_mb,
    };
    run_line(lines, lines->item_count++);
}

static void add_around(struct lines *lines, const struct lead *lead)
{
    const struct scheduler_decay *best = &lines->items[lead->line];
    const double first = draw(lines, -folds_around, folds_around);
    const double last = draw(lines, -folds_around, folds_around);
    add_line(lines, best->function_first * exp2(first), best->function_last * exp2(last),
             lead->epoch_count * draw(lines, length_least, length_most));
}

struct scheduler_decay siren_rehearse_lines(const struct siren_rehearsals *rehearsals,
                                            struct epoch_fit *history)
{
    struct lines lines = {.rehearsals = rehearsals,
                          .history = history,
                          .task = rehearsals->world->task,
                          .items = memory_zeroed(rehearsals->count, sizeof(*lines.items)),
                          .runs = memory_zeroed(rehearsals->count, sizeof(*lines.runs))};
    lines.task.budget_micro = rehearsals->budget_micro;
    random_init(&lines.random, rehearsals->seed + 2);
    for (uint32_t n = 1; n <= lines.task.space.function_max && lines.run_count < rehearsals->count;
         n *= 2)
        add_line(&lines, n, n, 1);
    while (lines.run_count < rehearsals->count) {
        const struct lead lead = find_lead(&lines);
        if (lines.run_count < trying_share * rehearsals->count)
            add_around(&lines, &lead);
        else
            run_line(&lines, lead.line);
    }
    const struct lead lead = find_lead(&lines);
    struct scheduler_decay best = lines.items[lead.line];
    best.memory_mb = lead.memory_mb;
    if (!lead.is_reached)
        best = (struct scheduler_decay){0};
    for (uint32_t i = 0; i < lines.run_count; i++)
        free(lines.runs[i].states);
    free(lines.items);
    free(lines.runs);
    return best;
}
