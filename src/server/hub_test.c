/* covers hub.c, dispatch.c, tick.c, order.c, pace.c, suspect.c
 *
 * The test's thread is the hub's: messages are handed over as if they had come by a link. The core
 * thread and its store are real. */
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
    uint64_t borrower, machines[MACHINES]; /* for the parameter server, for the worker */
    uint8_t secrets[MACHINES][SECRET_SIZE];
    struct lease leases[MACHINES]; /* of the job, as the core offered them */
    uint64_t job;
};

static int64_t test_monotonic_ns(const struct clock *clock)
{
    return atomic_load(&((const struct test_clock *)clock)->now_ns);
}

static int64_t test_utc_ms(const struct clock *clock)
{
    return NOW_MS + test_monotonic_ns(clock) / 1000000;
}

static void advance(struct fixture *fixture, int64_t span_ms)
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

static int decided(struct engine_request *request, const struct core *core,
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

static void done(struct engine_request *request, const struct error *error)
{
    struct ask *ask = (struct ask *)request;
    if (ask->fault)
        ask->fixture->fault.kind = STORE_FAULT_NONE;
    ask->is_failed = error != NULL;
    if (error)
        ask->error = *error;
    ask->is_done = true;
}

static void submit(struct fixture *fixture, struct ask *ask)
{
    struct error error;
    ask->fixture = fixture;
    ask->request.on_decided = decided;
    ask->request.on_done = done;
    ASSERT_OK(engine_submit(fixture->server.engine, &ask->request, true, &error));
}

static void step(struct fixture *fixture, int64_t wait_ms)
{
    struct error error;
    ASSERT_OK(loop_step(fixture->hub->loop, wait_ms, &error));
    ASSERT_OK(loop_step(fixture->server.loop, 0, &error));
}

static void run_ask(struct fixture *fixture, struct ask *ask)
{
    ask->request.loop = fixture->hub->loop;
    submit(fixture, ask);
    while (!ask->is_done)
        step(fixture, 1000);
}

static uint64_t command(struct fixture *fixture, const struct command *command)
{
    struct ask ask = {.request = {.has_command = true, .command = *command}};
    run_ask(fixture, &ask);
    if (ask.is_failed)
        fail_msg("%s: %s", command_kind_name(command->kind), ask.error.message);
    return ask.request.subject;
}

/* After everything the hub asked of the core before. */
static struct ask look(struct fixture *fixture, uint64_t lease)
{
    struct ask ask = {.lease = lease};
    run_ask(fixture, &ask);
    assert_false(ask.is_failed);
    return ask;
}

/* ---- A market with one job ------------------------------------------------------------------- */

static void enrol(struct fixture *fixture, int index, uint64_t owner, const char *name)
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
                      .roles = index ? MACHINE_ROLE_WORKER : MACHINE_ROLE_SERVER}}};
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

static void say(struct fixture *fixture, int index, enum lease_run_state state)
{
    const struct state_message message = {.lease = fixture->leases[index].id,
                                          .fence = fixture->leases[index].fence,
                                          .state = state,
                                          .reason = TEXT("")};
    dispatch_state(hub_machine(fixture->hub, fixture->machines[index]), &message);
}

static void start_job(struct fixture *fixture)
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

static int open_market(struct fixture *fixture, struct error *error)
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

static int setup(void **state)
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
    const uint64_t lender = command(fixture, &open[1]);
    enrol(fixture, 0, lender, "heron");
    enrol(fixture, 1, lender, "wren");
    start_job(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
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

/* ---- What machines say ----------------------------------------------------------------------- */

/* The worker's next tick, a second long. */
static void meter(struct fixture *fixture, uint64_t tick_index)
{
    advance(fixture, 1000);
    struct meter_message message = {.lease = fixture->leases[1].id,
                                    .fence = fixture->leases[1].fence,
                                    .tick_index = tick_index,
                                    .wall_ms = 1000,
                                    .cpu_ms = 500};
    uint8_t bytes[METER_SIGNED_SIZE];
    meter_message_signed(&message, bytes);
    crypto_sign_detached(message.signature, NULL, bytes, sizeof(bytes), fixture->secrets[1]);
    tick_meter(hub_machine(fixture->hub, fixture->machines[1]), &message);
}

static void report(struct fixture *fixture, uint64_t pushes, bool is_member, bool is_final)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *json = arena_format(
        arena,
        "{\"elapsed_ms\":1,\"version\":1,\"is_final\":%s,\"workers\":[{\"lease\":%" PRIu64
        ",\"fence\":%" PRIu64 ",\"is_member\":%s,\"accepted_pushes\":%" PRIu64 "}]}",
        is_final ? "true" : "false", fixture->leases[1].id, fixture->leases[1].fence,
        is_member ? "true" : "false", pushes);
    const struct report_message message = {
        .lease = fixture->leases[0].id, .fence = fixture->leases[0].fence, .json = text_of(json)};
    tick_report(hub_machine(fixture->hub, fixture->machines[0]), arena, &message);
}

