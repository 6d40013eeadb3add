/* A fleet as it is kept from one run of the market to the next. */
#include "base/assert.h"
#include "base/json_schema.h"
#include "cloud/fleet_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VERSION = 1, COUNT_MAX = 1 << 30 };
#define AMOUNT_MAX                                                                                 \
    INT64_C(8000000000000000) /* so many that all members together are no overflow                 \
                               */
#define TIME_MAX (INT64_C(1) << 53)

struct saved_order {
    uint64_t id;
    int64_t count;
    bool is_spot;
    int64_t usd_micro_per_hour_max, usd_micro_max;
    uint64_t job, account;
    uint8_t key[FLEET_KEY_SIZE], request[FLEET_KEY_SIZE];
    struct json_array candidates; /* of struct fleet_candidate */
    int64_t made_ms, done_ms;
    int64_t spent_usd_micro;
    int64_t replacements_left;
    bool is_stopping, is_done;
    char reason[FLEET_REASON_SIZE];
};

struct saved_member {
    uint64_t id, order;
    int state;
    int64_t candidate, attempt;
    char instance[FLEET_NAME_SIZE];
    int64_t asked_ms, answered_ms, gone_ms;
    int64_t allowance_usd_micro;
    int64_t ends_ms;
    int64_t billed_usd_micro;
    int64_t taken_ms;
    uint64_t machine;
    bool is_open;
    char reason[FLEET_REASON_SIZE];
};

struct saved_fleet {
    int64_t version;
    char run[FLEET_NAME_SIZE];
    uint64_t last_id;
    struct json_array orders, members;
};

/* ---- What is written ------------------------------------------------------------------------- */

#define ID(owner, member)                                                                          \
    {                                                                                              \
#member, JSON_U64, offsetof(struct owner, member), .is_required = true                     \
    }
#define FLAG(owner, member)                                                                        \
    {                                                                                              \
#member, JSON_BOOL, offsetof(struct owner, member), .is_required = true                    \
    }
#define UP_TO(owner, member, most)                                                                 \
    {                                                                                              \
#member, JSON_I64, offsetof(struct owner, member), .is_required = true, .minimum = 0,      \
                                                           .maximum = (most)                       \
    }
#define AMOUNT(owner, member) UP_TO(owner, member, AMOUNT_MAX)
#define TIME(owner, member)   UP_TO(owner, member, TIME_MAX)
#define CHARS(owner, member, size)                                                                 \
    {                                                                                              \
#member, JSON_CHARS, offsetof(struct owner, member), .is_required = true,                  \
                                                             .size_max = (size)                    \
    }
#define BYTES(owner, member)                                                                       \
    {                                                                                              \
#member, JSON_HEX, offsetof(struct owner, member), .is_required = true,                    \
                                                           .size_max = FLEET_KEY_SIZE              \
    }
#define ARRAY(owner, member, schema_, most)                                                        \
    {                                                                                              \
#member, JSON_ARRAY, offsetof(struct owner, member),                                       \
            .is_required = true, .size_max = (most), .schema = &(schema_)                          \
    }

static const char *const states[] = {"wanted", "launching", "booting", "ready",
                                     "ending", "gone",      NULL};
_Static_assert(sizeof(states) / sizeof(*states) == FLEET_STATE_COUNT + 1, "a name for each state");

static const struct json_field candidate_fields[] = {
    CHARS(fleet_candidate, type, FLEET_NAME_SIZE),
    CHARS(fleet_candidate, zone, FLEET_NAME_SIZE),
    AMOUNT(fleet_candidate, usd_micro_per_hour),
};
static const struct json_schema candidate_schema =
    JSON_SCHEMA("candidate", candidate_fields, struct fleet_candidate);

static const struct json_field order_fields[] = {
    ID(saved_order, id),
    UP_TO(saved_order, count, FLEET_MEMBERS_MAX),
    FLAG(saved_order, is_spot),
    AMOUNT(saved_order, usd_micro_per_hour_max),
    AMOUNT(saved_order, usd_micro_max),
    ID(saved_order, job),
    ID(saved_order, account),
    BYTES(saved_order, key),
    BYTES(saved_order, request),
    ARRAY(saved_order, candidates, candidate_schema, FLEET_CANDIDATES_MAX),
    TIME(saved_order, made_ms),
    TIME(saved_order, done_ms),
    AMOUNT(saved_order, spent_usd_micro),
    UP_TO(saved_order, replacements_left, COUNT_MAX),
    FLAG(saved_order, is_stopping),
    FLAG(saved_order, is_done),
    CHARS(saved_order, reason, FLEET_REASON_SIZE),
};
static const struct json_schema order_schema =
    JSON_SCHEMA("order", order_fields, struct saved_order);

