#include "client/direct.h"

#include "base/assert.h"
#include "base/map.h"
#include "net/link.h"
#include "peer/logbook.h"
#include "peer/path.h"
#include "runtime/log_link.h"
#include "wire/wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ASK_FIRST_MS = 200,
    ASK_LAST_MS = 3000,
    ASK_ROUNDS = 8,
    CONNECT_MS = 1500,
    HANDSHAKE_MS = 5000,
    DIAL_AGAIN_MS = 250, /* the keeper may hear of us only after we do */
    DIAL_ROUNDS = 8,
    CALL_MS = 10000,
};

enum reader_state { READER_WANTED, READER_DIALLING, READER_OPEN, READER_OVER };

/* One lease. */
struct reader {
    struct direct *direct;
    uint64_t lease, rank;
    enum reader_state state;
    char identity[LOG_LINK_IDENTITY_SIZE];
    uint8_t key[LINK_KEY_SIZE];
    struct host_port addresses[PATH_CANDIDATE_MAX];
    size_t address_count, address_next;
    uint32_t round_count;
    struct loop_timer *dial_timer;
    struct tcp_connect *connect;
    struct link *link;
    bool has_read;
};

struct direct {
    struct direct_options options;
    struct map readers; /* lease -> struct reader, owned */
    struct loop_timer *ask_timer;
    struct http_transfer *asking; /* NULL: not now */
    uint32_t ask_count;           /* without an answer that named all */
    bool is_loopback_fine;        /* there is nothing else here */
};

/* ---- One link -------------------------------------------------------------------------------- */

static void reader_end(struct reader *reader)
{
    reader->state = READER_OVER;
    loop_timer_stop(reader->dial_timer);
    tcp_connect_free(TAKE(reader->connect));
    link_free(TAKE(reader->link));
    explicit_bzero(reader->key, sizeof(reader->key));
}

static void dial_later(struct reader *reader)
{
    if (reader->address_next < reader->address_count) {
        loop_timer_start(reader->dial_timer, 0);
    } else if (reader->address_count > 0 && ++reader->round_count < DIAL_ROUNDS) {
        reader->address_next = 0;
        loop_timer_start(reader->dial_timer, DIAL_AGAIN_MS);
    } else {
        reader_end(reader);
    }
}

static void on_open(struct link *link, struct text identity, void *context)
{
    struct reader *reader = context;
    const struct direct_options *options = &reader->direct->options;
    struct error ignored; /* a link that takes no word is about to end */
    (void)identity;
    struct buffer want AUTO_BUFFER;
    buffer_init(&want, LOG_LINK_OFFSET_SIZE);
    wire_put_u64(&want, options->next(options->context, reader->lease));
    reader->state = READER_OPEN;
    if (link_send_text(link, LOG_LINK_WANT, buffer_text(&want), &ignored) < 0)
        reader_end(reader);
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    struct reader *reader = context;
    const struct direct_options *options = &reader->direct->options;
    (void)link;
    if (type != LOG_LINK_DATA || payload.size <= LOG_LINK_OFFSET_SIZE) {
        reader_end(reader); /* its end, or nonsense */
        return;
    }
    struct wire_reader wire;
    wire_reader_init(&wire, payload);
    const uint64_t offset = wire_get_u64(&wire);
    const struct text bytes = {payload.data + LOG_LINK_OFFSET_SIZE,
                               payload.size - LOG_LINK_OFFSET_SIZE};
    reader->has_read = true;
    if (offset > LOGBOOK_LEASE_MAX - bytes.size) { /* no keeper of ours has so much to say */
        reader_end(reader);
        return;
    }
    if (!options->on_bytes(options->context, reader->lease, reader->rank, offset, bytes))
        reader_end(reader);
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    struct reader *reader = context;
    (void)link, (void)reason;
    link_free(TAKE(reader->link));
    if (reader->state == READER_OPEN)
        reader_end(reader);
    else
        dial_later(reader);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct reader *reader = context;
    struct error ignored; /* as good as refused */
    tcp_connect_free(TAKE(reader->connect));
    const struct link_options options = {
        .loop = reader->direct->options.loop,
        .identity = reader->identity,
        .key = reader->key,
        .payload_max = LOG_LINK_PAYLOAD_MAX,
        .handshake_timeout_ms = HANDSHAKE_MS,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = reader};
    if (!reason && link_open_take(&options, fd, &reader->link, &ignored) == 0)
        return;
    if (!reason)
        close(fd);
    dial_later(reader);
}

static void on_dial(void *context)
{
    struct reader *reader = context;
    ASSERT(reader->address_next < reader->address_count && !reader->link && !reader->connect);
    reader->connect =
        tcp_connect_start(reader->direct->options.loop, &reader->addresses[reader->address_next++],
                          CONNECT_MS, on_connected, reader);
}

/* ---- Asking where ---------------------------------------------------------------------------- */

/* The addresses are what a lender's machine says of itself: it is not to choose what this one
 * knocks at. */