/* Three bytes of the job's result, said to have `size_bytes`. */
static void leave_artifact(struct fixture *fixture, int index, const char *name,
                           uint64_t size_bytes)
{
    struct error error;
    struct manifest_chunk chunk = {.size_bytes = 3};
    ASSERT_OK(blob_store_put(fixture->server.blobs, NULL, TEXT("abc"), &chunk.hash, &error));
    const struct manifest manifest = {.size_bytes = 3, .chunks = {&chunk, 1}};
    struct blob_hash hash;
    ASSERT_OK(manifest_put(fixture->server.blobs, &manifest, &hash, &error));
    struct artifact_message message = {.lease = fixture->leases[index].id,
                                       .fence = fixture->leases[index].fence,
                                       .name = text_of(name),
                                       .size_bytes = size_bytes};
    memcpy(message.manifest, hash.bytes, sizeof(message.manifest));
    tick_artifact(hub_machine(fixture->hub, fixture->machines[index]), &message);
}

static size_t artifact_count(struct fixture *fixture)
{
    struct ask all_before = {0};
    run_ask(fixture, &all_before);
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_query query = {.table = &tables[TABLE_ARTIFACTS], .limit = 100};
    struct query_rows rows;
    struct error error;
    ASSERT_OK(query_all(&fixture->server, arena, &query, &rows, &error));
    return rows.count;
}

static void assert_worker(struct fixture *fixture, enum lease_state state, int64_t wall_ms)
{
    const struct ask seen = look(fixture, fixture->leases[1].id);
    assert_string_equal(lease_state_name(seen.seen.state), lease_state_name(state));
    assert_int_equal(seen.seen.wall_ms, wall_ms);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

TEST(a_worker_that_ends_before_its_pushes_are_reported_is_paid_for_them)
{
    struct fixture *fixture = *state;
    meter(fixture, 0);
    report(fixture, 2, true, false);
    meter(fixture, 1);
    meter(fixture, 2);
    say(fixture, 1, LEASE_RUN_SUCCEEDED);
    assert_worker(fixture, LEASE_STATE_RUNNING, 2000);
    report(fixture, 1, false, true);
    assert_worker(fixture, LEASE_STATE_ENDED, 3000);
}

TEST(a_worker_trained_with_to_the_end_is_paid_for_the_tick_it_cut_short)
{
    struct fixture *fixture = *state;
    report(fixture, 1, true, false);
    meter(fixture, 0);
    meter(fixture, 1);
    say(fixture, 1, LEASE_RUN_SUCCEEDED);
    report(fixture, 0, false, true);
    assert_worker(fixture, LEASE_STATE_ENDED, 2000);
}

TEST(a_report_that_may_be_older_than_the_last_push_does_not_end_the_lease)
{
    struct fixture *fixture = *state;
    meter(fixture, 0);
    say(fixture, 1, LEASE_RUN_SUCCEEDED);
    report(fixture, 0, true, false);
    assert_worker(fixture, LEASE_STATE_RUNNING, 0);
    report(fixture, 1, false, false);
    assert_worker(fixture, LEASE_STATE_ENDED, 1000);
}

TEST(a_worker_without_open_ticks_ends_at_once)
{
    struct fixture *fixture = *state;
    meter(fixture, 0);
    report(fixture, 1, true, false);
    say(fixture, 1, LEASE_RUN_SUCCEEDED);
    assert_worker(fixture, LEASE_STATE_ENDED, 1000);
}

TEST(the_end_waits_for_a_silent_parameter_server_only_so_long)
{
    struct fixture *fixture = *state;
    meter(fixture, 0);
    say(fixture, 1, LEASE_RUN_FAILED);
    advance(fixture, HUB_SETTLE_MS - 1000);
    step(fixture, 0);
    assert_worker(fixture, LEASE_STATE_RUNNING, 0);
    advance(fixture, 2000);
    step(fixture, 0);
    assert_worker(fixture, LEASE_STATE_ENDED, 0);
}

TEST(the_end_of_the_parameter_server_ends_the_waiting)
{
    struct fixture *fixture = *state;
    meter(fixture, 0);
    say(fixture, 1, LEASE_RUN_SUCCEEDED);
    say(fixture, 0, LEASE_RUN_SUCCEEDED);
    const struct ask seen = look(fixture, fixture->leases[1].id);
    assert_int_equal(seen.seen.state, LEASE_STATE_ENDED);
    assert_string_equal(job_state_name(seen.job_seen.state), "succeeded");
}

TEST(a_machine_that_says_good_bye_is_paid_for_its_last_ticks)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    machine->is_welcome = true; /* the good-bye of a link that said hello */
    meter(fixture, 0);
    say(fixture, 1, LEASE_RUN_STOPPED);
    hub_unlinked(machine, NULL);
    report(fixture, 3, false, false);
    assert_worker(fixture, LEASE_STATE_ENDED, 1000);
    struct ask seen = {0};
    run_ask(fixture, &seen);
    assert_false(machine->is_leaving);
}

