#include "peer/fetch.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/blob_partial.h"
#include "blob/blob_pins.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

/* Of one that another process fetches: its end is seen at once, its death within this. */
enum { OTHERS_MS = 1000 };

struct fetch_item {
    struct fetch *fetch;
    struct blob_hash hash;
    struct blob_partial *partial;   /* what has come; while it is ours to fetch */
    struct http_transfer *transfer; /* while it runs */
    struct loop_timer *retry;
    struct chunk_patience patience;
    uint64_t begun_bytes; /* of the partial, when the transfer began */
    bool is_others;       /* somebody else fetches it */
    bool has_head;
    bool is_done;
    uint32_t wrong_count;
    uint32_t room_count;
    struct error own; /* why we ended the transfer; code NONE: we did not */
};

struct fetch {
    struct chunk_access access;
    struct fetch_item *items;
    size_t item_count;
    size_t left_count;
    struct blob_pins *pins;
    int others_fd; /* -1 until somebody is waited for */
    struct loop_watch *others;
    bool has_failed;
    struct error error;
    char slow[200];          /* what fetch_trouble says without any */
    struct error trouble;    /* of the last try that failed; code NONE: none */
    struct loop_timer *done; /* so that the callback never comes from inside a call */
    fetch_function *callback;
    void *context;
};

static void fetch_finish(struct fetch *fetch, const struct error *reason)
{
    if (fetch->has_failed)
        return;
    if (reason) {
        fetch->has_failed = true;
        fetch->error = *reason;
    }
    if (reason || fetch->left_count == 0)
        loop_timer_start(fetch->done, 0);
}

static void fetch_on_done(void *context)
{
    struct fetch *fetch = context;
    fetch->callback(fetch->context, fetch->has_failed ? &fetch->error : NULL);
}

const char *fetch_trouble(struct fetch *fetch)
{
    if (fetch->trouble.code != ERROR_NONE)
        return fetch->trouble.message;
    for (size_t i = 0; i < fetch->item_count; i++) {
        const struct fetch_item *item = &fetch->items[i];
        char text[BLOB_HASH_TEXT_SIZE];
        if (!item->transfer)
            continue;
        snprintf(fetch->slow, sizeof(fetch->slow),
                 "chunk %.12s from %.80s: %" PRIu64 " bytes of it have come so far",
                 blob_hash_format(&item->hash, text), fetch->access.server_url,
                 blob_partial_bytes(item->partial));
        return fetch->slow;
    }
    return NULL;
}

/* ---- One item -------------------------------------------------------------------------------- */

static void fetch_item_start(void *context);

static void fetch_item_done(struct fetch_item *item)
{
    struct fetch *fetch = item->fetch;
    item->is_done = true;
    blob_partial_free(TAKE(item->partial));
    fetch->trouble = (struct error){0};
    fetch->left_count--;
    fetch_finish(fetch, NULL);
}

/* Whether time may mend it; counts what it does not mend for ever. */
static bool fetch_item_may_retry(struct fetch_item *item, const struct error *error)
{
    struct error room;
    switch (error->code) {
    case ERROR_UNAVAILABLE:
        return true;
    case ERROR_INVALID: /* a source that changed its mind, or lies */
        return ++item->wrong_count < CHUNK_WRONG_MAX && item->begun_bytes > 0;
    case ERROR_EXHAUSTED:
        if (chunk_make_room(item->fetch->access.store, &room) == 0)
            item->patience.try_count = 0;
        return ++item->room_count < CHUNK_ROOM_MAX;
    default:
        return false;
    }
}

static void fetch_item_fail(struct fetch_item *item, const struct error *error,
                            const struct http_response *response)
{
    struct fetch *fetch = item->fetch;
    if (item->partial && blob_partial_bytes(item->partial) > item->begun_bytes)
        item->patience.try_count = 0; /* it goes on, if with breaks */
    if (!fetch_item_may_retry(item, error)) {
        fetch_finish(fetch, error);
        return;
    }
    fetch->trouble = *error;
    const int64_t wait_ms = chunk_patience_next_ms(&item->patience, &fetch->access, response);
    log_event(LOG_WARN, "chunk_waits", "got_bytes=%" PRIu64 " wait_ms=%" PRId64 " error=\"%s\"",
              item->partial ? blob_partial_bytes(item->partial) : 0, wait_ms, error->message);
    loop_timer_start(item->retry, wait_ms);
}

