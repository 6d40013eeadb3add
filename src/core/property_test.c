/*
 * Thousands of random commands against the whole core: whatever is asked, in whatever order, the
 * books balance, nothing is lent twice, nobody overspends, nobody who could start is passed over,
 * and the log replays to the same bytes.
 *
 * covers property_commands.c, property_random.c
 *
 * property_test            some seeds, on every landing
 * property_test --all      the seeds of the suite, a million commands
 * property_test SEED       one seed, to look at a failure
 * property_test --replay   how long a million events take to decode and apply
 */
#include "core/match_rounds.h"
#include "core/property_commands.h"
#include "core/testing_internal.h"
#include "market/pair.h"

#include <inttypes.h>
#include <time.h>

/* Fewer by default under a sanitizer or an emulator. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(TEST_IS_EMULATED)
enum { SOME_SEEDS = 25 };
#else
enum { SOME_SEEDS = 50 };
#endif
enum { ALL_SEEDS = 250 };
enum { RESTART_EVERY = 500 };
enum { COMMANDS_PER_SEED = 4600, CHECK_EVERY = 250, SNAPSHOT_MAX = 1 << 28 };

struct world {
    struct property_world commands;
    struct core *core;
    struct event_list events; /* of the last command */
    struct buffer log;        /* every event, one line each */
    struct buffer snapshot;   /* taken somewhere in the middle */
    size_t snapshot_at;       /* where in the log */
    uint64_t decided, refused;
    uint64_t renewed, proven, forfeited; /* events */
    uint64_t spare, preempted;           /* leases, and those that ended so */
    uint64_t servers, promoted;          /* leases of servers besides leads; that took the lead */
    uint64_t measured;                   /* pairs of machines */
    uint64_t near, near_directly; /* workers that had to be near each other, and could only so */
    uint64_t looked_at;           /* jobs that waited */
    struct arena *arena;          /* of a look */
};

static void assert_job_is_sound(const struct core *core, const struct job *job)
{
    const int64_t held_micro = core_held_micro(core, job->id);
    assert_true(job->posted_micro + held_micro <= job->quote_micro);
    assert_true(!job->request.max_total_micro ||
                job->posted_micro + held_micro <= job->request.max_total_micro);
    if (job->request.is_spare)
        assert_true(job->quote_micro == 0 && job->posted_micro == 0 && held_micro == 0);
}

static void assert_balance_is_sound(const struct core *core, uint64_t account)
{
    const struct ledger_account *balance = core_balance(core, account);
    assert_true(balance->earned_micro >= balance->withheld_micro && balance->withheld_micro >= 0);
    assert_true(balance->held_micro >= 0);
    assert_true(account == ACCOUNT_MINT || balance->granted_micro >= 0);
}

/* The invariants that core_check does not already walk, said once more in other words. */
static void assert_invariants(const struct core *core)
{
    struct error error = {0};
    ASSERT_OK(core_check(core, &error));
    for (size_t i = 0; i < core_account_count(core); i++)
        assert_balance_is_sound(core, core_account_at(core, i)->id);
    for (size_t i = 0; i < core_job_count(core); i++)
        assert_job_is_sound(core, core_job_at(core, i));
}

/* A lease was offered: with all that is spare time there is room for it, and if it is spare time
 * itself it is free, under an offer that gives it, and for somebody who has next to nothing. */
static void assert_spare_is_sound(const struct core *core, const struct lease *lease,
                                  const struct machine *machine)
{
    const struct resources spare = machine->spare ? machine->spare->leased : (struct resources){0};
    assert_true(resources_fit(resources_add(machine->leased, spare), machine->probe.resources));
    if (!lease->is_spare)
        return;
    const struct ledger_account *balance =
        core_balance(core, core_job(core, lease->job)->request.account);
    assert_true(lease->quote_micro == 0 && lease->posted_micro == 0);
    assert_true(ledger_available_micro(balance) + balance->held_micro < 1000000);
    assert_true(core_offer(core, lease->offer)->terms.is_spare);
}

/* After every command: what it touched. */
static void assert_event_is_sound(const struct core *core, const struct event *event)
{
    if (event->kind == EVENT_ENTRY_POSTED) {
        assert_balance_is_sound(core, event->entry_posted.from_account);
        assert_balance_is_sound(core, event->entry_posted.to_account);
        if (event->entry_posted.job)
            assert_job_is_sound(core, core_job(core, event->entry_posted.job));
    }
    if (event->kind == EVENT_ENTRY_POSTED && event->entry_posted.kind == LEDGER_ENTRY_POST &&
        event->entry_posted.from_account == event->entry_posted.to_account)
        assert_int_equal(core->rules, CORE_RULES_NEWEST);
    if (event->kind == EVENT_LEASE_OFFERED) {
        const struct lease *lease = core_lease(core, event->lease_offered.lease);
        const struct machine *machine = core_machine(core, lease->machine);
        assert_true(resources_fit(machine->leased, machine->probe.resources));
        if (lease_is_open(lease) && lease->quote_micro > 0)
            assert_true(core_held_micro(core, lease->job) > 0);
        assert_spare_is_sound(core, lease, machine);
    }
}

