#include "runtime/muster.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

/* What was ordered, in short: "start 0; start 1; say rank 1: ...;" */
struct scene {
    struct muster *muster;
    char orders[2048];
};

static void on_order(void *context, const struct muster_order *order)
{
    struct scene *scene = context;
    static const char *const names[] = {"start", "stop", "end", "say", "done"};
    const size_t size = strlen(scene->orders);
    char *end = scene->orders + size;
    const size_t room = sizeof(scene->orders) - size;
    if (order->kind == MUSTER_SAY)
        snprintf(end, room, "say %s;", order->text);
    else if (order->kind == MUSTER_END)
        snprintf(end, room, "end %d %s%s;", (int)order->rank, order->is_ok ? "ok" : "failed",
                 order->text);
    else
        snprintf(end, room, "%s %d;", names[order->kind], (int)order->rank);
}

static void assert_orders(struct scene *scene, const char *expected)
{
    assert_string_equal(scene->orders, expected);
    scene->orders[0] = '\0';
}

static void scene_open(struct scene *scene, const struct muster_options *options)
{
    scene->orders[0] = '\0';
    scene->muster = muster_new(options, on_order, scene);
}

static void join(struct scene *scene, uint64_t rank, int64_t now_ms)
{
    struct muster_rank who = {.rank = rank, .cores_milli = 1000};
    snprintf(who.name, sizeof(who.name), "m%d", (int)rank);
    muster_join(scene->muster, &who, now_ms);
}

static void ready(struct scene *scene, const struct muster_options *options)
{
    scene_open(scene, options);
    for (uint64_t i = 0; i < options->most; i++)
        join(scene, i, 0);
    scene->orders[0] = '\0';
}

static const struct muster_options three = {.least = 3, .most = 3, .max_restarts = 1};

TEST(all_start_when_the_last_has_come_and_end_when_the_last_is_done)
{
    struct scene scene;
    scene_open(&scene, &three);
    join(&scene, 0, 0);
    join(&scene, 2, 10);
    assert_orders(&scene, "");
    join(&scene, 1, 20);
    assert_orders(&scene, "start 0;start 1;start 2;");
    muster_exit(scene.muster, 1, 0, 0, 30);
    muster_exit(scene.muster, 0, 0, 0, 40);
    assert_orders(&scene, "");
    muster_exit(scene.muster, 2, 0, 0, 50);
    assert_orders(&scene, "end 0 ok;end 1 ok;end 2 ok;");
    muster_leave(scene.muster, 2, "closed", 60);
    assert_orders(&scene, "");
    muster_free(scene.muster);
}

TEST(one_that_fails_restarts_all_as_often_as_allowed_and_then_ends_as_it_did)
{
    struct scene scene;
    ready(&scene, &three);
    muster_exit(scene.muster, 1, 0, 3, 30);
    assert_orders(&scene, "say rank 1 on m1: exit status 3; all start anew, 1 of 1;stop 0;stop 2;");
    muster_exit(scene.muster, 0, 0, 143, 40);
    assert_orders(&scene, "");
    muster_exit(scene.muster, 2, 0, 143, 50);
    assert_orders(&scene, "start 0;start 1;start 2;");
    muster_exit(scene.muster, 1, 0, 143, 55); /* of the round before */
    muster_exit(scene.muster, 2, 1, 4, 60);
    muster_exit(scene.muster, 0, 1, 1, 70); /* as the other did */
    assert_orders(&scene, "end 2 failed;");
    muster_free(scene.muster);
}

TEST(one_that_is_silent_is_named_and_its_successor_waited_for)
{
    struct scene scene;
    ready(&scene, &three);
    muster_heard(scene.muster, 1, 5000);
    muster_tick(scene.muster, 5999);
    assert_orders(&scene, "");
    muster_tick(scene.muster, 6000);
    assert_orders(&scene, "say rank 2 on m2: not heard for 6 s;stop 0;stop 1;");
    muster_exit(scene.muster, 0, 0, 143, 6100);
    muster_exit(scene.muster, 1, 0, 137, 6200);
    muster_heard(scene.muster, 1, 12000);
    muster_tick(scene.muster, 12300);
    assert_orders(&scene, "say rank 2 on m2: not heard for 6 s; the job waits for it;");
    muster_tick(scene.muster, 13300);
    assert_orders(&scene, "");
    join(&scene, 2, 14000);
    assert_orders(&scene, "start 0;start 1;start 2;");
    uint64_t index;
    size_t count;
    muster_round(scene.muster, &count, &index);
    assert_int_equal(index, 1);
    assert_int_equal(count, 3);
    muster_free(scene.muster);
}