/* A machine as a link left it: heard, and told to the core as online. Without a link there is
 * nobody to send it what it should stop. */
static struct hub_machine *linked(struct fixture *fixture, int index)
{
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[index]);
    machine->is_welcome = true;
    machine->is_told_online = true;
    machine->heard_ns = hub_now_ns(fixture->hub);
    return machine;
}

/* The hub looks once a second. */
static void pass(struct fixture *fixture, int64_t span_ms)
{
    for (int64_t passed_ms = 0; passed_ms < span_ms; passed_ms += HUB_TIMER_MS) {
        advance(fixture, HUB_TIMER_MS);
        step(fixture, 0);
    }
}

TEST(a_machine_with_a_lease_is_missed_soon_and_an_idle_one_later)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = linked(fixture, 1);
    assert_int_equal(machine->lease_count, 1);
    pass(fixture, 6000);
    assert_true(machine->is_told_online);
    pass(fixture, 1000);
    assert_false(machine->is_told_online);

    say(fixture, 1, LEASE_RUN_FAILED);
    assert_worker(fixture, LEASE_STATE_ENDED, 0);
    assert_int_equal(machine->lease_count, 0);
    linked(fixture, 1);
    pass(fixture, 6000 + LEASE_HEARTBEAT_IDLE_MS);
    assert_true(machine->is_told_online);
    pass(fixture, 1000);
    assert_false(machine->is_told_online);
}

TEST(a_machine_is_not_late_before_it_has_a_lease_or_lost_its_link)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = linked(fixture, 1);
    say(fixture, 1, LEASE_RUN_FAILED);
    say(fixture, 0, LEASE_RUN_SUCCEEDED);
    assert_worker(fixture, LEASE_STATE_ENDED, 0);
    pass(fixture, LEASE_HEARTBEAT_IDLE_MS);
    start_job(fixture);
    assert_int_equal(machine->lease_count, 1);
    pass(fixture, 6000);
    assert_true(machine->is_told_online);
    pass(fixture, 1000);
    assert_false(machine->is_told_online);

    say(fixture, 1, LEASE_RUN_FAILED);
    assert_worker(fixture, LEASE_STATE_ENDED, 0);
    linked(fixture, 1);
    pass(fixture, LEASE_HEARTBEAT_IDLE_MS);
    machine->is_welcome = false;
    presence_gone(machine);
    pass(fixture, 6000);
    assert_true(machine->is_told_online);
    pass(fixture, 1000);
    assert_false(machine->is_told_online);
}

