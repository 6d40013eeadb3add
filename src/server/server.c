#include "server/server.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/log.h"
#include "cloud/catalogue_shelf.h"
#include "net/address.h"
#include "server/answers.h"
#include "server/audits.h"
#include "server/background.h"
#include "server/cloud.h"
#include "server/datasets.h"
#include "server/holdings.h"
#include "server/hub.h"
#include "server/imports.h"
#include "server/live.h"
#include "server/local_lender.h"
#include "server/logs.h"
#include "server/looks.h"
#include "server/objects.h"
#include "server/page.h"
#include "server/password.h"
#include "server/rate_limit.h"
#include "server/renewal.h"
#include "server/routes.h"
#include "server/row_cache.h"
#include "server/sealed.h"
#include "server/secrets.h"
#include "server/server_internal.h"
#include "server/startup.h"
#include "server/tables.h"
#include "server/token_use.h"
#include "server/upkeep.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOB_QUOTA_BYTES (UINT64_C(64) << 30)

/* Filled by what is asked for: a market that nobody reads from needs none of it. */
enum { ANSWERS_BYTES = 192 << 20, ROWS_BYTES_MAX = 8 << 20, CONNECTIONS_PER_ADDRESS = 500 };

void server_options_init(struct server_options *options)
{
    *options = (struct server_options){
        .listen = "127.0.0.1:7600",
        .link_listen = "127.0.0.1:7601",
        .proxy_count = 1,
        .grant_v6_prefix = 64,
        .sign_ups_per_hour = -1,
        .sign_ins_per_10_minutes = -1,
        .writes_per_minute = -1,
        .reads_per_minute = -1,
        .grant_microcredits = -1,
        .fee_basis_points = -1,
        .answers_bytes_max = ANSWERS_BYTES,
        .ready_fd = -1,
        .stop_fd = -1,
    };
}

void server_print_api(FILE *file)
{
    routes_print(file);
}

void server_print_openapi(FILE *file)
{
    const struct page_file *openapi = page_find(TEXT("/openapi.json"));
    ASSERT(openapi);
    fwrite(openapi->data.data, 1, openapi->data.size, file);
}

/* ---- Opening --------------------------------------------------------------------------------- */

enum { BACKGROUND_MAX = 16 }; /* recommendations that may wait */

