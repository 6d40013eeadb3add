/* covers order.c, secrets.c */
#include "server/hub_fixture_internal.h"
#include "server/sealed.h"
#include "server/secrets.h"

static uint64_t submit_spec(struct fixture *fixture, const char *json, int64_t num_nodes)
{
    const struct resources part = {.cores_milli = 500, .ram_bytes = INT64_C(512) << 20};
    const struct command submit_job = {.kind = COMMAND_SUBMIT_JOB,
                                       .submit_job = {.account = fixture->borrower,
                                                      .name = "hush",
                                                      .spec = text_of(json),
                                                      .num_nodes = num_nodes,
                                                      .worker = part,
                                                      .server = part,
                                                      .max_run_ms = 60000,
                                                      .expected_run_ms = 20000,
                                                      .tick_ms = 1000}};
    return command(fixture, &submit_job);
}

TEST(a_lease_that_runs_is_renewed_though_its_secrets_are_gone)
{
    struct fixture *fixture = *state;
    struct error error;
    char name[SEALED_NAME_SIZE], json[sizeof(spec) + 64];
    AUTO(sealed) struct sealed *sealed = NULL;
    ASSERT_OK(sealed_open(fixture->dir, fixture->server.keys, &sealed, &error));
    ASSERT_OK(sealed_put(sealed, fixture->borrower, TEXT("{\"secrets\":{}}"), name, &error));
    fixture->server.sealed = sealed;
    snprintf(json, sizeof(json), "{\"secret_file\":\"%s\",%s", name, spec + 1);
    const uint64_t job = submit_spec(fixture, json, 1);
    uint64_t worker = 0;
    for (size_t i = 0; i < fixture->hub->leases.count; i++) {
        const struct hub_lease *lease = fixture->hub->leases.entries[i].value;
        if (lease->job != job)
            continue;
        const int index = lease->role == LEASE_ROLE_WORKER;
        fixture->leases[index] = look(fixture, lease->id).seen;
        say(fixture, index, LEASE_RUN_RUNNING);
        worker = index ? lease->id : worker;
    }
    assert_int_equal(look(fixture, worker).job_seen.state, JOB_STATE_RUNNING);
    ASSERT_OK(sealed_remove(sealed, text_of(name), &error));
    command(fixture,
            &(struct command){
                .kind = COMMAND_EXTEND_JOB,
                .extend_job = {.account = fixture->borrower, .job = job, .max_run_ms = 120000}});
    const struct ask seen = look(fixture, worker);
    assert_int_equal(seen.seen.state, LEASE_STATE_RUNNING);
    assert_int_equal(seen.job_seen.state, JOB_STATE_RUNNING);
    fixture->server.sealed = NULL;
}

static int sweep(struct engine_request *request, const struct core *core, struct store_batch *batch,
                 struct error *error)
{
    (void)batch;
    return secrets_sweep(((struct ask *)request)->fixture->hub->server, core, error);
}

static void sweep_all(struct fixture *fixture)
{
    struct error error;
    struct ask ask = {
        .fixture = fixture,
        .request = {.on_decided = sweep, .on_done = done, .loop = fixture->hub->loop}};
    ASSERT_OK(engine_submit(fixture->server.engine, &ask.request, true, &error));
    while (!ask.is_done)
        step(fixture, 1000);
    assert_false(ask.is_failed);
}

TEST(nothing_is_swept_while_a_job_that_waits_cannot_be_read)
{
    struct fixture *fixture = *state;
    struct error error;
    char name[SEALED_NAME_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, SEALED_BYTES_MAX + 1);
    AUTO(sealed) struct sealed *sealed = NULL;
    ASSERT_OK(sealed_open(fixture->dir, fixture->server.keys, &sealed, &error));
    fixture->server.sealed = sealed;
    const uint64_t job = submit_spec(fixture, "{\"of_a_later_market\":1}", 5);
    ASSERT_OK(sealed_put(sealed, fixture->borrower, TEXT("{}"), name, &error));
    sweep_all(fixture);
    ASSERT_OK(sealed_get(sealed, fixture->borrower, text_of(name), &bytes, &error));
    command(fixture, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                       .cancel_job = {.account = fixture->borrower, .job = job}});
    sweep_all(fixture);
    ASSERT_FAILS(sealed_get(sealed, fixture->borrower, text_of(name), &bytes, &error),
                 ERROR_NOT_FOUND);
    fixture->server.sealed = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HUB(a_lease_that_runs_is_renewed_though_its_secrets_are_gone),
        WITH_HUB(nothing_is_swept_while_a_job_that_waits_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
