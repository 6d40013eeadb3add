/*
 * Thousands of random commands against the whole core: whatever is asked, in whatever order, the
 * books balance, nothing is lent twice, nobody overspends, and the log replays to the same bytes.
 *
 * property_test            the seeds of the suite
 * property_test SEED       one seed, to look at a failure
 * property_test --replay   how long a million events take to decode and apply
 */
#include "base/random.h"
#include "core/testing_internal.h"

#include <inttypes.h>
#include <time.h>

enum { SNAPSHOT_MAX = 1 << 28, COMMANDS_PER_SEED = 4000, SEED_COUNT = 6, NAME_COUNT = 12 };

struct world {
    struct random random;
    struct core *core;
    struct event_list events; /* of the last command */
    struct buffer log;        /* every event, one line each */
    struct buffer snapshot;   /* taken somewhere in the middle */
    size_t snapshot_at;       /* where in the log */
    int64_t now_ms;
    uint64_t decided, refused;
};

static uint64_t below(struct world *world, uint64_t bound)
{
    return random_below(&world->random, bound);
}

static void random_hash(struct world *world, uint8_t *out)
{
    memset(out, (int)below(world, 40) + 1, MARKET_HASH_SIZE);
}

/* Any id that exists, of anything, or one that does not. */
static uint64_t random_id(struct world *world)
{
    return below(world, 200);
}

static uint64_t random_account(struct world *world)
{
    const size_t count = core_account_count(world->core);
    if (below(world, 20) == 0)
        return random_id(world);
    if (below(world, 20) == 0 || count == 2)
        return core_account_at(world->core, below(world, count))->id;
    return core_account_at(world->core, 2 + below(world, count - 2))->id;
}

static const struct machine *random_machine(struct world *world)
{
    const size_t count = core_machine_count(world->core);
    return count ? core_machine_at(world->core, below(world, count)) : NULL;
}

static uint64_t random_machine_id(struct world *world)
{
    const struct machine *machine = random_machine(world);
    return machine && below(world, 20) ? machine->id : random_id(world);
}

/* Mostly one that is open; now and then any. */
static const struct lease *random_lease(struct world *world)
{
    const size_t count = core_lease_count(world->core);
    const struct lease *open[64];
    size_t open_count = 0;
    for (size_t i = count; i-- > 0 && open_count < 64;)
        if (lease_is_open(core_lease_at(world->core, i)))
            open[open_count++] = core_lease_at(world->core, i);
    if (open_count > 0 && below(world, 10))
        return open[below(world, open_count)];
    return count ? core_lease_at(world->core, below(world, count)) : NULL;
}

static struct resources random_resources(struct world *world, int64_t cores_max)
{
    return (struct resources){.cores_milli = (int64_t)below(world, (uint64_t)cores_max),
                              .ram_bytes = (int64_t)below(world, 4) * GIB / 4,
                              .gpus_milli = below(world, 30) ? 0 : 1000,
                              .disk_bytes = (int64_t)below(world, 3) * GIB};
}

static struct probe random_probe(struct world *world)
{
    return (struct probe){.resources = {.cores_milli = 500 + (int64_t)below(world, 4000),
                                        .ram_bytes = 2 * GIB,
                                        .gpus_milli = (int64_t)below(world, 2) * 1000,
                                        .disk_bytes = 4 * GIB},
                          .speed_weight_milli = 20 + (int64_t)below(world, 4000),
                          .cpu_model = "random"};
}

static struct offer random_offer(struct world *world)
{
    return (struct offer){.resources = {.cores_milli = 1 + (int64_t)below(world, 2500),
                                        .ram_bytes = 2 * GIB,
                                        .gpus_milli = (int64_t)below(world, 2) * 1000,
                                        .disk_bytes = 4 * GIB},
                          .roles = below(world, 20) ? 1 + below(world, 3) : 0,
                          .minimum = {.core_micro = below(world, 4) ? 0 : 15000},
                          .is_paused = below(world, 20) == 0};
}