/* Holds the core thread, so that what is asked until let_fail goes into one batch that fails. */
struct failure {
    sem_t gate;
    struct ask held, failing;
};

static void begin_failure(struct fixture *fixture, struct failure *failure)
{
    *failure = (struct failure){.failing = {.fault = STORE_FAULT_DISK_FULL}};
    sem_init(&failure->gate, 0, 0);
    failure->held.gate = &failure->gate;
    submit(fixture, &failure->held);
    while (engine_counts(fixture->server.engine).waiting > 0)
        sched_yield();
    submit(fixture, &failure->failing);
}

static void let_fail(struct fixture *fixture, struct failure *failure)
{
    sem_post(&failure->gate);
    while (engine_counts(fixture->server.engine).failed_commits == 0)
        sched_yield();
}

TEST(a_tick_the_store_refused_is_billed_by_the_end_that_overtakes_it)
{
    struct fixture *fixture = *state;
    struct failure failure;
    report(fixture, 1, true, false);
    begin_failure(fixture, &failure);
    meter(fixture, 0);
    let_fail(fixture, &failure);
    say(fixture, 1, LEASE_RUN_SUCCEEDED); /* asked before the hub tries the tick again */
    assert_worker(fixture, LEASE_STATE_ENDED, 1000);
    sem_destroy(&failure.gate);
}

TEST(an_artifact_the_store_refused_is_kept_when_it_is_back)
{
    struct fixture *fixture = *state;
    struct failure failure;
    begin_failure(fixture, &failure);
    leave_artifact(fixture, 0, "model.safetensors", 3);
    let_fail(fixture, &failure);
    while (artifact_count(fixture) == 0) /* or the test runs into its time limit */
        advance(fixture, HUB_TIMER_MS);
    sem_destroy(&failure.gate);
}

TEST(an_artifact_is_whole_and_left_by_the_parameter_server_only)
{
    struct fixture *fixture = *state;
    leave_artifact(fixture, 1, "model.safetensors", 3);
    leave_artifact(fixture, 0, "model.safetensors", 4);
    leave_artifact(fixture, 0, "../model", 3);
    assert_int_equal(artifact_count(fixture), 0);
    char name[24];
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof(name), "part-%d", i);
        leave_artifact(fixture, 0, name, 3);
    }
    assert_int_equal(artifact_count(fixture), 64);
}

/* ---- Machines found silent ------------------------------------------------------------------- */

/* The worker's machine, as linked and heard, after a tick of it that was paid. */
static struct hub_machine *work_once(struct fixture *fixture)
{
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    hub_tell_online(machine);
    meter(fixture, 0);
    report(fixture, 1, true, false);
    assert_int_equal(look(fixture, fixture->leases[1].id).seen.tick_index, 1);
    return machine;
}

static void hear(struct fixture *fixture, struct hub_machine *machine)
{
    atomic_store(&machine->heard_ns, hub_now_ns(fixture->hub));
    hub_tell_online(machine);
}

static bool is_unreachable(struct fixture *fixture)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct ask all_before = {0};
    run_ask(fixture, &all_before);
    const struct store_value *row = NULL;
    struct error error;
    ASSERT_OK(query_id(&fixture->server, arena, TABLE_MACHINES, fixture->machines[1], "machine",
                       &row, &error));
    return row[MACHINES_AVAILABILITY].integer == MACHINE_UNREACHABLE;
}

TEST(a_parameter_server_whose_worker_dropped_out_makes_the_market_look)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = work_once(fixture);
    hear(fixture, machine);
    report(fixture, 0, /* is_member= */ false, false);
    assert_true(machine->suspicion.is_asked);
    advance(fixture, 10);
    hear(fixture, machine);
    suspect_check(machine);
    assert_false(machine->suspicion.is_asked);
    assert_false(is_unreachable(fixture));

    advance(fixture, SUSPICION_AGAIN_MS);
    report(fixture, 0, /* is_member= */ false, false);
    advance(fixture, 3000); /* half of the silence */
    suspect_check(machine);
    assert_true(is_unreachable(fixture));
    hear(fixture, machine);
    assert_false(is_unreachable(fixture));
}

