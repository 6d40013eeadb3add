#include "base/clock.h"
#include "peer/owner.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define SECOND_NS INT64_C(1000000000)

struct world {
    char root[64];
    struct virtual_clock clock;
    struct loop *loop;
    struct owner *owner;
    int change_count;
    int64_t ours_ms;
    bool uses_gpu; /* a lease does */
    int64_t others_gpu_milli;
};

static void on_change(void *context)
{
    struct world *world = context;
    world->change_count++;
}

static int64_t ours(void *context)
{
    struct world *world = context;
    return world->ours_ms;
}

static int64_t others_gpu_milli(void *context)
{
    const struct world *world = context;
    return world->others_gpu_milli;
}

static bool uses_gpu(void *context)
{
    const struct world *world = context;
    return world->uses_gpu;
}

static void put(const struct world *world, const char *path, const char *content)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", world->root, path);
    for (char *slash = strchr(whole + strlen(world->root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    AUTO_FILE FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
}

static void open_owner(struct world *world, bool is_blind)
{
    struct owner_options options = {.loop = world->loop,
                                    .root = world->root,
                                    .state_dir = world->root,
                                    .is_blind = is_blind,
                                    .our_cpu_ms = ours,
                                    .others_gpu_milli = others_gpu_milli,
                                    .uses_gpu = uses_gpu,
                                    .on_change = on_change,
                                    .context = world};
    guard_limits_init(&options.limits, 2000, INT64_C(4) << 30);
    world->owner = owner_new(&options);
}

static void world_init(struct world *world, bool is_blind)
{
    struct error error;
    *world = (struct world){0};
    snprintf(world->root, sizeof(world->root), "/tmp/souk-owner-test-XXXXXX");
    assert_non_null(mkdtemp(world->root));
    virtual_clock_init(&world->clock, 1000000);
    virtual_clock_advance(&world->clock, SECOND_NS);
    ASSERT_OK(loop_open(&world->clock.clock, &world->loop, &error));
    put(world, "/proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n");
    put(world, "/proc/meminfo", "MemAvailable: 3000000 kB\n");
    open_owner(world, is_blind);
}

static void world_done(struct world *world)
{
    struct error error;
    owner_free(world->owner);
    loop_free(world->loop);
    ASSERT_OK(folder_remove(world->root, &error));
}

static void pass_ms(struct world *world, int64_t ms)
{
    struct error error;
    while (ms > 0) {
        const int64_t step_ms = ms < 100 ? ms : 100;
        virtual_clock_advance(&world->clock, step_ms * 1000000);
        ms -= step_ms;
        ASSERT_OK(loop_step(world->loop, 0, &error));
    }
}

TEST(a_busy_owner_is_seen_within_a_second_while_leases_run)
{
    struct world world;
    world_init(&world, false);
    owner_set_working(world.owner, true);
    pass_ms(&world, 1000);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    char stat[64];
    int level_ms[GUARD_LEVEL_COUNT] = {0};
    for (int ms = 100; ms <= 1000; ms += 100) {
        snprintf(stat, sizeof(stat), "cpu %d 0 0 0 0 0 0 0 0 0\n", ms / 10);
        put(&world, "/proc/stat", stat);
        pass_ms(&world, 100);
        if (!level_ms[owner_level(world.owner)])
            level_ms[owner_level(world.owner)] = ms;
    }
    assert_true(level_ms[GUARD_LOW] > 0 && level_ms[GUARD_LOW] <= 400);
    assert_true(level_ms[GUARD_FROZEN] > 0 && level_ms[GUARD_FROZEN] <= 900);
    assert_false(owner_takes_leases(world.owner));
    assert_int_equal(world.change_count, 2);
    pass_ms(&world, 11000);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    assert_true(owner_takes_leases(world.owner));
    world_done(&world);
}

TEST(what_leases_use_is_not_the_owners)
{
    struct world world;
    world_init(&world, false);
    owner_set_working(world.owner, true);
    pass_ms(&world, 1000);
    char stat[64];
    for (int ms = 100; ms <= 3000; ms += 100) {
        snprintf(stat, sizeof(stat), "cpu %d 0 0 0 0 0 0 0 0 0\n", ms / 10);
        world.ours_ms = ms;
        put(&world, "/proc/stat", stat);
        pass_ms(&world, 100);
    }
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    assert_int_equal(world.change_count, 0);
    world_done(&world);
}

TEST(a_pause_outlives_the_daemon_and_ends_in_time)
{
    struct world world;
    world_init(&world, false);
    owner_pause(world.owner, OWNER_HERE, 60000);
    assert_int_equal(world.change_count, 1);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE);
    owner_free(world.owner);
    open_owner(&world, false);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE);
    pass_ms(&world, 59000);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    pass_ms(&world, 1100);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    assert_int_equal(world.change_count, 2);
    world_done(&world);
}

TEST(what_was_said_here_only_ends_here)
{
    struct world world;
    world_init(&world, true);
    owner_pause(world.owner, OWNER_HERE, 0);
    owner_resume(world.owner, OWNER_REMOTE);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE);
    /* Nor is it cut short by a pause that ends before. */
    owner_pause(world.owner, OWNER_REMOTE, 500);
    pass_ms(&world, 1000);
    owner_resume(world.owner, OWNER_REMOTE);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    assert_int_equal(world.change_count, 1);
    owner_resume(world.owner, OWNER_HERE);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_NONE);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    owner_drain(world.owner);
    owner_resume(world.owner, OWNER_REMOTE);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_DRAIN);
    world_done(&world);
}