static const struct json_field member_fields[] = {
    ID(saved_member, id),
    ID(saved_member, order),
    {"state", JSON_CHOICE, offsetof(struct saved_member, state), .is_required = true,
     .choices = states},
    UP_TO(saved_member, candidate, FLEET_CANDIDATES_MAX),
    UP_TO(saved_member, attempt, COUNT_MAX),
    CHARS(saved_member, instance, FLEET_NAME_SIZE),
    TIME(saved_member, asked_ms),
    TIME(saved_member, answered_ms),
    TIME(saved_member, gone_ms),
    AMOUNT(saved_member, allowance_usd_micro),
    TIME(saved_member, ends_ms),
    AMOUNT(saved_member, billed_usd_micro),
    TIME(saved_member, taken_ms),
    ID(saved_member, machine),
    FLAG(saved_member, is_open),
    CHARS(saved_member, reason, FLEET_REASON_SIZE),
};
static const struct json_schema member_schema =
    JSON_SCHEMA("member", member_fields, struct saved_member);

static const struct json_field fleet_fields[] = {
    UP_TO(saved_fleet, version, COUNT_MAX),
    CHARS(saved_fleet, run, FLEET_NAME_SIZE),
    ID(saved_fleet, last_id),
    ARRAY(saved_fleet, orders, order_schema, FLEET_ORDERS_MAX),
    ARRAY(saved_fleet, members, member_schema, FLEET_MEMBERS_MAX),
};
static const struct json_schema fleet_schema =
    JSON_SCHEMA("fleet", fleet_fields, struct saved_fleet);

static struct saved_order saved_order_of(const struct fleet_order *order)
{
    const struct fleet_wish *wish = &order->wish;
    struct saved_order saved = {
        .id = order->id,
        .count = wish->count,
        .is_spot = wish->is_spot,
        .usd_micro_per_hour_max = wish->usd_micro_per_hour_max,
        .usd_micro_max = wish->usd_micro_max,
        .job = wish->job,
        .account = wish->account,
        .candidates = {(void *)(uintptr_t)order->candidates, wish->candidate_count},
        .made_ms = order->made_ms,
        .done_ms = order->done_ms,
        .spent_usd_micro = order->spent_usd_micro,
        .replacements_left = order->replacements_left,
        .is_stopping = order->is_stopping,
        .is_done = order->is_done,
    };
    memcpy(saved.key, wish->key, FLEET_KEY_SIZE);
    memcpy(saved.request, wish->request, FLEET_KEY_SIZE);
    memcpy(saved.reason, order->reason, FLEET_REASON_SIZE);
    return saved;
}

static struct saved_member saved_member_of(const struct fleet_member *member)
{
    struct saved_member saved = {
        .id = member->id,
        .order = member->order,
        .state = (int)member->state,
        .candidate = member->candidate,
        .attempt = member->attempt,
        .asked_ms = member->asked_ms,
        .answered_ms = member->answered_ms,
        .gone_ms = member->gone_ms,
        .allowance_usd_micro = member->allowance_usd_micro,
        .ends_ms = member->ends_ms,
        .billed_usd_micro = member->billed_usd_micro,
        .taken_ms = member->taken_ms,
        .machine = member->machine,
        .is_open = member->is_open,
    };
    memcpy(saved.instance, member->instance, FLEET_NAME_SIZE);
    memcpy(saved.reason, member->reason, FLEET_REASON_SIZE);
    return saved;
}

void fleet_save(const struct fleet *fleet, struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct saved_order *orders = arena_alloc(arena, (fleet->order_count + 1) * sizeof(*orders));
    struct saved_member *members = arena_alloc(arena, (fleet->member_count + 1) * sizeof(*members));
    struct saved_fleet saved = {.version = VERSION,
                                .last_id = fleet->last_id,
                                .orders = {orders, fleet->order_count},
                                .members = {members, fleet->member_count}};
    struct json_writer writer;
    memcpy(saved.run, fleet->options.run, FLEET_NAME_SIZE);
    for (size_t i = 0; i < fleet->order_count; i++)
        orders[i] = saved_order_of(&fleet->orders[i]);
    for (size_t i = 0; i < fleet->member_count; i++)
        members[i] = saved_member_of(&fleet->members[i]);
    json_writer_init(&writer, out);
    json_write(&writer, &fleet_schema, &saved);
    buffer_append_string(out, "\n");
}

/* ---- What is read ---------------------------------------------------------------------------- */

static int misfit(const char *what, uint64_t id, const char *reason, struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "%s %" PRIu64 ": %s", what, id, reason);
}

static bool is_known_id(const struct fleet *fleet, uint64_t id)
{
    return fleet_find_order(fleet, id) || fleet_find_member(fleet, id);
}