TEST(a_machine_that_works_for_nobody_counts_as_silent_until_a_push_of_it_is_accepted)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = work_once(fixture);
    struct hub_lease *lease = map_get(&fixture->hub->leases, fixture->leases[1].id);
    const struct hub_lease other = {.machine = machine->id,
                                    .account = lease->account + 1,
                                    .job = lease->job + 1,
                                    .server_lease = 1,
                                    .verified_index = 1};
    suspect_report(fixture->hub, lease);
    suspect_report(fixture->hub, &other);
    advance(fixture, 6000);
    hear(fixture, machine);
    machine->yield = MACHINE_YIELD_FROZEN; /* the owner's right */
    suspect_check(machine);
    assert_false(is_unreachable(fixture));
    machine->yield = MACHINE_YIELD_DRAINING; /* no new leases, but those there are go on */
    suspect_check(machine);
    assert_true(is_unreachable(fixture));
    hear(fixture, machine);
    assert_true(is_unreachable(fixture));
    report(fixture, 1, true, false);
    hear(fixture, machine);
    assert_false(is_unreachable(fixture));
}

/* ---- Machines tried with one another --------------------------------------------------------- */

/* As the core has it after all it was told. */
static int64_t pair_us(struct fixture *fixture)
{
    struct ask ask = {.wants_pair = true};
    run_ask(fixture, &ask);
    return ask.pair_us;
}

static void tell(struct fixture *fixture, int index, uint64_t trial, uint32_t rtt_us)
{
    const struct tried_message tried = {trial, rtt_us};
    trial_done(hub_machine(fixture->hub, fixture->machines[index]), &tried);
}

static uint64_t begin_trial(struct fixture *fixture)
{
    struct hub_machine *low = hub_machine(fixture->hub, fixture->machines[0]);
    trial_forget(low);
    trial_begin(fixture->hub, low, hub_machine(fixture->hub, fixture->machines[1]));
    return fixture->hub->last_trial;
}

TEST(of_two_machines_that_were_tried_the_larger_report_counts)
{
    struct fixture *fixture = *state;
    uint64_t trial = begin_trial(fixture);
    tell(fixture, 1, trial, 900);
    tell(fixture, 0, trial + 7, 1); /* of none that is known */
    assert_int_equal(pair_us(fixture), 0);
    tell(fixture, 0, trial, 1); /* a lie */
    assert_int_equal(pair_us(fixture), 900);
    tell(fixture, 0, trial, 1); /* too late */
    trial = begin_trial(fixture);
    tell(fixture, 0, trial, 700);
    tell(fixture, 1, trial, 650);
    assert_int_equal(pair_us(fixture), 700);
}

TEST(a_trial_that_reached_nobody_or_has_half_a_report_changes_nothing)
{
    struct fixture *fixture = *state;
    const struct hub *hub = fixture->hub;
    uint64_t trial = begin_trial(fixture);
    tell(fixture, 0, trial, 0);
    tell(fixture, 1, trial, 5);
    assert_int_equal(hub->trials.count, 0);
    trial = begin_trial(fixture);
    tell(fixture, 1, trial, 5);
    assert_int_equal(hub->trials.count, 1);
    advance(fixture, 5000);
    trial_check(fixture->hub);
    assert_int_equal(hub->trials.count, 0);
    assert_int_equal(pair_us(fixture), 0);
    assert_int_equal(hub->tried.count, 1); /* not again soon */
    advance(fixture, PAIR_FRESH_MS);
    trial_check(fixture->hub);
    assert_int_equal(hub->tried.count, 0);
}

/* ---- A machine that floods --------------------------------------------------------------------
 */

/* The worker's machine, at the other end of a real link. */
struct daemon_end {
    struct fixture *fixture;
    struct hub_machine *machine;
    struct link *link;
    uint64_t sent_bytes;
};

static void end_opened(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity, (void)context;
}

static void end_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)type, (void)payload, (void)context;
}

static void end_closed(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fail_msg("the link was closed: %s", reason ? reason->message : "good-bye");
}

static int dial_hub(const struct hub *hub)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(hub_port(hub))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void end_send(struct daemon_end *end, const struct lease_message *message)
{
    struct buffer payload AUTO_BUFFER;
    struct error error;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    ASSERT_OK(link_send_text(end->link, (uint16_t)message->type, buffer_text(&payload), &error));
    end->sent_bytes += FRAME_HEADER_SIZE + payload.size;
}