static const char *const names[NAME_COUNT] = {"ann", "bob", "cat",  "dan",    "emu",  "fox",
                                              "gnu", "hen", "ibis", "market", "mint", "Eve!"};

static void random_enrolment(struct world *world, struct command *command)
{
    command->kind = COMMAND_ENROL_MACHINE;
    random_hash(world, command->enrol_machine.code_hash);
    for (size_t i = 0; i < 40; i++) { /* mostly a code that is there */
        if (core_code_by_hash(world->core, command->enrol_machine.code_hash))
            break;
        random_hash(world, command->enrol_machine.code_hash);
    }
    random_hash(world, command->enrol_machine.public_key);
    command->enrol_machine.name =
        below(world, 3) ? text_of(names[below(world, NAME_COUNT)]) : TEXT("");
    command->enrol_machine.probe = random_probe(world);
    command->enrol_machine.offer = random_offer(world);
}

static void random_submit(struct world *world, struct command *command)
{
    static const char *const specs[] = {"{}", "{\"train\":1}", "\"\xff\""};
    command->kind = COMMAND_SUBMIT_JOB;
    struct job_request *request = &command->submit_job;
    *request = (struct job_request){
        .account = random_account(world),
        .name = "job",
        .spec = text_of(specs[below(world, 30) ? below(world, 2) : 2]),
        .num_nodes = (int64_t)below(world, 20) ? 1 + (int64_t)below(world, 3) : 0,
        .worker = random_resources(world, 500),
        .takes_more_cores = below(world, 2),
        .max_run_ms = 1000 + (int64_t)below(world, 600000),
        .tick_ms = 1000};
    if (below(world, 4))
        request->server = random_resources(world, 500);
    if (below(world, 10) == 0)
        request->max_run_ms = 1000 + (int64_t)below(world, (uint64_t)PRICE_RUN_MS_MAX);
    if (below(world, 2))
        request->max_total_micro = (int64_t)below(world, 20000);
    if (below(world, 3) == 0)
        request->max_hourly_micro = (int64_t)below(world, 100000);
    if (below(world, 3) == 0)
        random_hash(world, request->idempotency_hash);
}

static void random_lease_command(struct world *world, struct command *command)
{
    const struct lease *lease = random_lease(world);
    const uint64_t id = lease ? lease->id : random_id(world);
    const uint64_t fence = lease && below(world, 20) ? lease->fence : random_id(world);
    switch (below(world, 12)) {
    case 0:
    case 1:
    case 3:
        command->kind = COMMAND_LEASE_RUNNING;
        command->lease_running.lease = id;
        command->lease_running.fence = fence;
        return;
    case 2:
        command->kind = COMMAND_END_LEASE;
        command->end_lease.lease = id;
        command->end_lease.fence = fence;
        command->end_lease.outcome = LEASE_OUTCOME_SUCCEEDED;
        if (below(world, 3) == 0)
            command->end_lease.outcome = (enum lease_outcome)below(world, LEASE_OUTCOME_COUNT + 1);
        command->end_lease.reason = below(world, 2) ? TEXT("bad \xff\x01 byte") : TEXT("");
        return;
    default:
        command->kind = COMMAND_TICK_LEASE;
        command->tick_lease.lease = id;
        command->tick_lease.fence = fence;
        command->tick_lease.tick_index = (lease ? lease->tick_index : 0) + below(world, 4);
        command->tick_lease.wall_ms =
            (lease ? lease->wall_ms : 0) + (int64_t)below(world, 20000) - 1000;
        if (below(world, 50) == 0)
            command->tick_lease.wall_ms = INT64_MAX;
    }
}

