/* souk sim sync: synchronisation policies with real gradients in virtual time. */
#include "base/units.h"
#include "cli/sim_sync.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DELAY_MS_MAX = 24 * 3600 * 1000 };

static const char *const search_names[] = {"auto", "paper", "off", NULL};
static const char *const overlap_names[] = {"default", "on", "off", NULL};

#define FIELD(name_) offsetof(struct sim_sync_options, name_)

static const struct option sim_sync_options[] = {
    {"policy", OPTION_LIST, FIELD(policies), "NAME[:STEPS]", "bsp,tap,adsp,auto",
     "Policies to compare; with :STEPS local steps of its own. \"all\": every one there is."},
    {"profile", OPTION_TEXT, FIELD(profile), "NAME|FILE", "testbed-h3.2",
     "The machines: testbed-h1.45, -h2.0, -h2.6, -h3.2, testbed36, delay-0, -2, -5, -10, home, "
     "spot, or a file as docs/simulation.md tells."},
    {"model", OPTION_CHOICE, FIELD(model), "NAME", "mlp", "What is trained.",
     .choices = model_kind_names},
    {"data", OPTION_TEXT, FIELD(data), "NAME", "fashion-mnist", "The data set."},
    {"folder", OPTION_PATH, FIELD(folder), "DIR", .help = "Where the data set lies."},
    {"target_loss", OPTION_TEXT, FIELD(target_loss), "LOSS", "0.45",
     "The held-out loss aimed at, one for all; 0: none."},
    {"seed", OPTION_LIST, FIELD(seeds), "NUMBER", "1",
     "What all chance follows from; several are run one by one."},
    {"rate", OPTION_LIST, FIELD(rates), "RATE", "0.1",
     "Learning rates; of several the best of each policy is shown."},
    {"momentum", OPTION_TEXT, FIELD(momentum), "SHARE", "0", "Of each worker's own steps."},
    {"nesterov", OPTION_FLAG, FIELD(nesterov), .help = "Nesterov's momentum."},
    {"weight_decay", OPTION_TEXT, FIELD(weight_decay), "SHARE", "0", "Of each worker's steps."},
    {"batch", OPTION_U64, FIELD(batch), "NUMBER", "32", "Samples of a step.", .minimum = 1,
     .maximum = 4096},
    {"heterogeneity", OPTION_TEXT, FIELD(heterogeneity), "H",
     .help = "Spreads the profile's speeds so that their mean is H times the least."},
    {"delay", OPTION_TEXT, FIELD(delay), "TIME",
     .help = "A push and its answer take so long, in place of the profile's."},
    {"compression", OPTION_TEXT, FIELD(compression), "SHARE", "1",
     "Bytes on the wire for each byte of the model; only the time changes, not the values."},
    {"push_share", OPTION_TEXT, FIELD(push_share), "SHARE", "1",
     "Bytes of a push for each of an answer, where updates travel shorter than models."},
    {"jitter", OPTION_TEXT, FIELD(jitter), "DEVIATION", "0",
     "Times of steps and ways are log-normal with this deviation."},
    {"stay", OPTION_DURATION, FIELD(stay_ms), "TIME",
     .help = "Machines come and go: mean of a stay.", .minimum = 1,
     .maximum = INT64_C(365) * 86400 * 1000},
    {"absence", OPTION_DURATION, FIELD(absence_ms), "TIME", .help = "Mean of an absence.",
     .minimum = 1, .maximum = INT64_C(365) * 86400 * 1000},
    {"skew", OPTION_TEXT, FIELD(skew), "SHARE", "0",
     "The share of each machine's records that are of its own labels only."},
    {"gamma", OPTION_DURATION, FIELD(gamma_ms), "TIME", "60s", "The check period of policies.",
     .minimum = 1, .maximum = INT64_C(24) * 3600 * 1000},
    {"local_steps", OPTION_U64, FIELD(local_steps), "NUMBER",
     .help = "Steps between pushes; without it, each policy's own.", .minimum = 1,
     .maximum = 1000000},
    {"slack", OPTION_U64, FIELD(slack), "NUMBER",
     .help = "How many steps the fastest may be ahead, of ssp.", .minimum = 1, .maximum = 1000000},
    {"staleness", OPTION_U64, FIELD(staleness), "PUSHES",
     .help = "How late a push may be, of hsp; without it, twice the workers.", .minimum = 1,
     .maximum = 1000000},
    {"epoch_steps", OPTION_U64, FIELD(epoch_steps), "NUMBER",
     .help = "Steps of all workers in an epoch, of hsp; without it, a pass over the data.",
     .minimum = 1, .maximum = INT64_C(1000000000)},
    {"search", OPTION_CHOICE, FIELD(search), "HOW", "auto", "How adsp looks for its rate.",
     .choices = search_names},
    {"overlap", OPTION_CHOICE, FIELD(overlap), "HOW", "default",
     "Whether workers compute on while a push is under way.", .choices = overlap_names},
    {"outer_rate", OPTION_TEXT, FIELD(outer_rate), "RATE", "0",
     "Of what rounds bring, of policies with an outer step; 0: each policy's own."},
    {"outer_momentum", OPTION_TEXT, FIELD(outer_momentum), "SHARE", "0",
     "Of the outer step; 0: each policy's own."},
    {"measure", OPTION_DURATION, FIELD(measure_ms), "TIME",
     .help = "Virtual time between first measurements; without it, two mean steps.", .minimum = 1,
     .maximum = INT64_C(24) * 3600 * 1000},
    {"max_time", OPTION_DURATION, FIELD(max_time_ms), "TIME", "2h",
     "Virtual time after which a run is given up.", .minimum = 1,
     .maximum = INT64_C(365) * 86400 * 1000},
    {"samples", OPTION_U64, FIELD(samples), "NUMBER",
     .help = "A run ends once all workers together have learned from so many.", .minimum = 1,
     .maximum = INT64_C(1000000000000)},
    {"server_rate", OPTION_TEXT, FIELD(server_rate), "RATE",
     .help = "Of the parameter server's link, each way, which all workers share: 450Mbit; without "
             "it, no limit."},
    {"threads", OPTION_U64, FIELD(threads), "NUMBER", "1", "Runs at a time.", .minimum = 1,
     .maximum = 256},
    {"traces", OPTION_PATH, FIELD(traces), "DIR", NULL,
     "The folder with spot-traces, for profiles that follow them.", .environment = "SOUK_DATA"},
    {"svg", OPTION_PATH, FIELD(svg), "FILE", .help = "Draws the curves."},
    {"curve", OPTION_FLAG, FIELD(curve), .help = "The points of the curves too, in JSON."},
};

