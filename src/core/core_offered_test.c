/* What offers would give a request; covers offered.c. */
#include "core/testing_internal.h"

struct seen {
    size_t worker_count, server_count;
    int64_t cores_milli, hourly_micro; /* of the last worker */
    uint64_t machine;
    size_t busy_count;
    int64_t since_ms, until_ms; /* of the last that is busy */
};

static void note(void *context, const struct core_offered *offered)
{
    struct seen *seen = context;
    if (offered->busy_until_ms > 0) {
        seen->busy_count++;
        seen->since_ms = offered->busy_since_ms;
        seen->until_ms = offered->busy_until_ms;
        return;
    }
    if (offered->role == LEASE_ROLE_SERVER) {
        seen->server_count++;
        return;
    }
    seen->worker_count++;
    seen->cores_milli = offered->resources.cores_milli;
    seen->hourly_micro = offered->hourly_micro;
    seen->machine = offered->machine->id;
}

static struct seen look(const struct market *market, const struct job_request *request)
{
    struct seen seen = {0};
    core_each_offered(market->core, request, note, &seen);
    return seen;
}

TEST(only_what_has_room_and_suits_is_offered)
{
    struct market market;
    market_init(&market);
    const uint64_t large =
        market_add_machine(&market, "large", 4000, MACHINE_ROLE_WORKER | MACHINE_ROLE_SERVER);
    market_add_machine(&market, "small", 100, MACHINE_ROLE_WORKER);
    struct job_request request = market_job(&market).submit_job;
    request.worker.cores_milli = 1000;
    request.takes_more_cores = false;
    const struct seen seen = look(&market, &request);
    assert_int_equal(seen.worker_count, 1);
    assert_int_equal(seen.server_count, 1);
    assert_int_equal(seen.machine, large);
    assert_int_equal(seen.cores_milli, 1000);
    request.takes_more_cores = true;
    const struct seen more = look(&market, &request);
    assert_int_equal(more.cores_milli, 4000);
    assert_true(more.hourly_micro > seen.hourly_micro);
    request.wishes.min_speed_milli = 1500;
    assert_int_equal(look(&market, &request).worker_count, 0);
    market_done(&market);
}

TEST(a_lender_who_asks_for_more_than_is_posted_is_offered_for_that)
{
    struct market market;
    market_init(&market);
    struct command enrol =
        market_enrolment(&market, market.lender, "dear", 1000, MACHINE_ROLE_WORKER);
    enrol.enrol_machine.offer.minimum.core_micro = 5000000;
    market_connect(&market, market_do(&market, &enrol));
    struct job_request request = market_job(&market).submit_job;
    request.worker.cores_milli = 1000;
    request.takes_more_cores = false;
    assert_int_equal(look(&market, &request).hourly_micro, 5000000);
    market_done(&market);
}

TEST(what_others_have_leased_is_told_with_how_long)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "only", 1000, MACHINE_ROLE_WORKER | MACHINE_ROLE_SERVER);
    struct command command = market_job(&market);
    command.submit_job.num_nodes = 1;
    command.submit_job.worker.cores_milli = 600;
    command.submit_job.server.cores_milli = 100;
    command.submit_job.takes_more_cores = false;
    const struct job *job = core_job(market.core, market_do(&market, &command));
    market_run_lease(&market, job->workers[0]);
    const struct seen seen = look(&market, &command.submit_job);
    assert_int_equal(seen.worker_count, 0);
    assert_int_equal(seen.server_count, 1); /* there is room for that */
    assert_int_equal(seen.busy_count, 1);
    assert_int_equal(seen.since_ms, job->workers[0]->started_ms);
    assert_int_equal(seen.until_ms, job->workers[0]->ends_ms);
    command.submit_job.worker.cores_milli = 2000; /* never, however idle it is */
    assert_int_equal(look(&market, &command.submit_job).busy_count, 0);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_has_room_and_suits_is_offered),
        cmocka_unit_test(a_lender_who_asks_for_more_than_is_posted_is_offered_for_that),
        cmocka_unit_test(what_others_have_leased_is_told_with_how_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
