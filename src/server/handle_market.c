/* The market's health: how many credits there are for how much trade, and who lends how much. */
#include "base/assert.h"
#include "core/health.h"
#include "server/call.h"
#include "server/handlers.h"
#include "server/view.h"

#include <stdlib.h>

/* Anyone may ask, and it walks the whole state: once in this time is enough. */
#define KEPT_NS INT64_C(1000000000)

struct health_view {
    int64_t seen_ns;
    struct core_health health;
};

/* On the core thread, whose the view is. */
static const struct core_health *see_health(struct server *server, const struct core *core)
{
    const int64_t now_ns = clock_monotonic_ns(server->clock);
    struct health_view *view = server->health;
    if (view && now_ns - view->seen_ns < KEPT_NS)
        return &view->health;
    if (!view) {
        view = server->health = calloc(1, sizeof(*view));
        ASSERT(view);
    }
    core_health(core, &view->health);
    view->seen_ns = now_ns;
    return &view->health;
}

static int look_at_health(struct engine_request *request, const struct core *core,
                          struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct call *call = (struct call *)request;
    *(struct core_health *)call->context = *see_health(call->server, core);
    return 0;
}

static void write_resource(struct json_writer *writer, enum price_resource r,
                           const struct core_health_resource *resource)
{
    json_object_begin(writer);
    json_field_string(writer, "resource", price_resource_name(r));
    json_field_i64(writer, "lent_milli", resource->lent_milli);
    json_field_i64(writer, "leased_milli", resource->leased_milli);
    json_field_i64(writer, "largest_lender_basis_points", resource->largest_lender_basis_points);
    json_object_end(writer);
}

static void send_health(struct call *call, struct http_request *request)
{
    const struct core_health *health = call->context;
    struct view_answer answer;
    view_answer_begin(&answer);
    struct json_writer *writer = &answer.writer;
    json_object_begin(writer);
    json_field_i64(writer, "credits_microcredits", health->credits_micro);
    json_field_i64(writer, "member_count", health->member_count);
    json_field_i64(writer, "active_count", health->active_count);
    json_field_i64(writer, "poor_count", health->poor_count);
    json_field_i64(writer, "weekly_spend_microcredits", health->weekly_spend_micro);
    json_field_i64(writer, "weeks_of_spend_milli", health->weeks_of_spend_milli);
    json_field_i64(writer, "price_index_milli", health->price_index_milli);
    json_field_i64(writer, "waiting_machines", health->waiting_machines);
    json_key(writer, "resources");
    json_array_begin(writer);
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++)
        write_resource(writer, r, &health->resources[r]);
    json_array_end(writer);
    json_object_end(writer);
    view_answer_send(&answer, request, 200);
    call_free(call);
}

void handle_market_health(struct http_request *request, void *context)
{
    struct call *call = call_new(context, request);
    call->context = arena_alloc(call->arena, sizeof(struct core_health));
    call_look_take(call, look_at_health, send_health);
}
