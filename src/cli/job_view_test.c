#include "cli/job_view.h"
#include "testing/testing.h"

static void expect(const char *state, uint64_t least, uint64_t most, uint64_t count,
                   const char *words)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = api_job_unknown();
    job.state = text_of(state);
    job.num_nodes = least;
    job.num_nodes_max = most;
    job.worker_count = count;
    assert_string_equal(job_view_workers(arena, &job), words);
}

TEST(an_elastic_job_shows_how_many_of_its_workers_it_has)
{
    expect("pending", 2, 4, 0, "2–4");
    expect("running", 2, 4, 2, "2 of 2–4");
    expect("running", 2, 4, 4, "4 of 2–4");
    expect("running", 3, 3, 3, "3");
    expect("running", 3, 3, 2, "2 of 3");
    expect("succeeded", 2, 4, 0, "2–4");
    expect("running", 3, 0, 0, "3"); /* an older market says no more */
}

TEST(a_job_ends_when_the_last_of_its_leases_does)
{
    struct api_job job = api_job_unknown();
    assert_int_equal(job_view_ends_by_ms(&job), 0);
    struct api_lease leases[] = {{.state = TEXT("running"), .expires_ms = 5000},
                                 {.state = TEXT("ended"), .expires_ms = 9000},
                                 {.state = TEXT("offered"), .expires_ms = 7000}};
    job.leases = (struct json_array){leases, 3};
    assert_int_equal(job_view_ends_by_ms(&job), 7000);
}

TEST(the_rank_that_failed_first_says_how_it_ends)
{
    struct api_job job = api_job_unknown();
    struct api_lease leases[] = {
        {.outcome = TEXT("stopped"), .exit_code = 143, .ended_ms = 1000, .rank = 0},
        {.outcome = TEXT("failed"), .exit_code = 4, .ended_ms = 3000, .rank = 1},
        {.outcome = TEXT("failed"), .exit_code = 7, .ended_ms = 2000, .rank = 3},
        {.outcome = TEXT("failed"), .exit_code = 137, .ended_ms = 2000, .rank = 2},
        {.outcome = TEXT("failed"), .exit_code = 0, .ended_ms = 500, .rank = 4},
    };
    job.leases = (struct json_array){leases, 5};
    job.state = TEXT("failed");
    assert_int_equal(job_view_exit_code(&job), 137);
    job.leases.count = 2;
    assert_int_equal(job_view_exit_code(&job), 4);
    job.leases.count = 1; /* stopped: no rank failed */
    assert_int_equal(job_view_exit_code(&job), CLI_EXIT_FAILED);
    job.leases.count = 5;
    job.state = TEXT("succeeded");
    assert_int_equal(job_view_exit_code(&job), 0);
}

TEST(how_well_numbers_are_told_is_no_percentage)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = api_job_unknown();
    assert_string_equal(job_view_accuracy(arena, &job), "-");
    assert_string_equal(job_view_accuracy(arena, &(struct api_job){0}), "-"); /* of a list */
    job.test_accuracy = 0.8123;
    assert_string_equal(job_view_accuracy(arena, &job), "81.23 %");
    job.predict = TEXT("next");
    assert_string_equal(job_view_accuracy(arena, &job), "81.23 %");
    job.predict = TEXT("number");
    assert_string_equal(job_view_accuracy(arena, &job), "R^2 0.8123");
    job.test_accuracy = -0.5; /* worse than the mean */
    assert_string_equal(job_view_accuracy(arena, &job), "R^2 -0.5000");
}

TEST(pushes_are_told_of_only_where_there_is_something_to_tell)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = api_job_unknown();
    struct api_lease leases[] = {{.rank = 0}, {.rank = 1}};
    job.leases = (struct json_array){leases, 2};
    assert_null(job_view_pushes(arena, &job));
    leases[0].clipped = 3;
    leases[1].clipped = 4;
    assert_string_equal(job_view_pushes(arena, &job), "7 too long and shortened");
    leases[1].refused = 1;
    job.checks = 40;
    job.checks_undecided = 2;
    assert_string_equal(job_view_pushes(arena, &job),
                        "7 too long and shortened, 1 refused as garbage, 40 made again by "
                        "others to check them, 2 of these undecided");
}

