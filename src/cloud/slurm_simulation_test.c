/*
 * The plan against a cluster of its own in virtual time: jobs of others come and go, Slurm starts
 * whatever fits, agents start and end with delays, and whole seeds replay.
 *
 * covers slurm_plan.c
 */
#include "base/random.h"
#include "cloud/slurm_plan.h"
#include "testing/testing.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NODE_MAX = 12,
    JOB_MAX = 400,
    SEED_COUNT = 60,
    LOOK_MS = 2000,
    LOOKS = 2000,
    END_MS = 3000,      /* an agent's good order */
    YIELD_MS = 8000,    /* from when nodes would do to when the job runs */
    LIMIT_MS = 7200000, /* of an agent */
};

/* GOING: an agent's job is over, and Slurm still cleans up after it. */
enum sim_state { SIM_NONE, SIM_PENDING, SIM_RUNNING, SIM_ENDING, SIM_GOING, SIM_OVER };

struct sim_job {
    enum sim_state state;
    uint32_t number;
    uint32_t node_count;
    bool is_on[NODE_MAX];
    bool could[NODE_MAX];
    int64_t run_ms, ends_ms;
    int64_t could_since_ms; /* it would run if there were no agents; 0: it would not */
};

struct sim {
    struct random random;
    uint64_t seed;
    size_t node_count;
    struct slurm_node nodes[NODE_MAX];
    struct sim_job agents[NODE_MAX]; /* by node */
    bool is_leased[NODE_MAX];
    struct sim_job jobs[JOB_MAX];
    size_t job_count;
    uint32_t next_number;
    int64_t now_ms;
    uint32_t machines_wanted;
    struct slurm_memory memory;
    size_t starts, yields;
};

static bool is_used(const struct sim *sim, size_t node, bool with_agents)
{
    for (size_t i = 0; i < sim->job_count; i++)
        if (sim->jobs[i].state == SIM_RUNNING && sim->jobs[i].is_on[node])
            return true;
    const enum sim_state state = sim->agents[node].state;
    return with_agents && (state == SIM_RUNNING || state == SIM_ENDING || state == SIM_GOING);
}

static uint32_t count_free(const struct sim *sim, const struct sim_job *job, bool with_agents)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sim->node_count; i++)
        count += job->could[i] && !sim->nodes[i].is_withheld && !is_used(sim, i, with_agents);
    return count;
}

static void start_job(struct sim *sim, struct sim_job *job)
{
    uint32_t left = job->node_count;
    for (size_t i = 0; i < sim->node_count && left > 0; i++)
        if (job->could[i] && !sim->nodes[i].is_withheld && !is_used(sim, i, true)) {
            job->is_on[i] = true;
            left--;
        }
    job->state = SIM_RUNNING;
    job->ends_ms = sim->now_ms + job->run_ms;
}

/* As Slurm with backfill does: first come first, and whoever fits. */
static void schedule(struct sim *sim)
{
    for (size_t i = 0; i < sim->job_count; i++) {
        struct sim_job *job = &sim->jobs[i];
        if (job->state == SIM_PENDING && count_free(sim, job, true) >= job->node_count)
            start_job(sim, job);
    }
    for (size_t i = 0; i < sim->node_count; i++)
        if (sim->agents[i].state == SIM_PENDING && !is_used(sim, i, false)) {
            sim->agents[i].state = SIM_RUNNING;
            sim->agents[i].ends_ms = sim->now_ms + LIMIT_MS;
        }
}

static void submit_job(struct sim *sim)
{
    if (sim->job_count == JOB_MAX)
        return;
    struct sim_job *job = &sim->jobs[sim->job_count++];
    *job = (struct sim_job){.state = SIM_PENDING,
                            .number = sim->next_number++,
                            .node_count = 1 + (uint32_t)random_below(&sim->random, 4),
                            .run_ms = 10000 + (int64_t)random_below(&sim->random, 600000)};
    for (size_t i = 0; i < sim->node_count; i++)
        job->could[i] = random_below(&sim->random, 4) > 0;
}

/* What happens by itself between two looks. */
static void pass(struct sim *sim)
{
    sim->now_ms += LOOK_MS;
    for (size_t i = 0; i < sim->job_count; i++)
        if (sim->jobs[i].state == SIM_RUNNING && sim->jobs[i].ends_ms <= sim->now_ms)
            sim->jobs[i].state = SIM_OVER;
    for (size_t i = 0; i < sim->node_count; i++) {
        struct sim_job *agent = &sim->agents[i];
        const bool is_there = agent->state == SIM_RUNNING || agent->state == SIM_ENDING;
        if (agent->state == SIM_GOING)
            agent->state = SIM_NONE;
        else if (is_there && agent->ends_ms <= sim->now_ms)
            agent->state = SIM_GOING;
        if (agent->state == SIM_RUNNING && random_below(&sim->random, 5000) == 0)
            agent->state = SIM_NONE; /* it crashed */
        sim->is_leased[i] = agent->state == SIM_RUNNING &&
                            (random_below(&sim->random, 30) ? sim->is_leased[i]
                                                            : random_below(&sim->random, 2) == 0);
    }
    if (random_below(&sim->random, 80) == 0)
        submit_job(sim);
    if (random_below(&sim->random, 100) == 0)
        sim->machines_wanted = (uint32_t)random_below(&sim->random, NODE_MAX);
    if (random_below(&sim->random, 400) == 0) {
        struct slurm_node *node = &sim->nodes[random_below(&sim->random, sim->node_count)];
        node->is_withheld = !node->is_withheld;
    }
    schedule(sim);
}

