#include "cloud/slurm_plan.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

struct agent_memory {
    char node[SLURM_NAME_SIZE];
    int64_t seen_ms;         /* first */
    int64_t last_leased_ms;  /* or first seen */
    int64_t asked_ms;        /* to end; 0: not */
    enum slurm_reason asked; /* why */
    bool is_here;            /* at this look */
};

struct node_memory {
    int64_t not_before_ms;
    uint32_t failures;
};

struct waiting_memory {
    int64_t served_ms; /* since when idle nodes alone looked enough; 0: they do not */
    bool is_here;
};

void slurm_memory_init(struct slurm_memory *memory)
{
    *memory = (struct slurm_memory){0};
    map_init(&memory->agents);
    map_init(&memory->nodes);
    map_init(&memory->waiting);
}

static void free_values(struct map *map)
{
    for (size_t i = 0; i < map->count; i++)
        free(map->entries[i].value);
    map_done(map);
}

void slurm_memory_done(struct slurm_memory *memory)
{
    free_values(&memory->agents);
    free_values(&memory->nodes);
    free_values(&memory->waiting);
}

static struct node_memory *node_memory(struct slurm_memory *memory, struct text name)
{
    struct node_memory *node = map_get_text(&memory->nodes, name);
    if (!node) {
        node = memory_zeroed(1, sizeof(*node));
        map_put_text(&memory->nodes, name, node);
    }
    return node;
}

static void fail_node(struct node_memory *node, int64_t now_ms)
{
    node->not_before_ms = now_ms + ((int64_t)SLURM_BACK_OFF_MS << node->failures);
    if (node->failures < SLURM_BACK_OFF_MAX)
        node->failures++;
}

void slurm_memory_fail(struct slurm_memory *memory, const char *node, int64_t now_ms)
{
    fail_node(node_memory(memory, text_of(node)), now_ms);
}

static struct agent_memory *agent_memory(struct slurm_memory *memory, uint32_t job)
{
    return map_get(&memory->agents, job);
}

static struct agent_memory *remember_agent(struct slurm_memory *memory, uint32_t job,
                                           const char *node, int64_t now_ms)
{
    struct agent_memory *known = memory_zeroed(1, sizeof(*known));
    known->seen_ms = known->last_leased_ms = now_ms;
    snprintf(known->node, sizeof(known->node), "%s", node);
    map_put(&memory->agents, job, known);
    return known;
}

void slurm_memory_start(struct slurm_memory *memory, uint32_t job, const char *node, int64_t now_ms)
{
    remember_agent(memory, job, node, now_ms);
}

/* One that is gone soon after its start, although nobody asked, has failed. */
static void part_from(struct slurm_memory *memory, const struct agent_memory *agent, int64_t now_ms)
{
    struct node_memory *node = node_memory(memory, text_of(agent->node));
    if (now_ms - agent->seen_ms >= SLURM_EARLY_MS) {
        node->failures = 0;
    } else if (agent->asked_ms == 0) {
        fail_node(node, now_ms);
        memory->failed_count++;
        memcpy(memory->failed_node, agent->node, sizeof(memory->failed_node));
    }
}

static void remember_agents(const struct slurm_state *state, struct slurm_memory *memory,
                            int64_t now_ms)
{
    for (size_t i = 0; i < memory->agents.count; i++)
        ((struct agent_memory *)memory->agents.entries[i].value)->is_here = false;
    for (size_t i = 0; i < state->agent_count; i++) {
        const struct slurm_agent *agent = &state->agents[i];
        struct agent_memory *known = agent_memory(memory, agent->job);
        if (!known)
            known = remember_agent(memory, agent->job, state->nodes[agent->node].name, now_ms);
        known->is_here = true;
        if (agent->is_leased)
            known->last_leased_ms = now_ms;
    }
    for (size_t i = memory->agents.count; i-- > 0;) {
        struct agent_memory *known = memory->agents.entries[i].value;
        if (known->is_here)
            continue;
        part_from(memory, known, now_ms);
        free(map_remove(&memory->agents, memory->agents.entries[i].key));
    }
}

