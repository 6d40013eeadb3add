#include "base/library.h"
#include "base/text.h"
#include "cloud/slurm_cluster_internal.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODE_COUNT = 4, NOW_S = 1000000 };

/* n0 to n3; partition lab has the first three, all every one. */
struct scene {
    struct slurm_cluster cluster;
    char names[NODE_COUNT][8];
    node_info_t nodes[NODE_COUNT];
    node_info_msg_t node_message;
    partition_info_t partitions[2];
    partition_info_msg_t partition_message;
    reserve_info_t reservations[1];
    reserve_info_msg_t reservation_message;
    slurm_job_info_t jobs[4];
    job_info_msg_t job_message;
    struct slurm_state state;
};

static int32_t lab_nodes[] = {0, 2, -1};
static int32_t all_nodes[] = {0, 3, -1};

static void scene_init(struct scene *scene)
{
    *scene = (struct scene){
        .node_message = {.record_count = NODE_COUNT, .node_array = scene->nodes},
        .partition_message = {.record_count = 2, .partition_array = scene->partitions},
        .reservation_message = {.reservation_array = scene->reservations},
        .job_message = {.job_array = scene->jobs}};
    for (int i = 0; i < NODE_COUNT; i++) {
        snprintf(scene->names[i], sizeof(scene->names[i]), "n%d", i);
        scene->nodes[i] = (node_info_t){.name = scene->names[i],
                                        .cpus = 8,
                                        .real_memory = 16000,
                                        .node_state = NODE_STATE_IDLE};
    }
    scene->partitions[0] = (partition_info_t){.name = without_const("lab"), .node_inx = lab_nodes};
    scene->partitions[1] = (partition_info_t){.name = without_const("all"), .node_inx = all_nodes};
    scene->cluster = (struct slurm_cluster){.nodes = &scene->node_message,
                                            .partitions = &scene->partition_message,
                                            .reservations = &scene->reservation_message,
                                            .jobs = &scene->job_message,
                                            .partition = &scene->partitions[0],
                                            .comment = SLURM_AGENT_NAME " tag"};
}

static void scene_done(struct scene *scene)
{
    free(scene->cluster.seen_nodes);
    free(scene->cluster.seen_agents);
    free(scene->cluster.seen_waiting);
    free(scene->cluster.maps);
}

static slurm_job_info_t *add_job(struct scene *scene, const char *partition)
{
    slurm_job_info_t *job = &scene->jobs[scene->job_message.record_count++];
    *job = (slurm_job_info_t){.job_id = 100 + scene->job_message.record_count,
                              .name = without_const("train"),
                              .partition = without_const(partition),
                              .job_state = JOB_PENDING,
                              .state_reason = WAIT_RESOURCES,
                              .priority = 1000 - scene->job_message.record_count,
                              .num_nodes = 1,
                              .num_cpus = 1,
                              .shared = 1};
    return job;
}

static void view(struct scene *scene)
{
    slurm_view_nodes(&scene->cluster, (int64_t)NOW_S * 1000);
    slurm_view_jobs(&scene->cluster, &scene->state);
}

TEST(nodes_are_idle_ending_withheld_or_planned_as_slurm_says)
{
    struct scene scene;
    scene_init(&scene);
    scene.nodes[0].node_state = NODE_STATE_IDLE | NODE_STATE_COMPLETING;
    scene.nodes[1].node_state = NODE_STATE_IDLE | NODE_STATE_PLANNED;
    scene.nodes[2].node_state = NODE_STATE_IDLE | NODE_STATE_RES;
    scene.nodes[3].node_state = NODE_STATE_ALLOCATED | NODE_STATE_DRAIN;
    view(&scene);
    const struct slurm_node *nodes = scene.state.nodes;
    assert_true(!nodes[0].is_idle && nodes[0].is_ending && nodes[0].is_lent);
    assert_true(nodes[1].is_idle && nodes[1].is_planned && !nodes[1].is_withheld);
    assert_true(!nodes[2].is_idle && nodes[2].is_withheld);
    assert_true(!nodes[3].is_idle && nodes[3].is_withheld && !nodes[3].is_lent);
    scene_done(&scene);
}

TEST(nodes_that_do_not_answer_sleep_or_are_down_are_not_idle)
{
    static const uint32_t states[NODE_COUNT] = {
        NODE_STATE_IDLE | NODE_STATE_NO_RESPOND, NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN,
        NODE_STATE_DOWN, NODE_STATE_IDLE | NODE_STATE_POWERING_UP};
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < NODE_COUNT; i++)
        scene.nodes[i].node_state = states[i];
    view(&scene);
    for (int i = 0; i < NODE_COUNT; i++)
        assert_true(!scene.state.nodes[i].is_idle && !scene.state.nodes[i].is_ending);
    scene_done(&scene);
}

TEST(a_reservation_to_come_bounds_its_nodes)
{
    struct scene scene;
    scene_init(&scene);
    int32_t reserved[] = {1, 1, -1};
    scene.reservations[0] = (reserve_info_t){.start_time = NOW_S + 60, .node_inx = reserved};
    scene.reservation_message.record_count = 1;
    view(&scene);
    assert_int_equal(scene.state.nodes[1].free_until_ms, (int64_t)(NOW_S + 60) * 1000);
    assert_true(scene.state.nodes[0].free_until_ms == INT64_MAX);
    scene_done(&scene);
}