/* As the market is asked for it: no dearer than it booked. */
static struct match_wish wish_of(const struct core *core, const struct job *job)
{
    struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), core->time_ms);
    core_keep_booked(job, &wish.lock);
    if (!job_rushes(job))
        wish.lock.rush_ms = 0;
    return wish;
}

/* What is reserved for the first in the line, or would be if somebody asked. */
static bool find_reserved(struct world *world, const struct job *first,
                          struct match_reservation *out_reservation)
{
    const struct core *core = world->core;
    const struct match_wish wish = wish_of(core, first);
    *out_reservation = core->rounds->ahead;
    if (core->rounds->has_ahead && core->rounds->ahead.job == first->id)
        return true;
    arena_clear(world->arena);
    return match_reserve(core->matcher, world->arena, &wish, out_reservation);
}

/*
 * Whether a job that waits for room and is within its means could be placed, so that whoever freed
 * the room passed it over. The reservation of a job before it may keep it out. Whoever rushes may
 * have to pay more than is asked here, and what is still to be done wakes the core at once.
 */
static bool is_passed_over(struct world *world, const struct job *job)
{
    const struct core *core = world->core;
    if (!job->waiting_numbers[0] || job->is_short || job->request.is_rush ||
        account_is_frozen(core_account(core, job->request.account)) ||
        core_next_wake_ms(core) <= core->time_ms)
        return false;
    const struct match_wish wish = wish_of(core, job);
    struct match_placement placement;
    world->looked_at++;
    if (core_passes_booking(job, &wish) ||
        match_place(core->matcher, &wish, NULL, &placement) != MATCH_PLACED)
        return false;
    const struct job *first = line_first(&core->line);
    if (!first || !line_is_before(first, job))
        return true;
    struct match_reservation ahead;
    return find_reserved(world, first, &ahead) &&
           match_place(core->matcher, &wish, &ahead, &placement) == MATCH_PLACED;
}

/* The same of a job that waits for spare time. Those who pay are looked at as if there were none,
 * so that it keeps nobody of them waiting. */
static bool is_spare_passed_over(struct world *world, const struct job *job)
{
    const struct core *core = world->core;
    const struct account *account = core_account(core, job->request.account);
    if (core_next_wake_ms(core) <= core->time_ms || account->spare_active_count > 0 ||
        account_is_frozen(account) || !core_may_have_spare(core, account->id))
        return false;
    const struct match_wish wish = wish_of(core, job);
    const struct job *first = line_first(&core->line);
    struct match_placement placement;
    struct match_reservation ahead = {0};
    world->looked_at++;
    if (first && !find_reserved(world, first, &ahead))
        return false; /* it is to be found stuck */
    return match_place(core->matcher, &wish, &ahead, &placement) == MATCH_PLACED;
}

static void assert_nobody_is_passed_over(struct world *world)
{
    const struct id_list *waiting = &world->core->spare_waiting;
    for (size_t i = 0; i < waiting->count; i++)
        if (is_spare_passed_over(world, waiting->items[i].value))
            fail_msg("job %" PRIu64 " could have spare time after event %" PRIu64,
                     waiting->items[i].id, core_sequence(world->core));
    const struct id_list *pending = &world->core->pending;
    for (size_t i = 0; i < pending->count; i++)
        if (is_passed_over(world, pending->items[i].value))
            fail_msg("job %" PRIu64 " could start after event %" PRIu64 " and was not tried",
                     pending->items[i].id, core_sequence(world->core));
}

static void world_init(struct world *world, uint64_t seed)
{
    *world = (struct world){.core = core_new()};
    world->commands = (struct property_world){.core = world->core, .now_ms = TEST_NOW};
    random_init(&world->commands.random, seed);
    world->arena = arena_new(0);
    event_list_init(&world->events);
    buffer_init(&world->log, SNAPSHOT_MAX);
    buffer_init(&world->snapshot, SNAPSHOT_MAX);
}

static void world_done(struct world *world)
{
    core_free(world->core);
    arena_free(world->arena);
    event_list_done(&world->events);
    buffer_done(&world->log);
    buffer_done(&world->snapshot);
}

/* What anyone is told of prices. */
struct told_prices {
    int64_t running, offset_ms, fee_basis_points;
    struct price_vector slots[1 + CORE_PRICE_FORECASTS];
    struct price_vector averages[1 + SLOT_PER_DAY];
};

