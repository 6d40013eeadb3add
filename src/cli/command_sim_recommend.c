/* souk sim recommend: how well clusters are recommended, in virtual time. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"
#include "sim/recommend_paper.h"
#include "sim/recommend_sim.h"

#include <math.h>
#include <string.h>

enum { CASES_MAX = 2000, JSON_BYTES_MAX = 16 << 20 };

struct sim_recommend_options {
    uint64_t cases, seed, threads;
    bool no_trial, paper, best, all;
};

#define FIELD(name) offsetof(struct sim_recommend_options, name)
static const struct option sim_recommend_options[] = {
    {"cases", OPTION_U64, FIELD(cases), "COUNT", "200",
     "Jobs, each tried on all of its clusters; eight of a family. Of the paper at most 11.",
     .minimum = 1, .maximum = CASES_MAX},
    {"seed", OPTION_U64, FIELD(seed), "NUMBER", "1", "What all chance follows from."},
    {"threads", OPTION_U64, FIELD(threads), "COUNT", "2", "Runs at a time.", .minimum = 1,
     .maximum = 64},
    {"no_trial", OPTION_FLAG, FIELD(no_trial), .help = "From earlier runs alone."},
    {"paper", OPTION_FLAG, FIELD(paper),
     .help = "The experiment of FC2's paper instead: its rules beside auto."},
    {"best", OPTION_FLAG, FIELD(best),
     .help = "With --paper: the best of all clusters too, by training each; takes minutes."},
    {"all", OPTION_FLAG, FIELD(all), .help = "Every cluster of every case too, in JSON."},
};

static void say(void *context, const char *words)
{
    const struct cli *cli = context;
    if (!cli->common.quiet)
        fprintf(stderr, "%s\n", words);
}

/* ---- The cases ------------------------------------------------------------------------------- */

struct group {
    const char *name;
    bool has_target;
};

static bool is_of_group(const struct recommend_case *about, const void *context)
{
    const struct group *group = context;
    return strcmp(about->job.policy, group->name) == 0 &&
           (about->job.target_loss > 0) == group->has_target;
}

static bool is_first_of_policy(const struct recommend_sim_result *result, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(result->cases[i].job.policy, result->cases[index].job.policy) == 0)
            return false;
    return true;
}

static const char *percent(struct cli *cli, double value)
{
    return isnan(value) ? "-" : arena_format(cli->arena, "%.1f %%", 100 * value);
}

static void print_groups(struct cli *cli, const struct recommend_sim_result *result)
{
    struct table shown;
    table_init(&shown, cli->arena,
               (const char *const[]){"policy", ">epochs: median", ">90th", ">target: median",
                                     ">90th", NULL});
    for (uint32_t i = 0; i < result->case_count; i++) {
        if (!is_first_of_policy(result, i))
            continue;
        const struct group epochs = {result->cases[i].job.policy, false};
        const struct group target = {result->cases[i].job.policy, true};
        TABLE_ROW(&shown, epochs.name,
                  percent(cli, recommend_sim_error(result, 0.5, is_of_group, &epochs)),
                  percent(cli, recommend_sim_error(result, 0.9, is_of_group, &epochs)),
                  percent(cli, recommend_sim_error(result, 0.5, is_of_group, &target)),
                  percent(cli, recommend_sim_error(result, 0.9, is_of_group, &target)));
    }
    printf("Error of the predicted time, by policy and by how a job ends\n");
    table_show(&shown, cli);
}

static void print_figure(struct cli *cli, struct table *table, const char *name, double value,
                         const char *goal, bool is_met)
{
    TABLE_ROW(table, name, arena_format(cli->arena, "%.4f", value), goal,
              goal[0] == '\0' ? ""
              : is_met        ? "met"
                              : "missed");
}

static void print_result(struct cli *cli, const struct recommend_sim_result *result)
{
    struct table shown;
    print_groups(cli, result);
    table_init(&shown, cli->arena, (const char *const[]){"figure", ">seen", ">goal", "", NULL});
    print_figure(cli, &shown, "median_error", result->median_error, "at most 0.15",
                 result->median_error <= 0.15);
    print_figure(cli, &shown, "p90_error", result->p90_error, "at most 0.35",
                 result->p90_error <= 0.35);
    print_figure(cli, &shown, "within_1_1", result->within_1_1, "at least 0.90",
                 result->within_1_1 >= 0.9);
    print_figure(cli, &shown, "trial_share", result->trial_share, "at most 0.05",
                 result->trial_share <= 0.05);
    print_figure(cli, &shown, "trial_share_most", result->trial_share_most, "", false);
    print_figure(cli, &shown, "covered", result->covered, "", false);
    printf("\n%u cases, %u outcomes, %u runs that never reached their target\n", result->case_count,
           result->outcomes, result->undone);
    table_show(&shown, cli);
}

