#include "peer/fetch.h"

#include "base/assert.h"

#include <inttypes.h>

struct fetch_item {
    struct fetch *fetch;
    struct blob_hash hash;
    struct http_transfer *transfer; /* while it runs */
    struct loop_timer *retry;
    uint32_t try_count;
};

struct fetch {
    struct chunk_access access;
    struct fetch_item *items;
    size_t item_count;
    size_t left_count;
    bool has_failed;
    struct error error;
    struct loop_timer *done; /* so that the callback never comes from inside a call */
    fetch_function *callback;
    void *context;
};

void chunk_call_init(const struct chunk_access *access, const struct blob_hash *hash,
                     char url[CHUNK_URL_SIZE], char authorization[CHUNK_URL_SIZE],
                     struct http_header headers[2], struct http_call_options *out_options)
{
    char text[BLOB_HASH_TEXT_SIZE];
    int size = snprintf(url, CHUNK_URL_SIZE, "%s/v1/chunks/%s", access->server_url,
                        blob_hash_format(hash, text));
    ASSERT(size < CHUNK_URL_SIZE);
    size = snprintf(authorization, CHUNK_URL_SIZE, "Bearer %s", access->token);
    ASSERT(size < CHUNK_URL_SIZE);
    headers[0] = (struct http_header){"Authorization", authorization};
    headers[1] = (struct http_header){"Content-Type", "application/octet-stream"};
    *out_options = (struct http_call_options){.url = url,
                                              .headers = headers,
                                              .header_count = 2,
                                              .response_max = BLOB_BYTES_MAX,
                                              .timeout_ms = 300000,
                                              .idle_timeout_ms = 30000,
                                              .pinned_fingerprint = access->fingerprint};
}

int chunk_check_reply(const struct http_response *response, const struct error *reason,
                      const struct blob_hash *hash, struct error *error)
{
    if (!response) {
        *error = *reason;
        return -1;
    }
    if (response->status >= 200 && response->status < 300)
        return 0;
    char text[BLOB_HASH_TEXT_SIZE];
    enum error_code code = ERROR_REFUSED;
    if (response->status == 404)
        code = ERROR_NOT_FOUND;
    else if (response->status == 429 || response->status >= 500)
        code = ERROR_UNAVAILABLE;
    return error_set(error, code, "chunk %.12s: the market answered %d",
                     blob_hash_format(hash, text), response->status);
}

int64_t chunk_retry_ms(const struct chunk_access *access, const struct error *reason,
                       uint32_t *try_count)
{
    if (reason->code != ERROR_UNAVAILABLE)
        return -1;
    if (*access->is_away)
        return CHUNK_AWAY_MS;
    return ++*try_count < CHUNK_TRIES_MAX ? CHUNK_RETRY_MS << *try_count : -1;
}

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

static bool fetch_keeps(const struct blob_hash *hash, void *context)
{
    const struct fetch *fetch = context;
    for (size_t i = 0; i < fetch->item_count; i++)
        if (blob_hash_equal(hash, &fetch->items[i].hash))
            return true;
    return false;
}

static int fetch_store(struct fetch *fetch, const struct fetch_item *item, struct text bytes,
                       struct error *error)
{
    struct blob_hash stored;
    if (blob_store_put(fetch->access.store, &item->hash, bytes, &stored, error) == 0)
        return 0;
    if (error->code != ERROR_EXHAUSTED)
        return -1;
    /* Older data makes room. */
    const struct blob_evict evict = {
        .bytes_wanted = bytes.size, .keep = fetch_keeps, .context = fetch};
    uint64_t freed_bytes;
    if (blob_store_evict(fetch->access.store, &evict, &freed_bytes, error) < 0)
        return -1;
    return blob_store_put(fetch->access.store, &item->hash, bytes, &stored, error);
}

static void fetch_item_start(void *context);

static void fetch_on_reply(void *context, struct http_response *response,
                           const struct error *reason)
{
    struct fetch_item *item = context;
    struct fetch *fetch = item->fetch;
    struct error error;
    item->transfer = NULL;
    if (chunk_check_reply(response, reason, &item->hash, &error) == 0 &&
        fetch_store(fetch, item, buffer_text(&response->body), &error) == 0) {
        fetch->left_count--;
        fetch_finish(fetch, NULL);
        return;
    }
    const int64_t retry_ms = chunk_retry_ms(&fetch->access, &error, &item->try_count);
    if (retry_ms >= 0)
        loop_timer_start(item->retry, retry_ms);
    else
        fetch_finish(fetch, &error);
}

static void fetch_item_start(void *context)
{
    struct fetch_item *item = context;
    struct fetch *fetch = item->fetch;
    char url[CHUNK_URL_SIZE], authorization[CHUNK_URL_SIZE];
    struct http_header headers[2];
    struct http_call_options options;
    struct error error;
    if (fetch->has_failed)
        return;
    chunk_call_init(&fetch->access, &item->hash, url, authorization, headers, &options);
    options.header_count = 1; /* no body to describe */
    if (http_client_start(fetch->access.client, &options, fetch_on_reply, item, &item->transfer,
                          &error) < 0)
        fetch_finish(fetch, &error);
}

static bool fetch_is_repeated(const struct fetch *fetch, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (blob_hash_equal(&fetch->items[i].hash, &fetch->items[index].hash))
            return true;
    return false;
}

struct fetch *fetch_start(const struct chunk_access *access, const struct blob_hash *hashes,
                          size_t count, fetch_function *callback, void *context)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    ASSERT(fetch);
    fetch->access = *access;
    fetch->callback = callback;
    fetch->context = context;
    fetch->done = loop_timer_new(access->loop, fetch_on_done, fetch);
    fetch->items = calloc(count ? count : 1, sizeof(*fetch->items));
    ASSERT(fetch->items);
    fetch->item_count = count;
    for (size_t i = 0; i < count; i++) {
        fetch->items[i].fetch = fetch;
        fetch->items[i].hash = hashes[i];
    }
    for (size_t i = 0; i < count; i++) {
        struct fetch_item *item = &fetch->items[i];
        if (fetch_is_repeated(fetch, i) || blob_store_use(access->store, &item->hash))
            continue;
        item->retry = loop_timer_new(access->loop, fetch_item_start, item);
        fetch->left_count++;
        fetch_item_start(item);
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
    }
    loop_timer_free(fetch->done);
    free(fetch->items);
    free(fetch);
}
