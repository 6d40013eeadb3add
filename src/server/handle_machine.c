/* Machines: showing them. */
#include "server/handle_machine.h"

#include "server/answers.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/list_view.h"
#include "server/query.h"
#include "server/routes.h"
#include "server/view.h"

enum { FRESH_KEPT_MS = 1000 };

static void write_near(struct server *server, struct arena *arena, uint64_t machine,
                       struct json_writer *writer)
{
    struct hub_near near[HUB_NEAR_MAX];
    const size_t count = hub_machine_near(server->hub, machine, near);
    json_key(writer, "near");
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(writer);
        json_field_u64(writer, "machine", near[i].machine);
        json_field_text(writer, "machine_name",
                        query_name(server, arena, TABLE_MACHINES, near[i].machine));
        json_field_i64(writer, "rtt_us", near[i].rtt_us);
        json_object_end(writer);
    }
    json_array_end(writer);
}

/* What its last heartbeat said: not in its row, and so not for keeping. */
static void write_live(struct server *server, struct arena *arena, uint64_t machine, bool is_mine,
                       struct json_writer *writer)
{
    struct hub_live live;
    if (!hub_machine_live(server->hub, machine, &live))
        return;
    answers_forget(server->answers);
    json_key(writer, "live");
    json_object_begin(writer);
    if (is_mine) { /* what its owner does there is nobody else's business */
        hub_live_write(writer, &live);
    } else {
        json_field_i64(writer, "heard_ms", live.heard_ms);
        json_field_i64(writer, "rtt_us", live.rtt_us);
    }
    write_near(server, arena, machine, writer);
    json_object_end(writer);
}

/* To the second, and so for keeping no longer than that. */
static bool read_fresh(struct server *server, uint64_t machine, int64_t *out_fresh_s)
{
    int64_t silence_ms;
    if (!hub_machine_silence(server->hub, machine, &silence_ms))
        return false;
    *out_fresh_s = silence_ms / 1000;
    answers_until(server->answers, clock_utc_ms(server->clock) + FRESH_KEPT_MS);
    return true;
}

/* Its daemon's word, and of no row: until when a machine is paused is its owner's to know. */
static int64_t read_pause_end(struct server *server, const struct store_value *row, bool is_mine)
{
    const enum machine_yield yield = (enum machine_yield)row[MACHINES_YIELD].integer;
    if (!is_mine || (yield != MACHINE_YIELD_PAUSED && yield != MACHINE_YIELD_PAUSED_REMOTELY))
        return 0;
    answers_forget(server->answers);
    return hub_machine_paused_until_ms(server->hub, (uint64_t)row[MACHINES_ID].integer);
}

static void write_view(struct server *server, struct arena *arena, uint64_t account,
                       const struct store_value *row, bool has_live, struct json_writer *writer)
{
    const uint64_t owner = (uint64_t)row[MACHINES_OWNER].integer;
    struct view_machine view = {
        .row = row,
        .account_name = query_name(server, arena, TABLE_ACCOUNTS, owner),
        .is_mine = owner == account,
    };
    view.paused_until_ms = read_pause_end(server, row, view.is_mine);
    view.is_heard = read_fresh(server, (uint64_t)row[MACHINES_ID].integer, &view.fresh_s);
    json_object_begin(writer);
    view_machine(writer, &view);
    if (has_live)
        write_live(server, arena, (uint64_t)row[MACHINES_ID].integer, view.is_mine, writer);
    json_object_end(writer);
}

static void write_machine(struct server *server, struct arena *arena, uint64_t account,
                          const struct store_value *row, struct json_writer *writer)
{
    write_view(server, arena, account, row, /* has_live= */ false, writer);
}

static const char *state_choice(int index)
{
    return machine_state_name((enum machine_state)index);
}

static const char *availability_choice(int index)
{
    return machine_availability_name((enum machine_availability)index);
}

static const struct list_view_filter machine_filters[] = {
    {"mine", "owner", LIST_VIEW_MINE},
    {"name", "name", LIST_VIEW_TEXT},
    {"state", "state", LIST_VIEW_CHOICE, state_choice, MACHINE_STATE_COUNT},
    {"availability", "availability", LIST_VIEW_CHOICE, availability_choice,
     MACHINE_AVAILABILITY_COUNT},
    {"min_cores_milli", "free_cores_milli", LIST_VIEW_LEAST, .maximum = RESOURCES_CORES_MILLI_MAX},
    {"min_ram_bytes", "free_ram_bytes", LIST_VIEW_LEAST, .maximum = RESOURCES_BYTES_MAX},
    {"min_gpus_milli", "free_gpus_milli", LIST_VIEW_LEAST, .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"min_disk_bytes", "free_disk_bytes", LIST_VIEW_LEAST, .maximum = RESOURCES_BYTES_MAX},
    {"labels", "labels", LIST_VIEW_LABELS, .column_too = "offer_labels"},
    {"max_rtt_us", "rtt_us", LIST_VIEW_MOST, .maximum = MACHINE_RTT_US_MAX},
    {"min_reliability_milli", "reliability_milli", LIST_VIEW_LEAST, .maximum = 1000},
    {"min_speed_milli", "speed_weight_milli", LIST_VIEW_LEAST, .maximum = PRICE_SPEED_MILLI_MAX},
    {"max_core_micro", "minimum_core_micro", LIST_VIEW_MOST, .maximum = PRICE_PER_HOUR_MAX,
     .is_zero_good = true},
};
static const struct list_view_sort machine_sorts[] = {
    {"free", "free_cores_milli", .is_descending = true},
    {"price", "minimum_core_micro"},
    {"reliability", "reliability_milli", .is_descending = true},
    {"rtt", "rtt_us", .leaves_out_zero = true},
    {"speed", "speed_weight_milli", .is_descending = true},
};
static const struct list_view machine_list = {
    .table = TABLE_MACHINES,
    .filters = machine_filters,
    .filter_count = sizeof(machine_filters) / sizeof(*machine_filters),
    .sorts = machine_sorts,
    .sort_count = sizeof(machine_sorts) / sizeof(*machine_sorts),
    .write = write_machine,
};

void handle_machine_list(struct http_request *request, void *context)
{
    struct server *server = context;
    if (!answers_reply(server->answers, request))
        list_view_send(request, server, &machine_list, NULL);
}

void handle_machine_send(struct server *server, struct http_request *request, uint64_t account,
                         uint64_t machine)
{
    const struct store_value *row = NULL;
    struct error error;
    struct arena *arena = http_request_arena(request);
    if (query_id(server, arena, TABLE_MACHINES, machine, "machine", &row, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    write_view(server, arena, account, row, /* has_live= */ true, &answer.writer);
    answers_send_minor(server->answers, &answer, request);
}

void handle_machine_get(struct http_request *request, void *context)
{
    struct server *server = context;
    uint64_t machine = 0;
    if (!answers_reply(server->answers, request) && route_id(request, "a machine's", &machine) == 0)
        handle_machine_send(context, request, route_caller(request)->account, machine);
}