TEST(a_lease_is_found_by_its_rank_s_name_and_told_of_by_what_it_is)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct api_lease lead = {.role = TEXT("server")};
    const struct api_lease range = {.role = TEXT("server"), .rank = 1};
    const struct api_lease replica = {.role = TEXT("server"), .rank = 2, .is_replica = true};
    const struct api_lease worker = {.role = TEXT("worker"), .rank = 1};
    assert_true(job_view_has_rank(&lead, TEXT("server")));
    assert_false(job_view_has_rank(&lead, TEXT("0")));
    assert_true(job_view_has_rank(&range, TEXT("server-1")));
    assert_false(job_view_has_rank(&range, TEXT("server")));
    assert_true(job_view_has_rank(&replica, TEXT("replica")));
    assert_false(job_view_has_rank(&replica, TEXT("server-2")));
    assert_true(job_view_has_rank(&worker, TEXT("1")));
    assert_false(job_view_has_rank(&worker, TEXT("server-1")));
    assert_string_equal(job_view_role(arena, &lead), "the parameter server");
    assert_string_equal(job_view_role(arena, &range), "parameter server 1");
    assert_string_equal(job_view_role(arena, &replica), "the replica");
    assert_string_equal(job_view_role(arena, &worker), "worker 1");
}

TEST(more_servers_than_one_are_told_of)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct job_sync sync = {.servers = 1};
    assert_string_equal(job_view_servers(arena, &sync), "one parameter server");
    sync.replica = true;
    assert_string_equal(job_view_servers(arena, &sync), "one parameter server and a replica");
    sync.servers = 3;
    assert_string_equal(job_view_servers(arena, &sync), "3 parameter servers and a replica");
}

TEST(why_training_ended_is_told_in_its_lead_s_words)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_job job = api_job_unknown();
    struct api_lease leases[] = {
        {.role = TEXT("server"), .outcome = TEXT("lost"), .reason = TEXT("it is gone")},
        {.role = TEXT("server"),
         .rank = 1,
         .outcome = TEXT("succeeded"),
         .reason = TEXT("told to")},
        {.role = TEXT("server"),
         .outcome = TEXT("succeeded"),
         .reason = TEXT("20 epochs are done")},
    };
    job.leases = (struct json_array){leases, 3};
    job.state = TEXT("running");
    assert_null(job_view_ending(arena, &job));
    job.state = TEXT("succeeded");
    assert_string_equal(job_view_ending(arena, &job), "20 epochs are done");
    job.leases.count = 2;
    assert_null(job_view_ending(arena, &job));
}

TEST(why_a_lease_did_not_end_well_is_told)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_lease lease = {.machine_name = TEXT("heron"),
                              .role = TEXT("worker"),
                              .rank = 1,
                              .state = TEXT("running"),
                              .outcome = TEXT("none")};
    assert_null(job_view_misfortune(arena, &lease));
    lease.state = TEXT("ended");
    lease.outcome = TEXT("failed");
    assert_string_equal(job_view_misfortune(arena, &lease), "worker 1 on heron failed");
    lease.reason = TEXT("no such file");
    assert_string_equal(job_view_misfortune(arena, &lease),
                        "worker 1 on heron failed: no such file");
    lease.outcome = TEXT("stopped");
    assert_null(job_view_misfortune(arena, &lease));
    lease.outcome = TEXT("succeeded");
    assert_null(job_view_misfortune(arena, &lease));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_elastic_job_shows_how_many_of_its_workers_it_has),
        cmocka_unit_test(the_rank_that_failed_first_says_how_it_ends),
        cmocka_unit_test(a_job_ends_when_the_last_of_its_leases_does),
        cmocka_unit_test(how_well_numbers_are_told_is_no_percentage),
        cmocka_unit_test(a_lease_is_found_by_its_rank_s_name_and_told_of_by_what_it_is),
        cmocka_unit_test(more_servers_than_one_are_told_of),
        cmocka_unit_test(why_training_ended_is_told_in_its_lead_s_words),
        cmocka_unit_test(why_a_lease_did_not_end_well_is_told),
        cmocka_unit_test(pushes_are_told_of_only_where_there_is_something_to_tell),
    };
    return cmocka_run_group_tests_name("job_view", tests, NULL, NULL);
}