static void plan_done(struct sim_sync *plan)
{
    for (size_t i = 0; i < plan->run_count; i++)
        sync_run_result_done(&plan->results[i]);
    for (size_t i = 0; i < plan->seed_count; i++) {
        sync_data_free(plan->data[i]);
        sync_presence_free(plan->presence[i]);
    }
    sim_sync_close_data(plan);
}

static int read_number(const char *flag, const char *words, double most, double *out_value,
                       struct error *error)
{
    if (text_parse_double(text_of(words), out_value, error) < 0 ||
        !(*out_value >= 0 && *out_value <= most))
        return error_set(error, ERROR_INVALID, "--%s: \"%.40s\" is not a number from 0 to %g", flag,
                         words, most);
    return 0;
}

static int plan_profile(struct sim_sync *plan, struct error *error)
{
    const struct sim_sync_options *wanted = plan->wanted;
    double heterogeneity;
    if (sync_profile_find(plan->cli->arena, wanted->profile, &plan->profile, error) < 0)
        return error_wrap(error, "--profile");
    if (wanted->heterogeneity &&
        (read_number("heterogeneity", wanted->heterogeneity, 1000, &heterogeneity, error) < 0 ||
         sync_profile_spread(&plan->profile, heterogeneity, error) < 0))
        return -1;
    int64_t delay_ms = 0;
    if (wanted->delay && units_parse_duration(text_of(wanted->delay), &delay_ms, error) < 0)
        return error_wrap(error, "--delay");
    if (delay_ms < 0 || delay_ms > DELAY_MS_MAX)
        return error_set(error, ERROR_INVALID, "--delay: from 0 to 24h");
    for (uint32_t i = 0; wanted->delay && i < plan->profile.machine_count; i++)
        plan->profile.machines[i].commit_ns = delay_ms * 1000000;
    return 0;
}

