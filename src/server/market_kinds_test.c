/* Lenders that are alike, and runs as the recommender sees them. covers profile_observe.c */
#include "server/market_kinds.h"
#include "server/profile_observe.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

static struct machine machine_of(uint64_t id, int64_t speed_milli)
{
    return (struct machine){.id = id,
                            .probe = {.speed_weight_milli = speed_milli,
                                      .rtt_us = 2000,
                                      .resources = {.bandwidth_kbit = 8000}}};
}

static void add(struct market_kinds *kinds, const struct machine *machine, enum lease_role role,
                int64_t cores_milli, int64_t hourly_micro)
{
    market_kinds_add(kinds, &(struct core_offered){.machine = machine,
                                                   .role = role,
                                                   .resources = {.cores_milli = cores_milli},
                                                   .hourly_micro = hourly_micro});
}

TEST(a_kind_is_named_by_what_a_worker_gets_there)
{
    char name[OBSERVATION_NAME_SIZE];
    kind_name(&(struct kind_figures){.cores_milli = 2000, .speed_weight_milli = 1090}, name);
    assert_string_equal(name, "2c@1.1");
    kind_name(&(struct kind_figures){.cores_milli = 500, .speed_weight_milli = 930}, name);
    assert_string_equal(name, "0.5c@0.9");
    kind_name(&(struct kind_figures){4000, 1000, 1000, TEXT("T4")}, name);
    assert_string_equal(name, "4c@1.0+1xT4");
    kind_name(&(struct kind_figures){.cores_milli = 4000, .gpus_milli = 1500}, name);
    assert_string_equal(name, "4c@0.0+2xGPU");
}

TEST(machines_that_are_alike_are_one_kind_with_their_means)
{
    static struct market_kinds kinds;
    const struct machine one = machine_of(1, 1010), two = machine_of(2, 990),
                         fast = machine_of(3, 2000);
    kinds = (struct market_kinds){0};
    add(&kinds, &one, LEASE_ROLE_WORKER, 1000, 100);
    add(&kinds, &one, LEASE_ROLE_WORKER, 1000, 100); /* another offer of the same machine */
    add(&kinds, &one, LEASE_ROLE_SERVER, 500, 60);
    add(&kinds, &two, LEASE_ROLE_WORKER, 1000, 200);
    add(&kinds, &fast, LEASE_ROLE_WORKER, 1000, 300);
    assert_int_equal(kinds.worker_count, 2);
    assert_int_equal(kinds.server_count, 1);
    const struct candidate candidate = market_kind_candidate(&kinds.workers[0]);
    assert_string_equal(candidate.name, "1c@1.0");
    assert_int_equal(candidate.count_max, 2);
    assert_int_equal(candidate.speed_weight, 1000);
    assert_int_equal(candidate.price_micro_per_hour, 150);
    assert_true(candidate.bytes_per_s == 1e6);
    assert_true(candidate.rtt_s > 0.0019 && candidate.rtt_s < 0.0021);
    assert_true(candidate.losses_per_hour > 0);
    assert_int_equal(market_kind_price_micro(&kinds.servers[0]), 60);
}

