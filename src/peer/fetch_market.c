/* Fetching from the market: one blob over HTTP, from where it broke off. */
#include "peer/fetch_internal.h"

#include <inttypes.h>
#include <string.h>

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
    if (item->fetch->access.counts)
        item->fetch->access.counts->market_bytes += piece.size;
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

static void fetch_note_time(const struct fetch_item *item)
{
    struct chunk_counts *counts = item->fetch->access.counts;
    const int64_t now_ns = clock_monotonic_ns(loop_clock(item->fetch->access.loop));
    const int64_t took_ms = (now_ns - item->begun_ns) / 1000000;
    if (counts && took_ms > counts->market_ms)
        counts->market_ms = took_ms;
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
            fetch_note_time(item);
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

int fetch_ask_market(struct fetch_item *item, struct error *error)
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