static int plan_seed(struct sim_sync *plan, uint64_t seed, struct error *error)
{
    const struct sim_sync_options *wanted = plan->wanted;
    struct sync_data_options data = {.train = plan->train,
                                     .test = plan->test,
                                     .shard_count = plan->profile.machine_count,
                                     .seed = seed};
    struct sync_presence_options presence = {
        .machine_count = plan->profile.machine_count,
        .seed = seed,
        .end_ns = wanted->max_time_ms * 1000000,
        .stay_ms = wanted->stay_ms,
        .absence_ms = wanted->absence_ms,
        .trace_speed = plan->profile.trace_speed,
    };
    if (plan->profile.trace[0]) {
        if (!wanted->traces)
            return error_set(error, ERROR_INVALID,
                             "profile %.40s follows traces: name their folder with --traces or "
                             "SOUK_DATA",
                             wanted->profile);
        presence.folder = arena_format(plan->cli->arena, "%s/spot-traces/availability/%s",
                                       wanted->traces, plan->profile.trace);
    }
    const size_t index = plan->seed_count++;
    if (read_number("skew", wanted->skew, 1, &data.skew, error) < 0 ||
        sync_data_open(&data, &plan->data[index], error) < 0 ||
        sync_presence_open(&presence, &plan->presence[index], error) < 0)
        return -1;
    return 0;
}