static void random_small_command(struct world *world, struct command *command)
{
    switch (below(world, 8)) {
    case 0:
        command->kind = COMMAND_OPEN_ACCOUNT;
        command->open_account.name = text_of(names[below(world, NAME_COUNT)]);
        return;
    case 1:
        command->kind = COMMAND_ADD_TOKEN;
        command->add_token.account = random_account(world);
        command->add_token.scopes = below(world, 18);
        random_hash(world, command->add_token.hash);
        return;
    case 2:
        command->kind = COMMAND_REVOKE_TOKEN;
        command->revoke_token.account = random_account(world);
        command->revoke_token.token = random_id(world);
        return;
    case 3:
        command->kind = COMMAND_CHANGE_SETTINGS;
        command->change_settings = core_default_settings();
        command->change_settings.fee_basis_points = (int64_t)below(world, 600);
        command->change_settings.grant_micro = (int64_t)below(world, 4) * 1000000;
        return;
    case 4:
        command->kind = COMMAND_USE_CODE;
        command->use_code.kind = CODE_KIND_PAGE;
        random_hash(world, command->use_code.hash);
        return;
    default:
        command->kind = COMMAND_ADD_CODE;
        command->add_code.kind = below(world, 4) ? CODE_KIND_ENROL : CODE_KIND_PAGE;
        command->add_code.account = random_account(world);
        command->add_code.expires_ms = world->now_ms + (int64_t)below(world, 200000) - 100;
        random_hash(world, command->add_code.hash);
    }
}

static void random_machine_command(struct world *world, struct command *command)
{
    const struct machine *machine = random_machine(world);
    const uint64_t id = random_machine_id(world);
    const uint64_t owner = machine && below(world, 10) ? machine->owner : random_account(world);
    switch (below(world, 20)) {
    case 0:
        command->kind = COMMAND_SET_OFFER;
        command->set_offer.account = owner;
        command->set_offer.machine = machine ? machine->id : id;
        command->set_offer.offer = random_offer(world);
        return;
    case 1:
        command->kind = COMMAND_WITHDRAW_OFFER;
        command->withdraw_offer.account = owner;
        command->withdraw_offer.machine = machine ? machine->id : id;
        return;
    case 2:
        command->kind = COMMAND_REPORT_PROBE;
        command->report_probe.machine = id;
        command->report_probe.probe = random_probe(world);
        return;
    case 3:
        command->kind = COMMAND_MACHINE_SILENT;
        command->machine_silent.machine = id;
        return;
    case 4:
        command->kind = COMMAND_MACHINE_GONE;
        command->machine_gone.machine = id;
        return;
    default:
        command->kind = COMMAND_MACHINE_CONNECTED;
        command->machine_connected.machine = machine ? machine->id : id;
        command->machine_connected.generation = machine ? machine->generation : 1;
    }
}

static struct command random_command(struct world *world)
{
    struct command command;
    memset(&command, 0, sizeof(command));
    const uint64_t dice = below(world, 100);
    if (dice < 8)
        random_small_command(world, &command);
    else if (dice < 14)
        random_enrolment(world, &command);
    else if (dice < 32)
        random_machine_command(world, &command);
    else if (dice < 48)
        random_submit(world, &command);
    else if (dice < 95)
        random_lease_command(world, &command);
    else if (dice < 97) {
        command.kind = COMMAND_CANCEL_JOB;
        const size_t count = core_job_count(world->core);
        const size_t recent = count < 10 ? count : 10;
        const struct job *job =
            count ? core_job_at(world->core, count - 1 - below(world, recent)) : NULL;
        command.cancel_job.job = job ? job->id : random_id(world);
        command.cancel_job.account = job ? job->request.account : random_account(world);
    } else {
        command.kind = COMMAND_TIME_PASSED;
    }
    return command;
}