static struct waiting_memory *remember_waiting(struct slurm_memory *memory, uint32_t job)
{
    struct waiting_memory *known = map_get(&memory->waiting, job);
    if (!known) {
        known = memory_zeroed(1, sizeof(*known));
        map_put(&memory->waiting, job, known);
    }
    known->is_here = true;
    return known;
}

static void forget_waiting(struct slurm_memory *memory)
{
    for (size_t i = memory->waiting.count; i-- > 0;) {
        struct waiting_memory *known = memory->waiting.entries[i].value;
        if (!known->is_here)
            free(map_remove(&memory->waiting, memory->waiting.entries[i].key));
        else
            known->is_here = false;
    }
}

/* ---- The plan's own view --------------------------------------------------------------------- */

enum place { PLACE_OTHER, PLACE_IDLE, PLACE_COMING, PLACE_AGENT }; /* COMING: soon idle */

struct planned_node {
    enum place place;
    bool is_claimed;
    uint32_t room_cpus; /* while a job could be put there */
    size_t agent;       /* index; SIZE_MAX: none */
};

struct plan {
    const struct slurm_state *state;
    const struct slurm_wish *wish;
    int64_t now_ms;
    struct slurm_memory *memory;
    struct planned_node *nodes;
    size_t *order; /* scratch: agents or nodes in the order they are taken */
    struct slurm_step *steps;
    size_t step_count;
    size_t agent_count; /* that stay */
};

static void end_agent(struct plan *plan, size_t index, enum slurm_reason reason, uint32_t waiting)
{
    const struct slurm_agent *agent = &plan->state->agents[index];
    struct agent_memory *known = agent_memory(plan->memory, agent->job);
    const bool is_first = known->asked_ms == 0;
    plan->agent_count--;
    if (!is_first && plan->now_ms - known->asked_ms < SLURM_GRACE_MS)
        return;
    known->asked_ms = plan->now_ms;
    if (is_first)
        known->asked = reason;
    plan->steps[plan->step_count++] = (struct slurm_step){
        .kind = is_first && agent->is_running ? SLURM_STEP_END : SLURM_STEP_KILL,
        .reason = known->asked,
        .node = agent->node,
        .job = agent->job,
        .waiting_job = waiting};
}

static void see_nodes(struct plan *plan)
{
    for (size_t i = 0; i < plan->state->node_count; i++) {
        const struct slurm_node *node = &plan->state->nodes[i];
        const enum place place = node->is_idle     ? PLACE_IDLE
                                 : node->is_ending ? PLACE_COMING
                                                   : PLACE_OTHER;
        plan->nodes[i] = (struct planned_node){.place = node->name[0] ? place : PLACE_OTHER,
                                               .agent = SIZE_MAX,
                                               .room_cpus = node->cpus};
    }
}

/* One that Slurm has not started, and will not soon: somebody else was there first. */
static bool is_stuck(const struct plan *plan, const struct slurm_agent *agent)
{
    const int64_t seen_ms = agent_memory(plan->memory, agent->job)->seen_ms;
    return !agent->is_running &&
           (!plan->state->nodes[agent->node].is_idle || plan->now_ms - seen_ms >= SLURM_PENDING_MS);
}

/* What ends whatever the queue says; all others get their place. */
static void see_agents(struct plan *plan)
{
    for (size_t i = 0; i < plan->state->agent_count; i++) {
        const struct slurm_agent *agent = &plan->state->agents[i];
        const struct slurm_node *node = &plan->state->nodes[agent->node];
        const struct agent_memory *known = agent_memory(plan->memory, agent->job);
        struct planned_node *planned = &plan->nodes[agent->node];
        const bool is_double = planned->agent != SIZE_MAX;
        planned->place = PLACE_COMING;
        if (!is_double)
            planned->agent = i;
        if (plan->wish->is_stopping)
            end_agent(plan, i, SLURM_REASON_STOPPING, 0);
        else if (known->asked_ms > 0)
            end_agent(plan, i, known->asked, 0);
        else if (is_double)
            end_agent(plan, i, SLURM_REASON_DOUBLE, 0);
        else if (!node->is_lent || node->is_withheld)
            end_agent(plan, i, SLURM_REASON_WITHHELD, 0);
        else if (is_stuck(plan, agent))
            end_agent(plan, i, SLURM_REASON_PENDING, 0);
        else
            planned->place = PLACE_AGENT;
        if (!agent->is_running && !node->is_idle)
            planned->place = PLACE_OTHER;
    }
}

