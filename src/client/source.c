#include "client/source.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "net/loop.h"
#include "peer/chunk_server.h"
#include "peer/path.h"
#include "runtime/source_key.h"

#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALL_MS = 10000, BODY_MAX = 2048, COUNT_MS = 100 };

/* The borrower's own line: it shares it as it likes. */
#define SENT_BYTES_PER_S ((int64_t)4 << 30)

struct source {
    const struct bundle *bundle;
    struct client *client; /* its own */
    uint8_t manifest[JOB_HASH_SIZE];
    uint8_t secret[SOURCE_SECRET_SIZE];
    struct loop *loop;
    struct http_client *http;
    struct chunk_server *server;
    struct loop_timer *count_timer;
    atomic_uint_fast64_t sent_bytes;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t answered;
    bool has_answer;
};

static bool find_chunk(void *context, const struct blob_hash *hash, struct text *out_bytes)
{
    const struct source *source = context;
    const struct bundle_blob *blob = bundle_find(source->bundle, hash);
    if (blob)
        *out_bytes = blob->bytes;
    return blob != NULL;
}

static void on_answer(void *context, struct http_response *response, const struct error *reason)
{
    struct source *source = context;
    (void)response, (void)reason; /* not reached, an older market: nobody comes */
    pthread_mutex_lock(&source->mutex);
    source->has_answer = true;
    pthread_cond_broadcast(&source->answered);
    pthread_mutex_unlock(&source->mutex);
}

static void write_offer(const struct source *source, struct buffer *body)
{
    char manifest[2 * JOB_HASH_SIZE + 1], key[2 * SOURCE_SECRET_SIZE + 1];
    struct host_port found[PATH_CANDIDATE_MAX];
    const uint16_t port = chunk_server_port(source->server);
    const size_t count = path_addresses(port, found);
    text_hex_encode(source->manifest, sizeof(source->manifest), manifest);
    text_hex_encode(source->secret, sizeof(source->secret), key);
    struct json_writer writer;
    json_writer_init(&writer, body);
    json_object_begin(&writer);
    json_field_string(&writer, "manifest", manifest);
    json_field_string(&writer, "key", key);
    json_field_u64(&writer, "port", port);
    json_key(&writer, "addresses");
    json_array_begin(&writer);
    for (size_t i = 0; i < count && i + 1 < PATH_CANDIDATE_MAX; i++) {
        char text[ADDRESS_TEXT_SIZE];
        snprintf(text, sizeof(text), "%.40s:%u", found[i].host, (unsigned)port);
        json_string(&writer, text);
    }
    json_array_end(&writer);
    json_object_end(&writer);
    sodium_memzero(key, sizeof(key));
}

static int tell_market(struct source *source, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct client_call call;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, BODY_MAX);
    write_offer(source, &body);
    if (buffer_check(&body, error) < 0 ||
        client_prepare(source->client, arena, "/v1/sources", &call, error) < 0)
        return -1;
    call.headers[call.options.header_count++] =
        (struct http_header){"Content-Type", "application/json"};
    call.options.method = "POST";
    call.options.body = buffer_text(&body);
    call.options.timeout_ms = CALL_MS;
    const int result =
        http_client_start(source->http, &call.options, on_answer, source, NULL, error);
    sodium_memzero(body.data, body.size);
    return result;
}

static void on_count(void *context)
{
    struct source *source = context;
    atomic_store(&source->sent_bytes, chunk_server_sent_bytes(source->server));
    loop_timer_start(source->count_timer, COUNT_MS);
}

static void *run(void *context)
{
    struct source *source = context;
    struct error error;
    if (loop_run(source->loop, &error) < 0)
        log_event(LOG_WARN, "source_ended", "error=\"%s\"", error.message);
    return NULL;
}

/* Signals are the command's own. */
static int start_thread(struct source *source, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = pthread_create(&source->thread, NULL, run, source);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result)
        return error_set_errno(error, result, "start a thread");
    source->is_started = true;
    return 0;
}

static int open_source(struct source *source, const struct client *client, struct error *error)
{
    const struct chunk_server_options options = {.lease = SOURCE_BORROWER,
                                                 .bytes_per_s = SENT_BYTES_PER_S,
                                                 .find = find_chunk,
                                                 .context = source,
                                                 .secret = source->secret};
    struct chunk_server_options serving = options;
    if (loop_open(&clock_system, &source->loop, error) < 0)
        return -1;
    serving.loop = source->loop;
    source->http = http_client_new(&(struct http_client_options){.loop = source->loop});
    if (client_clone(client, &source->client, error) < 0 ||
        chunk_server_open(&serving, &source->server, error) < 0)
        return -1;
    for (size_t i = 0; i < bundle_blob_count(source->bundle); i++) {
        const struct bundle_blob *blob = bundle_blob(source->bundle, i);
        if (!bundle_part(source->bundle, blob->part)->is_others)
            chunk_server_offer(source->server, &blob->hash, /* is_held= */ true);
    }
    source->count_timer = loop_timer_new(source->loop, on_count, source);
    loop_timer_start(source->count_timer, COUNT_MS);
    return tell_market(source, error) < 0 ? -1 : start_thread(source, error);
}

struct source *source_start(const struct client *client, const struct bundle *bundle,
                            const uint8_t manifest[JOB_HASH_SIZE])
{
    struct error error;
    if (bundle_part_count(bundle) == 0)
        return NULL;
    struct source *source = calloc(1, sizeof(*source));
    ASSERT(source);
    source->bundle = bundle;
    memcpy(source->manifest, manifest, sizeof(source->manifest));
    randombytes_buf(source->secret, sizeof(source->secret));
    pthread_mutex_init(&source->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&source->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (open_source(source, client, &error) == 0)
        return source;
    log_event(LOG_INFO, "source_not_served", "error=\"%s\"", error.message);
    source_free(source);
    return NULL;
}

void source_free(struct source *source)
{
    if (!source)
        return;
    if (source->is_started) {
        loop_stop(source->loop);
        pthread_join(source->thread, NULL);
    }
    http_client_free(source->http);
    chunk_server_free(source->server);
    loop_timer_free(source->count_timer);
    loop_free(source->loop);
    client_free(source->client);
    pthread_cond_destroy(&source->answered);
    pthread_mutex_destroy(&source->mutex);
    sodium_memzero(source->secret, sizeof(source->secret));
    free(source);
}

void source_wait(struct source *source, int64_t wait_ms)
{
    const int64_t until_ns = clock_monotonic_ns(&clock_system) + wait_ms * 1000000;
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&source->mutex);
    while (!source->has_answer &&
           pthread_cond_timedwait(&source->answered, &source->mutex, &until) == 0)
        ;
    pthread_mutex_unlock(&source->mutex);
}

uint64_t source_sent_bytes(struct source *source)
{
    return source ? atomic_load(&source->sent_bytes) : 0;
}
