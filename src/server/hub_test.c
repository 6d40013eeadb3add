/* covers hub.c, dispatch.c, tick.c, order.c, suspect.c
 *
 * Messages are handed over as if they had come by a link. */
#include "server/hub_fixture_internal.h"

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
    const struct store_query query = {.table = &tables[TABLE_ARTIFACTS], .limit = 2000};
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

TEST(a_machine_whose_link_breaks_is_missed_at_once_unless_it_has_a_lease)
{
    struct fixture *fixture = *state;
    struct hub_machine *machine = linked(fixture, 1);
    struct error reset;
    error_set(&reset, ERROR_UNAVAILABLE, "connection reset");
    hub_unlinked(machine, &reset);
    assert_true(machine->is_told_online);
    say(fixture, 1, LEASE_RUN_FAILED);
    assert_worker(fixture, LEASE_STATE_ENDED, 0);
    assert_int_equal(machine->lease_count, 0);
    hub_unlinked(machine, &reset);
    assert_false(machine->is_told_online);
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
    leave_artifact(fixture, 0, "a/../../model", 3);
    assert_int_equal(artifact_count(fixture), 0);
    char name[24];
    for (int i = 0; i < RESULT_FILES_MAX + RESULT_OWN_FILES_MAX + 6; i++) {
        snprintf(name, sizeof(name), "epoch=%d/part è", i);
        leave_artifact(fixture, 0, name, 3);
    }
    assert_int_equal(artifact_count(fixture), RESULT_FILES_MAX + RESULT_OWN_FILES_MAX);
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
                                    .dials = {{.server_lease = 1}},
                                    .dial_count = 1,
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
        WITH_HUB(a_machine_whose_link_breaks_is_missed_at_once_unless_it_has_a_lease),
        WITH_HUB(a_machine_with_a_lease_is_missed_soon_and_an_idle_one_later),
        WITH_HUB(a_machine_is_not_late_before_it_has_a_lease_or_lost_its_link),
        WITH_HUB(a_tick_the_store_refused_is_billed_by_the_end_that_overtakes_it),
        WITH_HUB(an_artifact_the_store_refused_is_kept_when_it_is_back),
        WITH_HUB(an_artifact_is_whole_and_left_by_the_parameter_server_only),
        WITH_HUB(a_parameter_server_whose_worker_dropped_out_makes_the_market_look),
        WITH_HUB(a_machine_that_works_for_nobody_counts_as_silent_until_a_push_of_it_is_accepted),
        WITH_HUB(of_two_machines_that_were_tried_the_larger_report_counts),
        WITH_HUB(a_trial_that_reached_nobody_or_has_half_a_report_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