static uint64_t taken_bytes(const struct daemon_end *end)
{
    return end->machine->connection ? link_received_bytes(connection_link(end->machine->connection))
                                    : 0;
}

static void end_open(struct fixture *fixture, struct daemon_end *end)
{
    struct error error;
    char identity[64];
    uint8_t key[LINK_KEY_SIZE];
    struct hub_machine *machine = hub_machine(fixture->hub, fixture->machines[1]);
    *end = (struct daemon_end){.fixture = fixture, .machine = machine};
    snprintf(identity, sizeof(identity), "machine:%" PRIu64 ":1", machine->id);
    keys_machine(fixture->server.keys, machine->id, 1, key);
    const struct link_options options = {
        .loop = fixture->hub->loop,
        .identity = identity,
        .key = key,
        .payload_max = LEASE_MESSAGE_SIZE_MAX,
        .queue_max_bytes = 64 << 20,
        .callbacks = {.on_open = end_opened, .on_frame = end_frame, .on_close = end_closed},
        .context = end};
    ASSERT_OK(link_open_take(&options, dial_hub(fixture->hub), &end->link, &error));
    const struct lease_fence running = {fixture->leases[1].id, fixture->leases[1].fence};
    end_send(end, &(struct lease_message){.type = LEASE_MESSAGE_HELLO,
                                          .hello = {.version = LEASE_MESSAGE_VERSION,
                                                    .machine = machine->id,
                                                    .ceiling = machine->probe.resources,
                                                    .running = &running,
                                                    .running_count = 1}});
    while (!machine->is_welcome)
        step(fixture, 1000);
}

/* Until all that was sent was taken, or no more of it is now. */
static void let_talk(struct daemon_end *end)
{
    struct error error;
    while (taken_bytes(end) < end->sent_bytes && !end->machine->pace.is_paused)
        ASSERT_OK(loop_step(end->fixture->hub->loop, 1000, &error));
}

static uint64_t command_count(struct fixture *fixture)
{
    struct ask all_before = {0};
    run_ask(fixture, &all_before);
    return engine_counts(fixture->server.engine).commands;
}

static enum machine_yield yield_in_core(struct fixture *fixture)
{
    struct ask ask = {.machine = fixture->machines[1]};
    run_ask(fixture, &ask);
    return ask.yield_seen;
}

static void yield(struct daemon_end *end, enum machine_yield yield)
{
    end_send(end, &(struct lease_message){.type = LEASE_MESSAGE_YIELD, .yield = {yield}});
}

TEST(a_flood_of_yields_waits_at_its_sender_and_the_last_one_counts)
{
    enum { FLOOD = 6000 };
    struct fixture *fixture = *state;
    struct daemon_end end;
    end_open(fixture, &end);
    yield(&end, MACHINE_YIELD_FROZEN);
    let_talk(&end);
    assert_int_equal(yield_in_core(fixture), MACHINE_YIELD_FROZEN); /* at once */
    const uint64_t before = command_count(fixture);
    for (int i = 0; i < FLOOD; i++)
        yield(&end, i % 2 ? MACHINE_YIELD_FROZEN : MACHINE_YIELD_NONE);
    yield(&end, MACHINE_YIELD_LOW);
    let_talk(&end);
    assert_true(end.machine->pace.is_paused);
    assert_true(taken_bytes(&end) < end.sent_bytes / 2);
    assert_int_equal(command_count(fixture), before); /* within the second */

    uint64_t seconds = 0;
    while (taken_bytes(&end) < end.sent_bytes) {
        advance(fixture, 1000);
        seconds++;
        step(fixture, 0);
        let_talk(&end);
        assert_true(end.machine->is_told_online);
    }
    assert_in_range(seconds, 5, 60);
    advance(fixture, HUB_TIMER_MS);
    step(fixture, 1000);
    assert_int_equal(yield_in_core(fixture), MACHINE_YIELD_LOW);
    assert_true(command_count(fixture) - before <= 2 * (seconds + 2));
    link_free(end.link);
}