/* ---- Claims of those who wait ---------------------------------------------------------------- */

static bool has_room(const struct plan *plan, const struct slurm_waiting *job, size_t node,
                     enum place place)
{
    const struct planned_node *planned = &plan->nodes[node];
    const bool is_whole = planned->room_cpus == plan->state->nodes[node].cpus;
    return planned->place == place && job->could[node] &&
           planned->room_cpus >= job->cpus_per_node && (is_whole || !job->is_exclusive);
}

static bool has_room_anywhere(const struct plan *plan, const struct slurm_waiting *job, size_t node)
{
    return has_room(plan, job, node, PLACE_IDLE) || has_room(plan, job, node, PLACE_COMING) ||
           has_room(plan, job, node, PLACE_AGENT);
}

/* Whether all it needs is there, were every agent to make way. */
static bool could_start(const struct plan *plan, const struct slurm_waiting *job)
{
    uint32_t found = 0;
    for (size_t i = 0; i < plan->state->node_count; i++) {
        const bool has = has_room_anywhere(plan, job, i);
        if (job->must && job->must[i] && !has)
            return false;
        found += has;
    }
    return found >= job->node_count;
}

static void claim(struct plan *plan, const struct slurm_waiting *job, size_t node)
{
    struct planned_node *planned = &plan->nodes[node];
    if (planned->place == PLACE_AGENT) {
        planned->place = PLACE_COMING;
        end_agent(plan, planned->agent, SLURM_REASON_QUEUE, job->job);
    }
    planned->is_claimed = true;
    planned->room_cpus = job->is_exclusive ? 0 : planned->room_cpus - job->cpus_per_node;
}

/* Claims up to `count` nodes at this place. */
static uint32_t claim_place(struct plan *plan, const struct slurm_waiting *job, enum place place,
                            uint32_t count)
{
    uint32_t claimed = 0;
    for (size_t i = 0; i < plan->state->node_count && claimed < count; i++) {
        if (!has_room(plan, job, plan->order[i], place))
            continue;
        claim(plan, job, plan->order[i]);
        claimed++;
    }
    return claimed;
}

static uint32_t claim_must(struct plan *plan, const struct slurm_waiting *job)
{
    uint32_t claimed = 0;
    for (size_t i = 0; job->must && i < plan->state->node_count; i++)
        if (job->must[i]) {
            claim(plan, job, i);
            claimed++;
        }
    return claimed;
}

/* Idle nodes looked right for it for so long that they cannot be. */
static bool is_overdue(const struct plan *plan, const struct waiting_memory *known)
{
    return known->served_ms > 0 && plan->now_ms - known->served_ms >= SLURM_PATIENCE_MS;
}

/* Returns whether it could start. */
static bool serve_copy(struct plan *plan, const struct slurm_waiting *job,
                       struct waiting_memory *known)
{
    if (!could_start(plan, job))
        return false;
    const bool was_served = is_overdue(plan, known);
    uint32_t claimed = claim_must(plan, job);
    const uint32_t needed = job->node_count > claimed ? job->node_count - claimed : 0;
    claimed = claim_place(plan, job, PLACE_COMING, needed);
    claimed += claim_place(plan, job, PLACE_IDLE, needed - claimed);
    if (claimed < needed || was_served)
        claim_place(plan, job, PLACE_AGENT, was_served ? needed : needed - claimed);
    return true;
}

/* Tasks that take a part of a node each: as many on a node as it has room for. */
static void serve_parts(struct plan *plan, const struct slurm_waiting *job)
{
    static const enum place places[] = {PLACE_COMING, PLACE_IDLE, PLACE_AGENT};
    uint32_t left = job->copies;
    for (size_t p = 0; p < sizeof(places) / sizeof(*places); p++)
        for (size_t i = 0; i < plan->state->node_count && left > 0; i++) {
            const size_t node = plan->order[i];
            if (!has_room(plan, job, node, places[p]))
                continue;
            do { /* an agent's place changes with the first */
                claim(plan, job, node);
                left--;
            } while (left > 0 && plan->nodes[node].room_cpus >= job->cpus_per_node);
        }
}

