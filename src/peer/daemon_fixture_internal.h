/*
 * Daemon fixture: a whole daemon, in a process of its own with real sandboxes, against a market
 * made of the same parts as the real one: an HTTP server with chunks, links, and streams. The
 * program that includes it is its own keeper: daemon_fixture_main.
 */
#pragma once

#include "base/clock.h"
#include "base/list.h"
#include "blob/blob_store.h"
#include "blob/manifest.h"
#include "blob/pack.h"
#include "net/http_server.h"
#include "net/link.h"
#include "peer/keeper.h"
#include "peer/peer.h"
#include "peer/tenancy.h"
#include "runtime/child_message.h"
#include "runtime/lease_message.h"
#include "runtime/native.h"
#include "sandbox/folder.h"
#include "sandbox/sandbox.h"
#include "testing/testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MACHINE = 5, OFFER = 6, MESSAGE_MAX = 4096, TICK_MS = 300, SKIPPED = 77 };

struct received {
    uint16_t type;
    struct lease_message message; /* in the market's arena */
};

struct market {
    struct loop *loop;
    struct arena *arena;
    char folder[64];
    char state_dir[96];
    struct blob_store *blobs;
    struct http_server *http;
    int listen_fd;
    uint16_t link_port;
    struct loop_watch *listen_watch;
    uint8_t public_key[32], secret_key[64], link_key[LINK_KEY_SIZE], machine_key[32];
    struct link *link;
    int stream_fd; /* the last that named a ticket */
    char stream_line[128];
    struct received messages[MESSAGE_MAX];
    size_t count;
    size_t seen; /* messages before it are not looked at again */
    struct blob_hash data_manifest;
    pid_t daemon;
    uint32_t hello_count;
    bool is_forgetful;   /* never says that a log is kept */
    const char *refusal; /* said instead of a welcome, for now; NULL: welcome */
    uint64_t beat_count;
    uint64_t next_lease;
    uint64_t fence;       /* of the leases that are started */
    uint64_t for_machine; /* the one they name */
    bool has_image;       /* the leases bring one */
    enum { HONEST, WRONG_BYTES, TOO_MANY_BYTES, NOT_NOW } chunks;
};

/* ---- The market's side ----------------------------------------------------------------------- */

static inline void on_enrol(struct http_request *request, void *context)
{
    struct market *market = context;
    struct error error = {0};
    const struct text body = http_request_body(request);
    const char *at = memmem(body.data, body.size, "\"public_key\":\"", 14);
    assert_non_null(at);
    ASSERT_OK(text_hex_decode((struct text){at + 14, 64}, market->machine_key, 32, &error));
    if (!memmem(body.data, body.size, "\"code\":\"good\"", 13)) {
        http_reply_problem(request, 401, "refused", "the code is not known");
        return;
    }
    char link_key[65], public_key[65], json[512];
    text_hex_encode(market->link_key, 32, link_key);
    text_hex_encode(market->public_key, 32, public_key);
    snprintf(
        json, sizeof(json),
        "{\"machine\":%d,\"generation\":1,\"link_key\":\"%s\",\"link_address\":\"127.0.0.1:%d\","
        "\"server_public_key\":\"%s\"}",
        MACHINE, link_key, market->link_port, public_key);
    http_reply(request, 201, "application/json", text_of(json));
}

static inline bool is_allowed(struct http_request *request)
{
    return text_equal(http_request_header(request, "Authorization"), TEXT("Bearer fetch-me"));
}

/* As it is, or with a wrong last byte, or as long as no chunk is. */
static inline void reply_chunk(const struct market *market, struct http_request *request,
                               struct buffer *bytes)
{
    if (market->chunks == WRONG_BYTES)
        ((char *)bytes->data)[bytes->size - 1] ^= 1;
    if (market->chunks != TOO_MANY_BYTES) {
        http_reply(request, 200, "application/octet-stream", buffer_text(bytes));
        return;
    }
    const size_t size = (size_t)4 * BLOB_BYTES_MAX;
    char *flood = calloc(1, size);
    assert_non_null(flood);
    http_reply(request, 200, "application/octet-stream", (struct text){flood, size});
    free(flood);
}

