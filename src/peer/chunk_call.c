/* What fetching and uploading chunks share: the call, its answer, patience, room. */
#include "base/assert.h"
#include "peer/fetch.h"

#include <inttypes.h>
#include <string.h>

void chunk_call_init(struct chunk_call *call, const struct chunk_access *access,
                     const struct blob_hash *hash)
{
    char text[BLOB_HASH_TEXT_SIZE];
    int size = snprintf(call->url, sizeof(call->url), "%s/v1/chunks/%s", access->server_url,
                        blob_hash_format(hash, text));
    ASSERT(size < CHUNK_URL_SIZE);
    size = snprintf(call->authorization, sizeof(call->authorization), "Bearer %s", access->token);
    ASSERT(size < CHUNK_URL_SIZE);
    call->options = (struct http_call_options){.url = call->url,
                                               .headers = call->headers,
                                               .response_max = BLOB_BYTES_MAX,
                                               .timeout_ms = 300000,
                                               .idle_timeout_ms = 15000,
                                               .pinned_fingerprint = access->fingerprint};
    chunk_call_add_header(call, "Authorization", call->authorization);
}

void chunk_call_add_header(struct chunk_call *call, const char *name, const char *value)
{
    ASSERT(call->options.header_count < CHUNK_HEADER_MAX);
    call->headers[call->options.header_count++] = (struct http_header){name, value};
}

int chunk_check_reply(const struct chunk_access *access, const struct http_response *response,
                      const struct error *reason, const struct blob_hash *hash, struct error *error)
{
    char text[BLOB_HASH_TEXT_SIZE];
    blob_hash_format(hash, text);
    if (!response) {
        *error = *reason;
        return error_wrap(error, "chunk %.12s from %.80s", text, access->server_url);
    }
    if (response->status >= 200 && response->status < 300)
        return 0;
    enum error_code code = ERROR_REFUSED;
    if (response->status == 404)
        code = ERROR_NOT_FOUND;
    else if (response->status == 408 || response->status == 416 || response->status == 429 ||
             response->status >= 500)
        code = ERROR_UNAVAILABLE;
    if (response->status == 507)
        code = ERROR_EXHAUSTED; /* the market's quota: time does not mend it */
    return error_set(error, code, "chunk %.12s: %.80s answered %d", text, access->server_url,
                     response->status);
}

void chunk_patience_init(struct chunk_patience *patience, const struct blob_hash *hash)
{
    uint64_t seed;
    memcpy(&seed, hash->bytes, sizeof(seed));
    /* Leases that want the same chunk shall not ask in step. */
    random_init(&patience->random, seed ^ (uint64_t)clock_monotonic_ns(&clock_system));
    patience->try_count = 0;
}

int64_t chunk_patience_next_ms(struct chunk_patience *patience, const struct chunk_access *access,
                               const struct http_response *response)
{
    int64_t wait_ms = CHUNK_RETRY_MS_MAX;
    if (*access->is_away)
        wait_ms = CHUNK_AWAY_MS;
    else if (patience->try_count < 6 && CHUNK_RETRY_MS << patience->try_count < CHUNK_RETRY_MS_MAX)
        wait_ms = CHUNK_RETRY_MS << patience->try_count;
    patience->try_count++;
    wait_ms = wait_ms / 2 + (int64_t)random_below(&patience->random, (uint64_t)wait_ms / 2 + 1);
    const int64_t asked_ms =
        response && response->retry_after_s > 0
            ? (response->retry_after_s < 60 ? response->retry_after_s : 60) * 1000
            : 0;
    return asked_ms > wait_ms ? asked_ms : wait_ms;
}

int chunk_make_room(struct blob_store *store, struct error *error)
{
    /* Twice: while it comes and when it has come. */
    const struct blob_evict evict = {.bytes_wanted = BLOB_BYTES_MAX,
                                     .bytes_free_min = 2 * (uint64_t)BLOB_BYTES_MAX};
    return blob_store_evict(store, &evict, NULL, error);
}
