/* What a machine earned, and what an offer of it would earn. */
#include "core/core.h"
#include "market/income.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/handle_machine.h"
#include "server/handlers.h"
#include "server/offer_body.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

/* ---- What it earned -------------------------------------------------------------------------- */

enum { BUCKETS_MAX = 744, LEASES_LOOKED_AT_MAX = 2000 };

struct past {
    struct income_axis axis;
    int64_t now_ms;
    struct income_bucket buckets[BUCKETS_MAX];
    size_t lease_count; /* looked at */
};

static int read_number(const struct http_request *request, const char *name, int64_t minimum,
                       int64_t maximum, int64_t *number, struct error *error)
{
    const struct text text = http_request_query(request, name);
    if (!text.data)
        return 0;
    if (text_parse_i64(text, number, error) < 0 || *number < minimum || *number > maximum)
        return error_set(error, ERROR_INVALID, "%s must be a number from %" PRId64 " to %" PRId64,
                         name, minimum, maximum);
    return 0;
}

/* The last stretch is the one that runs now. */
static int read_axis(const struct http_request *request, int64_t now_ms,
                     struct income_axis *out_axis, struct error *error)
{
    const struct text bucket = http_request_query(request, "bucket");
    const bool is_hour = text_equal(bucket, TEXT("hour"));
    if (bucket.data && !is_hour && !text_equal(bucket, TEXT("day")))
        return error_set(error, ERROR_INVALID, "bucket must be hour or day");
    int64_t count = is_hour ? 48 : 30, offset_ms = 0;
    if (read_number(request, "count", 1, BUCKETS_MAX, &count, error) < 0 ||
        read_number(request, "offset_ms", -SLOT_OFFSET_MS_MAX, SLOT_OFFSET_MS_MAX, &offset_ms,
                    error) < 0)
        return -1;
    const int64_t step_ms = is_hour ? HOUR_MS : DAY_MS;
    const int64_t last_ms = (now_ms + offset_ms) / step_ms * step_ms - offset_ms;
    *out_axis = (struct income_axis){last_ms - (count - 1) * step_ms, step_ms, (size_t)count};
    return 0;
}

static int add_lease(const struct store_row *row, void *context, struct error *error)
{
    (void)error;
    struct past *past = context;
    const struct store_value *lease = row->values;
    past->lease_count++;
    income_spread(&past->axis, lease[LEASES_STARTED_MS].integer, lease[LEASES_WALL_MS].integer,
                  lease[LEASES_POSTED_MICRO].integer - lease[LEASES_FEE_MICRO].integer,
                  past->buckets);
    return 0;
}

static int read_past(struct server *server, struct arena *arena, uint64_t machine,
                     struct past *past, struct error *error)
{
    const struct store_filter filter = {"machine", STORE_EQUAL, store_integer((int64_t)machine)};
    const struct store_query query = {.table = &tables[TABLE_LEASES],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .is_descending = true,
                                      .limit = LEASES_LOOKED_AT_MAX};
    const struct query_rows_builder none = {.arena = arena};
    struct query_rows rows;
    return query_look(server, arena, &query, add_lease, past, &none, &rows, error);
}

static void write_past(struct json_writer *writer, uint64_t machine, const struct past *past)
{
    const struct income_axis *axis = &past->axis;
    int64_t sum_micro = 0;
    json_object_begin(writer);
    json_field_u64(writer, "machine", machine);
    json_field_string(writer, "bucket", axis->step_ms == HOUR_MS ? "hour" : "day");
    json_key(writer, "items");
    json_array_begin(writer);
    for (size_t i = 0; i < axis->count; i++) {
        const int64_t start_ms = axis->from_ms + axis->step_ms * (int64_t)i;
        json_object_begin(writer);
        json_field_i64(writer, "start_ms", start_ms);
        json_field_i64(writer, "end_ms", start_ms + axis->step_ms);
        json_field_i64(writer, "earned_microcredits", past->buckets[i].earned_micro);
        json_field_i64(writer, "busy_ms", past->buckets[i].busy_ms);
        json_object_end(writer);
        sum_micro += past->buckets[i].earned_micro;
    }
    json_array_end(writer);
    json_field_i64(writer, "earned_microcredits", sum_micro);
    json_field_bool(writer, "is_whole", past->lease_count < LEASES_LOOKED_AT_MAX);
    json_object_end(writer);
}