static void write_cluster(struct json_writer *writer, const struct recommend_cluster_result *one)
{
    uint32_t workers = 0, kinds = 0;
    for (uint32_t i = 0; i < WORLD_KINDS; i++) {
        workers += one->run.counts[i];
        kinds += one->run.counts[i] > 0;
    }
    json_object_begin(writer);
    json_field_u64(writer, "workers", workers);
    json_field_u64(writer, "kinds", kinds);
    json_field_bool(writer, "is_done", one->outcome.is_done);
    json_field_double(writer, "time_s", one->outcome.seconds);
    json_field_double(writer, "cost_micro", one->outcome.cost_micro);
    json_field_double(writer, "low_s", one->prediction.seconds.low);
    json_field_double(writer, "expected_s", one->prediction.seconds.expected);
    json_field_double(writer, "high_s", one->prediction.seconds.high);
    json_field_double(writer, "link_share", one->prediction.link_share);
    json_object_end(writer);
}

static void write_case(struct json_writer *writer, const struct recommend_case *about)
{
    json_object_begin(writer);
    json_field_string(writer, "policy", about->job.policy);
    json_field_u64(writer, "batch", about->job.batch);
    json_field_string(writer, "end", about->job.target_loss > 0 ? "target" : "epochs");
    json_field_string(writer, "wish", wish_kind_name(about->wish.kind));
    json_field_double(writer, "deadline_s", about->wish.deadline_s);
    json_field_u64(writer, "chosen", about->chosen);
    json_field_double(writer, "over_best", about->over_best);
    json_field_double(writer, "trial_share", about->trial_share);
    json_key(writer, "clusters");
    json_array_begin(writer);
    for (uint32_t i = 0; i < about->cluster_count; i++)
        write_cluster(writer, &about->clusters[i]);
    json_array_end(writer);
    json_object_end(writer);
}

static int print_json(const struct sim_recommend_options *wanted,
                      const struct recommend_sim_result *result, struct error *error)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JSON_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_u64(&writer, "cases", result->case_count);
    json_field_u64(&writer, "seed", wanted->seed);
    json_field_double(&writer, "median_error", result->median_error);
    json_field_double(&writer, "p90_error", result->p90_error);
    json_field_double(&writer, "within_1_1", result->within_1_1);
    json_field_double(&writer, "trial_share", result->trial_share);
    json_field_double(&writer, "trial_share_most", result->trial_share_most);
    json_field_double(&writer, "covered", result->covered);
    json_field_u64(&writer, "outcomes", result->outcomes);
    json_field_u64(&writer, "undone", result->undone);
    if (wanted->all) {
        json_key(&writer, "results");
        json_array_begin(&writer);
        for (uint32_t i = 0; i < result->case_count; i++)
            write_case(&writer, &result->cases[i]);
        json_array_end(&writer);
    }
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}

static int run_cases(struct cli *cli, const struct sim_recommend_options *wanted,
                     struct error *error)
{
    const struct recommend_sim_options options = {.case_count = (uint32_t)wanted->cases,
                                                  .seed = wanted->seed,
                                                  .thread_count = (uint32_t)wanted->threads,
                                                  .has_trial = !wanted->no_trial,
                                                  .on_progress = say,
                                                  .context = cli};
    struct recommend_sim_result result;
    if (recommend_sim(&options, &result, error) < 0)
        return -1;
    int outcome = 0;
    if (cli->common.json)
        outcome = print_json(wanted, &result, error);
    else
        print_result(cli, &result);
    recommend_sim_result_done(&result);
    return outcome;
}

/* ---- The paper ------------------------------------------------------------------------------- */