static inline void on_get_chunk(struct http_request *request, void *context)
{
    struct market *market = context;
    struct error error = {0};
    struct blob_hash hash;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    if (!is_allowed(request))
        http_reply_problem(request, 401, "refused", "no");
    else if (market->chunks == NOT_NOW)
        http_reply_problem(request, 503, "unavailable", "not now");
    else if (blob_hash_parse(http_request_parameter(request, "hash"), &hash, &error) < 0 ||
             blob_store_read(market->blobs, &hash, &bytes, &error) < 0)
        http_reply_error(request, &error);
    else
        reply_chunk(market, request, &bytes);
}

static inline void on_put_chunk(struct http_request *request, void *context)
{
    struct market *market = context;
    struct error error = {0};
    struct blob_hash hash, stored;
    const struct text body = http_request_body(request);
    const bool is_frame =
        text_equal(http_request_header(request, "Content-Encoding"), TEXT("zstd"));
    if (!is_allowed(request))
        http_reply_problem(request, 401, "refused", "no");
    else if (market->chunks == NOT_NOW)
        http_reply_problem(request, 503, "unavailable", "not now");
    else if (blob_hash_parse(http_request_parameter(request, "hash"), &hash, &error) < 0 ||
             (is_frame ? blob_store_put_frame(market->blobs, &hash, body, &error)
                       : blob_store_put(market->blobs, &hash, body, &stored, &error)) < 0)
        http_reply_error(request, &error);
    else
        http_reply(request, 201, "application/json", TEXT("{}"));
}

static const struct http_route routes[] = {
    {"POST", "/v1/machines", 65536, on_enrol, 0},
    {"GET", "/v1/chunks/{hash}", 0, on_get_chunk, 0},
    {"PUT", "/v1/chunks/{hash}", BLOB_BYTES_MAX, on_put_chunk, 0},
};

static inline void market_send(struct market *market, const struct lease_message *message)
{
    struct error error = {0};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    ASSERT_OK(link_send_text(market->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

static inline void on_link_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    (void)context;
    assert_true(text_equal(identity, TEXT("machine:5:1")));
}

static inline void market_keep_log(struct market *market, const struct log_message *log)
{
    if (!market->is_forgetful)
        market_send(market,
                    &(struct lease_message){.type = LEASE_MESSAGE_LOG_KEPT,
                                            .log_kept = {.lease = log->lease,
                                                         .fence = log->fence,
                                                         .offset = log->offset + log->bytes.size}});
}

static inline void on_link_frame(struct link *link, uint16_t type, struct text payload,
                                 void *context)
{
    struct market *market = context;
    struct error error = {0};
    (void)link;
    assert_true(market->count < MESSAGE_MAX);
    struct received *received = &market->messages[market->count];
    received->type = type;
    ASSERT_OK(lease_message_decode(market->arena, type, arena_copy_text(market->arena, payload),
                                   &received->message, &error));
    if (type == LEASE_MESSAGE_HEARTBEAT)
        market->beat_count++;
    else
        market->count++;
    if (type == LEASE_MESSAGE_LOG)
        market_keep_log(market, &received->message.log);
    if (type != LEASE_MESSAGE_HELLO)
        return;
    market->hello_count++;
    if (market->refusal) {
        market_send(market,
                    &(struct lease_message){.type = LEASE_MESSAGE_REFUSED,
                                            .refused = {.reason = text_of(market->refusal)}});
        link_finish(link);
        return;
    }
    market_send(market,
                &(struct lease_message){.type = LEASE_MESSAGE_WELCOME,
                                        .welcome = {.version = LEASE_MESSAGE_VERSION,
                                                    .machine = MACHINE,
                                                    .now_ms = clock_utc_ms(&clock_system)}});
    const struct lent_offer offer = {
        OFFER, {.cores_milli = 64000, .ram_bytes = 1 << 30, .disk_bytes = 1 << 30}, 3};
    market_send(market,
                &(struct lease_message){.type = LEASE_MESSAGE_OFFERS, .offers = {&offer, 1}});
}

static inline void on_link_close(struct link *link, const struct error *reason, void *context)
{
    struct market *market = context;
    (void)reason;
    if (market->link == link)
        market->link = NULL;
    link_free(link);
}

static inline int find_link_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)identity;
    memcpy(out_key, ((struct market *)context)->link_key, LINK_KEY_SIZE);
    return 0;
}