static void tell_prices(const struct world *world, struct told_prices *out)
{
    *out = (struct told_prices){
        .running = core_price_slot_at(world->core, world->commands.now_ms),
        .offset_ms = core_settings(world->core)->slot_offset_ms,
        .fee_basis_points = core_settings(world->core)->fee_basis_points,
    };
    for (int i = 0; i <= CORE_PRICE_FORECASTS; i++)
        out->slots[i] = core_price_of_slot(world->core, out->running + i);
    for (int i = 0; i <= SLOT_PER_DAY; i++)
        if (!core_price_average(world->core, i - 1, &out->averages[i]))
            out->averages[i] = (struct price_vector){0};
}

/* Whoever was told prices is told again only after an event they follow. */
static void assert_prices_follow(const struct world *world, const struct told_prices *before)
{
    for (size_t i = 0; i < world->events.count; i++)
        if (core_price_follows(&world->events.items[i]))
            return;
    struct told_prices after;
    tell_prices(world, &after);
    assert_memory_equal(&after, before, sizeof(after));
}

static void count_spare(struct world *world, const struct event *event)
{
    if (event->kind == EVENT_LEASE_OFFERED)
        world->spare += core_lease(world->core, event->lease_offered.lease)->is_spare;
    if (event->kind == EVENT_LEASE_ENDED)
        world->preempted += event->lease_ended.outcome == LEASE_OUTCOME_PREEMPTED;
}

static void count_servers(struct world *world, const struct event *event)
{
    world->servers += event->kind == EVENT_LEASE_OFFERED &&
                      event->lease_offered.role == LEASE_ROLE_SERVER &&
                      event->lease_offered.rank > 0;
    world->promoted += event->kind == EVENT_LEASE_PROMOTED;
}

/* A job that starts has each two of its workers within what it wished for. */
static void assert_near(struct world *world, const struct event *event)
{
    world->measured += event->kind == EVENT_PAIR_MEASURED;
    if (event->kind != EVENT_JOB_STATE_CHANGED ||
        event->job_state_changed.state != JOB_STATE_STARTING)
        return;
    const struct job *job = core_job(world->core, event->job_state_changed.job);
    const int64_t max_us = job->request.wishes.max_rtt_us;
    for (size_t i = 0; max_us > 0 && i < job->worker_count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct machine *a = core_machine(world->core, job->workers[i]->machine);
            const struct machine *b = core_machine(world->core, job->workers[k]->machine);
            assert_in_range(pair_rtt_us(a, b, event->time_ms), 1, max_us);
            world->near++;
            world->near_directly += a->probe.rtt_us == 0 || b->probe.rtt_us == 0 ||
                                    a->probe.rtt_us + b->probe.rtt_us > max_us;
        }
}

static void step(struct world *world)
{
    struct error error = {0};
    struct told_prices told;
    const struct command command = property_command(&world->commands);
    tell_prices(world, &told);
    const uint64_t sequence = core_sequence(world->core);
    event_list_clear(&world->events);
    if (core_decide(world->core, &command, world->commands.now_ms, &world->events, &error) < 0) {
        world->refused++;
        assert_int_equal(world->events.count, 0);
        assert_int_equal(core_sequence(world->core), sequence);
        assert_true(error.code != ERROR_NONE && error.code != ERROR_CORRUPT);
        return;
    }
    world->decided++;
    assert_int_equal(core_sequence(world->core), sequence + world->events.count);
    for (size_t i = 0; i < world->events.count; i++) {
        assert_event_is_sound(world->core, &world->events.items[i]);
        world->renewed += world->events.items[i].kind == EVENT_LEASE_RENEWED;
        world->proven += world->events.items[i].kind == EVENT_MACHINE_PROVEN;
        world->forfeited += world->events.items[i].kind == EVENT_BOOKING_FORFEITED &&
                            world->events.items[i].booking_forfeited.machine != 0;
        count_spare(world, &world->events.items[i]);
        count_servers(world, &world->events.items[i]);
        assert_near(world, &world->events.items[i]);
        event_encode(&world->events.items[i], &world->log);
        buffer_append_byte(&world->log, '\n');
    }
    assert_int_equal(core_ledger_sum_micro(world->core), 0);
    assert_nobody_is_passed_over(world);
    assert_prices_follow(world, &told);
}

/* Whatever does not follow from the state is forgotten, and the market goes on. */
static void restart(struct world *world)
{
    struct error error = {0};
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, SNAPSHOT_MAX);
    core_snapshot_write(world->core, &bytes);
    core_free(world->core);
    world->core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&bytes), &world->core, &error));
    world->commands.core = world->core;
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
    /* Whom to try is of commands, not of the state. */
    if (!core_tries_are_open(left) && !core_tries_are_open(right))
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