/* The invariants that core_check does not already walk, said once more in other words. */
static void assert_invariants(const struct core *core)
{
    struct error error = {0};
    ASSERT_OK(core_check(core, &error));
    assert_int_equal(core_ledger_sum_micro(core), 0);
    for (size_t i = 0; i < core_account_count(core); i++) {
        const uint64_t id = core_account_at(core, i)->id;
        assert_true(id == ACCOUNT_MINT || ledger_available_micro(core_balance(core, id)) >= 0);
    }
    for (size_t i = 0; i < core_job_count(core); i++) {
        const struct job *job = core_job_at(core, i);
        const int64_t held_micro = core_held_micro(core, job->id);
        assert_true(job->posted_micro + held_micro <= job->quote_micro);
        assert_true(!job->request.max_total_micro ||
                    job->posted_micro + held_micro <= job->request.max_total_micro);
    }
}

static void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){.core = core_new(), .now_ms = TEST_NOW};
    random_init(&world->random, seed);
    event_list_init(&world->events);
    buffer_init(&world->log, SNAPSHOT_MAX);
    buffer_init(&world->snapshot, SNAPSHOT_MAX);
}

static void world_done(struct world *world)
{
    core_free(world->core);
    event_list_done(&world->events);
    buffer_done(&world->log);
    buffer_done(&world->snapshot);
}

static void step(struct world *world)
{
    struct error error = {0};
    const struct command command = random_command(world);
    const uint64_t sequence = core_sequence(world->core);
    event_list_clear(&world->events);
    if (core_decide(world->core, &command, world->now_ms, &world->events, &error) < 0) {
        world->refused++;
        assert_int_equal(world->events.count, 0);
        assert_int_equal(core_sequence(world->core), sequence);
        assert_true(error.code != ERROR_NONE && error.code != ERROR_CORRUPT);
        return;
    }
    world->decided++;
    assert_int_equal(core_sequence(world->core), sequence + world->events.count);
    for (size_t i = 0; i < world->events.count; i++) {
        event_encode(&world->events.items[i], &world->log);
        buffer_append_byte(&world->log, '\n');
    }
}

/* Now and then straight to the next wake, where the limits are. */
static void pass_time(struct world *world)
{
    const int64_t wake_ms = core_next_wake_ms(world->core);
    if (below(world, 30) == 0 && wake_ms != INT64_MAX)
        world->now_ms = wake_ms > world->now_ms ? wake_ms : world->now_ms;
    else if (below(world, 50) == 0)
        world->now_ms -= (int64_t)below(world, 1000);
    else
        world->now_ms += (int64_t)below(world, 2000);
}

static void replay(struct core *core, struct text log)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct text line;
    while (text_cut(log, '\n', &line, &log)) {
        struct event event;
        ASSERT_OK(event_decode(arena, line, &event, &error));
        ASSERT_OK(core_apply(core, &event, &error));
        arena_clear(arena);
    }
}

static void assert_same_state(const struct core *left, const struct core *right)
{
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    core_snapshot_write(left, &first);
    core_snapshot_write(right, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    assert_true(core_next_wake_ms(left) == core_next_wake_ms(right));
}

static void assert_replays(const struct world *world)
{
    struct error error = {0};
    AUTO(core) struct core *replayed = core_new();
    replay(replayed, buffer_text(&world->log));
    assert_same_state(world->core, replayed);

    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&world->snapshot), &restored, &error));
    replay(restored, (struct text){(const char *)world->log.data + world->snapshot_at,
                                   world->log.size - world->snapshot_at});
    assert_same_state(world->core, restored);
}