void handle_machine_earnings(struct http_request *request, void *context)
{
    struct server *server = context;
    struct arena *arena = http_request_arena(request);
    const struct store_value *row = NULL;
    uint64_t machine = 0;
    struct error error;
    if (answers_reply(server->answers, request) || route_id(request, "a machine's", &machine) < 0)
        return;
    struct past *past = arena_alloc(arena, sizeof(*past));
    past->now_ms = clock_utc_ms(server->clock);
    if (handle_machine_find_own(server, request, machine, &row, &error) < 0 ||
        read_axis(request, past->now_ms, &past->axis, &error) < 0 ||
        read_past(server, arena, machine, past, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    write_past(&answer.writer, machine, past);
    answers_until(server->answers,
                  past->axis.from_ms + past->axis.step_ms * (int64_t)past->axis.count);
    answers_send(server->answers, &answer, request);
}

/* ---- What it would earn ---------------------------------------------------------------------- */

enum { ESTIMATE_DAYS = 30 };

struct estimate_look {
    uint64_t machine;
    struct offer_body body;
    int64_t now_ms;
    struct income_past past[SLOT_PER_DAY];
    int64_t open_ms;
    struct income_estimate estimate;
};

/* Over the slots of the last 7 days at this time of day. */
static void look_at_past(const struct core *core, int of_day, int64_t now_ms,
                         struct income_past *past)
{
    int64_t wanted[PRICE_RESOURCE_COUNT] = {0}, offered[PRICE_RESOURCE_COUNT] = {0};
    for (size_t i = 0; i < core_price_close_kept(core); i++) {
        const struct core_price_close *close = core_price_close_at(core, i);
        if (slot_of_day(close->slot) != of_day)
            continue;
        past->is_used_known = true;
        for (int r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            const struct price_inputs *inputs = &close->inputs[r];
            /* At most 28 of them, each at most a 16th of the largest number. */
            offered[r] += inputs->offered_milli_s / 4;
            wanted[r] +=
                (inputs->wanted_milli_s < inputs->offered_milli_s ? inputs->wanted_milli_s
                                                                  : inputs->offered_milli_s) /
                4;
        }
    }
    for (int r = 0; r < PRICE_RESOURCE_COUNT; r++)
        past->used_milli[r] =
            offered[r] > 0 ? (int64_t)((__int128)wanted[r] * 1000 / offered[r]) : 0;
    if (core_price_average(core, of_day, &past->price))
        return;
    /* None has ended yet: as it stands for the next. */
    const int64_t running = core_price_slot_at(core, now_ms);
    past->price = core_price_of_slot(
        core, running + (of_day - slot_of_day(running) + SLOT_PER_DAY) % SLOT_PER_DAY);
}

static int look_at_estimate(struct engine_request *request, const struct core *core,
                            struct store_batch *batch, struct error *error)
{
    (void)batch;
    struct call *call = (struct call *)request;
    struct estimate_look *look = call->context;
    const struct machine *machine = core_machine(core, look->machine);
    if (!machine)
        return error_set(error, ERROR_NOT_FOUND, "machine %" PRIu64 " does not exist",
                         look->machine);
    struct offer_terms terms = offer_body_defaults(machine);
    if (offer_body_apply(call->arena, &look->body, core, machine, &terms, error) < 0 ||
        offer_terms_check(&terms, &machine->probe, look->now_ms, error) < 0)
        return -1;
    for (int s = 0; s < SLOT_PER_DAY; s++)
        look_at_past(core, s, look->now_ms, &look->past[s]);
    const struct income_wish wish = {
        .units = price_units(terms.resources, machine_speed_milli(machine)),
        .minimum = terms.minimum,
        .window = {terms.spans.items, terms.spans.count},
        .from_ms = look->now_ms,
        .until_ms = look->now_ms + ESTIMATE_DAYS * DAY_MS,
        .slot_offset_ms = core_settings(core)->slot_offset_ms,
        .fee_basis_points = core_settings(core)->fee_basis_points,
    };
    look->estimate = income_estimate(&wish, look->past);
    for (int s = 0; s < SLOT_PER_DAY; s++)
        look->open_ms += look->estimate.open_ms[s];
    return 0;
}

static void write_time_of_day(struct json_writer *writer, const struct estimate_look *look, int s)
{
    static const char *const used[PRICE_RESOURCE_COUNT] = {"core_used_milli", "ram_used_milli",
                                                           "gpu_used_milli", "disk_used_milli"};
    const struct income_past *past = &look->past[s];
    json_object_begin(writer);
    json_field_string(writer, "hours", slot_hours_name(s));
    json_field_i64(writer, "open_ms", look->estimate.open_ms[s]);
    json_field_bool(writer, "is_dear", look->estimate.is_dear[s]);
    view_price(writer, &past->price);
    for (int r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        json_key(writer, used[r]);
        past->is_used_known ? json_i64(writer, past->used_milli[r]) : json_null(writer);
    }
    json_object_end(writer);
}

static void send_estimate(struct call *call, struct http_request *request)
{
    const struct estimate_look *look = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    json_field_u64(writer, "machine", look->machine);
    json_field_i64(writer, "days", ESTIMATE_DAYS);
    json_field_i64(writer, "open_ms", look->open_ms);
    json_field_i64(writer, "full_microcredits", look->estimate.full_micro);
    json_key(writer, "likely_microcredits");
    look->estimate.is_likely_known ? json_i64(writer, look->estimate.likely_micro)
                                   : json_null(writer);
    json_key(writer, "slots");
    json_array_begin(writer);
    for (int s = 0; s < SLOT_PER_DAY; s++)
        write_time_of_day(writer, look, s);
    json_array_end(writer);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_machine_estimate(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = NULL;
    uint64_t machine = 0;
    struct error error;
    if (route_id(request, "a machine's", &machine) < 0)
        return;
    AUTO(call) struct call *call = call_new(server, request);
    struct estimate_look *look = arena_alloc(call->arena, sizeof(*look));
    call->context = look;
    look->machine = machine;
    look->now_ms = clock_utc_ms(server->clock);
    if (handle_machine_find_own(server, request, machine, &row, &error) < 0 ||
        offer_body_read(call->arena, http_request_body(request), &look->body, &error) < 0 ||
        offer_body_expand(call->arena, &look->body, (struct text){0}, look->now_ms, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    call_look_take(TAKE(call), look_at_estimate, send_estimate);
}
