/* Jobs and the leases they are judged by; covers job.c, lease.c. */
#include "market/job.h"
#include "testing/testing.h"

static struct job_request sound_request(void)
{
    return (struct job_request){.name = "fashion-mnist",
                                .spec = TEXT("{}"),
                                .num_nodes = 3,
                                .num_nodes_max = 3,
                                .worker = {.cores_milli = 250},
                                .server = {.cores_milli = 250},
                                .max_run_ms = 180000,
                                .tick_ms = 3000};
}

TEST(a_request_out_of_range_is_refused)
{
    struct error error = {0};
    struct job_request request = sound_request();
    ASSERT_OK(job_request_check(&request, &error));
    request.num_nodes = 0;
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.worker.cores_milli = 0;
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.server = (struct resources){.ram_bytes = 1};
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.spec = TEXT("\xff");
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.max_total_micro = -1;
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.tick_ms = 0;
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
    request = sound_request();
    request.name[0] = '\0';
    ASSERT_FAILS(job_request_check(&request, &error), ERROR_INVALID);
}

struct fixture {
    struct job job;
    struct lease leases[3]; /* the server and two workers */
    struct lease *pointers[3];
};

static void set_up(struct fixture *fixture)
{
    *fixture = (struct fixture){.job = {.request = sound_request()}};
    for (int i = 0; i < 3; i++) {
        fixture->pointers[i] = &fixture->leases[i];
        fixture->leases[i].state = LEASE_STATE_RUNNING;
        fixture->leases[i].role = i == 0 ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER;
    }
    fixture->job.leases = fixture->pointers;
    fixture->job.lease_count = 3;
    fixture->job.servers[0] = fixture->pointers[0];
    fixture->job.workers = fixture->pointers + 1;
    fixture->job.worker_count = 2;
}

static void end(struct lease *lease, enum lease_outcome outcome)
{
    lease->state = LEASE_STATE_ENDED;
    lease->outcome = outcome;
}

TEST(a_job_succeeds_when_its_server_lease_does)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    set_up(&fixture);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_GOES_ON);
    end(&fixture.leases[0], LEASE_OUTCOME_SUCCEEDED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_SUCCEEDED);
}

TEST(a_job_fails_with_its_server_lease)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    set_up(&fixture);
    end(&fixture.leases[0], LEASE_OUTCOME_LOST);
    char why[LEASE_REASON_SIZE] = "silent for 30s";
    fixture.leases[0].reason = why;
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
    assert_string_equal(reason, "the parameter server was lost: silent for 30s; submit it again: "
                                "what was not used was given back");
    memset(why, 'x', sizeof(why) - 1);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
    assert_int_equal(reason[strlen(reason) - 1], 'x'); /* no room for half an advice */
}

/* The lead is waited for while workers are there; these go when another server makes way. */
TEST(a_job_whose_server_made_way_waits_whatever_else_is_lost)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    struct lease second = {.state = LEASE_STATE_RUNNING, .role = LEASE_ROLE_SERVER, .rank = 1};
    set_up(&fixture);
    fixture.job.request.server_count = 2;
    fixture.job.request.is_spare = fixture.job.request.replaces_lost = true;
    fixture.job.servers[1] = &second;
    end(&fixture.leases[0], LEASE_OUTCOME_LOST);
    end(&second, LEASE_OUTCOME_PREEMPTED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_WAITS);
    end(&fixture.leases[1], LEASE_OUTCOME_PREEMPTED);
    end(&fixture.leases[2], LEASE_OUTCOME_PREEMPTED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_WAITS);
    fixture.leases[0].outcome = LEASE_OUTCOME_SUCCEEDED; /* it was done before */
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_SUCCEEDED);
}

TEST(a_job_that_diverged_says_so)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    set_up(&fixture);
    end(&fixture.leases[0], LEASE_OUTCOME_FAILED);
    fixture.leases[0].exit_code = 1;
    char why[LEASE_REASON_SIZE] = LEASE_REASON_DIVERGED "; no model was measured before";
    fixture.leases[0].reason = why;
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
    assert_string_equal(reason,
                        "training diverged: the loss is not finite; no model was measured before");
    snprintf(why, sizeof(why), "the test data is gone");
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
    assert_string_equal(reason, "the parameter server failed: the test data is gone");
}

