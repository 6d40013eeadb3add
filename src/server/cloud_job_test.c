#include "server/cloud_job.h"
#include "testing/testing.h"

#include <string.h>

#define HOUR   INT64_C(3600000)
#define HOURLY INT64_C(480000)

static void assert_refused(struct job_market market, const char *part)
{
    struct error error;
    ASSERT_FAILS(cloud_job_check(&market, HOURLY, &error), ERROR_INVALID);
    if (!strstr(error.message, part))
        fail_msg("\"%s\" is not in: %s", part, error.message);
}

static void assert_taken(struct job_market market)
{
    struct error error;
    ASSERT_OK(cloud_job_check(&market, HOURLY, &error));
}

TEST(a_job_may_pay_what_its_machines_cost)
{
    assert_taken((struct job_market){.max_run_time_ms = HOUR, .max_hourly_cost_micro = HOURLY});
    assert_refused(
        (struct job_market){.max_run_time_ms = HOUR, .max_hourly_cost_micro = HOURLY - 1},
        "market.max_hourly_cost: ");
    assert_refused((struct job_market){.max_run_time_ms = HOUR, .max_total_cost_micro = HOURLY - 1},
                   "at least 0.480000 credits");
    assert_taken((struct job_market){.max_run_time_ms = 9 * HOUR, .max_total_cost_micro = HOURLY});
    /* Each that it names. */
    assert_refused((struct job_market){.max_run_time_ms = HOUR,
                                       .max_hourly_cost_micro = HOURLY,
                                       .max_total_cost_micro = 1},
                   "market.max_total_cost: ");
    assert_refused((struct job_market){.max_run_time_ms = HOUR}, "goes with");
}

TEST(a_short_job_pays_for_its_time)
{
    assert_taken(
        (struct job_market){.max_run_time_ms = HOUR / 4, .max_total_cost_micro = HOURLY / 4});
    assert_refused(
        (struct job_market){.max_run_time_ms = HOUR / 4, .max_total_cost_micro = HOURLY / 4 - 1},
        "at least 0.120000 credits");
}

TEST(a_job_takes_its_machines_at_once)
{
    struct job_market market = {.max_run_time_ms = HOUR, .max_total_cost_micro = HOURLY};
    assert_taken(market);
    market.start.kind = JOB_START_CHEAPEST;
    assert_refused(market, "market.start");
    market.start.kind = JOB_START_DEADLINE;
    assert_refused(market, "market.start");
    market.start.kind = JOB_START_NOW;
    market.spare = true;
    assert_refused(market, "market.spare");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_may_pay_what_its_machines_cost),
        cmocka_unit_test(a_short_job_pays_for_its_time),
        cmocka_unit_test(a_job_takes_its_machines_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
