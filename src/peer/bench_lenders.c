#include "peer/bench_lenders.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/random.h"
#include "net/address.h"
#include "net/link.h"
#include "peer/bench_reports.h"
#include "peer/daemon.h"
#include "peer/enlist.h"
#include "peer/lease_verify.h"
#include "peer/meter.h"
#include "peer/peer.h"
#include "sandbox/folder.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OPENING_MAX = 64, /* links at a time: the market bounds those that have not said who they are */
    CONNECT_TIMEOUT_MS = 10000,
    QUEUE_BYTES = LEASE_MEASURE_BYTES_MAX + (1 << 20), /* a whole measurement */
};

struct bench {
    const struct bench_lenders_options *options;
    struct loop *loop;
    struct arena *arena; /* for one message at a time */
    struct random random;
    struct machine_probe probe;
    struct lender *lenders;
    uint64_t opened_count, welcome_count;
    char *filler; /* LEASE_FILL_SIZE_MAX */
    struct bench_lenders_result result;
    struct error failure;
    bool has_failed;
};

struct lender {
    struct bench *bench;
    struct identity *identity;
    struct tcp_connect *connect;
    struct link *link;
    struct loop_timer *beat_timer, *tick_timer, *report_timer;
    uint64_t beat_count;
    bool is_welcome;
    bool is_leased;
    struct meter meter;
    uint64_t log_offset; /* of the lease */
    int64_t leased_ns;
    enum lease_role role; /* of the lease, like what follows */
    uint64_t rank;
    int64_t reported_ms; /* elapsed at its last report */
    int64_t begun_ms;    /* UTC */
};

static int64_t now_ns(const struct bench *bench)
{
    return clock_monotonic_ns(loop_clock(bench->loop));
}

static void fail(struct bench *bench, const struct error *reason)
{
    if (!bench->has_failed)
        bench->failure = *reason;
    bench->has_failed = true;
    loop_stop(bench->loop);
}

static void tell(struct lender *lender, const struct lease_message *message)
{
    struct buffer payload AUTO_BUFFER;
    struct error error;
    buffer_init(&payload, LEASE_MESSAGE_SIZE_MAX);
    lease_message_encode(message, &payload);
    if (link_send_text(lender->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        fail(lender->bench, &error);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static void send_state(struct lender *lender, struct lease_fence lease, enum lease_run_state state,
                       const char *reason)
{
    tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_STATE,
                                         .state = {.lease = lease.lease,
                                                   .fence = lease.fence,
                                                   .state = state,
                                                   .reason = text_of(reason)}});
}

/* As of a program that keeps its core busy. */
static struct meter_usage used(const struct lender *lender)
{
    return (struct meter_usage){.cpu_ms = (now_ns(lender->bench) - lender->leased_ns) / 1000000,
                                .memory_peak_bytes = 64 << 20};
}

static void take_tick(struct lender *lender)
{
    struct lease_message message = {.type = LEASE_MESSAGE_METER};
    const struct meter_usage usage = used(lender);
    if (!meter_take(&lender->meter, now_ns(lender->bench), &usage, &message.meter))
        return;
    meter_sign(&message.meter, lender->identity);
    tell(lender, &message);
    lender->bench->result.meters++;
    char line[80];
    snprintf(line, sizeof(line), "tick %" PRIu64 " is done and all is well\n",
             lender->meter.next_index);
    tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_LOG,
                                         .log = {.lease = lender->meter.lease,
                                                 .fence = lender->meter.fence,
                                                 .offset = lender->log_offset,
                                                 .bytes = text_of(line)}});
    lender->log_offset += strlen(line);
}

static void on_tick(void *context)
{
    struct lender *lender = context;
    take_tick(lender);
    loop_timer_start(lender->tick_timer, meter_wait_ms(&lender->meter, now_ns(lender->bench)));
}

static struct bench_member member_of(const struct lender *lender)
{
    return (struct bench_member){.lease = {lender->meter.lease, lender->meter.fence},
                                 .rank = lender->rank,
                                 .elapsed_ms =
                                     (now_ns(lender->bench) - lender->leased_ns) / 1000000};
}