/* Since when the nodes it claims are all idle, and it does not start. */
static void note_served(const struct plan *plan, const struct slurm_waiting *job,
                        struct waiting_memory *known)
{
    uint32_t idle = 0;
    for (size_t i = 0; i < plan->state->node_count; i++)
        idle += has_room(plan, job, i, PLACE_IDLE);
    if (idle < job->node_count)
        known->served_ms = 0;
    else if (known->served_ms == 0)
        known->served_ms = plan->now_ms;
}

/* Whether an agent could still make way, or an idle node be left to the queue. */
static bool has_any_room(const struct plan *plan)
{
    for (size_t i = 0; i < plan->state->node_count; i++)
        if (plan->nodes[i].place != PLACE_OTHER && plan->nodes[i].room_cpus > 0)
            return true;
    return false;
}

static int compare_waiting(const void *left, const void *right)
{
    const struct slurm_waiting *a = *(const struct slurm_waiting *const *)left;
    const struct slurm_waiting *b = *(const struct slurm_waiting *const *)right;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static void serve_waiting(struct plan *plan)
{
    const size_t count = plan->state->waiting_count;
    const struct slurm_waiting **jobs = memory_zeroed(count, sizeof(*jobs));
    for (size_t i = 0; i < count; i++)
        jobs[i] = &plan->state->waiting[i];
    qsort(jobs, count, sizeof(*jobs), compare_waiting);
    for (size_t i = 0; i < count; i++) {
        ASSERT(jobs[i]->node_count > 0 && jobs[i]->cpus_per_node > 0 && jobs[i]->copies > 0);
        struct waiting_memory *known = remember_waiting(plan->memory, jobs[i]->job);
        if (!has_any_room(plan))
            continue;
        note_served(plan, jobs[i], known);
        uint32_t copies = jobs[i]->copies;
        const bool is_whole = jobs[i]->node_count > 1 || jobs[i]->is_exclusive || jobs[i]->must;
        if (copies > 1 && !is_whole && !is_overdue(plan, known))
            serve_parts(plan, jobs[i]);
        else
            while (copies > 0 && serve_copy(plan, jobs[i], known))
                copies--;
    }
    free(jobs);
    forget_waiting(plan->memory);
}

/* ---- What the market wants ------------------------------------------------------------------- */

static bool is_staying(const struct plan *plan, size_t agent)
{
    const struct planned_node *planned = &plan->nodes[plan->state->agents[agent].node];
    return planned->place == PLACE_AGENT && planned->agent == agent;
}

static int64_t limit_of(const struct plan *plan, size_t node)
{
    const int64_t free_ms = plan->state->nodes[node].free_until_ms - plan->now_ms;
    return free_ms < plan->wish->limit_ms ? free_ms : plan->wish->limit_ms;
}

/* One without a lease that has less than half of what a new one would get. */
static bool is_aged(const struct plan *plan, const struct slurm_agent *agent)
{
    const int64_t left_ms = agent->ends_ms - plan->now_ms;
    return agent->is_running && !agent->is_leased && left_ms < limit_of(plan, agent->node) / 2;
}

static uint32_t count_wanted(const struct plan *plan)
{
    uint64_t leased = 0;
    for (size_t i = 0; i < plan->state->agent_count; i++)
        leased += is_staying(plan, i) && plan->state->agents[i].is_leased;
    const struct slurm_wish *wish = plan->wish;
    const uint64_t wanted =
        leased + (wish->machines_wanted > wish->standby ? wish->machines_wanted : wish->standby);
    return wanted < wish->node_max ? (uint32_t)wanted : wish->node_max;
}

static void end_unwanted(struct plan *plan, uint32_t wanted)
{
    for (size_t i = 0; i < plan->state->agent_count; i++) {
        const struct slurm_agent *agent = &plan->state->agents[i];
        if (!is_staying(plan, i) || agent->is_leased)
            continue;
        const struct agent_memory *known = agent_memory(plan->memory, agent->job);
        const bool is_unused =
            plan->agent_count > wanted && plan->now_ms - known->last_leased_ms >= SLURM_IDLE_MS;
        if (!is_unused && !is_aged(plan, agent))
            continue;
        plan->nodes[agent->node].place = PLACE_COMING;
        end_agent(plan, i, is_unused ? SLURM_REASON_UNUSED : SLURM_REASON_AGED, 0);
    }
}

static bool may_start(const struct plan *plan, size_t index)
{
    const struct slurm_node *node = &plan->state->nodes[index];
    const struct planned_node *planned = &plan->nodes[index];
    if (planned->place != PLACE_IDLE || planned->is_claimed || !node->is_lent ||
        node->is_withheld || node->is_planned)
        return false;
    if (limit_of(plan, index) < SLURM_LIMIT_MIN_MS && limit_of(plan, index) < plan->wish->limit_ms)
        return false;
    const struct node_memory *known = map_get_text(&plan->memory->nodes, text_of(node->name));
    return !known || known->not_before_ms <= plan->now_ms;
}

static void start_wanted(struct plan *plan, uint32_t wanted)
{
    for (size_t i = 0; i < plan->state->node_count && plan->agent_count < wanted; i++) {
        if (!may_start(plan, i))
            continue;
        plan->agent_count++;
        plan->steps[plan->step_count++] = (struct slurm_step){.kind = SLURM_STEP_START,
                                                              .reason = SLURM_REASON_WANTED,
                                                              .node = (uint32_t)i,
                                                              .limit_ms = limit_of(plan, i)};
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Nodes in the order in which agents make way: without a lease first, then the youngest, which have
 * the least to lose. */
static void order_nodes(struct plan *plan)
{
    const struct slurm_state *state = plan->state;
    size_t count = 0;
    for (int leased = 0; leased < 2; leased++)
        for (size_t i = state->agent_count; i-- > 0;)
            if (is_staying(plan, i) && state->agents[i].is_leased == leased)
                plan->order[count++] = state->agents[i].node;
    for (size_t i = 0; i < state->node_count; i++)
        if (plan->nodes[i].place != PLACE_AGENT)
            plan->order[count++] = i;
    ASSERT(count == state->node_count);
}

size_t slurm_plan(const struct slurm_state *state, const struct slurm_wish *wish, int64_t now_ms,
                  struct slurm_memory *memory, struct slurm_step *out_steps)
{
    struct plan plan = {.state = state,
                        .wish = wish,
                        .now_ms = now_ms,
                        .memory = memory,
                        .nodes = memory_zeroed(state->node_count, sizeof(*plan.nodes)),
                        .order = memory_zeroed(state->node_count, sizeof(*plan.order)),
                        .steps = out_steps,
                        .agent_count = state->agent_count};
    remember_agents(state, memory, now_ms);
    see_nodes(&plan);
    see_agents(&plan);
    if (!wish->is_stopping) {
        order_nodes(&plan);
        serve_waiting(&plan);
        const uint32_t wanted = count_wanted(&plan);
        end_unwanted(&plan, wanted);
        start_wanted(&plan, wanted);
    }
    free(plan.nodes);
    free(plan.order);
    ASSERT(plan.step_count <= state->node_count + state->agent_count);
    return plan.step_count;
}

const char *slurm_reason_name(enum slurm_reason reason)
{
    switch (reason) {
    case SLURM_REASON_WANTED:
        return "wanted";
    case SLURM_REASON_QUEUE:
        return "queue";
    case SLURM_REASON_WITHHELD:
        return "withheld";
    case SLURM_REASON_UNUSED:
        return "unused";
    case SLURM_REASON_AGED:
        return "aged";
    case SLURM_REASON_PENDING:
        return "pending";
    case SLURM_REASON_DOUBLE:
        return "double";
    case SLURM_REASON_STOPPING:
        return "stopping";
    case SLURM_REASON_COUNT:
        break;
    }
    return "unknown";
}
