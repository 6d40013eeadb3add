#include "cloud/slurm_plan.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

enum { NODE_COUNT = 4, START_MS = 1000000 };

#define HOUR_MS INT64_C(3600000)

/* Four idle nodes of one partition, with four processors each; nothing else. */
struct scene {
    struct slurm_node nodes[NODE_COUNT];
    struct slurm_agent agents[NODE_COUNT];
    struct slurm_waiting waiting[4];
    struct slurm_state state;
    struct slurm_wish wish;
    int64_t now_ms;
    struct slurm_memory memory;
    struct slurm_step steps[2 * NODE_COUNT];
    size_t step_count;
};

static const bool everywhere[NODE_COUNT] = {true, true, true, true};

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){
        .wish = {.node_max = NODE_COUNT, .limit_ms = 8 * HOUR_MS},
        .now_ms = START_MS,
    };
    for (int i = 0; i < NODE_COUNT; i++) {
        scene->nodes[i] = (struct slurm_node){
            .is_idle = true, .is_lent = true, .free_until_ms = INT64_MAX, .cpus = 4};
        snprintf(scene->nodes[i].name, sizeof(scene->nodes[i].name), "n%d", i);
    }
    scene->state = (struct slurm_state){.nodes = scene->nodes,
                                        .node_count = NODE_COUNT,
                                        .agents = scene->agents,
                                        .waiting = scene->waiting};
    slurm_memory_init(&scene->memory);
}

static void scene_done(struct scene *scene)
{
    slurm_memory_done(&scene->memory);
}

static struct slurm_agent *add_agent(struct scene *scene, uint32_t node)
{
    struct slurm_agent *agent = &scene->agents[scene->state.agent_count++];
    *agent = (struct slurm_agent){.job = 100 + node,
                                  .node = node,
                                  .is_running = true,
                                  .submitted_ms = scene->now_ms,
                                  .ends_ms = scene->now_ms + 8 * HOUR_MS};
    scene->nodes[node].is_idle = false;
    return agent;
}

static struct slurm_waiting *add_waiting(struct scene *scene, uint32_t job, uint32_t node_count)
{
    struct slurm_waiting *waiting = &scene->waiting[scene->state.waiting_count++];
    *waiting = (struct slurm_waiting){.job = job,
                                      .priority = 1000 - job,
                                      .node_count = node_count,
                                      .cpus_per_node = 4,
                                      .copies = 1,
                                      .could = everywhere};
    return waiting;
}

static void look(struct scene *scene, int64_t later_ms)
{
    scene->now_ms += later_ms;
    scene->step_count =
        slurm_plan(&scene->state, &scene->wish, scene->now_ms, &scene->memory, scene->steps);
}

static void assert_step(const struct scene *scene, size_t index, enum slurm_step_kind kind,
                        enum slurm_reason reason, uint32_t node)
{
    assert_true(index < scene->step_count);
    assert_int_equal(scene->steps[index].kind, kind);
    assert_string_equal(slurm_reason_name(scene->steps[index].reason), slurm_reason_name(reason));
    assert_int_equal(scene->steps[index].node, node);
}

TEST(without_demand_only_the_standby_lends)
{
    struct scene scene;
    scene_init(&scene);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene.wish.standby = 1;
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_START, SLURM_REASON_WANTED, 0);
    assert_int_equal(scene.steps[0].limit_ms, 8 * HOUR_MS);
    scene_done(&scene);
}

TEST(waiting_jobs_of_the_market_start_agents_up_to_the_most)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.machines_wanted = 9;
    scene.wish.node_max = 3;
    add_agent(&scene, 0)->is_leased = true;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 2);
    assert_step(&scene, 0, SLURM_STEP_START, SLURM_REASON_WANTED, 1);
    assert_step(&scene, 1, SLURM_STEP_START, SLURM_REASON_WANTED, 2);
    scene_done(&scene);
}

TEST(a_node_planned_for_a_job_is_not_started_on_but_what_lends_there_stays)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.machines_wanted = 4;
    for (int i = 0; i < NODE_COUNT; i++)
        scene.nodes[i].is_planned = true;
    add_agent(&scene, 0)->is_leased = true;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene_done(&scene);
}

TEST(a_node_that_is_just_ending_counts_for_who_waits)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 4;
    add_agent(&scene, 0);
    add_agent(&scene, 1);
    scene.nodes[2].is_idle = scene.nodes[3].is_idle = false;
    scene.nodes[3].is_ending = true;
    add_waiting(&scene, 7, 1);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene_done(&scene);
}