/* All jobs' workers are its own: a bench of reports has one job. */
static void write_server_report(struct lender *lender, struct buffer *json)
{
    const struct bench *bench = lender->bench;
    const int64_t elapsed_ms = member_of(lender).elapsed_ms;
    struct bench_member *workers = calloc(bench->options->lender_count, sizeof(*workers));
    size_t count = 0;
    ASSERT(workers);
    for (uint64_t i = 0; i < bench->options->lender_count; i++)
        if (bench->lenders[i].is_leased && bench->lenders[i].role == LEASE_ROLE_WORKER)
            workers[count++] = member_of(&bench->lenders[i]);
    bench_report_server(workers, count, elapsed_ms, lender->reported_ms, json);
    lender->reported_ms = elapsed_ms;
    free(workers);
}

static void on_report(void *context)
{
    struct lender *lender = context;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, LEASE_REPORT_SIZE_MAX);
    if (lender->role == LEASE_ROLE_SERVER) {
        write_server_report(lender, &json);
    } else {
        const struct bench_member worker = member_of(lender);
        bench_report_worker(&worker, lender->begun_ms, &json);
    }
    tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_REPORT,
                                         .report = {.lease = lender->meter.lease,
                                                    .fence = lender->meter.fence,
                                                    .json = buffer_text(&json)}});
    lender->bench->result.reports++;
    loop_timer_start(lender->report_timer,
                     1000 / (int64_t)lender->bench->options->reports_per_second);
}

static void on_start(struct lender *lender, const struct start_message *start)
{
    struct lease_document document;
    struct error error;
    if (lease_verify(lender->bench->arena, start, identity_enrolment(lender->identity), &document,
                     &error) < 0) {
        fail(lender->bench, &error);
        return;
    }
    const struct lease_fence lease = {document.lease, document.fence};
    if (lender->is_leased) {
        send_state(lender, lease, LEASE_RUN_FAILED, "there is no room for it");
        return;
    }
    lender->is_leased = true;
    lender->leased_ns = now_ns(lender->bench);
    lender->log_offset = 0;
    lender->role = document.role;
    lender->rank = document.rank;
    lender->reported_ms = 0;
    lender->begun_ms = clock_utc_ms(loop_clock(lender->bench->loop));
    lender->bench->result.leases++;
    send_state(lender, lease, LEASE_RUN_STARTING, "");
    send_state(lender, lease, LEASE_RUN_RUNNING, "");
    const struct meter_usage usage = used(lender);
    meter_start(&lender->meter, &lease, document.tick_ms, lender->leased_ns, &usage);
    loop_timer_start(lender->tick_timer, meter_wait_ms(&lender->meter, lender->leased_ns));
    loop_timer_start(lender->beat_timer, 0);
    if (lender->bench->options->reports_per_second > 0)
        loop_timer_start(lender->report_timer, 0);
}

static void on_stop(struct lender *lender, const struct stop_message *stop)
{
    if (!lender->is_leased || stop->lease != lender->meter.lease)
        return;
    take_tick(lender);
    lender->is_leased = false;
    loop_timer_stop(lender->tick_timer);
    loop_timer_stop(lender->report_timer);
    send_state(lender, (struct lease_fence){stop->lease, stop->fence}, LEASE_RUN_STOPPED, "");
}

/* ---- The link -------------------------------------------------------------------------------- */

static void on_beat(void *context)
{
    struct lender *lender = context;
    struct bench *bench = lender->bench;
    tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_HEARTBEAT,
                                         .heartbeat = {.load_milli = lender->is_leased ? 1000 : 20,
                                                       .running_count = lender->is_leased,
                                                       .free_ram_bytes = UINT64_C(1) << 30,
                                                       .power = LEASE_POWER_MAINS}});
    bench->result.heartbeats++;
    const bool is_quick = lender->is_leased || ++lender->beat_count < DAEMON_QUICK_BEATS;
    int64_t wait_ms = is_quick ? LEASE_HEARTBEAT_MS : LEASE_HEARTBEAT_IDLE_MS;
    /* Machines do not start at the same time: from here on each beats at its own. */
    if (lender->beat_count == DAEMON_QUICK_BEATS)
        wait_ms = (int64_t)random_below(&bench->random, LEASE_HEARTBEAT_IDLE_MS);
    loop_timer_start(lender->beat_timer, wait_ms);
}

