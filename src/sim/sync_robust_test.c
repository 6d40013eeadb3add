/* Nine unequal machines on skewed data, of which some push noise: what each way to join pushes
 * comes to, in virtual time. */
#include "base/text.h"
#include "sim/sync_run.h"
#include "testing/testing.h"
#include "train/dataset_catalogue.h"

enum { MACHINES = 9, BATCH = 8 };

static const int64_t second = 1000000000;

struct lab {
    struct dataset *train, *test;
    struct sync_machine machines[MACHINES];
    struct sync_profile profile;
    struct sync_data *data;
    struct sync_presence *presence;
    struct sync_engine *engine;
    struct sync_run_options options;
};

static int lab_open(void **state)
{
    struct error error;
    static struct lab lab;
    const struct dataset_entry *entry = NULL;
    ASSERT_OK(dataset_entry_find(TEXT("fashion-mnist"), &entry, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                                 &lab.train, &error));
    ASSERT_OK(dataset_entry_open(entry, NULL, DATASET_TEST_IMAGES, DATASET_TEST_LABELS, &lab.test,
                                 &error));
    /* From one step a second to one in ten. */
    for (int i = 0; i < MACHINES; i++)
        lab.machines[i] = (struct sync_machine){.kind = "machine",
                                                .step_ns = second + 9 * second * i / (MACHINES - 1),
                                                .commit_ns = second};
    lab.profile = (struct sync_profile){.machine_count = MACHINES, .machines = lab.machines};
    const struct sync_data_options data = {
        .train = lab.train, .test = lab.test, .shard_count = MACHINES, .skew = 0.5, .seed = 1};
    ASSERT_OK(sync_data_open(&data, &lab.data, &error));
    const struct sync_presence_options presence = {.machine_count = MACHINES};
    ASSERT_OK(sync_presence_open(&presence, &lab.presence, &error));
    struct sync_engine_options engine = {.batch = BATCH};
    model_spec_default(MODEL_LOGISTIC, &engine.spec);
    ASSERT_OK(sync_engine_open(&engine, &lab.engine, &error));
    lab.options = (struct sync_run_options){
        .profile = &lab.profile,
        .presence = lab.presence,
        .data = lab.data,
        .settings = {.gamma_ms = 60000},
        .sgd = {.lr = 0.05F},
        .batch = BATCH,
        .seed = 1,
        .measure_ns = 400 * second,
    };
    *state = &lab;
    return 0;
}

static int lab_close(void **state)
{
    struct lab *lab = *state;
    sync_engine_free(lab->engine);
    sync_presence_free(lab->presence);
    sync_data_free(lab->data);
    dataset_free(lab->train);
    dataset_free(lab->test);
    return 0;
}

static struct sync_run_result run(const struct lab *lab, const char *policy, enum robust_kind kind,
                                  uint32_t liar_count, int64_t seconds)
{
    struct error error;
    struct sync_run_result result;
    struct sync_run_options options = lab->options;
    options.policy = text_of(policy);
    options.robust.kind = kind;
    options.liar_count = liar_count;
    options.time_max_ns = seconds * second;
    ASSERT_OK(sync_run(lab->engine, &options, &result, &error));
    const struct sync_run_result told = result;
    sync_run_result_done(&result);
    return told; /* but for its curve */
}

/* Machines that differ tenfold, on data that differ by label: the bound of norm is never met, so
 * every policy's model is the same to the last bit. */
static void the_bound_on_lengths_changes_nothing_for_honest_machines(void **state)
{
    const struct lab *lab = *state;
    for (uint32_t i = 0; sync_policy_name_at(i); i++) {
        const char *policy = sync_policy_name_at(i);
        const struct sync_run_result plain = run(lab, policy, ROBUST_NONE, 0, 600);
        const struct sync_run_result bounded = run(lab, policy, ROBUST_NORM, 0, 600);
        if (bounded.clipped > 0 || plain.fingerprint != bounded.fingerprint)
            fail_msg("%s: %lu pushes were shortened", policy, (unsigned long)bounded.clipped);
    }
}

static void expect_loss(const char *policy, enum robust_kind kind,
                        const struct sync_run_result *result, double loss_max)
{
    if (result->honest_clipped > 0)
        fail_msg("%s by %s: honest pushes were shortened", policy, robust_kind_name(kind));
    if (!(result->loss < loss_max))
        fail_msg("%s by %s: a loss of %g, not below %g", policy, robust_kind_name(kind),
                 result->loss, loss_max);
}

/* Untrained, the model's loss is 3.0; with nine honest machines these come to 0.5 to 0.7. */
static void rounds_with_two_liars_of_nine_converge(void **state)
{
    static const char *const policies[] = {"bsp", "fixed-adacomm", "backup", "pace"};
    const struct lab *lab = *state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const struct sync_run_result spoilt = run(lab, policies[i], ROBUST_NONE, 2, 2000);
        assert_true(spoilt.loss > 4);
        const struct sync_run_result median = run(lab, policies[i], ROBUST_MEDIAN, 2, 2000);
        expect_loss(policies[i], ROBUST_MEDIAN, &median, 0.8);
    }
    const struct sync_run_result trimmed = run(lab, "bsp", ROBUST_TRIMMED, 2, 2000);
    expect_loss("bsp", ROBUST_TRIMMED, &trimmed, 0.8);
}

/* What is pushed one by one is only bounded: the model still learns, if less. */
static void one_by_one_two_liars_of_nine_do_not_stop_training(void **state)
{
    static const char *const policies[] = {"tap", "ssp", "adsp"};
    const struct lab *lab = *state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        const struct sync_run_result spoilt = run(lab, policies[i], ROBUST_NONE, 2, 2000);
        assert_true(spoilt.loss > 6);
        const struct sync_run_result bounded = run(lab, policies[i], ROBUST_NORM, 2, 2000);
        expect_loss(policies[i], ROBUST_NORM, &bounded, 2.5);
        assert_true(bounded.clipped > 0 && bounded.accuracy > 0.6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_on_lengths_changes_nothing_for_honest_machines),
        cmocka_unit_test(rounds_with_two_liars_of_nine_converge),
        cmocka_unit_test(one_by_one_two_liars_of_nine_do_not_stop_training),
    };
    return cmocka_run_group_tests(tests, lab_open, lab_close);
}
