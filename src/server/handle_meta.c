/* The server itself: who it is, how it is doing, the page. */
#include "base/log.h"
#include "server/answers.h"
#include "server/cloud.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/imports.h"
#include "server/live.h"
#include "server/page.h"
#include "server/routes.h"
#include "server/view.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef SOUK_VERSION
#define SOUK_VERSION "0.1.0"
#endif

enum { METRICS_SIZE_MAX = 64 << 10 };

void handle_server(struct http_request *request, void *context)
{
    const struct server *server = context;
    char hex[2 * KEYS_PUBLIC_SIZE + 1];
    text_hex_encode(keys_public(server->keys), KEYS_PUBLIC_SIZE, hex);
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_field_string(&answer.writer, "name", server->name);
    json_field_string(&answer.writer, "version", SOUK_VERSION);
    json_field_string(&answer.writer, "url", server->url);
    json_field_string(&answer.writer, "link_address", server->link_address);
    json_field_string(&answer.writer, "fingerprint", keys_fingerprint(server->keys));
    json_field_string(&answer.writer, "public_key", hex);
    json_field_string(&answer.writer, "economy",
                      server->settings.economy == ECONOMY_KARMA ? "karma" : "credits");
    json_field_i64(&answer.writer, "grant_microcredits", server->settings.grant_micro);
    json_field_i64(&answer.writer, "fee_basis_points", server->settings.fee_basis_points);
    json_field_i64(&answer.writer, "proving_microcredits", server->settings.proving_micro);
    json_field_i64(&answer.writer, "withheld_basis_points", server->settings.withheld_basis_points);
    json_field_i64(&answer.writer, "credits_micro_per_usd",
                   server->settings.economy == ECONOMY_KARMA
                       ? 0
                       : cloud_credits_micro(server->cloud, 1000000));
    json_field_u64(&answer.writer, "import_bytes_max", imports_size_max(server->imports));
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}

void handle_healthz(struct http_request *request, void *context)
{
    (void)context;
    http_reply_static(request, 200, "text/plain; charset=utf-8", TEXT("ok\n"));
}

void handle_readyz(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct engine_counts counts = engine_counts(server->engine);
    if (server->is_stopping)
        http_reply_problem(request, 503, "unavailable", "the market is stopping");
    else if (!counts.is_ready && counts.is_disk_full)
        http_reply_problem(request, 503, "unavailable",
                           "the market's disk is full: no changes are taken until there is room");
    else if (!counts.is_ready)
        http_reply_problem(request, 503, "unavailable",
                           "the market's store is away: no changes are taken; see its log");
    else
        http_reply_static(request, 200, "text/plain; charset=utf-8", TEXT("ready\n"));
}

static void metric(struct buffer *out, const char *name, const char *type, const char *help,
                   uint64_t value)
{
    buffer_append_format(out, "# HELP souk_%s %s\n# TYPE souk_%s %s\nsouk_%s %" PRIu64 "\n", name,
                         help, name, type, name, value);
}

static void seconds(struct buffer *out, const char *name, const char *help, uint64_t value_ns)
{
    buffer_append_format(out, "# HELP souk_%s %s\n# TYPE souk_%s counter\nsouk_%s %.9f\n", name,
                         help, name, name, (double)value_ns / 1e9);
}

/* What there is of a file; 0 when it is not there, as the write-ahead log of a store just folded.
 */
static uint64_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static uint64_t store_bytes(const struct server *server)
{
    char log_path[SERVER_PATH_SIZE + 8];
    snprintf(log_path, sizeof(log_path), "%s-wal", server->market_path);
    return file_bytes(server->market_path) + file_bytes(log_path);
}

static uint64_t disk_free_bytes(const struct server *server)
{
    struct statvfs status;
    return statvfs(server->market_path, &status) == 0
               ? (uint64_t)status.f_bavail * (uint64_t)status.f_frsize
               : 0;
}