static void on_measure(struct lender *lender, const struct measure_message *measure)
{
    for (uint32_t left = measure->bytes; left > 0;) {
        const uint32_t size = left < LEASE_FILL_SIZE_MAX ? left : LEASE_FILL_SIZE_MAX;
        left -= size;
        tell(lender, &(struct lease_message){
                         .type = LEASE_MESSAGE_FILL,
                         .fill = {.is_last = left == 0, .bytes = {lender->bench->filler, size}}});
    }
}

static void open_more(struct bench *bench);

static void on_welcome(struct lender *lender)
{
    struct bench *bench = lender->bench;
    if (lender->is_welcome)
        return;
    lender->is_welcome = true;
    loop_timer_start(lender->beat_timer, 0);
    if (++bench->welcome_count == bench->options->lender_count)
        bench->options->on_ready(bench->options->context);
    open_more(bench);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct lender *lender = context;
    struct bench *bench = lender->bench;
    struct lease_message message;
    struct error error;
    arena_clear(bench->arena);
    if (lease_message_decode(bench->arena, type, payload, &message, &error) < 0) {
        fail(bench, &error);
        return;
    }
    if (message.type == LEASE_MESSAGE_WELCOME) {
        on_welcome(lender);
    } else if (message.type == LEASE_MESSAGE_START) {
        on_start(lender, &message.start);
    } else if (message.type == LEASE_MESSAGE_STOP) {
        on_stop(lender, &message.stop);
    } else if (message.type == LEASE_MESSAGE_MEASURE) {
        on_measure(lender, &message.measure);
    } else if (message.type == LEASE_MESSAGE_PING) {
        bench->result.pings++;
        tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_PONG,
                                             .pong = {.nonce = message.ping.nonce}});
    } else if (message.type == LEASE_MESSAGE_REFUSED) {
        error_set(&error, ERROR_REFUSED, "refused: " TEXT_FORMAT,
                  TEXT_ARGS(message.refused.reason));
        fail(bench, &error);
    }
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link;
    (void)identity;
    struct lender *lender = context;
    const struct bench_lenders_options *options = lender->bench->options;
    struct lease_message hello = {
        .type = LEASE_MESSAGE_HELLO,
        .hello = {.version = LEASE_MESSAGE_VERSION,
                  .machine = identity_enrolment(lender->identity)->machine,
                  .ceiling = {.cores_milli = options->cores_milli,
                              .ram_bytes = options->ram_bytes,
                              .disk_bytes = options->disk_bytes}}};
    randombytes_buf(hello.hello.instance, sizeof(hello.hello.instance));
    tell(lender, &hello);
    tell(lender, &(struct lease_message){.type = LEASE_MESSAGE_YIELD,
                                         .yield = {.yield = MACHINE_YIELD_NONE}});
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct lender *lender = context;
    struct error error;
    if (!reason)
        error_set(&error, ERROR_UNAVAILABLE, "the market closed a link");
    fail(lender->bench, reason ? reason : &error);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct lender *lender = context;
    struct error error;
    tcp_connect_free(TAKE(lender->connect));
    if (reason) {
        fail(lender->bench, reason);
        return;
    }
    const struct enrolment *enrolment = identity_enrolment(lender->identity);
    char identity[LINK_IDENTITY_SIZE_MAX];
    snprintf(identity, sizeof(identity), "machine:%" PRIu64 ":%" PRIu64, enrolment->machine,
             enrolment->generation);
    const struct link_options options = {
        .loop = lender->bench->loop,
        .identity = identity,
        .key = enrolment->link_key,
        .payload_max = LEASE_MESSAGE_SIZE_MAX,
        .queue_max_bytes = QUEUE_BYTES,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = lender};
    if (link_open_take(&options, fd, &lender->link, &error) < 0) {
        close(fd);
        fail(lender->bench, &error);
    }
}

