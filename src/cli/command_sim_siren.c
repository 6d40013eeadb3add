/* souk sim siren: schedulers of elastic training beside each other in virtual time. */
#include "base/units.h"
#include "cli/agent_store.h"
#include "cli/output.h"
#include "cli/sim_siren.h"
#include "train/dataset_catalogue.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FIELD(name_) offsetof(struct sim_siren_options, name_)

static const struct option sim_siren_options[] = {
    {"mode", OPTION_CHOICE, FIELD(mode), "NAME", "floor",
     "The world: what the paper's figures imply, one in which scheduling pays, or one that trains "
     "a model.",
     .choices = siren_mode_names},
    {"budget", OPTION_LIST, FIELD(budgets), "CREDITS", "300,200,100", "What a run may cost."},
    {"seed", OPTION_LIST, FIELD(seeds), "NUMBER", "1",
     "What all chance follows from, the hidden constants of the world too."},
    {"noise", OPTION_FLAG, FIELD(noise),
     .help = "Epochs' times differ by 5 %, the losses they end with by 1.5 %."},
    {"typical", OPTION_FLAG, FIELD(typical),
     .help = "The typical constants themselves, none drawn by the seed."},
    {"scheduler", OPTION_LIST, FIELD(schedulers), "NAME", "all",
     "Beside constant and bound: decay, growth, agent, planner, auto; all leaves the agent out of "
     "sgd, where its training takes long."},
    {"episodes", OPTION_U64, FIELD(episodes), "NUMBER", "200",
     "Runs that the agent is trained on, 20 or more; 0: no agent.", .minimum = 0,
     .maximum = SIREN_REHEARSALS_MAX},
    {"rehearsals", OPTION_U64, FIELD(rehearsals), "NUMBER", "40",
     "Runs that auto has seen before; 0: it begins like the planner.", .minimum = 0,
     .maximum = SIREN_REHEARSALS_MAX},
    {"evaluations", OPTION_U64, FIELD(evaluations), "NUMBER", "20",
     "Fresh runs that count, with noise; without, one says all.", .minimum = 1,
     .maximum = SIREN_EPISODES_MAX},
    {"agent", OPTION_PATH, FIELD(agent), "FILE", .help = "This agent in place of a trained one."},
    {"save", OPTION_PATH, FIELD(save), "FILE",
     .help = "Keeps the trained agent; of one seed and one budget."},
    {"inspect", OPTION_PATH, FIELD(inspect), "FILE", .help = "Shows a kept agent, and no more."},
    {"folder", OPTION_PATH, FIELD(folder), "FOLDER",
     .help = "Where Fashion-MNIST lies, for sgd; without, Debian's dataset-fashion-mnist."},
    {"serve", OPTION_FLAG, FIELD(serve),
     .help = "The world epoch by epoch, JSON lines on standard input and output, for "
             "souk.gym of the Python package."},
};

struct siren_world sim_siren_world(const struct sim_siren *plan, uint64_t seed)
{
    const enum siren_mode mode = (enum siren_mode)plan->wanted->mode;
    struct siren_world world =
        plan->wanted->typical ? siren_world_typical(mode) : siren_world_draw(mode, seed);
    world.sgd = plan->sgd;
    return world;
}

static int open_training(struct sim_siren *plan, struct error *error)
{
    const char *folder = plan->wanted->folder;
    const struct dataset_entry *entry;
    if (plan->wanted->mode != SIREN_SGD)
        return 0;
    if (dataset_entry_find(TEXT("fashion-mnist"), &entry, error) < 0 ||
        dataset_entry_open(entry, folder, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS, &plan->train,
                           error) < 0 ||
        dataset_entry_open(entry, folder, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &plan->test,
                           error) < 0)
        return error_wrap(error, "--mode sgd");
    return siren_sgd_open((struct siren_sgd_data){plan->train, plan->test}, &plan->sgd, error);
}

static int read_lists(struct sim_siren *plan, struct error *error)
{
    const struct sim_siren_options *wanted = plan->wanted;
    if (wanted->seeds.count == 0 || wanted->budgets.count == 0 ||
        wanted->seeds.count > SIM_SIREN_CELLS_MAX / wanted->budgets.count)
        return error_set(error, ERROR_INVALID, "seeds times budgets are 1 to %d",
                         SIM_SIREN_CELLS_MAX);
    for (size_t i = 0; i < wanted->seeds.count; i++)
        if (text_parse_u64(text_of(wanted->seeds.items[i]), &plan->seeds[plan->seed_count++],
                           error) < 0)
            return error_wrap(error, "--seed");
    for (size_t i = 0; i < wanted->budgets.count; i++) {
        int64_t *budget_micro = &plan->budgets_micro[plan->budget_count++];
        if (units_parse_credits(text_of(wanted->budgets.items[i]), budget_micro, error) < 0)
            return error_wrap(error, "--budget");
        if (*budget_micro < 1000000 || *budget_micro > INT64_C(1000000000000))
            return error_set(error, ERROR_INVALID, "--budget: from 1 to 1000000 credits");
    }
    return 0;
}

