#include "server/renewal.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/schedule.h"
#include "server/query.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    BATCH_MAX = 100,  /* renewals asked for in one turn */
    RETRY_MS = 60000, /* the store was away, or an expansion failed */
};

struct renewal {
    struct server *server;
    struct loop_timer *timer;
    size_t waiting_count; /* commands on the way */
    bool has_failed;      /* one of them; tried again later */
    bool is_closing;
};

struct renewal_request {
    struct engine_request request;
    struct renewal *renewal;
    struct span spans[SCHEDULE_SPAN_MAX];
};

static void look(void *context);

static void release(struct renewal *renewal)
{
    if (!renewal->is_closing || renewal->waiting_count > 0)
        return;
    free(renewal);
}

static void renewed(struct engine_request *engine_request, const struct error *error)
{
    struct renewal_request *request = (struct renewal_request *)engine_request;
    struct renewal *renewal = request->renewal;
    renewal->waiting_count--;
    /* Withdrawn in the meantime: nothing is left to do. */
    if (error && error->code != ERROR_NOT_FOUND) {
        log_event(LOG_WARN, "renewal_failed", "offer=%" PRIu64 " error=\"%s\"",
                  request->request.command.renew_offer.offer, error->message);
        renewal->has_failed = true;
    }
    free(request);
    if (renewal->is_closing)
        release(renewal);
    else if (renewal->waiting_count == 0)
        loop_timer_start(renewal->timer, renewal->has_failed ? RETRY_MS : 0);
}

static int expand(struct text words, int64_t now_ms, struct renewal_request *request,
                  struct error *error)
{
    struct schedule schedule;
    AUTO(zone) struct zone *zone = NULL;
    size_t count = 0;
    if (schedule_parse(words, &schedule, error) < 0 ||
        zone_open(ZONE_FOLDER, text_of(schedule.zone[0] ? schedule.zone : "UTC"), &zone, error) <
            0 ||
        schedule_expand(&schedule, zone, now_ms, request->spans, &count, error) < 0)
        return -1;
    request->request.command.renew_offer.spans = (struct json_array){request->spans, count};
    return 0;
}

static void renew(struct renewal *renewal, const struct store_value *row, int64_t now_ms)
{
    struct error error;
    const uint64_t offer = (uint64_t)row[OFFERS_ID].integer;
    struct renewal_request *request = calloc(1, sizeof(*request));
    ASSERT(request);
    request->renewal = renewal;
    request->request.loop = renewal->server->loop;
    request->request.has_command = true;
    request->request.command =
        (struct command){.kind = COMMAND_RENEW_OFFER, .renew_offer = {.offer = offer}};
    request->request.on_done = renewed;
    if (expand(row[OFFERS_SCHEDULE].bytes, now_ms, request, &error) == 0 &&
        engine_submit(renewal->server->engine, &request->request, true, &error) == 0) {
        renewal->waiting_count++;
        return;
    }
    log_event(LOG_WARN, "renewal_failed", "offer=%" PRIu64 " error=\"%s\"", offer, error.message);
    renewal->has_failed = true;
    free(request);
}

/* Renews what is due and waits for what comes next. */
static void look(void *context)
{
    struct renewal *renewal = context;
    const int64_t now_ms = clock_utc_ms(renewal->server->clock);
    const struct store_filter filter = {"renew_ms", STORE_GREATER, store_integer(0)};
    const struct store_query query = {.table = &tables[TABLE_OFFERS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .order_column = "renew_ms",
                                      .limit = BATCH_MAX};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct query_rows rows;
    struct error error;
    if (renewal->waiting_count > 0)
        return; /* the last answer looks again */
    renewal->has_failed = false;
    if (query_all(renewal->server, arena, &query, &rows, &error) < 0) {
        log_event(LOG_WARN, "renewal_failed", "error=\"%s\"", error.message);
        loop_timer_start(renewal->timer, RETRY_MS);
        return;
    }
    size_t at = 0;
    for (; at < rows.count && rows.items[at][OFFERS_RENEW_MS].integer <= now_ms; at++)
        renew(renewal, rows.items[at], now_ms);
    if (renewal->waiting_count > 0)
        return;
    if (renewal->has_failed)
        loop_timer_start(renewal->timer, RETRY_MS);
    else if (at < rows.count)
        loop_timer_start(renewal->timer, rows.items[at][OFFERS_RENEW_MS].integer - now_ms);
}

struct renewal *renewal_new(struct server *server)
{
    struct renewal *renewal = calloc(1, sizeof(*renewal));
    ASSERT(renewal);
    renewal->server = server;
    renewal->timer = loop_timer_new(server->loop, look, renewal);
    loop_timer_start(renewal->timer, 0);
    return renewal;
}

void renewal_wake(struct renewal *renewal)
{
    if (renewal && renewal->waiting_count == 0)
        loop_timer_start(renewal->timer, 0);
}

void renewal_free(struct renewal *renewal)
{
    if (!renewal)
        return;
    loop_timer_free(renewal->timer);
    renewal->is_closing = true;
    release(renewal);
}