/* The second number of /proc/self/statm: pages in memory. */
static uint64_t resident_bytes(void)
{
    char line[128] = "";
    AUTO_FD int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    const char *second = size > 0 ? strchr(line, ' ') : NULL;
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void add_resources(struct server *server, struct buffer *out)
{
    metric(out, "start_time_seconds", "gauge", "When the market was started, since 1970.",
           (uint64_t)server->started_ms / 1000);
    metric(out, "resident_bytes", "gauge", "Memory the market takes.", resident_bytes());
    metric(out, "store_bytes", "gauge", "The store's file and its write-ahead log.",
           store_bytes(server));
    metric(out, "disk_free_bytes", "gauge", "Room left where the store is.",
           disk_free_bytes(server));
    metric(out, "blob_bytes", "gauge", "Bytes in the blob store.", blob_store_bytes(server->blobs));
}

void handle_metrics(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct engine_counts engine = engine_counts(server->engine);
    const struct hub_counts hub = hub_counts(server->hub);
    const struct answers_counts answers = answers_counts(server->answers);
    const struct server_counts *counts = &server->counts;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, METRICS_SIZE_MAX);
    metric(&out, "http_requests_total", "counter", "HTTP requests answered.", counts->requests);
    metric(&out, "http_client_errors_total", "counter", "Answers with a status 4xx.",
           counts->client_errors);
    metric(&out, "http_server_errors_total", "counter", "Answers with a status 5xx.",
           counts->server_errors);
    metric(&out, "http_rate_limited_total", "counter", "Requests refused by a rate limit.",
           counts->limited);
    metric(&out, "http_replays_total", "counter", "Repeated requests answered by their key.",
           counts->replays);
    seconds(&out, "http_request_seconds_total", "Time from first byte to answer, in all.",
            counts->request_ns);
    metric(&out, "answers_hits_total", "counter", "Reads answered from memory.", answers.hits);
    metric(&out, "answers_misses_total", "counter", "Reads that might have been and were not.",
           answers.misses);
    metric(&out, "answers_evictions_total", "counter",
           "Answers dropped, though still true, for lack of room.", answers.evictions);
    metric(&out, "answers", "gauge", "Answers kept in memory.", answers.count);
    metric(&out, "answers_bytes", "gauge", "Memory they take.", answers.bytes);
    metric(&out, "answers_bytes_max", "gauge", "Memory they may take: --answers-memory.",
           (uint64_t)server->options.answers_bytes_max);
    metric(&out, "http_connections", "gauge", "Open HTTP connections.",
           http_server_connection_count(server->http));
    metric(&out, "event_streams", "gauge", "Clients following events.",
           live_stream_count(server->live));
    metric(&out, "commands_total", "counter", "Commands decided by the core.", engine.commands);
    metric(&out, "refusals_total", "counter", "Commands refused by the core.", engine.refusals);
    metric(&out, "events_total", "counter", "Events committed since the start.", engine.events);
    metric(&out, "event_sequence", "gauge", "The last event on disk.", engine.sequence);
    metric(&out, "commits_total", "counter", "Batches committed.", engine.commits);
    metric(&out, "failed_commits_total", "counter", "Batches the store refused.",
           engine.failed_commits);
    seconds(&out, "commit_seconds_total", "Time spent committing.", engine.commit_ns);
    metric(&out, "command_queue", "gauge", "Commands that wait.", engine.waiting);
    metric(&out, "ready", "gauge", "1 while changes are taken.", engine.is_ready ? 1 : 0);
    metric(&out, "machine_links", "gauge", "Machines linked.", hub.links);
    metric(&out, "streams", "gauge", "Streams being relayed.", hub.relays);
    metric(&out, "streams_waiting", "gauge", "Streams with one end.", hub.waiting_streams);
    metric(&out, "meters_refused_total", "counter", "Meter reports with a wrong signature.",
           hub.bad_meters);
    add_resources(server, &out);
    http_reply_take(request, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

void handle_page(struct http_request *request, void *context)
{
    (void)context;
    const struct text path = http_request_path(request);
    const struct page_file *file = text_starts_with(path, TEXT("/v1/")) ? NULL : page_find(path);
    if (!file) {
        http_reply_problem(request, 404, "not_found",
                           "there is nothing at this path; the API is described at /openapi.json");
        return;
    }
    const struct page_form form =
        page_form(file, http_request_header_list(request, "Accept-Encoding"));
    struct error error;
    if (http_reply_header(request, "ETag", form.etag, &error) < 0 ||
        http_reply_header(request, "Vary", "Accept-Encoding", &error) < 0 ||
        http_reply_header(request, "Cache-Control",
                          page_is_immutable(file) ? "public, max-age=31536000, immutable"
                                                  : "no-cache",
                          &error) < 0 ||
        (form.coding && http_reply_header(request, "Content-Encoding", form.coding, &error) < 0)) {
        http_reply_error(request, &error);
        return;
    }
    if (page_etag_matches(form.etag, http_request_header(request, "If-None-Match")))
        http_reply_static(request, 304, file->content_type, TEXT(""));
    else
        http_reply_static(request, 200, file->content_type, form.data);
}