/* Of all seeds together. */
struct totals {
    uint64_t decided;
    uint64_t slots_ended;
    uint64_t renewed;
    uint64_t forfeited;
    uint64_t proven;
    uint64_t spare;
    uint64_t preempted;
    uint64_t servers, promoted;
    uint64_t measured;
    uint64_t near, near_directly;
    uint64_t looked_at;
    size_t ended[JOB_STATE_COUNT];
};

static void run_seed(uint64_t seed, struct totals *totals)
{
    struct world world;
    print_message("seed %" PRIu64 "\n", seed);
    world_init(&world, seed);
    for (int i = 0; i < COMMANDS_PER_SEED; i++) {
        step(&world);
        property_pass_time(&world.commands);
        if (random_below(&world.commands.random, RESTART_EVERY) == 0)
            restart(&world);
        if (i % CHECK_EVERY == 0)
            assert_invariants(world.core);
        if (i == COMMANDS_PER_SEED / 2) {
            core_snapshot_write(world.core, &world.snapshot);
            world.snapshot_at = world.log.size;
        }
    }
    assert_invariants(world.core);
    assert_replays(&world);
    size_t ended[JOB_STATE_COUNT] = {0};
    for (size_t i = 0; i < core_job_count(world.core); i++)
        ended[core_job_at(world.core, i)->state]++;
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        totals->ended[i] += ended[i];
    print_message("  %" PRIu64 " decided, %" PRIu64 " refused, %" PRIu64
                  " events; jobs: %zu succeeded, %zu failed, %zu cancelled\n",
                  world.decided, world.refused, core_sequence(world.core),
                  ended[JOB_STATE_SUCCEEDED], ended[JOB_STATE_FAILED], ended[JOB_STATE_CANCELLED]);
    /* Random commands that only get refused would prove nothing. */
    assert_true(world.decided > COMMANDS_PER_SEED / 8);
    totals->decided += world.decided;
    totals->renewed += world.renewed;
    totals->proven += world.proven;
    totals->forfeited += world.forfeited;
    totals->spare += world.spare;
    totals->preempted += world.preempted;
    totals->servers += world.servers;
    totals->promoted += world.promoted;
    totals->measured += world.measured;
    totals->near += world.near;
    totals->near_directly += world.near_directly;
    totals->looked_at += world.looked_at;
    totals->slots_ended += core_price_close_count(world.core);
    world_done(&world);
}

static uint64_t seed_count = SOME_SEEDS;

TEST(random_commands_keep_every_invariant_and_replay_to_the_same_bytes)
{
    struct totals totals = {0};
    for (uint64_t seed = 1; seed <= seed_count; seed++)
        run_seed(seed, &totals);
    assert_true(totals.decided > UINT64_C(1000) * seed_count); /* a quarter */
    assert_true(totals.slots_ended > UINT64_C(5) * seed_count);
    print_message("%" PRIu64 " leases renewed, %" PRIu64 " machines proven, %" PRIu64
                  " parts of late bookings forfeited; %" PRIu64
                  " times a job that waited was looked at, and none was passed over\n",
                  totals.renewed, totals.proven, totals.forfeited, totals.looked_at);
    print_message("%" PRIu64 " leases of spare time, %" PRIu64 " of them ended for who pays\n",
                  totals.spare, totals.preempted);
    print_message("%" PRIu64 " times two machines were tried with one another; %" PRIu64
                  " workers were near each other, %" PRIu64 " by a direct path only\n",
                  totals.measured, totals.near, totals.near_directly);
    print_message("%" PRIu64 " servers beside leads, %" PRIu64 " replicas took the lead\n",
                  totals.servers, totals.promoted);
    assert_true(totals.servers > UINT64_C(5) * seed_count);
    assert_true(totals.measured > UINT64_C(10) * seed_count);
    assert_true(totals.spare > UINT64_C(2) * seed_count);
    assert_true(totals.looked_at > UINT64_C(1000) * seed_count);
    assert_true(totals.proven > UINT64_C(2) * seed_count);
    assert_true(totals.ended[JOB_STATE_FAILED] > UINT64_C(5) * seed_count);
    assert_true(totals.promoted > seed_count / 10);
    assert_true(totals.near_directly > seed_count / 10);
    assert_true(totals.preempted > seed_count / 2);
    assert_true(totals.renewed > seed_count / 5);
    assert_true(totals.forfeited > seed_count / 10);
    assert_true(totals.ended[JOB_STATE_SUCCEEDED] > UINT64_C(5) * seed_count);
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
    if (argc == 2 && strcmp(argv[1], "--all") == 0) {
        seed_count = ALL_SEEDS;
    } else if (argc == 2) {
        struct error error = {0};
        uint64_t seed;
        ASSERT_OK(text_parse_u64(text_of(argv[1]), &seed, &error));
        struct totals totals = {0};
        run_seed(seed, &totals);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_commands_keep_every_invariant_and_replay_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