static void print_paper(struct cli *cli, const struct paper_result *result)
{
    struct table shown;
    table_init(&shown, cli->arena,
               (const char *const[]){"types", "server", ">batch", "rule", "cluster", ">seconds",
                                     ">cost", NULL});
    for (uint32_t i = 0; i < result->case_count; i++)
        for (int rule = 0; rule < PAPER_RULE_COUNT; rule++) {
            const struct paper_case *about = &result->cases[i];
            const struct paper_choice *choice = &about->choices[rule];
            if (choice->cluster[0] == '\0')
                continue;
            TABLE_ROW(&shown, rule == 0 ? about->set : "", rule == 0 ? about->server : "",
                      rule == 0 ? arena_format(cli->arena, "%u", about->batch) : "",
                      paper_rule_name((enum paper_rule)rule), choice->cluster,
                      arena_format(cli->arena, "%.1f", choice->seconds),
                      arena_format(cli->arena, "%.4f", 1e-6 * choice->cost_micro));
        }
    table_show(&shown, cli);
    printf("\nScala-Opt saves up to %.1f %% against Time-Opt at most a tenth later, without GPUs.\n"
           "Auto costs less than Scala-Opt in %.0f %% of cases and no more in %.0f %%; %.2f times "
           "it in the mean.\nWith a policy of its choice: less in %.0f %%, %.2f times it.\n",
           100 * result->saved_most, 100 * result->auto_cheaper, 100 * result->auto_no_dearer,
           result->auto_cost, 100 * result->policy_cheaper, result->policy_cost);
    if (!isnan(result->best_cost))
        printf("The best of all clusters costs less than Scala-Opt in %.0f %%, %.2f times it; auto "
               "costs at most %.2f times the best.\n",
               100 * result->best_cheaper, result->best_cost, result->auto_over_best);
}

static int print_paper_json(const struct paper_result *result, struct error *error)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JSON_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_double(&writer, "scala_saved_most", result->saved_most);
    json_field_double(&writer, "auto_cheaper", result->auto_cheaper);
    json_field_double(&writer, "auto_no_dearer", result->auto_no_dearer);
    json_field_double(&writer, "auto_cost", result->auto_cost);
    json_field_double(&writer, "auto_policy_cheaper", result->policy_cheaper);
    json_field_double(&writer, "auto_policy_cost", result->policy_cost);
    if (!isnan(result->best_cost)) {
        json_field_double(&writer, "best_cheaper", result->best_cheaper);
        json_field_double(&writer, "best_cost", result->best_cost);
        json_field_double(&writer, "auto_over_best", result->auto_over_best);
    }
    json_key(&writer, "results");
    json_array_begin(&writer);
    for (uint32_t i = 0; i < result->case_count; i++) {
        json_object_begin(&writer);
        json_field_string(&writer, "types", result->cases[i].set);
        json_field_string(&writer, "server", result->cases[i].server);
        json_field_u64(&writer, "batch", result->cases[i].batch);
        for (int rule = 0; rule < PAPER_RULE_COUNT; rule++) {
            const struct paper_choice *choice = &result->cases[i].choices[rule];
            if (choice->cluster[0] == '\0')
                continue;
            json_key(&writer, paper_rule_name((enum paper_rule)rule));
            json_object_begin(&writer);
            json_field_string(&writer, "cluster", choice->cluster);
            json_field_double(&writer, "time_s", choice->seconds);
            json_field_double(&writer, "cost_micro", choice->cost_micro);
            json_object_end(&writer);
        }
        json_object_end(&writer);
    }
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}

static int run_paper(struct cli *cli, const struct sim_recommend_options *wanted,
                     struct error *error)
{
    struct paper_result *result = arena_alloc(cli->arena, sizeof(*result));
    const uint32_t cases = wanted->cases < PAPER_CASES ? (uint32_t)wanted->cases : PAPER_CASES;
    const struct paper_options options = {
        .seed = wanted->seed, .case_count = cases, .has_best = wanted->best};
    if (recommend_paper(&options, result, error) < 0)
        return -1;
    if (cli->common.json)
        return print_paper_json(result, error);
    print_paper(cli, result);
    return 0;
}

static int run_sim_recommend(void *context, const void *options, struct error *error)
{
    const struct sim_recommend_options *wanted = options;
    return wanted->paper ? run_paper(context, wanted, error) : run_cases(context, wanted, error);
}

const struct command command_sim_recommend = {
    .name = "sim recommend",
    .summary = "Measures how well clusters are recommended: real gradients in virtual time.",
    .details = "Each case is a job with two kinds of machines, a parameter server and a wish. It "
               "is trained on all of its clusters; the recommender sees earlier runs of like jobs "
               "and a short trial. The same seed gives the same figures on any number of threads. "
               "docs/simulation.md says what is assumed.",
    .example = "souk sim recommend --cases 200 --seed 1",
    COMMAND_OPTIONS(sim_recommend_options, sim_recommend_options),
    .run = run_sim_recommend,
};