static void open_more(struct bench *bench)
{
    while (bench->opened_count < bench->options->lender_count &&
           bench->opened_count - bench->welcome_count < OPENING_MAX) {
        struct lender *lender = &bench->lenders[bench->opened_count++];
        struct host_port target;
        struct error error;
        if (host_port_parse(text_of(identity_enrolment(lender->identity)->link_address), &target,
                            &error) < 0) {
            fail(bench, &error);
            return;
        }
        lender->connect =
            tcp_connect_start(bench->loop, &target, CONNECT_TIMEOUT_MS, on_connected, lender);
    }
}

/* ---- From enrolment to the end --------------------------------------------------------------- */

static int enrol(struct bench *bench, uint64_t index, struct error *error)
{
    const struct bench_lenders_options *options = bench->options;
    struct lender *lender = &bench->lenders[index];
    char folder[PATH_MAX], name[32];
    const char *code = NULL;
    snprintf(folder, sizeof(folder), "%s/%" PRIu64, options->state_dir, index);
    snprintf(name, sizeof(name), "bench-%" PRIu64, index);
    lender->bench = bench;
    lender->beat_timer = loop_timer_new(bench->loop, on_beat, lender);
    lender->tick_timer = loop_timer_new(bench->loop, on_tick, lender);
    lender->report_timer = loop_timer_new(bench->loop, on_report, lender);
    if (folder_make(folder, 0700, error) < 0 ||
        identity_open(folder, &lender->identity, error) < 0 ||
        options->new_code(options->context, &code, error) < 0)
        return -1;
    const struct enlist_request request = {.server_url = options->server_url,
                                           .fingerprint = options->fingerprint,
                                           .code = code,
                                           .name = name,
                                           .probe = &bench->probe,
                                           .cores_milli = options->cores_milli,
                                           .ram_bytes = options->ram_bytes,
                                           .disk_bytes = options->disk_bytes,
                                           .roles = PEER_ROLE_ALL};
    return enlist(lender->identity, &request, error);
}

static void on_end(void *context)
{
    const struct bench *bench = context;
    loop_stop(bench->loop);
}

static int run(struct bench *bench, struct error *error)
{
    struct loop_signal *signals[2] = {NULL, NULL};
    int result =
        loop_signal_open(bench->loop, SIGTERM, on_end, bench, &signals[0], error) < 0 ||
                loop_signal_open(bench->loop, SIGINT, on_end, bench, &signals[1], error) < 0
            ? -1
            : 0;
    for (uint64_t i = 0; result == 0 && i < bench->options->lender_count; i++)
        result = enrol(bench, i, error);
    if (result == 0) {
        open_more(bench);
        result = loop_run(bench->loop, error);
    }
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        loop_signal_free(signals[i]);
    if (result == 0 && bench->has_failed) {
        *error = bench->failure;
        return -1;
    }
    return result;
}

static void bench_done(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->options->lender_count; i++) {
        struct lender *lender = &bench->lenders[i];
        tcp_connect_free(lender->connect);
        link_free(lender->link);
        loop_timer_free(lender->beat_timer);
        loop_timer_free(lender->tick_timer);
        loop_timer_free(lender->report_timer);
        identity_free(lender->identity);
    }
    free(bench->lenders);
    free(bench->filler);
    arena_free(bench->arena);
    loop_free(bench->loop);
}

int bench_lenders_run(const struct bench_lenders_options *options,
                      struct bench_lenders_result *out_result, struct error *error)
{
    struct bench bench = {.options = options};
    const struct probe_options probe = {.root = "", .state_dir = options->state_dir};
    if (machine_probe_read(&probe, &bench.probe, error) < 0 ||
        loop_open(&clock_system, &bench.loop, error) < 0)
        return -1;
    bench.arena = arena_new(0);
    bench.lenders = calloc(options->lender_count, sizeof(*bench.lenders));
    bench.filler = malloc(LEASE_FILL_SIZE_MAX);
    ASSERT(bench.lenders && bench.filler);
    randombytes_buf(bench.filler, LEASE_FILL_SIZE_MAX);
    random_init(&bench.random, 1);
    const int result = run(&bench, error);
    *out_result = bench.result;
    bench_done(&bench);
    return result;
}