static void reader_begin(struct reader *reader, const struct api_log_place *place)
{
    const struct text *addresses = place->addresses.items;
    struct error ignored; /* one that cannot be read is none */
    reader->state = READER_DIALLING;
    if (text_copy(place->identity, reader->identity, sizeof(reader->identity), &ignored) < 0 ||
        text_hex_decode(place->key, reader->key, sizeof(reader->key), &ignored) < 0) {
        reader_end(reader);
        return;
    }
    for (size_t i = 0; i < place->addresses.count && reader->address_count < PATH_CANDIDATE_MAX;
         i++) {
        struct host_port *address = &reader->addresses[reader->address_count];
        if (host_port_parse(addresses[i], address, &ignored) == 0 &&
            address_may_dial(address, reader->direct->is_loopback_fine))
            reader->address_count++;
    }
    dial_later(reader);
}

static bool has_wanted(const struct direct *direct)
{
    for (size_t i = 0; i < direct->readers.count; i++)
        if (((const struct reader *)direct->readers.entries[i].value)->state == READER_WANTED)
            return true;
    return false;
}

/* A machine tells where it may be reached a moment after its lease runs, or never. */
static void ask_again(struct direct *direct)
{
    if (!has_wanted(direct) || direct->ask_count >= ASK_ROUNDS)
        return;
    const int64_t wait_ms = (int64_t)ASK_FIRST_MS << direct->ask_count++;
    loop_timer_start(direct->ask_timer, wait_ms < ASK_LAST_MS ? wait_ms : ASK_LAST_MS);
}

static void take_places(struct direct *direct, struct text json)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_page page = {0};
    struct error ignored; /* an older market has no such answer */
    if (json_read(arena, json, &api_log_place_page_schema, &page, &ignored) < 0)
        return;
    const struct api_log_place *places = page.items.items;
    for (size_t i = 0; i < page.items.count; i++) {
        struct reader *reader = map_get(&direct->readers, places[i].lease);
        if (reader && reader->state == READER_WANTED)
            reader_begin(reader, &places[i]);
    }
}

static void on_answer(void *context, struct http_response *response, const struct error *reason)
{
    struct direct *direct = context;
    (void)reason;
    direct->asking = NULL;
    if (response && response->status == 200)
        take_places(direct, buffer_text(&response->body));
    ask_again(direct);
}

static void on_ask(void *context)
{
    struct direct *direct = context;
    AUTO(arena) struct arena *arena = arena_new(0);
    char path[64];
    snprintf(path, sizeof(path), "/v1/jobs/%" PRIu64 "/direct", direct->options.job);
    struct client_call call;
    struct error ignored; /* the market's stream goes on */
    if (direct->asking || client_prepare(direct->options.client, arena, path, &call, &ignored) < 0)
        return;
    call.options.method = "POST";
    call.options.body = TEXT("");
    call.options.timeout_ms = CALL_MS;
    if (http_client_start(direct->options.http, &call.options, on_answer, direct, &direct->asking,
                          &ignored) < 0)
        direct->asking = NULL;
}

/* ---- The job --------------------------------------------------------------------------------- */

struct direct *direct_new(const struct direct_options *options)
{
    struct host_port own[PATH_CANDIDATE_MAX];
    struct direct *direct = calloc(1, sizeof(*direct));
    ASSERT(direct);
    direct->options = *options;
    direct->ask_timer = loop_timer_new(options->loop, on_ask, direct);
    direct->is_loopback_fine = path_addresses(1, own) == 1 && !strcmp(own[0].host, "127.0.0.1");
    map_init(&direct->readers);
    return direct;
}

void direct_free(struct direct *direct)
{
    if (!direct)
        return;
    if (direct->asking)
        http_transfer_cancel(direct->asking);
    for (size_t i = 0; i < direct->readers.count; i++) {
        struct reader *reader = direct->readers.entries[i].value;
        reader_end(reader);
        loop_timer_free(reader->dial_timer);
        free(reader);
    }
    map_done(&direct->readers);
    loop_timer_free(direct->ask_timer);
    free(direct);
}

static void add_reader(struct direct *direct, const struct api_lease *lease)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    ASSERT(reader);
    reader->direct = direct;
    reader->lease = lease->id;
    reader->rank = lease->rank;
    reader->dial_timer = loop_timer_new(direct->options.loop, on_dial, reader);
    map_put(&direct->readers, lease->id, reader);
    direct->ask_count = 0;
    if (!direct->asking)
        loop_timer_start(direct->ask_timer, 0);
}

void direct_set_job(struct direct *direct, const struct api_job *job)
{
    const struct api_lease *leases = job->leases.items;
    for (size_t i = 0; i < job->leases.count; i++) {
        struct reader *reader = map_get(&direct->readers, leases[i].id);
        const bool is_ended = leases[i].ended_ms != 0;
        if (reader && is_ended && reader->state != READER_OVER)
            reader_end(reader);
        else if (!reader && !is_ended && direct->readers.count < DIRECT_LINKS_MAX &&
                 text_equal(leases[i].role, TEXT("worker")))
            add_reader(direct, &leases[i]);
    }
}

size_t direct_count(const struct direct *direct)
{
    size_t count = 0;
    for (size_t i = 0; i < direct->readers.count; i++)
        count += ((const struct reader *)direct->readers.entries[i].value)->has_read;
    return count;
}