/* Nobody waits for longer than an agent needs to go. */
static void check_waiting(struct sim *sim)
{
    for (size_t i = 0; i < sim->job_count; i++) {
        struct sim_job *job = &sim->jobs[i];
        const bool could =
            job->state == SIM_PENDING && count_free(sim, job, false) >= job->node_count;
        if (!could)
            job->could_since_ms = 0;
        else if (job->could_since_ms == 0)
            job->could_since_ms = sim->now_ms;
        else if (sim->now_ms - job->could_since_ms > YIELD_MS)
            fail_msg("seed %llu: job %u waited although nodes would do",
                     (unsigned long long)sim->seed, job->number);
    }
}

static void do_step(struct sim *sim, const struct slurm_step *step)
{
    struct sim_job *agent = &sim->agents[step->node];
    const struct slurm_node *node = &sim->nodes[step->node];
    switch (step->kind) {
    case SLURM_STEP_START:
        assert_true(agent->state == SIM_NONE && !node->is_withheld && node->is_lent);
        assert_false(is_used(sim, step->node, true));
        sim->starts++;
        *agent = (struct sim_job){.state = SIM_PENDING, .number = sim->next_number++};
        break;
    case SLURM_STEP_END:
        assert_int_equal(agent->state, SIM_RUNNING);
        sim->yields += step->reason == SLURM_REASON_QUEUE;
        agent->state = SIM_ENDING;
        agent->ends_ms = sim->now_ms + END_MS;
        break;
    case SLURM_STEP_KILL:
        assert_true(agent->state == SIM_PENDING || agent->state == SIM_ENDING);
        agent->state = SIM_NONE;
        break;
    }
}

static int compare_agents(const void *left, const void *right)
{
    const struct slurm_agent *a = left, *b = right;
    return (a->job > b->job) - (a->job < b->job);
}

static void look(struct sim *sim, bool is_stopping)
{
    struct slurm_agent agents[NODE_MAX];
    struct slurm_waiting waiting[JOB_MAX];
    struct slurm_step steps[2 * NODE_MAX];
    struct slurm_state state = {
        .nodes = sim->nodes, .node_count = sim->node_count, .agents = agents, .waiting = waiting};
    for (size_t i = 0; i < sim->node_count; i++) {
        const struct sim_job *agent = &sim->agents[i];
        sim->nodes[i].is_idle = !is_used(sim, i, true) && !sim->nodes[i].is_withheld;
        sim->nodes[i].is_ending = agent->state == SIM_GOING && !sim->nodes[i].is_withheld;
        if (agent->state != SIM_NONE && agent->state != SIM_GOING)
            agents[state.agent_count++] = (struct slurm_agent){
                .job = agent->number,
                .node = (uint32_t)i,
                .is_running = agent->state != SIM_PENDING,
                .is_leased = sim->is_leased[i],
                .ends_ms = agent->state == SIM_RUNNING ? agent->ends_ms : sim->now_ms + LIMIT_MS};
    }
    qsort(agents, state.agent_count, sizeof(*agents), compare_agents);
    for (size_t i = 0; i < sim->job_count; i++)
        if (sim->jobs[i].state == SIM_PENDING)
            waiting[state.waiting_count++] =
                (struct slurm_waiting){.job = sim->jobs[i].number,
                                       .priority = 1000000 - sim->jobs[i].number,
                                       .node_count = sim->jobs[i].node_count,
                                       .cpus_per_node = 2,
                                       .copies = 1,
                                       .is_exclusive = true,
                                       .could = sim->jobs[i].could};
    const struct slurm_wish wish = {.machines_wanted = sim->machines_wanted,
                                    .standby = 1,
                                    .node_max = NODE_MAX - 2,
                                    .limit_ms = LIMIT_MS,
                                    .is_stopping = is_stopping};
    const size_t count = slurm_plan(&state, &wish, sim->now_ms, &sim->memory, steps);
    for (size_t i = 0; i < count; i++)
        do_step(sim, &steps[i]);
}

static size_t count_agents(const struct sim *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < sim->node_count; i++)
        count += sim->agents[i].state != SIM_NONE;
    return count;
}

static void run_seed(uint64_t seed, size_t *starts, size_t *yields)
{
    static struct sim sim;
    sim = (struct sim){.seed = seed, .now_ms = 1000000, .next_number = 1};
    random_init(&sim.random, seed);
    slurm_memory_init(&sim.memory);
    sim.node_count = 2 + random_below(&sim.random, NODE_MAX - 1);
    for (size_t i = 0; i < sim.node_count; i++) {
        sim.nodes[i] = (struct slurm_node){
            .is_lent = random_below(&sim.random, 5) > 0, .free_until_ms = INT64_MAX, .cpus = 2};
        snprintf(sim.nodes[i].name, sizeof(sim.nodes[i].name), "n%zu", i);
    }
    for (int i = 0; i < LOOKS; i++) {
        pass(&sim);
        check_waiting(&sim);
        look(&sim, /* is_stopping= */ false);
        assert_true(count_agents(&sim) <= sim.node_count);
    }
    for (int i = 0; i < 10 && count_agents(&sim) > 0; i++) {
        pass(&sim);
        look(&sim, /* is_stopping= */ true);
    }
    assert_int_equal(count_agents(&sim), 0);
    *starts += sim.starts;
    *yields += sim.yields;
    slurm_memory_done(&sim.memory);
}

TEST(jobs_of_others_never_wait_long_for_nodes_that_lend)
{
    size_t starts = 0, yields = 0;
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_seed(seed, &starts, &yields);
    assert_true(starts / SEED_COUNT > 20 && yields / SEED_COUNT > 5); /* it was about something */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_others_never_wait_long_for_nodes_that_lend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