static int open_stores(struct server *server, struct error *error)
{
    char path[SERVER_PATH_SIZE];
    const struct server_options *options = &server->options;
    if (!options->data_dir || strlen(options->data_dir) > SERVER_PATH_SIZE - 64)
        return error_set(error, ERROR_INVALID,
                         "a data folder is needed, with a path under %d bytes",
                         SERVER_PATH_SIZE - 64);
    if (file_make_folders(options->data_dir, 0700, error) < 0)
        return error_wrap(error, "data folder");
    snprintf(path, sizeof(path), "%s/keys", options->data_dir);
    if (keys_open(path, &server->keys, error) < 0)
        return -1;
    if (sealed_open(options->data_dir, server->keys, &server->sealed, error) < 0)
        return -1;
    if (options->tls_cert &&
        keys_use_certificate(server->keys, options->tls_cert, options->tls_key, error) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/blobs", options->data_dir);
    const struct blob_store_options blobs = {
        .folder = path,
        .bytes_max =
            options->blob_quota_bytes > 0 ? (uint64_t)options->blob_quota_bytes : BLOB_QUOTA_BYTES,
        .clock = server->clock,
    };
    if (blob_store_open(&blobs, &server->blobs, error) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/cloud-catalogue.csv", options->data_dir);
    server->catalogue = catalogue_shelf_new(path);
    snprintf(server->market_path, sizeof(server->market_path), "%s/market.db", options->data_dir);
    server->versions = versions_new();
    server->answers =
        answers_new(server->versions, server->clock, (size_t)options->answers_bytes_max);
    server->rows = row_cache_new(server->versions, ROWS_BYTES_MAX);
    const struct engine_options engine = {
        .store = {.location = server->market_path, .schema = &tables_schema},
        .clock = server->clock,
        .versions = server->versions,
        .snapshot_event_count = options->snapshot_event_count,
    };
    if (engine_open(&engine, &server->engine, error) < 0)
        return -1;
    return store_reader_open(&engine.store, &server->reader, error);
}

static void set_limit(struct rate_limits_options *limits, enum rate_class class, int64_t wanted)
{
    limits->rules[class] = rate_class_default(class);
    if (wanted >= 0)
        limits->rules[class].limit = wanted;
}

static int open_gate(struct server *server, struct error *error)
{
    const struct server_options *options = &server->options;
    struct rate_limits_options limits = {.clock = server->clock};
    set_limit(&limits, RATE_SIGN_UP, options->sign_ups_per_hour);
    set_limit(&limits, RATE_SIGN_IN, options->sign_ins_per_10_minutes);
    set_limit(&limits, RATE_SIGN_IN_NAME, options->sign_ins_per_10_minutes);
    set_limit(&limits, RATE_WRITE, options->writes_per_minute);
    set_limit(&limits, RATE_READ, options->reads_per_minute);
    set_limit(&limits, RATE_WRITE_ADDRESS, options->writes_per_minute == 0 ? 0 : -1);
    set_limit(&limits, RATE_READ_ADDRESS, options->reads_per_minute == 0 ? 0 : -1);
    server->limits = rate_limits_new(&limits);
    server->token_uses = token_uses_new(server);
    if (background_open(server->loop, BACKGROUND_MAX, &server->background, error) < 0)
        return -1;
    return passwords_open(&(struct passwords_options){.loop = server->loop}, &server->passwords,
                          error);
}

static int open_http(struct server *server, const struct startup_address *address,
                     struct http_route *made_routes, struct error *error)
{
    const struct http_server_options http = {
        .loop = server->loop,
        .listen = address->listen,
        .routes = made_routes,
        .route_count = route_count,
        .context = server,
        .default_headers = routes_headers,
        .default_header_count = routes_header_count,
        .on_headers = route_on_headers,
        .on_done = route_on_done,
        .ignores_sigpipe = true,
        .certificate_pem = address->is_tls ? keys_certificate_pem(server->keys) : NULL,
        .key_pem = address->is_tls ? keys_certificate_key_pem(server->keys) : NULL,
        /* Behind a proxy, or on loopback, all come from one address. */
        .connection_per_ip_max = address->is_tls ? CONNECTIONS_PER_ADDRESS : 0,
        .stream_heartbeat_ms = 10000,
    };
    if (http_server_open(&http, &server->http, error) < 0)
        return -1;
    startup_name_addresses(server, address);
    return 0;
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void lender_stopped(void *context)
{
    struct server *server = context;
    loop_stop(server->loop);
}

static void stop(struct server *server, bool stops_leases)
{
    if (server->is_stopping)
        return;
    server->is_stopping = true;
    server->stops_leases = stops_leases;
    log_event(LOG_INFO, "stopping", "name=\"%s\"", server->name);
    if (server->lender)
        local_lender_stop(server->lender, stops_leases, lender_stopped, server);
    else
        loop_stop(server->loop);
}

/* By whoever may start it again: all leases go on meanwhile, other lenders' and its own. */
static void on_term(void *context)
{
    stop(context, /* stops_leases= */ false);
}

/* By somebody at the terminal. */
static void on_interrupt(void *context)
{
    stop(context, /* stops_leases= */ true);
}

static void stop_fd_event(void *context, uint32_t events)
{
    struct server *server = context;
    (void)events;
    loop_watch_set(server->stop_watch, 0);
    stop(server, /* stops_leases= */ true);
}

static int watch_for_stop(struct server *server, struct error *error)
{
    if (loop_signal_open(server->loop, SIGTERM, on_term, server, &server->signals[0], error) < 0 ||
        loop_signal_open(server->loop, SIGINT, on_interrupt, server, &server->signals[1], error) <
            0)
        return -1;
    if (server->options.stop_fd < 0)
        return 0;
    return loop_watch_open(server->loop, server->options.stop_fd, LOOP_READ, stop_fd_event, server,
                           &server->stop_watch, error);
}

/* What is under way is finished in the order of who hands work to whom. */
static void wind_down(struct server *server)
{
    passwords_free(TAKE(server->passwords));   /* its answers are posted to the loop */
    background_free(TAKE(server->background)); /* so are its */
    datasets_stop(server->datasets);           /* likewise */
    imports_stop(server->imports);             /* likewise */
    objects_stop(server->objects);             /* likewise */
    cloud_stop(server->cloud, server->stops_leases);
    if (server->hub)
        hub_stop(server->hub);
    if (server->logs && server->engine)
        logs_flush(server->logs, true);
    if (server->live && server->engine)
        live_save(server->live);
    if (server->token_uses && server->engine)
        token_uses_flush(server->token_uses);
    if (server->engine)
        engine_stop(server->engine);
    /* The core's last answers go out before the connections close. */
    struct error error;
    if (server->loop && loop_step(server->loop, 0, &error) < 0)
        log_event(LOG_WARN, "loop_failed", "error=\"%s\"", error.message);
    http_server_free(TAKE(server->http));
}

static void server_done(struct server *server)
{
    wind_down(server);
    audits_free(TAKE(server->audits));
    looks_free(TAKE(server->looks));
    upkeep_free(server->upkeep);
    renewal_free(server->renewal);
    local_lender_free(TAKE(server->lender));
    live_free(server->live);
    hub_free(server->hub);
    for (int i = 0; i < 2; i++)
        loop_signal_free(server->signals[i]);
    loop_watch_free(server->stop_watch);
    loop_free(server->loop); /* runs what was posted last, while engine and logs are still there */
    cloud_free(server->cloud);
    catalogue_shelf_free(server->catalogue);
    logs_free(server->logs);
    datasets_free(server->datasets);
    imports_free(server->imports);
    objects_free(server->objects);
    holdings_free(server->holdings);
    store_reader_free(server->reader);
    engine_free(server->engine);
    free(server->health);
    answers_free(server->answers);
    row_cache_free(server->rows);
    versions_free(server->versions);
    blob_store_free(server->blobs);
    sealed_free(server->sealed);
    keys_free(server->keys);
    token_uses_free(server->token_uses);
    rate_limits_free(server->limits);
    map_done(&server->calls);
}

static int run(struct server *server, struct http_route *made_routes, struct error *error)
{
    signal(SIGPIPE, SIG_IGN);
    struct startup_address address;
    if (startup_check_address(&server->options, &address, error) < 0)
        return -1;
    if (loop_open(server->clock, &server->loop, error) < 0 || watch_for_stop(server, error) < 0)
        return -1;
    if (open_gate(server, error) < 0)
        return -1;
    server->live = live_new(server);
    server->logs = logs_new(server);
    server->holdings = holdings_new(server);
    server->objects = objects_new(server);
    server->datasets = datasets_new(server);
    server->audits = audits_new(server);
    server->imports = imports_new(server);
    server->looks = looks_new(server);
    if (server->options.cloud_file && cloud_open(server, &server->cloud, error) < 0)
        return -1;
    if (open_stores(server, error) < 0 ||
        secrets_sweep(server, engine_core(server->engine), error) < 0 ||
        imports_open(server->imports, error) < 0 || looks_open(server->looks, error) < 0 ||
        hub_open(server, server->options.link_listen, engine_core(server->engine), &server->hub,
                 error) < 0 ||
        open_http(server, &address, made_routes, error) < 0 || startup_prepare(server, error) < 0)
        return -1;
    live_begin(server->live, engine_core(server->engine));
    engine_listen(server->engine, live_listen, server->live);
    engine_listen(server->engine, hub_listen, server->hub);
    if (server->cloud && cloud_adopt(server->cloud, engine_core(server->engine), error) < 0)
        return -1;
    if (server->cloud)
        engine_listen(server->engine, cloud_listen, server->cloud);
    logs_listen(server->logs, hub_log_kept, server->hub);
    if (engine_start(server->engine, error) < 0 || holdings_adopt(server->holdings, error) < 0 ||
        objects_open(server->objects, error) < 0 || hub_start(server->hub, error) < 0)
        return -1;
    if (server->cloud && cloud_start(server->cloud, error) < 0)
        return -1;
    server->upkeep = upkeep_new(server);
    server->renewal = renewal_new(server);
    if (!server->options.has_no_local_lender)
        server->lender = local_lender_new(server);
    startup_announce(server);
    return loop_run(server->loop, error);
}

int server_run(const struct server_options *options, struct error *error)
{
    struct server *server = calloc(1, sizeof(*server));
    ASSERT(server);
    server->options = *options;
    server->clock = &clock_system;
    server->started_ms = clock_utc_ms(server->clock);
    snprintf(server->name, sizeof(server->name), "%s", options->name ? options->name : "souk");
    downloads_init(&server->downloads);
    map_init(&server->calls);
    struct http_route *made_routes = routes_make();
    const int result = run(server, made_routes, error);
    server_done(server);
    free(made_routes);
    free(server);
    return result;
}