/* ---- What comes ------------------------------------------------------------------------------ */

/* The rest of what is there, or all from the start. */
static int fetch_read_head(struct fetch_item *item, const struct http_response *head,
                           struct error *error)
{
    enum blob_coding coding;
    item->has_head = true;
    if (head->status == 206) {
        if (head->range_first >= 0 && (uint64_t)head->range_first == item->begun_bytes &&
            strcmp(head->etag, blob_partial_tag(item->partial)) == 0)
            return 0;
        if (blob_partial_restart(item->partial, BLOB_CODING_PLAIN, "", error) < 0)
            return -1;
        return error_set(error, ERROR_INVALID, "it sent another part than it was asked for");
    }
    item->begun_bytes = 0;
    return blob_coding_parse(text_of(head->content_encoding), &coding, error) < 0 ||
                   blob_partial_restart(item->partial, coding, head->etag, error) < 0
               ? -1
               : 0;
}

static int fetch_on_head(void *context, const struct http_response *head)
{
    struct fetch_item *item = context;
    return fetch_read_head(item, head, &item->own);
}

static int fetch_on_piece(void *context, struct text piece)
{
    struct fetch_item *item = context;
    return blob_partial_append(item->partial, piece, &item->own);
}

/* Appends, unpacks and checks: a failure here is of our own making or the source's lie. */
static int fetch_take(struct fetch_item *item, const struct http_response *response,
                      struct error *error)
{
    if (!item->has_head && fetch_read_head(item, response, error) < 0) /* an empty body */
        return -1;
    const int result = blob_partial_finish(item->partial, error);
    if (result < 0 && error->code == ERROR_INVALID)
        blob_partial_free(TAKE(item->partial)); /* nothing is left of it */
    return result;
}