TEST(an_elastic_job_goes_on_with_those_that_are_left_and_takes_who_comes)
{
    const struct muster_options options = {.least = 2, .most = 4};
    struct scene scene;
    scene_open(&scene, &options);
    for (uint64_t i = 0; i < 3; i++)
        join(&scene, i, 0);
    muster_tick(scene.muster, MUSTER_QUIET_MS);
    assert_orders(&scene, "start 0;start 1;start 2;");
    muster_leave(scene.muster, 1, "its connection was closed", 3000);
    assert_orders(&scene, "say rank 1 on m1: its connection was closed;stop 0;stop 2;");
    muster_exit(scene.muster, 0, 0, 143, 3100);
    muster_exit(scene.muster, 2, 0, 143, 3200);
    assert_orders(&scene, "start 0;start 2;");
    uint64_t index;
    size_t count;
    const struct muster_rank *round = muster_round(scene.muster, &count, &index);
    assert_int_equal(count, 2);
    assert_int_equal(round[1].rank, 2);
    join(&scene, 1, 4000);
    assert_orders(&scene, "say rank 1 on m1 has come: all start anew, 3 ranks;");
    join(&scene, 3, 5000);
    assert_orders(&scene, "say rank 3 on m3 has come: all start anew, 4 ranks;");
    muster_heard(scene.muster, 2, 6900);
    muster_tick(scene.muster, 6999);
    assert_orders(&scene, "");
    muster_tick(scene.muster, 7000);
    assert_orders(&scene, "stop 0;stop 2;");
    muster_exit(scene.muster, 2, 1, 143, 7100);
    muster_exit(scene.muster, 0, 1, 143, 7100);
    assert_orders(&scene, "start 0;start 1;start 2;start 3;");
    muster_free(scene.muster);
}

TEST(a_rank_of_its_own_starts_alone_and_the_others_go_on)
{
    const struct muster_options options = {
        .least = 3, .most = 3, .restart = MUSTER_RESTART_RANK, .max_restarts = 3};
    struct scene scene;
    ready(&scene, &options);
    muster_leave(scene.muster, 1, "its connection was closed", 10);
    assert_orders(&scene, "say rank 1 on m1: its connection was closed;");
    join(&scene, 1, 20);
    assert_orders(&scene, "start 1;");
    muster_exit(scene.muster, 2, 0, 5, 30); /* it has restarted itself as often as it may */
    assert_orders(&scene, "end 2 failed;");
    muster_free(scene.muster);
}

TEST(a_new_rank_0_finds_those_that_still_run)
{
    const struct muster_options options = {
        .least = 2, .most = 2, .restart = MUSTER_RESTART_RANK, .max_restarts = 3};
    struct scene scene;
    scene_open(&scene, &options);
    join(&scene, 0, 0);
    muster_join(scene.muster,
                &(struct muster_rank){.rank = 1, .cores_milli = 1, .rounds = 1, .is_running = true},
                10);
    assert_orders(&scene, "start 0;");
    muster_exit(scene.muster, 1, 0, 0, 20);
    muster_exit(scene.muster, 0, 0, 0, 30);
    assert_orders(&scene, "done 0;end 0 ok;end 1 ok;");
    muster_free(scene.muster);
}

