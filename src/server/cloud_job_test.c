#include "server/cloud_job.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

#define HOUR   INT64_C(3600000)
#define HOURLY INT64_C(480000)
#define GIB    (INT64_C(1) << 30)

static const struct catalogue_type large = {
    .name = "m5.large", .region = "us-east-1", .gpu = "", .vcpus = 2, .memory_mib = 8192};
static const struct catalogue_type with_gpu = {.name = "g4dn.12xlarge",
                                               .region = "us-east-1",
                                               .gpu = "T4",
                                               .vcpus = 48,
                                               .memory_mib = 196608,
                                               .gpu_milli = 4000};

static void assert_says(const struct error *error, const char *part)
{
    if (!strstr(error->message, part))
        fail_msg("\"%s\" is not in: %s", part, error->message);
}

/* ---- What it takes --------------------------------------------------------------------------- */

static struct job_request part_of_one(void)
{
    return (struct job_request){
        .worker = {.cores_milli = 100, .ram_bytes = GIB / 10, .disk_bytes = GIB}};
}

TEST(a_job_takes_the_whole_machine)
{
    struct job_request request = part_of_one();
    struct error error;
    ASSERT_OK(cloud_job_fit(&large, &request, &error));
    assert_int_equal(request.worker.cores_milli, 2000);
    assert_int_equal(request.worker.ram_bytes, 6 * GIB);
    assert_int_equal(request.worker.gpus_milli, 0);
    assert_int_equal(request.worker.disk_bytes, GIB);
    assert_true(request.takes_more_cores);
    /* Also its GPUs, whether it asks for them or not: nobody else has them. */
    request = part_of_one();
    ASSERT_OK(cloud_job_fit(&with_gpu, &request, &error));
    assert_int_equal(request.worker.gpus_milli, 4000);
    assert_int_equal(request.worker.cores_milli, 48000);
}

TEST(a_parameter_server_of_the_job_has_room_beside_its_worker)
{
    struct job_request request = part_of_one();
    struct error error;
    request.server = (struct resources){.cores_milli = 500, .ram_bytes = GIB / 2};
    ASSERT_OK(cloud_job_fit(&large, &request, &error));
    assert_int_equal(request.worker.cores_milli, 1500);
    assert_int_equal(request.worker.ram_bytes, 6 * GIB - GIB / 2);
    assert_true(request.takes_more_cores); /* and where it is not there, all */
}

TEST(a_job_that_asks_for_more_hears_what_the_type_has)
{
    struct job_request request = part_of_one();
    struct error error;
    request.worker.cores_milli = 2001;
    ASSERT_FAILS(cloud_job_fit(&large, &request, &error), ERROR_INVALID);
    assert_says(&error, "resources.cpus: m5.large has 2");
    request = part_of_one();
    request.worker.ram_bytes = 7 * GIB;
    ASSERT_FAILS(cloud_job_fit(&large, &request, &error), ERROR_INVALID);
    assert_says(&error, "resources.memory: m5.large lends 6");
    request = part_of_one();
    request.worker.gpus_milli = 1000;
    ASSERT_FAILS(cloud_job_fit(&large, &request, &error), ERROR_INVALID);
    assert_says(&error, "resources.accelerators: m5.large has no GPU");
    request.worker.gpus_milli = 8000;
    ASSERT_FAILS(cloud_job_fit(&with_gpu, &request, &error), ERROR_INVALID);
    assert_says(&error, "g4dn.12xlarge has 4 × T4");
    request.worker.gpus_milli = 1000;
    snprintf(request.wishes.gpu_model, MACHINE_GPU_MODEL_SIZE, "A100");
    ASSERT_FAILS(cloud_job_fit(&with_gpu, &request, &error), ERROR_INVALID);
    snprintf(request.wishes.gpu_model, MACHINE_GPU_MODEL_SIZE, "T4");
    ASSERT_OK(cloud_job_fit(&with_gpu, &request, &error));
    const struct catalogue_type unknown = {.name = "x1.huge", .gpu = ""};
    request = part_of_one();
    ASSERT_FAILS(cloud_job_fit(&unknown, &request, &error), ERROR_INVALID);
}