TEST(nodes_that_are_withheld_elsewhere_or_busy_are_left_alone)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.machines_wanted = 4;
    scene.nodes[0].is_withheld = true;
    scene.nodes[1].is_lent = false;
    scene.nodes[2].is_idle = false;
    scene.nodes[3].name[0] = '\0';
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene_done(&scene);
}

TEST(a_reservation_ahead_bounds_the_limit)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.machines_wanted = 2;
    scene.nodes[0].free_until_ms = scene.now_ms + SLURM_LIMIT_MIN_MS - 1;
    scene.nodes[1].free_until_ms = scene.now_ms + HOUR_MS;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 2);
    assert_step(&scene, 0, SLURM_STEP_START, SLURM_REASON_WANTED, 1);
    assert_int_equal(scene.steps[0].limit_ms, HOUR_MS);
    assert_step(&scene, 1, SLURM_STEP_START, SLURM_REASON_WANTED, 2);
    scene_done(&scene);
}

TEST(a_waiting_job_takes_idle_nodes_first_and_agents_without_a_lease_next)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 4;
    add_agent(&scene, 0);
    add_agent(&scene, 1)->is_leased = true;
    add_agent(&scene, 2);
    add_waiting(&scene, 7, 2);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 1); /* node 3 is claimed: nothing starts there */
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_QUEUE, 2);
    assert_int_equal(scene.steps[0].waiting_job, 7);
    scene.waiting[0].node_count = 4;
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 2); /* node 2 was asked already */
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_QUEUE, 0);
    assert_step(&scene, 1, SLURM_STEP_END, SLURM_REASON_QUEUE, 1);
    scene_done(&scene);
}

TEST(a_job_that_would_wait_anyway_takes_nothing)
{
    struct scene scene;
    scene_init(&scene);
    add_agent(&scene, 0)->is_leased = true;
    for (int i = 1; i < NODE_COUNT; i++)
        scene.nodes[i].is_idle = false;
    add_waiting(&scene, 7, 2);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene.nodes[3].is_idle = true; /* somebody else's job has ended */
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_QUEUE, 0);
    scene_done(&scene);
}

TEST(small_jobs_share_a_node_and_exclusive_ones_do_not)
{
    struct scene scene;
    scene_init(&scene);
    add_agent(&scene, 0);
    add_agent(&scene, 1);
    scene.nodes[2].is_idle = scene.nodes[3].is_idle = false;
    scene.wish.standby = 2;
    struct slurm_waiting *array = add_waiting(&scene, 7, 1);
    array->cpus_per_node = 1;
    array->copies = 4;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 1);
    add_waiting(&scene, 8, 1)->is_exclusive = true;
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 1);
    assert_int_equal(scene.steps[0].waiting_job, 8);
    scene_done(&scene);
}

TEST(a_job_gets_the_nodes_it_must_have_and_no_other)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 4;
    for (uint32_t i = 0; i < NODE_COUNT; i++)
        add_agent(&scene, i);
    const bool must[NODE_COUNT] = {false, true, false, false};
    add_waiting(&scene, 7, 1)->must = must;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_QUEUE, 1);
    scene_done(&scene);
}

TEST(agents_make_way_when_idle_nodes_do_not_serve_a_job)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 1;
    add_agent(&scene, 3);
    add_waiting(&scene, 7, 1);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    look(&scene, SLURM_PATIENCE_MS - 1);
    assert_int_equal(scene.step_count, 0);
    look(&scene, 1);
    assert_true(scene.step_count >= 1);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_QUEUE, 3);
    scene_done(&scene);
}

TEST(an_agent_that_does_not_end_is_killed)
{
    struct scene scene;
    scene_init(&scene);
    add_agent(&scene, 0);
    scene.nodes[0].is_withheld = true; /* drained */
    look(&scene, 0);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_WITHHELD, 0);
    look(&scene, SLURM_GRACE_MS - 1);
    assert_int_equal(scene.step_count, 0);
    look(&scene, 1);
    assert_step(&scene, 0, SLURM_STEP_KILL, SLURM_REASON_WITHHELD, 0);
    scene_done(&scene);
}

TEST(agents_nobody_wants_end_after_a_while_and_leased_ones_stay)
{
    struct scene scene;
    scene_init(&scene);
    add_agent(&scene, 0)->is_leased = true;
    add_agent(&scene, 1);
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    look(&scene, SLURM_IDLE_MS);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_UNUSED, 1);
    scene_done(&scene);
}