TEST(who_comes_late_is_told_who_is_done)
{
    const struct muster_options options = {
        .least = 3, .most = 3, .restart = MUSTER_RESTART_RANK, .max_restarts = 3};
    struct scene scene;
    struct muster_rank done[3];
    ready(&scene, &options);
    assert_int_equal(muster_list_done(scene.muster, done), 0);
    muster_exit(scene.muster, 0, 0, 0, 10);
    muster_exit(scene.muster, 2, 0, 0, 20);
    assert_orders(&scene, "done 0;done 0;");
    assert_int_equal(muster_list_done(scene.muster, done), 2);
    assert_int_equal(done[0].rank, 0);
    assert_int_equal(done[1].rank, 2);
    muster_leave(scene.muster, 2, "gone", 30); /* its successor does it again */
    assert_orders(&scene, "say rank 2 on m2: gone;done 0;");
    assert_int_equal(muster_list_done(scene.muster, done), 1);
    join(&scene, 2, 40);
    assert_orders(&scene, "start 2;");
    assert_int_equal(muster_list_done(scene.muster, done), 1);
    muster_free(scene.muster);
}

TEST(a_new_rank_0_counts_on_from_the_rounds_there_were)
{
    const struct muster_options options = {.least = 2, .most = 2};
    struct scene scene;
    scene_open(&scene, &options);
    join(&scene, 0, 0);
    muster_join(scene.muster, &(struct muster_rank){.rank = 1, .cores_milli = 1, .rounds = 7}, 10);
    uint64_t index;
    size_t count;
    muster_round(scene.muster, &count, &index);
    assert_int_equal(index, 7);
    muster_free(scene.muster);
}

TEST(never_restarted_the_job_fails_with_the_name_of_who_was_lost)
{
    const struct muster_options options = {
        .least = 2, .most = 2, .restart = MUSTER_RESTART_NEVER, .max_restarts = 0};
    struct scene scene;
    ready(&scene, &options);
    muster_tick(scene.muster, 6000);
    assert_orders(&scene, "say rank 1 on m1: not heard for 6 s;"
                          "end 0 failedrank 1 on m1: not heard for 6 s;");
    muster_free(scene.muster);
}

TEST(one_that_is_led_is_over_when_its_first_is_done)
{
    const struct muster_options options = {.least = 2, .most = 2, .is_led = true};
    struct scene scene;
    ready(&scene, &options);
    muster_exit(scene.muster, 0, 0, 0, 30);
    assert_orders(&scene, "end 0 ok;end 1 ok;");
    muster_free(scene.muster);
}

TEST(only_ranks_that_can_be_a_round_with_itself_are_believed)
{
    const struct muster_options options = {.least = 2, .most = 3};
    const struct muster_rank all[] = {{.rank = 0}, {.rank = 1}, {.rank = 2}, {.rank = 3}};
    const struct muster_rank twice[] = {{.rank = 1}, {.rank = 1}};
    const struct muster_rank foreign[] = {{.rank = 1}, {.rank = 3}};
    assert_true(muster_is_round(&options, 1, all, 2));
    assert_true(muster_is_round(&options, 1, all, 3));
    assert_false(muster_is_round(&options, 2, all, 2));
    assert_false(muster_is_round(&options, 1, all, 4));
    assert_false(muster_is_round(&options, 0, all, 1));
    assert_false(muster_is_round(&options, 0, NULL, 0));
    assert_false(muster_is_round(&options, 1, twice, 2));
    assert_false(muster_is_round(&options, 1, foreign, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_start_when_the_last_has_come_and_end_when_the_last_is_done),
        cmocka_unit_test(one_that_fails_restarts_all_as_often_as_allowed_and_then_ends_as_it_did),
        cmocka_unit_test(one_that_is_silent_is_named_and_its_successor_waited_for),
        cmocka_unit_test(an_elastic_job_goes_on_with_those_that_are_left_and_takes_who_comes),
        cmocka_unit_test(a_rank_of_its_own_starts_alone_and_the_others_go_on),
        cmocka_unit_test(a_new_rank_0_finds_those_that_still_run),
        cmocka_unit_test(who_comes_late_is_told_who_is_done),
        cmocka_unit_test(a_new_rank_0_counts_on_from_the_rounds_there_were),
        cmocka_unit_test(never_restarted_the_job_fails_with_the_name_of_who_was_lost),
        cmocka_unit_test(one_that_is_led_is_over_when_its_first_is_done),
        cmocka_unit_test(only_ranks_that_can_be_a_round_with_itself_are_believed),
    };
    return cmocka_run_group_tests_name("muster", tests, NULL, NULL);
}