TEST(a_job_goes_on_until_its_last_worker_is_lost)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    set_up(&fixture);
    end(&fixture.leases[1], LEASE_OUTCOME_LOST);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_GOES_ON);
    end(&fixture.leases[2], LEASE_OUTCOME_FAILED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
    assert_string_equal(reason, "no worker is left: failed");
    fixture.leases[2].outcome = LEASE_OUTCOME_SUCCEEDED;
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_GOES_ON);
}

TEST(without_a_server_every_worker_must_succeed)
{
    struct fixture fixture;
    char reason[JOB_REASON_SIZE];
    set_up(&fixture);
    fixture.job.request.server = (struct resources){0};
    fixture.job.leases++;
    fixture.job.lease_count = 2;
    end(&fixture.leases[1], LEASE_OUTCOME_SUCCEEDED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_GOES_ON);
    end(&fixture.leases[2], LEASE_OUTCOME_SUCCEEDED);
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_SUCCEEDED);
    fixture.leases[1].outcome = LEASE_OUTCOME_FAILED;
    assert_int_equal(job_judge(&fixture.job, reason), JOB_VERDICT_FAILED);
}

TEST(a_job_is_under_way_once_server_and_a_worker_run)
{
    struct fixture fixture;
    set_up(&fixture);
    fixture.leases[0].state = LEASE_STATE_OFFERED;
    assert_false(job_is_under_way(&fixture.job));
    fixture.leases[0].state = LEASE_STATE_RUNNING;
    assert_true(job_is_under_way(&fixture.job));
    fixture.leases[1].state = fixture.leases[2].state = LEASE_STATE_OFFERED;
    assert_false(job_is_under_way(&fixture.job));
    assert_false(job_all_leases_ended(&fixture.job));
}

TEST(an_old_fence_and_an_ended_lease_are_refused)
{
    struct error error = {0};
    struct lease lease = {.id = 4, .fence = 7, .state = LEASE_STATE_RUNNING};
    ASSERT_OK(lease_check_fence(&lease, 7, &error));
    ASSERT_FAILS(lease_check_fence(&lease, 6, &error), ERROR_CONFLICT);
    end(&lease, LEASE_OUTCOME_STOPPED);
    ASSERT_FAILS(lease_check_fence(&lease, 7, &error), ERROR_CONFLICT);
}

TEST(billable_time_is_bounded_by_the_clock_the_longest_run_and_the_past)
{
    const struct lease lease = {.started_ms = 10000, .wall_ms = 2000, .max_run_ms = 30000};
    assert_int_equal(lease_billable_ms(&lease, 5000, 20000), 5000);
    assert_int_equal(lease_billable_ms(&lease, 50000, 20000), 10000);
    assert_int_equal(lease_billable_ms(&lease, 50000, 90000), 30000);
    assert_int_equal(lease_billable_ms(&lease, 1000, 90000), 2000);
}

TEST(states_have_names)
{
    assert_string_equal(job_state_name(JOB_STATE_STOPPING), "stopping");
    assert_string_equal(lease_state_name(LEASE_STATE_OFFERED), "offered");
    assert_string_equal(lease_outcome_name(LEASE_OUTCOME_LOST), "lost");
    assert_string_equal(lease_role_name(LEASE_ROLE_SERVER), "server");
    assert_true(job_state_is_final(JOB_STATE_CANCELLED));
    assert_false(job_state_is_final(JOB_STATE_STOPPING));
    assert_true(job_state_has_leases(JOB_STATE_STOPPING));
    assert_false(job_state_has_leases(JOB_STATE_PENDING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_out_of_range_is_refused),
        cmocka_unit_test(a_job_succeeds_when_its_server_lease_does),
        cmocka_unit_test(a_job_fails_with_its_server_lease),
        cmocka_unit_test(a_job_whose_server_made_way_waits_whatever_else_is_lost),
        cmocka_unit_test(a_job_that_diverged_says_so),
        cmocka_unit_test(a_job_goes_on_until_its_last_worker_is_lost),
        cmocka_unit_test(without_a_server_every_worker_must_succeed),
        cmocka_unit_test(a_job_is_under_way_once_server_and_a_worker_run),
        cmocka_unit_test(an_old_fence_and_an_ended_lease_are_refused),
        cmocka_unit_test(billable_time_is_bounded_by_the_clock_the_longest_run_and_the_past),
        cmocka_unit_test(states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