static int read_schedulers(struct sim_siren *plan, struct error *error)
{
    const struct option_list *names = &plan->wanted->schedulers;
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], "all") == 0) {
            const uint32_t left_out = plan->wanted->mode == SIREN_SGD ? 1U << SIREN_AGENT : 0;
            plan->wanted_mask |= ((1U << SIREN_SCHEDULER_COUNT) - 1) & ~left_out;
            continue;
        }
        uint32_t k = 0;
        while (k < SIREN_SCHEDULER_COUNT && strcmp(siren_scheduler_names[k], names->items[i]) != 0)
            k++;
        if (k == SIREN_SCHEDULER_COUNT)
            return error_set(error, ERROR_INVALID,
                             "--scheduler: \"%.40s\" is none of constant, bound, decay, growth, "
                             "agent, planner, auto, all",
                             names->items[i]);
        plan->wanted_mask |= 1U << k;
    }
    return 0;
}

static int check(const struct sim_siren *plan, struct error *error)
{
    const struct sim_siren_options *wanted = plan->wanted;
    if (wanted->episodes > 0 && wanted->episodes < SIREN_AGENT_REHEARSALS_MIN)
        return error_set(error, ERROR_INVALID, "--episodes: 0, or from %d to %d",
                         SIREN_AGENT_REHEARSALS_MIN, SIREN_REHEARSALS_MAX);
    if (wanted->save && (plan->seed_count != 1 || plan->budget_count != 1))
        return error_set(error, ERROR_INVALID, "--save keeps the agent of one seed and budget");
    if (wanted->save &&
        (wanted->agent || wanted->episodes == 0 || !(plan->wanted_mask >> SIREN_AGENT & 1)))
        return error_set(error, ERROR_INVALID, "--save: no agent is trained");
    return 0;
}

static int save_agent(const char *path, const struct agent *agent, struct error *error)
{
    if (!agent)
        return error_set(error, ERROR_NOT_FOUND,
                         "no agent was trained: no constant reaches the target with this budget");
    return agent_store_write(path, agent, error);
}

static void run_cells(struct sim_siren *plan)
{
    const struct sim_siren_options *wanted = plan->wanted;
    for (size_t b = 0; b < plan->budget_count; b++)
        for (size_t s = 0; s < plan->seed_count; s++) {
            struct sim_siren_cell *cell = &plan->cells[plan->cell_count++];
            cell->seed = plan->seeds[s];
            cell->budget_micro = plan->budgets_micro[b];
            const struct siren_world world = sim_siren_world(plan, cell->seed);
            output_note(plan->cli, "seed %" PRIu64 ", budget %g", cell->seed,
                        1e-6 * (double)cell->budget_micro);
            siren_compare(
                &(struct siren_compare_options){
                    .world = &world,
                    .budget_micro = cell->budget_micro,
                    .is_noisy = wanted->noise,
                    .seed = cell->seed,
                    .agent_rehearsals = wanted->agent ? 0 : (uint32_t)wanted->episodes,
                    .auto_rehearsals = (uint32_t)wanted->rehearsals,
                    .evaluation_count = (uint32_t)wanted->evaluations,
                    .wanted_mask = plan->wanted_mask,
                    .agent = plan->agent,
                },
                &cell->result);
        }
}

static void sim_siren_done(struct sim_siren *plan)
{
    agent_free(plan->agent);
    siren_sgd_free(plan->sgd);
    dataset_free(plan->train);
    dataset_free(plan->test);
    for (size_t i = 0; i < plan->cell_count; i++)
        siren_result_done(&plan->cells[i].result);
}

static int run(struct sim_siren *plan, struct error *error)
{
    const struct sim_siren_options *wanted = plan->wanted;
    if (wanted->inspect) {
        if (agent_store_read(wanted->inspect, &plan->agent, error) < 0)
            return -1;
        return sim_siren_inspect(plan->cli, plan->agent, error);
    }
    if (read_lists(plan, error) < 0 || read_schedulers(plan, error) < 0 || check(plan, error) < 0)
        return -1;
    if (open_training(plan, error) < 0)
        return -1;
    if (wanted->serve)
        return sim_siren_serve(plan, error);
    if (wanted->agent && agent_store_read(wanted->agent, &plan->agent, error) < 0)
        return -1;
    plan->cells =
        arena_alloc(plan->cli->arena, plan->seed_count * plan->budget_count * sizeof(*plan->cells));
    run_cells(plan);
    if (wanted->save && save_agent(wanted->save, plan->cells[0].result.agent, error) < 0)
        return error_wrap(error, "--save");
    if (plan->cli->common.json)
        return sim_siren_print_json(plan, error);
    sim_siren_print(plan);
    return 0;
}

static int run_sim_siren(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct sim_siren *plan = arena_alloc(cli->arena, sizeof(*plan));
    plan->cli = cli;
    plan->wanted = options;
    const int result = run(plan, error);
    sim_siren_done(plan);
    return result;
}

const struct command command_sim_siren = {
    .name = "sim siren",
    .summary = "Compares schedulers of elastic training: how many functions in every epoch.",
    .details =
        "Each is given another start, and docs/serverless.md says which. The same seed gives "
        "the same table.",
    .example = "souk sim siren --budget 300,200 --seed 1,2,3 --noise",
    COMMAND_OPTIONS(sim_siren_options, sim_siren_options),
    .run = run_sim_siren,
};