static int add_run(struct sim_sync *plan, const char *policy, const struct sync_run_options *common,
                   struct error *error)
{
    if (plan->run_count == SIM_SYNC_RUNS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d runs", SIM_SYNC_RUNS_MAX);
    struct sync_run_options run = *common;
    struct text steps = {0};
    if (!text_cut(text_of(policy), ':', &run.policy, &steps))
        run.policy = text_of(policy);
    uint64_t local_steps = plan->wanted->local_steps;
    if (steps.size > 0 && (text_parse_u64(steps, &local_steps, error) < 0 || local_steps < 1 ||
                           local_steps > 1000000))
        return error_set(error, ERROR_INVALID, "--policy: \"%.40s\" has no number of steps",
                         policy);
    run.settings.local_steps = (uint32_t)local_steps;
    /* Names and settings are refused before anything is computed. */
    AUTO(sync_policy) struct sync_policy *tried = NULL;
    if (sync_policy_new(run.policy, &run.settings, &tried, error) < 0)
        return -1;
    plan->names[plan->run_count] = (struct sim_sync_run){policy, (double)run.sgd.lr, run.seed};
    plan->runs[plan->run_count++] = run;
    return 0;
}

static int add_policies(struct sim_sync *plan, const struct sync_run_options *common,
                        struct error *error)
{
    const struct option_list *policies = &plan->wanted->policies;
    for (size_t i = 0; i < policies->count; i++) {
        if (strcmp(policies->items[i], "all") != 0) {
            if (add_run(plan, policies->items[i], common, error) < 0)
                return -1;
            continue;
        }
        const char *name;
        for (uint32_t n = 0; (name = sync_policy_name_at(n)); n++)
            if (add_run(plan, name, common, error) < 0)
                return -1;
    }
    return 0;
}

static int common_options(struct sim_sync *plan, struct sync_run_options *out, struct error *error)
{
    const struct sim_sync_options *wanted = plan->wanted;
    double momentum, weight_decay;
    int64_t server_kbit = 0;
    const int64_t mean_step_ns = sync_profile_mean_step_ns(&plan->profile);
    *out = (struct sync_run_options){
        .profile = &plan->profile,
        .batch = (uint32_t)wanted->batch,
        .measure_ns = wanted->measure_ms > 0 ? wanted->measure_ms * 1000000 : 2 * mean_step_ns,
        .time_max_ns = wanted->max_time_ms * 1000000,
        .sample_max = wanted->samples,
        .settings = {.gamma_ms = wanted->gamma_ms,
                     .slack = (uint32_t)wanted->slack,
                     .staleness = (uint32_t)wanted->staleness,
                     .epoch_steps = wanted->epoch_steps,
                     .search = (enum sync_search)wanted->search,
                     .overlap = (enum sync_overlap)wanted->overlap,
                     .batch = (uint32_t)wanted->batch},
    };
    if (read_number("target-loss", wanted->target_loss, 1e9, &out->target_loss, error) < 0 ||
        read_number("momentum", wanted->momentum, 0.9999, &momentum, error) < 0 ||
        read_number("weight-decay", wanted->weight_decay, 1, &weight_decay, error) < 0 ||
        read_number("jitter", wanted->jitter, 3, &out->jitter, error) < 0 ||
        read_number("compression", wanted->compression, 1, &out->compression, error) < 0 ||
        read_number("push-share", wanted->push_share, 10, &out->push_share, error) < 0 ||
        read_number("outer-rate", wanted->outer_rate, 100, &out->settings.outer_rate, error) < 0 ||
        read_number("outer-momentum", wanted->outer_momentum, 0.9999, &out->settings.outer_momentum,
                    error) < 0)
        return -1;
    if (wanted->server_rate &&
        units_parse_bandwidth(text_of(wanted->server_rate), &server_kbit, error) < 0)
        return error_wrap(error, "--server-rate");
    out->server_bytes_per_s = server_kbit * 125;
    if (wanted->nesterov && momentum <= 0)
        return error_set(error, ERROR_INVALID, "--nesterov needs a --momentum");
    out->settings.momentum = momentum;
    out->settings.target_loss = plan->target_loss = out->target_loss;
    out->sgd = (struct sgd_rule){.momentum = (float)momentum,
                                 .weight_decay = (float)weight_decay,
                                 .is_nesterov = wanted->nesterov};
    return 0;
}

static int plan_runs(struct sim_sync *plan, struct error *error)
{
    const struct sim_sync_options *wanted = plan->wanted;
    struct sync_run_options run;
    if (wanted->seeds.count > SIM_SYNC_RUNS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d seeds", SIM_SYNC_RUNS_MAX);
    if (common_options(plan, &run, error) < 0)
        return -1;
    for (size_t s = 0; s < wanted->seeds.count; s++) {
        if (text_parse_u64(text_of(wanted->seeds.items[s]), &run.seed, error) < 0 ||
            plan_seed(plan, run.seed, error) < 0)
            return error_wrap(error, "--seed");
        run.data = plan->data[s];
        run.presence = plan->presence[s];
        for (size_t r = 0; r < wanted->rates.count; r++) {
            double rate;
            if (read_number("rate", wanted->rates.items[r], 100, &rate, error) < 0)
                return -1;
            run.sgd.lr = (float)rate;
            if (add_policies(plan, &run, error) < 0)
                return -1;
        }
    }
    if (plan->run_count == 0)
        return error_set(error, ERROR_INVALID, "name a policy, a rate and a seed");
    return 0;
}

static void say(void *context, size_t index, const struct sync_run_result *result)
{
    struct sim_sync *plan = context;
    const struct sim_sync_run *name = &plan->names[index];
    plan->done_count++;
    if (plan->cli->common.quiet)
        return;
    const bool is_reached = isfinite(result->target_s);
    fprintf(stderr,
            "%zu/%zu %s rate %g seed %" PRIu64 ": %s %.1f s, loss %.4f, %" PRIu64 " steps\n",
            plan->done_count, plan->run_count, name->policy, name->rate, name->seed,
            sync_run_end_name(result->end), is_reached ? result->target_s : result->elapsed_s,
            result->loss, result->steps);
}

static int run_sim_sync(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct sim_sync *plan = arena_alloc(cli->arena, sizeof(*plan));
    plan->cli = cli;
    plan->wanted = options;
    int result = -1;
    if (plan_profile(plan, error) == 0 && sim_sync_open_data(plan, error) == 0 &&
        plan_runs(plan, error) == 0) {
        plan->compare.runs = plan->runs;
        plan->compare.run_count = plan->run_count;
        plan->compare.thread_count = (uint32_t)plan->wanted->threads;
        plan->compare.on_run = say;
        plan->compare.context = plan;
        result = sync_compare(&plan->compare, plan->results, error);
    }
    if (result == 0 && plan->wanted->svg)
        result = sim_sync_draw(plan, error);
    if (result == 0 && cli->common.json)
        result = sim_sync_print_json(plan, error);
    else if (result == 0)
        sim_sync_print(plan);
    plan_done(plan);
    return result;
}

const struct command command_sim_sync = {
    .name = "sim sync",
    .summary = "Compares synchronisation policies: real gradients in virtual time.",
    .details = "The policies are those of real jobs. Steps and pushes take the time the profile "
               "gives them; the same seed gives the same curve to the last bit. Times are virtual "
               "seconds until the loss on held-out records, a mean of five measurements, has "
               "reached the target. docs/simulation.md says what is measured and what is assumed.",
    .example = "souk sim sync --policy bsp,adsp --profile testbed-h3.2 --delay 5s --rate 0.1,0.2 "
               "--svg curves.svg",
    COMMAND_OPTIONS(sim_sync_options, sim_sync_options),
    .run = run_sim_sync,
};