/* ---- What it pays ---------------------------------------------------------------------------- */

static const struct match_quote servers = {.hourly_micro = 1000, .total_micro = 2000};

static void assert_poor(struct job_request request, const char *part)
{
    struct error error;
    ASSERT_FAILS(cloud_job_check_pay(&request, HOURLY, servers, 100 * HOURLY, &error),
                 ERROR_INVALID);
    assert_says(&error, part);
}

static void assert_pays(struct job_request request)
{
    struct error error;
    ASSERT_OK(cloud_job_check_pay(&request, HOURLY, servers, 100 * HOURLY, &error));
}

TEST(a_job_pays_for_its_machines_and_servers_over_its_longest_run)
{
    assert_pays((struct job_request){.max_run_ms = HOUR, .max_hourly_micro = HOURLY + 1000});
    assert_poor((struct job_request){.max_run_ms = HOUR, .max_hourly_micro = HOURLY + 999},
                "market.max_hourly_cost: ");
    assert_pays((struct job_request){.max_run_ms = 9 * HOUR, .max_total_micro = 9 * HOURLY + 2000});
    assert_poor((struct job_request){.max_run_ms = 9 * HOUR, .max_total_micro = 9 * HOURLY + 1999},
                "at least 4.322000 credits");
    assert_pays((struct job_request){.max_run_ms = HOUR / 4, .max_total_micro = HOURLY / 4 + 2000});
    assert_poor((struct job_request){.max_run_ms = HOUR / 4, .max_total_micro = HOURLY / 4 + 1999},
                "cost 0.480000 credits an hour");
    /* Each that it names. */
    assert_poor((struct job_request){.max_run_ms = HOUR,
                                     .max_hourly_micro = HOURLY + 1000,
                                     .max_total_micro = 1},
                "market.max_total_cost");
}

TEST(who_cannot_pay_has_nothing_started)
{
    const struct job_request request = {.max_run_ms = HOUR, .max_total_micro = 10 * HOURLY};
    struct error error;
    ASSERT_OK(cloud_job_check_pay(&request, HOURLY, servers, HOURLY + 2000, &error));
    ASSERT_FAILS(cloud_job_check_pay(&request, HOURLY, servers, HOURLY + 1999, &error),
                 ERROR_EXHAUSTED);
    assert_says(&error, "it may cost 0.482000 credits, and 0.481999 credits are available");
}

static void assert_refused(struct job_market market, const char *part)
{
    struct error error;
    ASSERT_FAILS(cloud_job_check(&market, &error), ERROR_INVALID);
    assert_says(&error, part);
}

TEST(a_job_takes_its_machines_at_once)
{
    struct job_market market = {.max_run_time_ms = HOUR, .max_total_cost_micro = HOURLY};
    struct error error;
    ASSERT_OK(cloud_job_check(&market, &error));
    market.start.kind = JOB_START_CHEAPEST;
    assert_refused(market, "market.start");
    market.start.kind = JOB_START_DEADLINE;
    assert_refused(market, "market.start");
    market.start.kind = JOB_START_NOW;
    market.spare = true;
    assert_refused(market, "market.spare");
    assert_refused((struct job_market){.max_run_time_ms = HOUR}, "goes with");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_takes_the_whole_machine),
        cmocka_unit_test(a_parameter_server_of_the_job_has_room_beside_its_worker),
        cmocka_unit_test(a_job_that_asks_for_more_hears_what_the_type_has),
        cmocka_unit_test(a_job_pays_for_its_machines_and_servers_over_its_longest_run),
        cmocka_unit_test(who_cannot_pay_has_nothing_started),
        cmocka_unit_test(a_job_takes_its_machines_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
