#include "net/flow_table.h"

#include "base/assert.h"

#include <netinet/in.h>
#include <stdlib.h>

struct entry {
    struct fence_flow flow;
    bool is_used;
    int64_t heard_ms;
};

struct flow_table {
    uint64_t seed;
    int64_t new_milli; /* how many may begin, in thousandths */
    int64_t filled_ms;
    struct entry entries[FLOW_TABLE_SETS][FLOW_TABLE_WAYS];
};

struct flow_table *flow_table_new(uint64_t seed)
{
    struct flow_table *table = calloc(1, sizeof(*table));
    ASSERT(table);
    table->seed = seed;
    table->new_milli = FLOW_TABLE_NEW_MAX * INT64_C(1000);
    return table;
}

void flow_table_free(struct flow_table *table)
{
    free(table);
}

static struct entry *set_of(struct flow_table *table, const struct fence_flow *flow)
{
    /* The finalizer of MurmurHash3, which spreads every bit over all others. */
    uint64_t mixed = table->seed ^ (uint64_t)flow->remote << 32 ^ (uint64_t)flow->job_port << 16 ^
                     flow->remote_port ^ (uint64_t)flow->protocol << 56;
    mixed = (mixed ^ mixed >> 33) * UINT64_C(0xff51afd7ed558ccd);
    mixed = (mixed ^ mixed >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return table->entries[(mixed ^ mixed >> 33) % FLOW_TABLE_SETS];
}

static bool is_same(const struct fence_flow *left, const struct fence_flow *right)
{
    return left->protocol == right->protocol && left->remote == right->remote &&
           left->job_port == right->job_port && left->remote_port == right->remote_port;
}

static struct entry *find(struct entry *set, const struct fence_flow *flow)
{
    for (int i = 0; i < FLOW_TABLE_WAYS; i++)
        if (set[i].is_used && is_same(&set[i].flow, flow))
            return &set[i];
    return NULL;
}

static int64_t silence_of(const struct fence_flow *flow)
{
    return flow->protocol == IPPROTO_TCP ? FLOW_TABLE_TCP_SILENCE_MS : FLOW_TABLE_SILENCE_MS;
}

/* Whether one more may begin; then it has. */
static bool take_new(struct flow_table *table, int64_t now_ms)
{
    const int64_t most = FLOW_TABLE_NEW_MAX * INT64_C(1000);
    const int64_t passed_ms = now_ms - table->filled_ms;
    if (passed_ms >= most / FLOW_TABLE_NEW_PER_S)
        table->new_milli = most;
    else
        table->new_milli += passed_ms * FLOW_TABLE_NEW_PER_S;
    if (table->new_milli > most)
        table->new_milli = most;
    table->filled_ms = now_ms;
    if (table->new_milli < 1000)
        return false;
    table->new_milli -= 1000;
    return true;
}

bool flow_table_note(struct flow_table *table, const struct fence_flow *flow, int64_t now_ms)
{
    struct entry *set = set_of(table, flow);
    struct entry *chosen = find(set, flow);
    if ((!chosen || now_ms - chosen->heard_ms > silence_of(flow)) && !take_new(table, now_ms))
        return false;
    for (int i = 0; !chosen && i < FLOW_TABLE_WAYS; i++)
        if (!set[i].is_used)
            chosen = &set[i];
    if (!chosen) {
        chosen = set;
        for (int i = 1; i < FLOW_TABLE_WAYS; i++)
            if (set[i].heard_ms < chosen->heard_ms)
                chosen = &set[i];
    }
    *chosen = (struct entry){.flow = *flow, .is_used = true, .heard_ms = now_ms};
    return true;
}

bool flow_table_has(struct flow_table *table, const struct fence_flow *flow, int64_t now_ms)
{
    struct entry *found = find(set_of(table, flow), flow);
    if (!found || now_ms - found->heard_ms > silence_of(flow))
        return false;
    found->heard_ms = now_ms;
    return true;
}