static void run_seed(uint64_t seed)
{
    struct world world;
    print_message("seed %" PRIu64 "\n", seed);
    world_init(&world, seed);
    for (int i = 0; i < COMMANDS_PER_SEED; i++) {
        step(&world);
        pass_time(&world);
        assert_invariants(world.core);
        if (i == COMMANDS_PER_SEED / 2) {
            core_snapshot_write(world.core, &world.snapshot);
            world.snapshot_at = world.log.size;
        }
    }
    assert_replays(&world);
    size_t ended[JOB_STATE_COUNT] = {0};
    for (size_t i = 0; i < core_job_count(world.core); i++)
        ended[core_job_at(world.core, i)->state]++;
    print_message("  %" PRIu64 " decided, %" PRIu64 " refused, %" PRIu64
                  " events; jobs: %zu succeeded, %zu failed, %zu cancelled\n",
                  world.decided, world.refused, core_sequence(world.core),
                  ended[JOB_STATE_SUCCEEDED], ended[JOB_STATE_FAILED], ended[JOB_STATE_CANCELLED]);
    /* Random commands that only get refused would prove nothing. */
    assert_true(world.decided > COMMANDS_PER_SEED / 4);
    assert_true(ended[JOB_STATE_FAILED] > 0 && ended[JOB_STATE_SUCCEEDED] > 0);
    world_done(&world);
}

TEST(random_commands_keep_every_invariant_and_replay_to_the_same_bytes)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_seed(seed);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

/* A million events of jobs that run and tick, decided, encoded, decoded and applied. */
static void measure_replay(void)
{
    enum { EVENT_COUNT = 1000000 };
    struct market market;
    struct buffer log AUTO_BUFFER;
    struct timespec start;
    buffer_init(&log, (size_t)1 << 30);
    market_init_demo(&market);
    clock_gettime(CLOCK_MONOTONIC, &start);
    struct error error = {0};
    while (core_sequence(market.core) < EVENT_COUNT) {
        const struct command submit = market_job(&market);
        ASSERT_OK(core_decide(market.core, &submit, market.now_ms, &market.events, &error));
        const struct job *job = core_job(market.core, market.events.subject);
        for (size_t i = 0; i < job->lease_count; i++) {
            const struct command run = {
                .kind = COMMAND_LEASE_RUNNING,
                .lease_running = {job->leases[i]->id, job->leases[i]->fence}};
            ASSERT_OK(core_decide(market.core, &run, market.now_ms, &market.events, &error));
        }
        for (uint64_t tick = 1; tick <= 50; tick++)
            for (size_t i = 0; i < job->lease_count; i++) {
                market.now_ms += 250;
                const struct command ticked =
                    market_tick(job->leases[i], tick, (int64_t)tick * 1000);
                ASSERT_OK(core_decide(market.core, &ticked, market.now_ms, &market.events, &error));
            }
        for (size_t i = 0; i < job->lease_count; i++) {
            const struct command end = {.kind = COMMAND_END_LEASE,
                                        .end_lease = {.lease = job->leases[i]->id,
                                                      .fence = job->leases[i]->fence,
                                                      .outcome = LEASE_OUTCOME_SUCCEEDED}};
            ASSERT_OK(core_decide(market.core, &end, market.now_ms, &market.events, &error));
        }
    }
    print_message("decide and apply %zu events: %.2f s\n", market.events.count,
                  seconds_since(&start));
    clock_gettime(CLOCK_MONOTONIC, &start);
    AUTO(core) struct core *applied = core_new();
    for (size_t i = 0; i < market.events.count; i++)
        ASSERT_OK(core_apply(applied, &market.events.items[i], &error));
    print_message("apply: %.2f s\n", seconds_since(&start));
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t i = 0; i < market.events.count; i++) {
        event_encode(&market.events.items[i], &log);
        buffer_append_byte(&log, '\n');
    }
    print_message("encode to %zu bytes: %.2f s\n", log.size, seconds_since(&start));
    clock_gettime(CLOCK_MONOTONIC, &start);
    AUTO(core) struct core *replayed = core_new();
    replay(replayed, buffer_text(&log));
    print_message("decode and apply: %.2f s\n", seconds_since(&start));
    assert_same_state(market.core, replayed);
    market_done(&market);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--replay") == 0) {
        measure_replay();
        return 0;
    }
    if (argc == 2) {
        struct error error = {0};
        uint64_t seed;
        ASSERT_OK(text_parse_u64(text_of(argv[1]), &seed, &error));
        run_seed(seed);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_commands_keep_every_invariant_and_replay_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
