/*
 * Hub fixture, for tests: a hub with two machines and one job that runs on them.
 *
 * The test's thread is the hub's. The core thread and its store are real.
 */
#pragma once

#include "blob/manifest.h"
#include "market/pair.h"
#include "runtime/child_message.h"
#include "server/admission.h"
#include "server/hub_internal.h"
#include "server/logs.h"
#include "server/query.h"
#include "server/tables.h"
#include "store/store_fault.h"
#include "testing/testing.h"
#include "wire/frame.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <sched.h>
#include <semaphore.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/socket.h>

#define NOW_MS INT64_C(1800000000000)

enum { MACHINES = 2, SECRET_SIZE = crypto_sign_SECRETKEYBYTES };

/* Read by the core thread too. */
struct test_clock {
    struct clock clock;
    atomic_int_fast64_t now_ns;
};

struct fixture {
    char dir[64];
    struct test_clock clock;
    struct store_fault fault;
    struct server server;
    struct hub *hub;
    uint64_t borrower, lender;
    uint64_t machines[MACHINES + 1]; /* for the parameter server, for the worker; one more */
    uint8_t secrets[MACHINES + 1][SECRET_SIZE];
    struct lease leases[MACHINES]; /* of the job, as the core offered them */
    uint64_t job;
};

static inline int64_t test_monotonic_ns(const struct clock *clock)
{
    return atomic_load(&((const struct test_clock *)clock)->now_ns);
}

static inline int64_t test_utc_ms(const struct clock *clock)
{
    return NOW_MS + test_monotonic_ns(clock) / 1000000;
}

static inline void advance(struct fixture *fixture, int64_t span_ms)
{
    atomic_fetch_add(&fixture->clock.now_ns, span_ms * 1000000);
}

/* ---- Asking the core ------------------------------------------------------------------------- */

struct ask {
    struct engine_request request;
    struct fixture *fixture;
    uint64_t lease; /* to look at */
    struct lease seen;
    struct job job_seen;
    bool wants_pair; /* of the two machines */
    int64_t pair_us;
    uint64_t machine; /* to look at */
    enum machine_yield yield_seen;
    bool is_done, is_failed;
    struct error error;
    sem_t *gate; /* the core thread waits at it */
    enum store_fault_kind fault;
};

static inline int decided(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct ask *ask = (struct ask *)request;
    if (ask->gate)
        sem_wait(ask->gate);
    if (ask->fault) {
        ask->fixture->fault.kind = ask->fault;
        ask->fixture->fault.calls_failing = UINT32_MAX;
    }
    if (ask->wants_pair)
        ask->pair_us =
            pair_direct_us(core_machine(core, ask->fixture->machines[0]),
                           core_machine(core, ask->fixture->machines[1]), ask->request.now_ms);
    if (ask->machine)
        ask->yield_seen = core_machine(core, ask->machine)->yield;
    if (ask->lease) {
        ask->seen = *core_lease(core, ask->lease);
        ask->job_seen = *core_job(core, ask->seen.job);
    }
    return 0;
}

static inline void done(struct engine_request *request, const struct error *error)
{
    struct ask *ask = (struct ask *)request;
    if (ask->fault)
        ask->fixture->fault.kind = STORE_FAULT_NONE;
    ask->is_failed = error != NULL;
    if (error)
        ask->error = *error;
    ask->is_done = true;
}

static inline void submit(struct fixture *fixture, struct ask *ask)
{
    struct error error;
    ask->fixture = fixture;
    ask->request.on_decided = decided;
    ask->request.on_done = done;
    ASSERT_OK(engine_submit(fixture->server.engine, &ask->request, true, &error));
}

static inline void step(struct fixture *fixture, int64_t wait_ms)
{
    struct error error;
    ASSERT_OK(loop_step(fixture->hub->loop, wait_ms, &error));
    ASSERT_OK(loop_step(fixture->server.loop, 0, &error));
}

static inline void run_ask(struct fixture *fixture, struct ask *ask)
{
    ask->request.loop = fixture->hub->loop;
    submit(fixture, ask);
    while (!ask->is_done)
        step(fixture, 1000);
}

static inline uint64_t command(struct fixture *fixture, const struct command *command)
{
    struct ask ask = {.request = {.has_command = true, .command = *command}};
    run_ask(fixture, &ask);
    if (ask.is_failed)
        fail_msg("%s: %s", command_kind_name(command->kind), ask.error.message);
    return ask.request.subject;
}

/* After everything the hub asked of the core before. */
static inline struct ask look(struct fixture *fixture, uint64_t lease)
{
    struct ask ask = {.lease = lease};
    run_ask(fixture, &ask);
    assert_false(ask.is_failed);
    return ask;
}

/* ---- A market with one job ------------------------------------------------------------------- */

static inline void enrol(struct fixture *fixture, int index, uint64_t owner, const char *name)
{
    uint8_t code_hash[MARKET_HASH_SIZE];
    memset(code_hash, index + 1, sizeof(code_hash));
    struct command code = {
        .kind = COMMAND_ADD_CODE,
        .add_code = {.kind = CODE_KIND_ENROL, .account = owner, .expires_ms = NOW_MS + 60000}};
    memcpy(code.add_code.hash, code_hash, sizeof(code_hash));
    command(fixture, &code);
    const struct resources found = {
        .cores_milli = 1000, .ram_bytes = INT64_C(4) << 30, .disk_bytes = INT64_C(10) << 30};
    struct command enrol = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {
            .name = text_of(name),
            .probe = {.resources = found, .speed_weight_milli = 1000, .cpu_model = "test"},
            .offer = {.resources = found,
                      .roles = index == 1 ? MACHINE_ROLE_WORKER : MACHINE_ROLE_SERVER}}};
    memcpy(enrol.enrol_machine.code_hash, code_hash, sizeof(code_hash));
    crypto_sign_keypair(enrol.enrol_machine.public_key, fixture->secrets[index]);
    fixture->machines[index] = command(fixture, &enrol);
    command(fixture, &(struct command){.kind = COMMAND_MACHINE_CONNECTED,
                                       .machine_connected = {fixture->machines[index], 1}});
}