TEST(machines_that_others_have_are_kinds_of_their_own)
{
    static struct market_kinds kinds;
    const struct machine machines[] = {machine_of(1, 1000), machine_of(2, 1000),
                                       machine_of(3, 1000)};
    struct core_offered offered = {.role = LEASE_ROLE_WORKER, .resources = {.cores_milli = 1000}};
    kinds = (struct market_kinds){0};
    for (int i = 0; i < 3; i++) {
        offered.machine = &machines[i];
        offered.busy_since_ms = i > 0 ? 500 - 100 * i : 0;
        offered.busy_until_ms = i > 0 ? 1000 * i : 0;
        market_kinds_add(&kinds, &offered);
    }
    assert_int_equal(kinds.workers[0].count, 1);
    assert_int_equal(kinds.busy_count, 1);
    assert_int_equal(kinds.busy[0].count, 2);
    assert_int_equal(kinds.busy[0].busy_since_ms, 300);
    assert_int_equal(kinds.busy[0].busy_until_ms, 2000);
    assert_int_equal(kinds.worker_free_ms, 1000);
    assert_int_equal(kinds.server_free_ms, 0);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static struct profile_worker workers[] = {
    {.lease = 1, .role = LEASE_ROLE_SERVER, .bandwidth_kbit = 80000, .started_ms = 1000},
    {.lease = 2,
     .role = LEASE_ROLE_WORKER,
     .cores_milli = 1000,
     .speed_weight_milli = 1000,
     .started_ms = 1000,
     .ended_ms = 9000,
     .outcome = LEASE_OUTCOME_LOST,
     .steps = 100,
     .commits = 50,
     .compute_ms = 1000,
     .transfer_ms = 500,
     .wait_ms = 500,
     .sent_bytes = 5000,
     .received_bytes = 10000},
    {.lease = 3,
     .role = LEASE_ROLE_WORKER,
     .cores_milli = 1000,
     .speed_weight_milli = 1000,
     .started_ms = 9500,
     .steps = 100,
     .commits = 50,
     .compute_ms = 3000,
     .transfer_ms = 500,
     .wait_ms = 500,
     .sent_bytes = 5000,
     .received_bytes = 10000},
};
static struct profile_point points[] = {{1000, 3200, 2.0}, {20000, 6400, 0.5}};

static struct profile run_of(void)
{
    struct profile run = {.model = "mlp",
                          .data = "mnist",
                          .policy = "auto",
                          .policy_in_force = "pace",
                          .parameter_count = 1000,
                          .batch = 32,
                          .epochs = 1,
                          .records = 6400,
                          .samples = 6400,
                          .state = JOB_STATE_SUCCEEDED,
                          .started_ms = 1000,
                          .elapsed_ms = 20000,
                          .ended_ms = 23000,
                          .has_loss = true,
                          .loss = 0.5,
                          .has_accuracy = true,
                          .test_accuracy = 0.9,
                          .workers = {workers, 3},
                          .points = {points, 2}};
    memcpy(run.signature.task, "task", sizeof("task"));
    return run;
}

TEST(how_long_a_start_takes_is_learnt_from_runs)
{
    static struct observation seen[2];
    const struct profile run = run_of();
    profile_observe(&run, &seen[0]);
    const double untold_s = market_kinds_start_s(seen, 0, &seen[0].signature);
    seen[0].start_s = untold_s / 6;
    const double own_s = market_kinds_start_s(seen, 1, &seen[0].signature);
    assert_true(own_s > untold_s / 6 && own_s < untold_s / 2);
    seen[1] = seen[0];
    snprintf(seen[1].signature.model, sizeof(seen[1].signature.model), "another");
    const double other_s = market_kinds_start_s(seen, 1, &seen[1].signature);
    assert_true(other_s > own_s && other_s < untold_s);
    seen[0].start_s = 0; /* it told nothing */
    assert_true(market_kinds_start_s(seen, 1, &seen[0].signature) == untold_s);
    seen[0].start_s = 1e12;
    assert_true(market_kinds_start_s(seen, 1, &seen[0].signature) <= 60);
}

TEST(a_run_tells_of_its_kinds_its_pushes_and_its_curve)
{
    static struct observation seen;
    const struct profile run = run_of();
    profile_observe(&run, &seen);
    assert_string_equal(seen.signature.policy, "pace");
    assert_int_equal(seen.end, OBSERVATION_EPOCHS);
    assert_int_equal(seen.kind_count, 1);
    assert_string_equal(seen.kinds[0].name, "1c@1.0");
    assert_int_equal(seen.kinds[0].worker_count, 2);
    assert_int_equal(seen.worker_count, 1); /* the second took the first one's place */
    assert_int_equal(seen.losses, 1);
    assert_true(seen.kinds[0].step_s == 0.02);
    assert_true(seen.kinds[0].commit_s == 0.01);
    assert_true(seen.bytes_up == 100 && seen.bytes_down == 200);
    assert_true(seen.server_bytes_per_s == 1e7);
    assert_true(seen.start_s == 2 && seen.seconds == 20);
    assert_int_equal(seen.point_count, 2);
}

TEST(a_target_of_accuracy_is_the_loss_of_a_run_that_reached_it)
{
    const struct profile run = run_of();
    const struct profile *const runs[] = {&run};
    struct profile asked = run_of();
    struct recommend_job job;
    bool is_known;
    profile_asks(&asked, runs, 1, &job, &is_known);
    assert_true(is_known && job.samples == 6400 && job.target_loss == 0);
    asked.target_accuracy = 0.85;
    profile_asks(&asked, runs, 1, &job, &is_known);
    assert_true(is_known && job.samples == 0 && job.target_loss == 0.5);
    asked.target_accuracy = 0.95;
    profile_asks(&asked, runs, 1, &job, &is_known);
    assert_true(!is_known && job.samples == 6400 && job.target_loss == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kind_is_named_by_what_a_worker_gets_there),
        cmocka_unit_test(machines_that_others_have_are_kinds_of_their_own),
        cmocka_unit_test(machines_that_are_alike_are_one_kind_with_their_means),
        cmocka_unit_test(how_long_a_start_takes_is_learnt_from_runs),
        cmocka_unit_test(a_run_tells_of_its_kinds_its_pushes_and_its_curve),
        cmocka_unit_test(a_target_of_accuracy_is_the_loss_of_a_run_that_reached_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
