#include "base/assert.h"
#include "base/log.h"
#include "server/live_internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LOG_EVENT_SIZE_MAX = 512 << 10, HOUR_MS = 3600 * 1000 };

struct live_stream {
    struct list_node node;
    struct live *live;
    struct http_stream *http;
    struct live_follower follower;
    uint64_t event_count;      /* sent so far: ids of events, which tell nothing of others' */
    struct loop_timer *expiry; /* NULL: its token stays */
};

static void count_stream(struct live *live, const struct live_follower *follower, int change)
{
    atomic_uint *slot = &live->account_streams[follower->account % LIVE_ACCOUNT_SLOTS];
    atomic_fetch_add(&live->stream_count, (size_t)change);
    if (!follower->job)
        atomic_fetch_add(slot, (unsigned)change);
}

bool live_is_followed(const struct live *live, uint64_t account)
{
    return atomic_load(&live->account_streams[account % LIVE_ACCOUNT_SLOTS]) > 0;
}

static void stream_free(struct live_stream *stream)
{
    list_remove(&stream->node);
    count_stream(stream->live, &stream->follower, -1);
    loop_timer_free(stream->expiry);
    http_stream_free(stream->http);
    free(stream);
}

static void stream_closed(struct http_stream *http, void *context)
{
    (void)http;
    stream_free(context);
}

/* The clock may be set, so a timer is never trusted for longer than an hour. */
static void check_expiry(void *context)
{
    struct live_stream *stream = context;
    const int64_t left_ms = stream->follower.expires_ms - clock_utc_ms(stream->live->server->clock);
    if (left_ms <= 0)
        stream_free(stream);
    else
        loop_timer_start(stream->expiry, left_ms < HOUR_MS ? left_ms : HOUR_MS);
}

static size_t count_streams_of(const struct live *live, uint64_t account)
{
    size_t count = 0;
    LIST_EACH(&live->streams, node)
    count += LIST_ITEM(node, struct live_stream, node)->follower.account == account;
    return count;
}

int live_stream(struct live *live, struct http_request *request,
                const struct live_follower *follower, struct error *error)
{
    if (live_stream_count(live) >= LIVE_STREAM_MAX)
        return error_set(error, ERROR_UNAVAILABLE,
                         "%d clients follow events already; try again later", LIVE_STREAM_MAX);
    if (count_streams_of(live, follower->account) >= LIVE_ACCOUNT_STREAM_MAX)
        return error_set(error, ERROR_UNAVAILABLE,
                         "this account follows events %d times already: end some first",
                         LIVE_ACCOUNT_STREAM_MAX);
    struct live_stream *stream = calloc(1, sizeof(*stream));
    ASSERT(stream);
    stream->live = live;
    stream->follower = *follower;
    if (http_stream_open(request, stream_closed, stream, &stream->http, error) < 0) {
        free(stream);
        return -1;
    }
    list_append(&live->streams, &stream->node);
    count_stream(live, follower, 1);
    if (follower->expires_ms) {
        stream->expiry = loop_timer_new(live->server->loop, check_expiry, stream);
        check_expiry(stream);
    }
    return 0;
}

size_t live_stream_count(const struct live *live)
{
    return atomic_load(&live->stream_count);
}

void live_streams_done(struct live *live)
{
    LIST_EACH(&live->streams, node)
    stream_free(LIST_ITEM(node, struct live_stream, node));
}

static bool may_see(const struct live_stream *stream, const struct live_event *event)
{
    const struct live_follower *follower = &stream->follower;
    if (event->lender && event->lender == follower->account && !follower->job)
        return true;
    if (!event->job)
        return !follower->job && (!event->account || event->account == follower->account);
    return follower->account == event->account && (!follower->job || follower->job == event->job);
}

void live_send(struct live *live, const struct live_event *event)
{
    LIST_EACH(&live->streams, node)
    {
        struct live_stream *stream = LIST_ITEM(node, struct live_stream, node);
        struct error error;
        char id[24];
        if (!may_see(stream, event))
            continue;
        snprintf(id, sizeof(id), "%" PRIu64, ++stream->event_count);
        /* One that is too slow or gone is closed by the server, which calls stream_closed. */
        if (http_stream_send(stream->http, text_of(id), text_of(event->name), event->data, &error) <
            0)
            log_event(LOG_DEBUG, "stream_dropped", "error=\"%s\"", error.message);
    }
}

void live_log(struct live *live, const struct live_source *source, uint64_t offset,
              struct text bytes)
{
    struct buffer data AUTO_BUFFER;
    buffer_init(&data, LOG_EVENT_SIZE_MAX);
    char rank[LEASE_RANK_NAME_SIZE];
    struct json_writer writer;
    json_writer_init(&writer, &data);
    json_object_begin(&writer);
    json_field_u64(&writer, "job", source->job);
    json_field_u64(&writer, "lease", source->lease);
    json_field_string(&writer, "rank", lease_rank_name(source->role, source->rank, rank));
    json_field_u64(&writer, "offset", offset);
    json_field_u64(&writer, "next_offset", offset + bytes.size);
    json_field_text(&writer, "text", bytes);
    json_object_end(&writer);
    live_send(live, &(struct live_event){.job = source->job,
                                         .account = source->account,
                                         .name = "log",
                                         .data = buffer_text(&data)});
}

void live_end_job_streams(struct live *live, uint64_t job)
{
    LIST_EACH(&live->streams, node)
    {
        struct live_stream *stream = LIST_ITEM(node, struct live_stream, node);
        if (stream->follower.job == job)
            stream_free(stream);
    }
}

void live_end_token_streams(struct live *live, uint64_t token)
{
    LIST_EACH(&live->streams, node)
    {
        struct live_stream *stream = LIST_ITEM(node, struct live_stream, node);
        if (stream->follower.token == token)
            stream_free(stream);
    }
}