TEST(an_agent_with_little_time_left_is_replaced_while_it_has_no_lease)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 1;
    add_agent(&scene, 0)->is_leased = true;
    look(&scene, 5 * HOUR_MS);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_START, SLURM_REASON_WANTED, 1);
    scene.agents[0].is_leased = false;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 2);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_AGED, 0);
    assert_step(&scene, 1, SLURM_STEP_START, SLURM_REASON_WANTED, 1);
    scene_done(&scene);
}

TEST(an_agent_that_slurm_does_not_start_is_taken_back)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 1;
    add_agent(&scene, 0)->is_running = false;
    scene.nodes[0].is_idle = true;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 0);
    scene.nodes[0].is_idle = false; /* somebody was faster */
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 2);
    assert_step(&scene, 0, SLURM_STEP_KILL, SLURM_REASON_PENDING, 0);
    assert_step(&scene, 1, SLURM_STEP_START, SLURM_REASON_WANTED, 1);
    scene_done(&scene);
}

TEST(a_node_whose_agents_fail_is_tried_less_and_less)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 1;
    for (int i = 1; i < NODE_COUNT; i++)
        scene.nodes[i].is_lent = false;
    add_agent(&scene, 0);
    look(&scene, 0);
    scene.state.agent_count = 0;
    scene.nodes[0].is_idle = true;
    look(&scene, 2000);
    assert_int_equal(scene.step_count, 0);
    assert_int_equal(scene.memory.failed_count, 1);
    assert_string_equal(scene.memory.failed_node, "n0");
    look(&scene, SLURM_BACK_OFF_MS);
    assert_step(&scene, 0, SLURM_STEP_START, SLURM_REASON_WANTED, 0);
    slurm_memory_start(&scene.memory, 300, "n0", scene.now_ms); /* gone before it was seen */
    look(&scene, 2000);
    look(&scene, 2 * SLURM_BACK_OFF_MS - 1);
    assert_int_equal(scene.step_count, 0);
    look(&scene, 1);
    assert_int_equal(scene.step_count, 1);
    slurm_memory_fail(&scene.memory, "n0", scene.now_ms);
    look(&scene, 4 * SLURM_BACK_OFF_MS - 1);
    assert_int_equal(scene.step_count, 0);
    look(&scene, 1);
    assert_int_equal(scene.step_count, 1);
    scene_done(&scene);
}

TEST(two_agents_on_a_node_become_one)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 1;
    add_agent(&scene, 0);
    add_agent(&scene, 0)->job = 200;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 1);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_DOUBLE, 0);
    assert_int_equal(scene.steps[0].job, 200);
    scene_done(&scene);
}

TEST(stopping_ends_all_and_starts_none)
{
    struct scene scene;
    scene_init(&scene);
    scene.wish.standby = 4;
    add_agent(&scene, 0)->is_leased = true;
    add_agent(&scene, 1);
    scene.wish.is_stopping = true;
    look(&scene, 0);
    assert_int_equal(scene.step_count, 2);
    assert_step(&scene, 0, SLURM_STEP_END, SLURM_REASON_STOPPING, 0);
    assert_step(&scene, 1, SLURM_STEP_END, SLURM_REASON_STOPPING, 1);
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_demand_only_the_standby_lends),
        cmocka_unit_test(waiting_jobs_of_the_market_start_agents_up_to_the_most),
        cmocka_unit_test(a_node_planned_for_a_job_is_not_started_on_but_what_lends_there_stays),
        cmocka_unit_test(a_node_that_is_just_ending_counts_for_who_waits),
        cmocka_unit_test(nodes_that_are_withheld_elsewhere_or_busy_are_left_alone),
        cmocka_unit_test(a_reservation_ahead_bounds_the_limit),
        cmocka_unit_test(a_waiting_job_takes_idle_nodes_first_and_agents_without_a_lease_next),
        cmocka_unit_test(a_job_that_would_wait_anyway_takes_nothing),
        cmocka_unit_test(small_jobs_share_a_node_and_exclusive_ones_do_not),
        cmocka_unit_test(a_job_gets_the_nodes_it_must_have_and_no_other),
        cmocka_unit_test(agents_make_way_when_idle_nodes_do_not_serve_a_job),
        cmocka_unit_test(an_agent_that_does_not_end_is_killed),
        cmocka_unit_test(agents_nobody_wants_end_after_a_while_and_leased_ones_stay),
        cmocka_unit_test(an_agent_with_little_time_left_is_replaced_while_it_has_no_lease),
        cmocka_unit_test(an_agent_that_slurm_does_not_start_is_taken_back),
        cmocka_unit_test(a_node_whose_agents_fail_is_tried_less_and_less),
        cmocka_unit_test(two_agents_on_a_node_become_one),
        cmocka_unit_test(stopping_ends_all_and_starts_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
