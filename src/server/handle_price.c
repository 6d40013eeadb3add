/* Prices: the last days' slots, today's and the forecast, and how one came about. */
#include "core/core.h"
#include "market/fixed.h"
#include "market/price_explain.h"
#include "server/answers.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/view.h"

#include <inttypes.h>

/* From today's first slot to the last forecast. */
enum { SHOWN_MAX = SLOT_PER_DAY + CORE_PRICE_FORECASTS };

struct shown_slot {
    int64_t slot;
    bool is_known; /* false: it passed while the market lay idle, or before it began */
    struct price_vector price;
};

struct average {
    bool is_known;
    struct price_vector price;
};

struct price_look {
    struct answer_draft *draft;
    int64_t now_ms;
    int64_t offset_ms;
    int64_t fee_basis_points;
    int64_t running;
    struct shown_slot slots[SHOWN_MAX];
    size_t slot_count;
    struct shown_slot ended[CORE_PRICE_CLOSES]; /* of the last 7 days, oldest first */
    size_t ended_count;
    struct average week;
    struct average times[SLOT_PER_DAY];
};

static struct shown_slot look_at_slot(const struct core *core, int64_t running, int64_t slot)
{
    if (slot >= running)
        return (struct shown_slot){slot, true, core_price_of_slot(core, slot)};
    const struct core_price_close *close = core_price_close_of(core, slot);
    return close ? (struct shown_slot){slot, true, close->price}
                 : (struct shown_slot){.slot = slot};
}

static int look_at_prices(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct price_look *look = ((struct call *)request)->context;
    const int64_t running = core_price_slot_at(core, look->now_ms);
    look->offset_ms = core_settings(core)->slot_offset_ms;
    look->fee_basis_points = core_settings(core)->fee_basis_points;
    look->running = running;
    for (int64_t slot = running - slot_of_day(running); slot <= running + CORE_PRICE_FORECASTS;
         slot++)
        look->slots[look->slot_count++] = look_at_slot(core, running, slot);
    for (size_t i = 0; i < core_price_close_kept(core); i++) {
        const struct core_price_close *close = core_price_close_at(core, i);
        if (close->slot >= running - CORE_PRICE_CLOSES)
            look->ended[look->ended_count++] = (struct shown_slot){close->slot, true, close->price};
    }
    look->week.is_known = core_price_average(core, -1, &look->week.price);
    for (int s = 0; s < SLOT_PER_DAY; s++)
        look->times[s].is_known = core_price_average(core, s, &look->times[s].price);
    return 0;
}

static void write_slots(struct json_writer *writer, const char *key, const struct shown_slot *slots,
                        size_t count, const struct price_look *look)
{
    json_key(writer, key);
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(writer);
        view_slot_times(writer, slots[i].slot, look->running, look->offset_ms);
        view_price(writer, slots[i].is_known ? &slots[i].price : NULL);
        json_object_end(writer);
    }
    json_array_end(writer);
}

static void write_average(struct json_writer *writer, const char *key, const char *hours,
                          const struct average *average)
{
    if (key)
        json_key(writer, key);
    json_object_begin(writer);
    if (hours)
        json_field_string(writer, "hours", hours);
    view_price(writer, average->is_known ? &average->price : NULL);
    json_object_end(writer);
}

static void send_prices(struct call *call, struct http_request *request)
{
    const struct price_look *look = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    char name[SLOT_TEXT_SIZE];
    json_object_begin(writer);
    view_price(writer, &look->slots[slot_of_day(look->running)].price);
    json_field_i64(writer, "fee_basis_points", look->fee_basis_points);
    json_field_string(writer, "slot", slot_format(look->running, name));
    json_field_i64(writer, "slot_offset_ms", look->offset_ms);
    write_slots(writer, "slots", look->slots, look->slot_count, look);
    write_slots(writer, "last_7_days", look->ended, look->ended_count, look);
    write_average(writer, "average_7_days", NULL, &look->week);
    json_key(writer, "average_7_days_by_hours");
    json_array_begin(writer);
    for (int s = 0; s < SLOT_PER_DAY; s++)
        write_average(writer, NULL, slot_hours_name(s), &look->times[s]);
    json_array_end(writer);
    json_object_end(writer);
    answer_draft_until(
        look->draft, slot_start_ms(slot_index(look->now_ms, look->offset_ms) + 1, look->offset_ms));
    answers_send_draft(call->server->answers, look->draft, &answer, request);
    call_free(call);
}

void handle_prices(struct http_request *request, void *context)
{
    struct server *server = context;
    if (answers_reply(server->answers, request))
        return;
    answers_note_prices(server->answers);
    struct call *call = call_new(server, request);
    struct price_look *look = arena_alloc(call->arena, sizeof(*look));
    look->draft = answers_draft(server->answers, call->arena);
    look->now_ms = clock_utc_ms(server->clock);
    call->context = look;
    call_look_take(call, look_at_prices, send_prices);
}

/* ---- How one came about ---------------------------------------------------------------------- */

struct explain_look {
    struct text asked;
    int64_t now_ms;
    int64_t offset_ms;
    int64_t running;
    bool is_karma;
    struct core_price_story story;
};