static int load_order(struct fleet *fleet, const struct saved_order *saved, struct error *error)
{
    const struct fleet_candidate *candidates = saved->candidates.items;
    if (saved->id == 0 || saved->id > fleet->last_id || is_known_id(fleet, saved->id))
        return misfit("order", saved->id, "its id is no new one", error);
    if (saved->count < 1 || saved->candidates.count < 1)
        return misfit("order", saved->id, "it has no count or no candidate", error);
    for (size_t i = 0; i < saved->candidates.count; i++)
        if (candidates[i].usd_micro_per_hour < 1)
            return misfit("order", saved->id, "a candidate has no price", error);
    struct fleet_order *order = &fleet->orders[fleet->order_count++];
    *order = (struct fleet_order){
        .id = saved->id,
        .wish = {.count = (uint32_t)saved->count,
                 .is_spot = saved->is_spot,
                 .usd_micro_per_hour_max = saved->usd_micro_per_hour_max,
                 .usd_micro_max = saved->usd_micro_max,
                 .job = saved->job,
                 .account = saved->account,
                 .candidates = order->candidates,
                 .candidate_count = saved->candidates.count},
        .made_ms = saved->made_ms,
        .done_ms = saved->done_ms,
        .spent_usd_micro = saved->spent_usd_micro,
        .replacements_left = (uint32_t)saved->replacements_left,
        .is_stopping = saved->is_stopping,
        .is_done = saved->is_done,
    };
    memcpy(order->candidates, candidates, saved->candidates.count * sizeof(*candidates));
    memcpy(order->wish.key, saved->key, FLEET_KEY_SIZE);
    memcpy(order->wish.request, saved->request, FLEET_KEY_SIZE);
    memcpy(order->reason, saved->reason, FLEET_REASON_SIZE);
    return 0;
}

static int check_member(const struct fleet *fleet, const struct saved_member *saved,
                        struct error *error)
{
    const struct fleet_order *order = fleet_find_order(fleet, saved->order);
    const bool is_there = saved->state == FLEET_BOOTING || saved->state == FLEET_READY;
    const bool is_gone = saved->state == FLEET_GONE;
    if (saved->id == 0 || saved->id > fleet->last_id || is_known_id(fleet, saved->id))
        return misfit("member", saved->id, "its id is no new one", error);
    if (!order || saved->candidate >= (int64_t)order->wish.candidate_count)
        return misfit("member", saved->id, "its order has no such candidate, or is none", error);
    if (is_gone != (saved->gone_ms > 0) || (order->is_done && !is_gone))
        return misfit("member", saved->id, "it is gone, and is not", error);
    if ((is_there && !saved->instance[0]) ||
        (!is_gone && saved->state != FLEET_WANTED && !saved->asked_ms))
        return misfit("member", saved->id, "it runs, and was not asked for", error);
    return 0;
}

/*
 * Nobody answered it while there was no market: an instance has its time to enrol, and to be
 * leased, from now on; until when it may run stays. Whether a launch was done is not known.
 */
static void load_member(struct fleet *fleet, const struct saved_member *saved, int64_t now_ms)
{
    struct fleet_member *member = &fleet->members[fleet->member_count++];
    const bool is_nameless =
        !saved->instance[0] && (saved->state == FLEET_LAUNCHING || saved->state == FLEET_ENDING);
    *member = (struct fleet_member){
        .id = saved->id,
        .order = saved->order,
        .state = (enum fleet_state)saved->state,
        .candidate = (uint32_t)saved->candidate,
        .attempt = (uint32_t)saved->attempt,
        .asked_ms = saved->asked_ms,
        .answered_ms = saved->answered_ms,
        .since_ms = now_ms,
        .gone_ms = saved->gone_ms,
        .allowance_usd_micro = saved->allowance_usd_micro,
        .ends_ms = saved->ends_ms,
        .billed_usd_micro = saved->billed_usd_micro,
        .taken_ms = saved->taken_ms,
        .machine = saved->machine,
        .is_open = saved->is_open || is_nameless,
    };
    memcpy(member->instance, saved->instance, FLEET_NAME_SIZE);
    memcpy(member->reason, saved->reason, FLEET_REASON_SIZE);
}

static int load(struct fleet *fleet, const struct saved_fleet *saved, int64_t now_ms,
                struct error *error)
{
    const struct saved_order *orders = saved->orders.items;
    const struct saved_member *members = saved->members.items;
    if (saved->version != VERSION)
        return error_set(error, ERROR_CORRUPT, "version %" PRId64 " is not known", saved->version);
    if (!saved->run[0] || saved->last_id > (uint64_t)TIME_MAX)
        return error_set(error, ERROR_CORRUPT, "it does not say of which run it is, or which ids");
    memcpy(fleet->options.run, saved->run, FLEET_NAME_SIZE);
    fleet->last_id = saved->last_id;
    for (size_t i = 0; i < saved->orders.count; i++)
        if (load_order(fleet, &orders[i], error) < 0)
            return -1;
    for (size_t i = 0; i < saved->members.count; i++) {
        if (check_member(fleet, &members[i], error) < 0)
            return -1;
        load_member(fleet, &members[i], now_ms);
    }
    return 0;
}

int fleet_load(const struct fleet_options *options, struct text saved, int64_t now_ms,
               struct fleet **out_fleet, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    AUTO(fleet) struct fleet *fleet = fleet_new(options);
    struct saved_fleet read = {0};
    if (json_read(arena, saved, &fleet_schema, &read, error) < 0) {
        error->code = ERROR_CORRUPT;
        return -1;
    }
    if (load(fleet, &read, now_ms, error) < 0)
        return -1;
    *out_fleet = TAKE(fleet);
    return 0;
}