static const char spec[] =
    "{\"name\":\"digits\",\"num_nodes\":1,\"resources\":{\"cpus\":\"0.5\",\"memory\":\"0.5\"},"
    "\"runtime\":\"native\",\"train\":{\"model\":\"logistic\",\"data\":\"fashion-mnist\","
    "\"batch\":16,\"optimizer\":{\"name\":\"sgd\",\"lr\":0.05},\"epochs\":1},"
    "\"sync\":{\"policy\":\"adsp\",\"gamma\":\"1s\",\"tick\":\"1s\"},"
    "\"market\":{\"max_run_time\":\"60s\"},\"inputs\":[{\"name\":\"images\",\"split\":\"train\","
    "\"manifest\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
    "\"records\":512}]}";

static inline void say(struct fixture *fixture, int index, enum lease_run_state state)
{
    const struct state_message message = {.lease = fixture->leases[index].id,
                                          .fence = fixture->leases[index].fence,
                                          .state = state,
                                          .reason = TEXT("")};
    dispatch_state(hub_machine(fixture->hub, fixture->machines[index]), &message);
}

static inline void start_job(struct fixture *fixture)
{
    const struct resources part = {.cores_milli = 500, .ram_bytes = INT64_C(512) << 20};
    const struct command submit_job = {.kind = COMMAND_SUBMIT_JOB,
                                       .submit_job = {.account = fixture->borrower,
                                                      .name = "digits",
                                                      .spec = text_of(spec),
                                                      .num_nodes = 1,
                                                      .worker = part,
                                                      .server = part,
                                                      .max_run_ms = 60000,
                                                      .expected_run_ms = 20000,
                                                      .tick_ms = 1000}};
    fixture->job = command(fixture, &submit_job);
    assert_int_equal(fixture->hub->leases.count, MACHINES);
    for (int i = 0; i < MACHINES; i++) {
        const struct hub_lease *lease = fixture->hub->leases.entries[i].value;
        const int index = lease->role == LEASE_ROLE_WORKER;
        fixture->leases[index] = look(fixture, lease->id).seen;
    }
    say(fixture, 0, LEASE_RUN_RUNNING);
    say(fixture, 1, LEASE_RUN_RUNNING);
    assert_int_equal(look(fixture, fixture->leases[1].id).job_seen.state, JOB_STATE_RUNNING);
}

static inline int open_market(struct fixture *fixture, struct error *error)
{
    struct server *server = &fixture->server;
    char path[96], blobs_path[96];
    snprintf(path, sizeof(path), "%s/keys", fixture->dir);
    snprintf(blobs_path, sizeof(blobs_path), "%s/blobs", fixture->dir);
    const struct blob_store_options blobs = {
        .folder = blobs_path, .bytes_max = 1 << 20, .clock = server->clock};
    snprintf(server->market_path, sizeof(server->market_path), "%s/market.db", fixture->dir);
    const struct engine_options engine = {.store = {.location = server->market_path,
                                                    .schema = &tables_schema,
                                                    .file_system = "hub-test"},
                                          .clock = server->clock};
    if (keys_open(path, &server->keys, error) < 0 ||
        blob_store_open(&blobs, &server->blobs, error) < 0 ||
        loop_open(server->clock, &server->loop, error) < 0 ||
        engine_open(&engine, &server->engine, error) < 0 ||
        store_reader_open(&engine.store, &server->reader, error) < 0 ||
        hub_open(server, "127.0.0.1:0", engine_core(server->engine), &fixture->hub, error) < 0)
        return -1;
    server->live = live_new(server);
    server->logs = logs_new(server);
    server->hub = fixture->hub;
    engine_listen(server->engine, hub_listen, fixture->hub);
    return engine_start(server->engine, error);
}

static inline int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/souk-hub-XXXXXX");
    if (!mkdtemp(fixture->dir))
        return -1;
    fixture->clock.clock = (struct clock){test_monotonic_ns, test_utc_ms};
    advance(fixture, 1000);
    fixture->server.clock = &fixture->clock.clock;
    store_fault_install(&fixture->fault, "hub-test");
    struct error error;
    ASSERT_OK(open_market(fixture, &error));
    const struct command open[] = {
        {.kind = COMMAND_OPEN_ACCOUNT, .open_account = {TEXT("borrower")}},
        {.kind = COMMAND_OPEN_ACCOUNT, .open_account = {TEXT("lender")}},
    };
    fixture->borrower = command(fixture, &open[0]);
    fixture->lender = command(fixture, &open[1]);
    enrol(fixture, 0, fixture->lender, "heron");
    enrol(fixture, 1, fixture->lender, "wren");
    start_job(fixture);
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct server *server = &fixture->server;
    engine_stop(server->engine);
    hub_free(fixture->hub);
    live_free(server->live);
    loop_free(server->loop);
    logs_free(server->logs);
    store_reader_free(server->reader);
    engine_free(server->engine);
    blob_store_free(server->blobs);
    keys_free(server->keys);
    store_fault_remove(&fixture->fault);
    char command[160];
    snprintf(command, sizeof(command), "rm -rf '%s'", fixture->dir);
    const int result = system(command); /* NOLINT: a path this test made */
    free(fixture);
    return result;
}

#define WITH_HUB(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