TEST(jobs_that_wait_for_something_else_than_nodes_do_not_count)
{
    static const uint16_t reasons[] = {WAIT_DEPENDENCY, WAIT_TIME, WAIT_QOS_JOB_LIMIT};
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 3; i++)
        add_job(&scene, "lab")->state_reason = reasons[i];
    slurm_job_info_t *reserved = add_job(&scene, "lab");
    reserved->resv_name = without_const("course");
    view(&scene);
    assert_int_equal(scene.state.waiting_count, 0);
    reserved->resv_name = NULL;
    view(&scene);
    assert_int_equal(scene.state.waiting_count, 1);
    reserved->priority = 0; /* held */
    view(&scene);
    assert_int_equal(scene.state.waiting_count, 0);
    scene_done(&scene);
}

TEST(a_waiting_job_could_run_where_its_wishes_are_met)
{
    struct scene scene;
    scene_init(&scene);
    int32_t excluded[] = {1, 1, -1};
    scene.nodes[0].features = without_const("avx512");
    scene.nodes[1].features = without_const("avx512");
    scene.nodes[3].features = without_const("avx512,big");
    scene.nodes[3].real_memory = 64000;
    slurm_job_info_t *job = add_job(&scene, "lab,all");
    job->features = without_const("avx512");
    job->exc_node_inx = excluded;
    job->num_nodes = 2;
    job->num_cpus = 7;
    slurm_job_info_t *large = add_job(&scene, "all");
    large->pn_min_memory = 5000 | MEM_PER_CPU;
    large->num_cpus = 8;
    large->shared = 0;
    view(&scene);
    assert_int_equal(scene.state.waiting_count, 2);
    const struct slurm_waiting *waiting = scene.state.waiting;
    assert_int_equal(waiting[0].job, 101);
    assert_int_equal(waiting[0].cpus_per_node, 4);
    assert_true(waiting[0].could[0] && waiting[0].could[3] && !waiting[0].is_exclusive);
    assert_false(waiting[0].could[1] || waiting[0].could[2]);
    assert_null(waiting[0].must);
    assert_true(waiting[1].could[3] && waiting[1].is_exclusive);
    assert_false(waiting[1].could[0] || waiting[1].could[1] || waiting[1].could[2]);
    scene_done(&scene);
}

TEST(nodes_it_must_have_gpus_and_arrays_are_seen)
{
    struct scene scene;
    scene_init(&scene);
    int32_t required[] = {2, 2, -1};
    scene.nodes[2].gres = without_const("gpu:a100:4");
    slurm_job_info_t *job = add_job(&scene, "lab");
    job->req_node_inx = required;
    job->tres_per_node = without_const("gres:gpu:1");
    job->array_task_str = without_const("0-99");
    view(&scene);
    const struct slurm_waiting *waiting = scene.state.waiting;
    assert_true(waiting->must[2] && !waiting->must[0]);
    assert_true(waiting->could[2] && !waiting->could[0]);
    assert_int_equal(waiting->copies, NODE_COUNT);
    scene_done(&scene);
}

static slurm_job_info_t *add_agent(struct scene *scene, const char *comment, const char *node)
{
    slurm_job_info_t *job = add_job(scene, "lab");
    job->name = without_const(SLURM_AGENT_NAME);
    job->comment = without_const(comment);
    job->user_id = getuid();
    job->job_state = JOB_RUNNING;
    job->nodes = without_const(node);
    job->end_time = NOW_S + 3600;
    return job;
}

TEST(agents_are_known_by_their_tag_and_never_wait_as_others)
{
    struct scene scene;
    scene_init(&scene);
    add_agent(&scene, SLURM_AGENT_NAME " tag", "n1")->job_id = 300;
    slurm_job_info_t *pending = add_agent(&scene, SLURM_AGENT_NAME " tag", NULL);
    pending->job_id = 200;
    pending->job_state = JOB_PENDING;
    pending->req_nodes = without_const("n0");
    add_agent(&scene, SLURM_AGENT_NAME " other", NULL)->job_state = JOB_PENDING;
    add_agent(&scene, SLURM_AGENT_NAME " tag", "n2")->job_state = JOB_CANCELLED | JOB_COMPLETING;
    view(&scene);
    assert_int_equal(scene.state.waiting_count, 0);
    assert_int_equal(scene.state.agent_count, 2);
    assert_int_equal(scene.state.agents[0].job, 200);
    assert_true(!scene.state.agents[0].is_running && scene.state.agents[0].node == 0);
    assert_int_equal(scene.state.agents[1].job, 300);
    assert_true(scene.state.agents[1].is_running && scene.state.agents[1].node == 1);
    assert_int_equal(scene.state.agents[1].ends_ms, (int64_t)(NOW_S + 3600) * 1000);
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_idle_ending_withheld_or_planned_as_slurm_says),
        cmocka_unit_test(nodes_that_do_not_answer_sleep_or_are_down_are_not_idle),
        cmocka_unit_test(a_reservation_to_come_bounds_its_nodes),
        cmocka_unit_test(jobs_that_wait_for_something_else_than_nodes_do_not_count),
        cmocka_unit_test(a_waiting_job_could_run_where_its_wishes_are_met),
        cmocka_unit_test(nodes_it_must_have_gpus_and_arrays_are_seen),
        cmocka_unit_test(agents_are_known_by_their_tag_and_never_wait_as_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