static int look_at_story(struct engine_request *request, const struct core *core,
                         struct store_batch *batch, struct error *error)
{
    (void)batch;
    struct explain_look *look = ((struct call *)request)->context;
    look->running = core_price_slot_at(core, look->now_ms);
    look->offset_ms = core_settings(core)->slot_offset_ms;
    look->is_karma = core_settings(core)->economy == ECONOMY_KARMA;
    int64_t slot;
    if (slot_parse(look->asked, look->running, &slot, error) < 0)
        return -1;
    if (slot > look->running + CORE_PRICE_FORECASTS ||
        (slot < look->running && !core_price_close_of(core, slot))) {
        char first[SLOT_TEXT_SIZE], last[SLOT_TEXT_SIZE];
        const int64_t oldest =
            core_price_close_kept(core) ? core_price_close_at(core, 0)->slot : look->running;
        return error_set(error, ERROR_NOT_FOUND,
                         "no price is kept for that slot; those from %s to %s can be explained, "
                         "except where the market lay idle",
                         slot_format(oldest, first),
                         slot_format(look->running + CORE_PRICE_FORECASTS, last));
    }
    look->story = core_price_story(core, slot);
    return 0;
}

static struct price_working work_again(const struct core_price_close *close,
                                       enum price_resource resource)
{
    return price_work(&close->before, resource, slot_of_day(close->slot), &close->inputs[resource]);
}

static void write_update(struct json_writer *writer, const char *key,
                         const struct core_price_close *close, enum price_resource resource)
{
    json_key(writer, key);
    if (!close) {
        json_null(writer);
        return;
    }
    const struct price_working working = work_again(close, resource);
    char name[SLOT_TEXT_SIZE];
    json_object_begin(writer);
    json_field_string(writer, "slot", slot_format(close->slot, name));
    json_field_i64(writer, "wanted_milli_s", working.inputs.wanted_milli_s);
    json_field_i64(writer, "offered_milli_s", working.inputs.offered_milli_s);
    json_field_i64(writer, "borrower_count", working.inputs.borrower_count);
    json_field_i64(writer, "effective_q16", working.inputs.effective_q16);
    json_field_i64(writer, "credibility_q16", working.credibility_q16);
    json_field_i64(writer, "error_q32", working.error_q32);
    json_field_i64(writer, "level_step_q32", working.level_step_q32);
    json_field_i64(writer, "level_before_q32", working.before.level_q32);
    json_field_i64(writer, "level_after_q32", working.after.level_q32);
    json_field_i64(writer, "factor_step_q32", working.factor_step_q32);
    json_field_i64(writer, "factor_before_q32", working.before.factor_q32[working.of_day]);
    json_field_i64(writer, "factor_after_q32", working.after.factor_q32[working.of_day]);
    json_object_end(writer);
}

static void explain_update(const struct core_price_close *close, const char *what,
                           enum price_resource resource, struct buffer *out)
{
    const struct price_working working = work_again(close, resource);
    char name[SLOT_TEXT_SIZE];
    buffer_append_format(out, "The %s was set when %s ended: ", what,
                         slot_format(close->slot, name));
    price_explain_update(&working, out);
    buffer_append_string(out, ".\n");
    price_explain_sums(&working, "  ", out);
}

static void explain(const struct core_price_story *story, enum price_resource resource,
                    struct buffer *out)
{
    const int of_day = slot_of_day(story->slot);
    price_explain_price(&story->board, resource, of_day, price_vector_get(&story->price, resource),
                        out);
    buffer_append_string(out, ".\n");
    if (story->has_level)
        explain_update(&story->level, "level", resource, out);
    else
        buffer_append_string(out, "No slot before it is known: prices began at fixed values.\n");
    if (story->has_factor && story->factor.slot != story->level.slot) {
        char what[32];
        snprintf(what, sizeof(what), "%s factor", slot_word(of_day));
        explain_update(&story->factor, what, resource, out);
    }
}

/* Nothing moves it. */
static void explain_karma(const struct core_price_story *story, enum price_resource resource,
                          struct buffer *out)
{
    const int64_t price_micro = price_vector_get(&story->price, resource);
    buffer_append_format(out,
                         "%s: %" PRId64 ".%06" PRId64 " at any time: in a market of karma a "
                         "unit-hour costs as much as it earns, always the same.\n",
                         price_resource_name(resource), price_micro / 1000000,
                         price_micro % 1000000);
}

static void write_resource(struct json_writer *writer, const struct explain_look *look,
                           enum price_resource resource)
{
    const struct core_price_story *story = &look->story;
    const struct price_curve *curve = &story->board.curves[resource];
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 8 << 10);
    if (look->is_karma)
        explain_karma(story, resource, &words);
    else
        explain(story, resource, &words);
    json_object_begin(writer);
    json_field_string(writer, "resource", price_resource_name(resource));
    json_field_i64(writer, "price_microcredits", price_vector_get(&story->price, resource));
    json_field_i64(writer, "level_microcredits", fixed_exp2(curve->level_q32));
    json_field_i64(writer, "level_q32", curve->level_q32);
    json_field_i64(writer, "factor_q32", curve->factor_q32[slot_of_day(story->slot)]);
    write_update(writer, "level_update", story->has_level ? &story->level : NULL, resource);
    write_update(writer, "factor_update", story->has_factor ? &story->factor : NULL, resource);
    json_field_text(writer, "explanation", buffer_text(&words));
    json_object_end(writer);
}

static void send_story(struct call *call, struct http_request *request)
{
    const struct explain_look *look = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    view_slot_times(writer, look->story.slot, look->running, look->offset_ms);
    json_key(writer, "resources");
    json_array_begin(writer);
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        write_resource(writer, look, r);
    json_array_end(writer);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_price_explain(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    struct explain_look *look = arena_alloc(call->arena, sizeof(*look));
    look->asked = arena_copy_text(call->arena, http_request_parameter(request, "slot"));
    look->now_ms = clock_utc_ms(call->server->clock);
    call->context = look;
    call_look_take(call, look_at_story, send_story);
}