TEST(what_was_said_through_the_market_ends_there_and_here)
{
    struct world world;
    world_init(&world, true);
    owner_pause(world.owner, OWNER_REMOTE, 0);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE_REMOTELY);
    owner_free(world.owner);
    open_owner(&world, true);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE_REMOTELY);
    /* Said here too, for a while: the market is told when it is its own again. */
    owner_pause(world.owner, OWNER_HERE, 500);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE);
    const int changes = world.change_count;
    pass_ms(&world, 600);
    assert_int_equal(owner_word(world.owner), OWNER_WORD_PAUSE_REMOTELY);
    assert_int_equal(world.change_count, changes + 1);
    owner_resume(world.owner, OWNER_REMOTE);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    owner_pause(world.owner, OWNER_REMOTE, 0);
    owner_resume(world.owner, OWNER_HERE);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    world_done(&world);
}

TEST(a_pause_that_gets_longer_is_news)
{
    struct world world;
    world_init(&world, true);
    assert_int_equal(owner_pause_left_ms(world.owner), 0);
    owner_pause(world.owner, OWNER_REMOTE, 60000);
    assert_int_equal(owner_pause_left_ms(world.owner), 60000);
    pass_ms(&world, 1000);
    assert_int_equal(owner_pause_left_ms(world.owner), 59000);
    const int changes = world.change_count;
    owner_pause(world.owner, OWNER_REMOTE, 120000);
    assert_int_equal(world.change_count, changes + 1);
    assert_int_equal(owner_pause_left_ms(world.owner), 120000);
    owner_pause(world.owner, OWNER_REMOTE, 0);
    assert_int_equal(world.change_count, changes + 2);
    assert_int_equal(owner_pause_left_ms(world.owner), 0);
    owner_resume(world.owner, OWNER_REMOTE);
    assert_int_equal(world.change_count, changes + 3);
    world_done(&world);
}

TEST(a_note_that_cannot_be_read_is_a_pause)
{
    struct world world;
    world_init(&world, false);
    owner_free(world.owner);
    put(&world, "/owner.json", "{\"paused\":");
    open_owner(&world, false);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    owner_resume(world.owner, OWNER_HERE);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    world_done(&world);
}

TEST(draining_takes_nothing_new_and_holds_nothing_up)
{
    struct world world;
    world_init(&world, false);
    owner_drain(world.owner);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    assert_false(owner_takes_leases(world.owner));
    assert_int_equal(owner_word(world.owner), OWNER_WORD_DRAIN);
    owner_resume(world.owner, OWNER_HERE);
    assert_true(owner_takes_leases(world.owner));
    assert_int_equal(world.change_count, 2);
    world_done(&world);
}

TEST(one_who_watches_nothing_still_takes_the_owners_word)
{
    struct world world;
    world_init(&world, true);
    owner_set_working(world.owner, true);
    put(&world, "/proc/meminfo", "MemAvailable: 1 kB\n");
    pass_ms(&world, 1000);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    owner_pause(world.owner, OWNER_HERE, 500);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    pass_ms(&world, 600);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    world_done(&world);
}

TEST(load_on_a_gpu_is_the_owners_unless_a_lease_has_one)
{
    struct world world;
    world_init(&world, false);
    world.uses_gpu = true;
    world.others_gpu_milli = GUARD_UNKNOWN;
    put(&world, "/sys/class/drm/card0/device/gpu_busy_percent", "90\n");
    owner_set_working(world.owner, true);
    pass_ms(&world, 2000);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    world.uses_gpu = false;
    pass_ms(&world, 1000);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    world_done(&world);
}

TEST(others_on_the_gpu_of_a_lease_hold_it_still)
{
    struct world world;
    world_init(&world, false);
    world.uses_gpu = true;
    world.others_gpu_milli = 150;
    owner_set_working(world.owner, true);
    pass_ms(&world, 2000);
    assert_int_equal(owner_level(world.owner), GUARD_FULL);
    world.others_gpu_milli = 300;
    pass_ms(&world, 1000);
    assert_int_equal(owner_level(world.owner), GUARD_FROZEN);
    world_done(&world);
}

TEST(memory_that_runs_out_releases)
{
    struct world world;
    world_init(&world, false);
    owner_set_working(world.owner, true);
    pass_ms(&world, 500);
    put(&world, "/proc/meminfo", "MemAvailable: 1000 kB\n");
    pass_ms(&world, 300);
    assert_int_equal(owner_level(world.owner), GUARD_RELEASED);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_owner_is_seen_within_a_second_while_leases_run),
        cmocka_unit_test(what_leases_use_is_not_the_owners),
        cmocka_unit_test(a_pause_outlives_the_daemon_and_ends_in_time),
        cmocka_unit_test(what_was_said_here_only_ends_here),
        cmocka_unit_test(what_was_said_through_the_market_ends_there_and_here),
        cmocka_unit_test(a_pause_that_gets_longer_is_news),
        cmocka_unit_test(a_note_that_cannot_be_read_is_a_pause),
        cmocka_unit_test(draining_takes_nothing_new_and_holds_nothing_up),
        cmocka_unit_test(one_who_watches_nothing_still_takes_the_owners_word),
        cmocka_unit_test(load_on_a_gpu_is_the_owners_unless_a_lease_has_one),
        cmocka_unit_test(others_on_the_gpu_of_a_lease_hold_it_still),
        cmocka_unit_test(memory_that_runs_out_releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