static void fetch_on_reply(void *context, struct http_response *response,
                           const struct error *reason)
{
    struct fetch_item *item = context;
    const struct chunk_access *access = &item->fetch->access;
    struct error error = item->own;
    item->transfer = NULL;
    if (error.code == ERROR_NONE) {
        if (chunk_check_reply(access, response, reason, &item->hash, &error) < 0) {
            struct error second;
            if (response && response->status == 416 &&
                blob_partial_restart(item->partial, BLOB_CODING_PLAIN, "", &second) < 0)
                error = second;
            fetch_item_fail(item, &error, response);
            return;
        }
        if (fetch_take(item, response, &error) == 0) {
            fetch_item_done(item);
            return;
        }
    }
    char text[BLOB_HASH_TEXT_SIZE];
    error_wrap(&error, "chunk %.12s from %.80s", blob_hash_format(&item->hash, text),
               access->server_url);
    fetch_item_fail(item, &error, NULL);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int fetch_call(struct fetch_item *item, struct error *error)
{
    const struct chunk_access *access = &item->fetch->access;
    struct chunk_call call;
    char range[40];
    chunk_call_init(&call, access, &item->hash);
    chunk_call_add_header(&call, "Accept-Encoding", blob_coding_name(BLOB_CODING_ZSTD));
    item->begun_bytes = blob_partial_tag(item->partial)[0] ? blob_partial_bytes(item->partial) : 0;
    if (item->begun_bytes > 0) {
        snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", item->begun_bytes);
        chunk_call_add_header(&call, "Range", range);
        chunk_call_add_header(&call, "If-Range", blob_partial_tag(item->partial));
    }
    item->has_head = false;
    item->own = (struct error){0};
    call.options.on_head = fetch_on_head;
    call.options.on_chunk = fetch_on_piece;
    call.options.context = item;
    return http_client_start(access->client, &call.options, fetch_on_reply, item, &item->transfer,
                             error);
}

static void fetch_on_others(void *context, uint32_t events)
{
    struct fetch *fetch = context;
    char told[4096];
    (void)events;
    while (read(fetch->others_fd, told, sizeof(told)) > 0)
        ;
    for (size_t i = 0; i < fetch->item_count; i++)
        if (fetch->items[i].is_others)
            loop_timer_start(fetch->items[i].retry, 0);
}

/* Without the watch, its timer alone tells. */
static void fetch_watch_others(struct fetch *fetch)
{
    struct error error;
    if (fetch->others_fd >= 0)
        return;
    if (blob_partial_watch(fetch->access.store, &fetch->others_fd, &error) < 0 ||
        loop_watch_open(fetch->access.loop, fetch->others_fd, LOOP_READ, fetch_on_others, fetch,
                        &fetch->others, &error) < 0)
        log_event(LOG_DEBUG, "watch_failed", "error=\"%s\"", error.message);
}

static void fetch_item_start(void *context)
{
    struct fetch_item *item = context;
    struct fetch *fetch = item->fetch;
    struct error error;
    if (fetch->has_failed || item->is_done || item->transfer)
        return;
    item->is_others = false;
    if (!item->partial) {
        /* In this order: what another finished between the two is seen. */
        const int result =
            blob_partial_open(fetch->access.store, &item->hash, &item->partial, &error);
        if (blob_store_use(fetch->access.store, &item->hash)) {
            fetch_item_done(item);
            return;
        }
        if (result < 0 && error.code == ERROR_CONFLICT) {
            item->is_others = true;
            fetch_watch_others(fetch);
            loop_timer_start(item->retry, OTHERS_MS);
            return;
        }
        if (result < 0) {
            fetch_item_fail(item, &error, NULL);
            return;
        }
    }
    if (fetch_call(item, &error) < 0)
        fetch_finish(fetch, &error);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static bool fetch_is_repeated(const struct fetch *fetch, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (blob_hash_equal(&fetch->items[i].hash, &fetch->items[index].hash))
            return true;
    return false;
}

/* Before anything is looked for, so that what is found stays. A full disk gets a second chance. */
static int fetch_pin(struct fetch *fetch, const struct blob_hash *hashes, size_t count,
                     struct error *error)
{
    struct blob_store *store = fetch->access.store;
    if (blob_pins_open(store, &fetch->pins, error) == 0 &&
        blob_pins_add(fetch->pins, hashes, count, error) == 0)
        return 0;
    if (error->code != ERROR_EXHAUSTED || chunk_make_room(store, error) < 0)
        return -1;
    blob_pins_free(TAKE(fetch->pins));
    return blob_pins_open(store, &fetch->pins, error) < 0 ||
                   blob_pins_add(fetch->pins, hashes, count, error) < 0
               ? -1
               : 0;
}

struct fetch *fetch_start(const struct chunk_access *access, const struct blob_hash *hashes,
                          size_t count, fetch_function *callback, void *context)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    ASSERT(fetch);
    fetch->access = *access;
    fetch->callback = callback;
    fetch->context = context;
    fetch->others_fd = -1;
    fetch->done = loop_timer_new(access->loop, fetch_on_done, fetch);
    fetch->items = calloc(count ? count : 1, sizeof(*fetch->items));
    ASSERT(fetch->items);
    fetch->item_count = count;
    for (size_t i = 0; i < count; i++) {
        fetch->items[i].fetch = fetch;
        fetch->items[i].hash = hashes[i];
    }
    struct error error;
    if (fetch_pin(fetch, hashes, count, &error) < 0) {
        fetch_finish(fetch, &error);
        return fetch;
    }
    for (size_t i = 0; i < count; i++) {
        struct fetch_item *item = &fetch->items[i];
        if (fetch_is_repeated(fetch, i) || blob_store_use(access->store, &item->hash))
            continue;
        item->retry = loop_timer_new(access->loop, fetch_item_start, item);
        chunk_patience_init(&item->patience, &item->hash);
        fetch->left_count++;
        /* In a turn of its own: none is done before all are counted. */
        loop_timer_start(item->retry, 0);
    }
    if (fetch->left_count == 0)
        fetch_finish(fetch, NULL);
    return fetch;
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch)
        return;
    for (size_t i = 0; i < fetch->item_count; i++) {
        if (fetch->items[i].transfer)
            http_transfer_cancel(fetch->items[i].transfer);
        loop_timer_free(fetch->items[i].retry);
        blob_partial_free(fetch->items[i].partial);
    }
    loop_watch_free(fetch->others);
    auto_close_fd(&fetch->others_fd);
    blob_pins_free(fetch->pins);
    loop_timer_free(fetch->done);
    free(fetch->items);
    free(fetch);
}