static inline void on_connection(void *context, uint32_t events)
{
    struct market *market = context;
    struct error error = {0};
    struct address peer;
    int fd = -1;
    char first = 0;
    (void)events;
    while (tcp_accept(market->listen_fd, &fd, &peer, &error) == 1) {
        fcntl(fd, F_SETFL, 0);
        assert_int_equal(recv(fd, &first, 1, MSG_PEEK), 1);
        if (first == 'S') {
            const size_t size = strlen("SOUK-STREAM ") + (size_t)2 * LEASE_TICKET_SIZE + 1;
            assert_int_equal(recv(fd, market->stream_line, size, MSG_WAITALL), size);
            if (market->stream_fd >= 0)
                close(market->stream_fd);
            market->stream_fd = fd;
            continue;
        }
        const struct link_options options = {.loop = market->loop,
                                             .is_server = true,
                                             .find_key = find_link_key,
                                             .payload_max = LEASE_MESSAGE_SIZE_MAX,
                                             .callbacks = {.on_open = on_link_open,
                                                           .on_frame = on_link_frame,
                                                           .on_close = on_link_close},
                                             .context = market};
        ASSERT_OK(link_open_take(&options, fd, &market->link, &error));
    }
}

/* 40 labels, 0 to 39, behind an idx header of 8 bytes; chunks of 16 bytes. */
static inline void market_pack_data(struct market *market)
{
    struct error error = {0};
    uint8_t file[48] = {0, 0, 8, 1, 0, 0, 0, 40};
    for (uint8_t i = 0; i < 40; i++)
        file[8 + i] = i;
    int fd = memfd_create("data", MFD_CLOEXEC);
    assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
    lseek(fd, 0, SEEK_SET);
    const struct pack_options options = {
        .media_type = "application/x-idx", .header_bytes = 8, .record_bytes = 1, .chunk_bytes = 16};
    const struct pack_source source = pack_source_fd(&fd);
    const struct pack_sink sink = pack_sink_store(market->blobs);
    struct manifest manifest;
    ASSERT_OK(pack_stream(market->arena, &options, &source, &sink, &manifest, &error));
    ASSERT_OK(manifest_put(market->blobs, &manifest, &market->data_manifest, &error));
    close(fd);
}

static inline void market_open(struct market *market)
{
    struct error error = {0};
    struct address any;
    market->arena = arena_new(0);
    market->stream_fd = -1;
    market->next_lease = 100;
    market->fence = 1;
    market->for_machine = MACHINE;
    snprintf(market->folder, sizeof(market->folder), "/tmp/souk-daemon-test-XXXXXX");
    assert_non_null(mkdtemp(market->folder));
    snprintf(market->state_dir, sizeof(market->state_dir), "%s/state/lender", market->folder);
    crypto_sign_keypair(market->public_key, market->secret_key);
    randombytes_buf(market->link_key, sizeof(market->link_key));
    ASSERT_OK(loop_open(&clock_system, &market->loop, &error));
    const char *blobs_dir = arena_format(market->arena, "%s/blobs", market->folder);
    ASSERT_OK(
        blob_store_open(&(struct blob_store_options){.folder = blobs_dir}, &market->blobs, &error));
    ASSERT_OK(address_resolve(&(struct host_port){.host = "127.0.0.1"}, &any, &error));
    ASSERT_OK(tcp_listen(&any, "--link", &market->listen_fd, &market->link_port, &error));
    ASSERT_OK(loop_watch_open(market->loop, market->listen_fd, LOOP_READ, on_connection, market,
                              &market->listen_watch, &error));
    const struct http_server_options http = {.loop = market->loop,
                                             .listen = any,
                                             .routes = routes,
                                             .route_count = sizeof(routes) / sizeof(*routes),
                                             .context = market};
    ASSERT_OK(http_server_open(&http, &market->http, &error));
    market_pack_data(market);
}