TEST(a_machine_whose_words_are_not_taken_is_not_listened_to)
{
    enum { PIECES = 300, MOST = 10 << 20 };
    static const char bytes[LEASE_LOG_SIZE_MAX];
    struct fixture *fixture = *state;
    struct error error;
    struct daemon_end end;
    end_open(fixture, &end);
    for (uint64_t i = 0; i < PIECES; i++)
        end_send(&end, &(struct lease_message){.type = LEASE_MESSAGE_LOG,
                                               .log = {.lease = fixture->leases[1].id,
                                                       .fence = fixture->leases[1].fence,
                                                       .offset = i * sizeof(bytes),
                                                       .bytes = {bytes, sizeof(bytes)}}});
    let_talk(&end); /* the main thread, which writes the logs, does nothing meanwhile */
    assert_true(end.machine->pace.is_paused);
    assert_in_range(taken_bytes(&end), MOST / 2, MOST);
    advance(fixture, 10000); /* longer than a silence may be */
    ASSERT_OK(loop_step(fixture->hub->loop, 0, &error));
    assert_in_range(taken_bytes(&end), MOST / 2, MOST);
    assert_true(end.machine->is_told_online);
    while (taken_bytes(&end) < end.sent_bytes) { /* and now it does */
        advance(fixture, 20);
        step(fixture, 0);
    }
    link_free(end.link);
}

TEST(a_lease_that_runs_is_told_once)
{
    struct fixture *fixture = *state;
    const uint64_t before = command_count(fixture);
    for (int i = 0; i < 100; i++)
        say(fixture, 1, LEASE_RUN_RUNNING);
    assert_int_equal(command_count(fixture), before);
}

TEST(a_machine_gets_in_past_a_crowd_that_says_nothing)
{
    enum { CROWD = 300 };
    struct fixture *fixture = *state;
    struct hub *hub = fixture->hub;
    int crowd[CROWD];
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial_hub(hub);
        step(fixture, 1000); /* accepts */
    }
    assert_int_equal(hub->accepting_count, ADMISSION_BLOCK_MAX);
    struct daemon_end end;
    end_open(fixture, &end);
    advance(fixture, HUB_FIRST_BYTE_MS);
    step(fixture, 0);
    assert_int_equal(hub->accepting_count, 0);
    assert_true(end.machine->is_welcome);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    link_free(end.link);
}

#define WITH_HUB(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HUB(a_worker_that_ends_before_its_pushes_are_reported_is_paid_for_them),
        WITH_HUB(a_worker_trained_with_to_the_end_is_paid_for_the_tick_it_cut_short),
        WITH_HUB(a_report_that_may_be_older_than_the_last_push_does_not_end_the_lease),
        WITH_HUB(a_worker_without_open_ticks_ends_at_once),
        WITH_HUB(the_end_waits_for_a_silent_parameter_server_only_so_long),
        WITH_HUB(the_end_of_the_parameter_server_ends_the_waiting),
        WITH_HUB(a_machine_that_says_good_bye_is_paid_for_its_last_ticks),
        WITH_HUB(a_machine_with_a_lease_is_missed_soon_and_an_idle_one_later),
        WITH_HUB(a_machine_is_not_late_before_it_has_a_lease_or_lost_its_link),
        WITH_HUB(a_tick_the_store_refused_is_billed_by_the_end_that_overtakes_it),
        WITH_HUB(an_artifact_the_store_refused_is_kept_when_it_is_back),
        WITH_HUB(an_artifact_is_whole_and_left_by_the_parameter_server_only),
        WITH_HUB(a_parameter_server_whose_worker_dropped_out_makes_the_market_look),
        WITH_HUB(a_machine_that_works_for_nobody_counts_as_silent_until_a_push_of_it_is_accepted),
        WITH_HUB(of_two_machines_that_were_tried_the_larger_report_counts),
        WITH_HUB(a_trial_that_reached_nobody_or_has_half_a_report_changes_nothing),
        WITH_HUB(a_flood_of_yields_waits_at_its_sender_and_the_last_one_counts),
        WITH_HUB(a_machine_whose_words_are_not_taken_is_not_listened_to),
        WITH_HUB(a_lease_that_runs_is_told_once),
        WITH_HUB(a_machine_gets_in_past_a_crowd_that_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