static inline char *folder_of(char *path)
{
    *strrchr(path, '/') = '\0';
    return path;
}

static inline void start_daemon(struct market *market, const char *code)
{
    fflush(NULL);
    market->daemon = fork();
    if (market->daemon != 0)
        return;
    struct error error = {0};
    struct peer_options options;
    setenv("KEEPER_OF", market->folder, 1); // NOLINT(concurrency-mt-unsafe): one thread
    char url[64], self[PATH_MAX - 64], program[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[size > 0 ? size : 0] = '\0';
    snprintf(program, sizeof(program), "%s/daemon_test_worker", folder_of(self));
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", http_server_port(market->http));
    peer_options_init(&options);
    options.is_blind = true; /* other tests keep the machine busy */
    options.state_dir = market->state_dir;
    const char *const servers[] = {url};
    options.servers = servers;
    options.server_count = 1;
    options.code = code;
    options.name = "kitchen";
    options.cores_milli = 500;
    options.ram_bytes = 512 << 20;
    options.disk_bytes = 64 << 20;
    options.program = program;
    options.has_images = true;
    if (peer_run(&options, &error) < 0) {
        fprintf(stderr, "peer_run: %s\n", error.message);
        _exit(100 + (int)error.code);
    }
    _exit(0);
}

static inline void turn(struct market *market)
{
    struct error error = {0};
    ASSERT_OK(loop_step(market->loop, 20, &error));
}

static inline int64_t now_ms(void)
{
    return clock_monotonic_ns(&clock_system) / 1000000;
}

/* The next message of the type, and of the state when `state` is not negative. */
static inline const struct lease_message *wait_for(struct market *market,
                                                   enum lease_message_type type, int state)
{
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    for (;;) {
        while (market->seen < market->count) {
            const struct lease_message *message = &market->messages[market->seen++].message;
            if (message->type == type && (state < 0 || (int)message->state.state == state))
                return message;
            if (message->type == LEASE_MESSAGE_STATE && state >= 0)
                print_message("state %s: " TEXT_FORMAT "\n",
                              lease_run_state_name(message->state.state),
                              TEXT_ARGS(message->state.reason));
        }
        if (now_ms() > deadline_ms)
            fail_msg("no %s came", lease_message_type_name(type));
        turn(market);
    }
}

static inline int wait_for_daemon(struct market *market)
{
    int status = 0;
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (waitpid(market->daemon, &status, WNOHANG) == 0) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
    market->daemon = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The lease that is next, and the market's signature. */
static inline void write_document(struct market *market, int64_t run_ms, struct buffer *document,
                                  uint8_t out_signature[LEASE_SIGNATURE_SIZE])
{
    struct error error = {0};
    struct job_spec spec;
    char hash[BLOB_HASH_TEXT_SIZE];
    blob_hash_format(&market->data_manifest, hash);
    const char *training = arena_format(
        market->arena,
        "{\"name\":\"j\",\"num_nodes\":4,\"train\":{\"model\":\"lenet5\",\"data\":\"mnist\"},"
        "\"sync\":{\"policy\":\"adsp\",\"tick\":\"%dms\"},"
        "\"inputs\":[{\"name\":\"train-labels\",\"split\":\"train\",\"manifest\":\"%s\","
        "\"records\":40}]}",
        TICK_MS, hash);
    const char *in_image = arena_format(
        market->arena,
        "{\"name\":\"j\",\"num_nodes\":4,\"runtime\":\"command\",\"run\":\"true\","
        "\"resources\":{\"image_id\":\"oci:a.tar\"},"
        "\"inputs\":[{\"name\":\"a.tar\",\"split\":\"image\",\"manifest\":\"%s\",\"records\":1}]}",
        hash);
    const char *json = market->has_image ? in_image : training;
    ASSERT_OK(job_spec_read(market->arena, text_of(json), &spec, &error));
    const struct native_lease lease = {.lease = market->next_lease,
                                       .fence = market->fence,
                                       .job = 1,
                                       .machine = market->for_machine,
                                       .offer = OFFER,
                                       .role = LEASE_ROLE_WORKER,
                                       .rank = 1,
                                       .world = 4,
                                       .cores_milli = 500,
                                       .ram_bytes = 256 << 20,
                                       .disk_bytes = 16 << 20,
                                       .expires_ms = clock_utc_ms(&clock_system) + run_ms};
    ASSERT_OK(native_lease_write(&spec, &lease, document, &error));
    crypto_sign_detached(out_signature, NULL, document->data, document->size, market->secret_key);
}

/* Its START. */
static inline void write_start(struct market *market, int64_t run_ms, struct buffer *out_payload)
{
    struct buffer document AUTO_BUFFER;
    uint8_t signature[LEASE_SIGNATURE_SIZE];
    buffer_init(&document, LEASE_DOCUMENT_SIZE_MAX);
    write_document(market, run_ms, &document, signature);
    const struct lease_peer peer = {.lease = 99, .fence = 1, .ticket = {0xab}};
    struct lease_message start = {.type = LEASE_MESSAGE_START,
                                  .start = {.document = buffer_text(&document),
                                            .fetch_token = TEXT("fetch-me"),
                                            .peers = &peer,
                                            .peer_count = 1}};
    memcpy(start.start.signature, signature, sizeof(signature));
    lease_message_encode(&start, out_payload);
}

/* Its renewal: from now on it may run so long. */
static inline void write_renewal(struct market *market, int64_t run_ms, struct buffer *out_payload)
{
    struct buffer document AUTO_BUFFER;
    struct lease_message renewal = {.type = LEASE_MESSAGE_RENEW};
    buffer_init(&document, LEASE_DOCUMENT_SIZE_MAX);
    write_document(market, run_ms, &document, renewal.renew.signature);
    renewal.renew.document = buffer_text(&document);
    lease_message_encode(&renewal, out_payload);
}

static inline void start_again(struct market *market, int64_t run_ms)
{
    struct error error = {0};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    write_start(market, run_ms, &payload);
    ASSERT_OK(link_send_text(market->link, LEASE_MESSAGE_START, buffer_text(&payload), &error));
}

static inline void start_lease(struct market *market, int64_t run_ms)
{
    market->next_lease++;
    start_again(market, run_ms);
}

static inline void renew_lease(struct market *market, int64_t run_ms)
{
    struct error error = {0};
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    write_renewal(market, run_ms, &payload);
    ASSERT_OK(link_send_text(market->link, LEASE_MESSAGE_RENEW, buffer_text(&payload), &error));
}

static inline void tell_worker(struct market *market, const char *line)
{
    assert_true(market->stream_fd >= 0);
    assert_int_equal(send(market->stream_fd, line, strlen(line), MSG_NOSIGNAL), strlen(line));
}

static inline void wait_for_no_folder(struct market *market)
{
    char path[160];
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    snprintf(path, sizeof(path), "%s/leases/%" PRIu64 "-1", market->state_dir, market->next_lease);
    while (access(path, F_OK) == 0) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
}

static inline void stop_lease(struct market *market, uint32_t grace_ms)
{
    market_send(market, &(struct lease_message){.type = LEASE_MESSAGE_STOP,
                                                .stop = {.lease = market->next_lease,
                                                         .fence = 1,
                                                         .grace_ms = grace_ms,
                                                         .reason = TEXT("enough")}});
}

static inline int set_up(void **state)
{
    struct market *market = calloc(1, sizeof(*market));
    market_open(market);
    start_daemon(market, "good");
    *state = market;
    return 0;
}

static inline int tear_down(void **state)
{
    struct market *market = *state;
    if (market->daemon > 0) {
        kill(market->daemon, SIGTERM); /* it cleans up after itself */
        wait_for_daemon(market);
    }
    if (market->stream_fd >= 0)
        close(market->stream_fd);
    link_free(market->link);
    loop_watch_free(market->listen_watch);
    close(market->listen_fd);
    http_server_free(market->http);
    blob_store_free(market->blobs);
    loop_free(market->loop);
    arena_free(market->arena);
    struct error error;
    const int result = folder_remove(market->folder, &error);
    free(market);
    return result;
}

static inline void assert_meter(struct market *market, const struct meter_message *meter)
{
    uint8_t bytes[METER_SIGNED_SIZE];
    meter_message_signed(meter, bytes);
    assert_int_equal(
        crypto_sign_verify_detached(meter->signature, bytes, sizeof(bytes), market->machine_key),
        0);
    assert_in_range(meter->wall_ms, 1, 5000);
}

static inline void assert_result(struct market *market, const struct artifact_message *artifact)
{
    struct error error = {0};
    struct blob_hash hash;
    struct manifest manifest;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    memcpy(hash.bytes, artifact->manifest, sizeof(hash.bytes));
    assert_true(text_equal(artifact->name, TEXT("model")));
    assert_int_equal(artifact->size_bytes, 7);
    ASSERT_OK(manifest_get(market->arena, market->blobs, &hash, &manifest, &error));
    assert_int_equal(manifest.chunks.count, 1);
    ASSERT_OK(blob_store_read(market->blobs, &manifest_chunk(&manifest, 0)->hash, &bytes, &error));
    assert_true(text_equal(buffer_text(&bytes), TEXT("weights")));
}

#if defined(__SANITIZE_ADDRESS__)
enum { RESIDENT_KIB_MAX = INT_MAX }; /* the sanitizer needs far more */
#else
enum { RESIDENT_KIB_MAX = 10240 }; /* an idle daemon or keeper */
#endif

static inline int64_t resident_kib_of(pid_t pid, int64_t *out_own_kib)
{
    char path[64], line[256];
    int64_t resident_kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmRSS:", 6) == 0)
            resident_kib = strtoll(line + 6, NULL, 10);
        if (strncmp(line, "RssAnon:", 8) == 0)
            *out_own_kib = strtoll(line + 8, NULL, 10);
    }
    fclose(file);
    return resident_kib;
}

/* Runs the tests, skips them where there are no sandboxes, or is a daemon's keeper. */
static inline int daemon_fixture_main(int argc, char **argv, int (*run)(void))
{
    struct sandbox_host *host = NULL;
    struct error error = {0};
#if defined(__SANITIZE_THREAD__)
    fprintf(stderr, "skipped: the thread sanitizer cannot run inside a sandbox\n");
    return SKIPPED;
#endif
    if (argc > 1 && strcmp(argv[1], "keeper") == 0)
        return keeper_main(argc - 1, argv + 1); /* a daemon starts its own program again */
    if (sodium_init() < 0 || sandbox_host_open("/tmp", NULL, &host, &error) < 0) {
        fprintf(stderr, "skipped: %s\n", error.message);
        return SKIPPED;
    }
    sandbox_host_free(host);
    signal(SIGPIPE, SIG_IGN);
    return run();
}

#define DAEMON_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
