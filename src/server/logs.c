#include "server/logs.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/query.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>

static const struct text last_words = TEXT("\n[souk: this log is full; the rest is dropped]\n");

struct part;

struct lease_log {
    struct logs *logs;
    uint64_t lease, fence, machine;
    uint64_t start;       /* what is before it is on disk */
    struct buffer recent; /* from there on */
    struct part *writing; /* the front of `recent` on its way to the disk; NULL: none is */
    int64_t waiting_ms;   /* since when the oldest byte that is not on its way waits */
    bool is_last;         /* nothing is added any more: its machine waits for the disk */
    bool is_ended;
};

struct logs {
    struct server *server;
    struct map leases; /* lease -> struct lease_log, owned */
    logs_listener *listener;
    void *context;
};

/* Before a part's bytes: nobody who knows what was logged can have the blob for a chunk of his own,
 * which would be dropped together with that. Parts of before have none: their blob is as long as
 * their row says. */
enum { SALT_SIZE = 16 };

/* One blob and its row in the index. */
struct part {
    struct engine_request request;
    struct lease_log *log; /* NULL: forgotten meanwhile */
    uint64_t lease, offset, size;
    struct blob_hash hash;
};

struct logs *logs_new(struct server *server)
{
    struct logs *logs = calloc(1, sizeof(*logs));
    ASSERT(logs);
    logs->server = server;
    map_init(&logs->leases);
    return logs;
}

void logs_listen(struct logs *logs, logs_listener *listener, void *context)
{
    logs->listener = listener;
    logs->context = context;
}

static void lease_log_free(struct lease_log *log)
{
    if (log->writing)
        log->writing->log = NULL;
    buffer_done(&log->recent);
    free(log);
}

void logs_free(struct logs *logs)
{
    if (!logs)
        return;
    logs_flush(logs, true);
    for (size_t i = 0; i < logs->leases.count; i++)
        lease_log_free(logs->leases.entries[i].value);
    map_done(&logs->leases);
    free(logs);
}

/* Where the stored parts of a lease end, after a restart. */
static int stored_end(struct logs *logs, uint64_t lease, uint64_t *out_end, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filter = {"lease", STORE_EQUAL, store_integer((int64_t)lease)};
    const struct store_query query = {.table = &tables[TABLE_LOGS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .is_descending = true,
                                      .limit = 1};
    struct query_rows rows;
    if (query_all(logs->server, arena, &query, &rows, error) < 0)
        return -1;
    const struct store_value *last = rows.count ? rows.items[0] : NULL;
    *out_end = last ? (uint64_t)(last[LOGS_OFFSET].integer + last[LOGS_SIZE].integer) : 0;
    return 0;
}

/* NULL: where it ended cannot be read now. What is not taken now is sent again on the next link. */
static struct lease_log *log_of(struct logs *logs, const struct logs_piece *piece)
{
    struct lease_log *log = map_get(&logs->leases, piece->lease);
    if (log)
        return log;
    uint64_t end = 0;
    struct error error;
    if (stored_end(logs, piece->lease, &end, &error) < 0) {
        log_event(LOG_WARN, "log_index_not_read", "lease=%" PRIu64 " error=\"%s\"", piece->lease,
                  error.message);
        return NULL;
    }
    log = calloc(1, sizeof(*log));
    ASSERT(log);
    log->logs = logs;
    log->lease = piece->lease;
    log->fence = piece->fence;
    log->machine = piece->machine;
    log->start = end;
    buffer_init(&log->recent, LOGS_WAITING_MAX);
    map_put(&logs->leases, piece->lease, log);
    return log;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int put_part(struct engine_request *request, const struct core *core,
                    struct store_batch *batch, struct error *error)
{
    const struct part *part = (const struct part *)request;
    const struct store_value row[LOGS_COLUMN_COUNT] = {
        [LOGS_LEASE] = store_integer((int64_t)part->lease),
        [LOGS_OFFSET] = store_integer((int64_t)part->offset),
        [LOGS_SIZE] = store_integer((int64_t)part->size),
        [LOGS_HASH] = store_blob(part->hash.bytes, sizeof(part->hash.bytes)),
    };
    (void)core;
    (void)error;
    store_batch_put(batch, &tables[TABLE_LOGS], row, LOGS_COLUMN_COUNT);
    return 0;
}

static void tell_kept(const struct lease_log *log)
{
    const struct log_kept_message kept = {.lease = log->lease,
                                          .fence = log->fence,
                                          .offset = log->start >= LOGS_LEASE_MAX ? LEASE_LOG_ALL
                                                                                 : log->start};
    if (log->logs->listener)
        log->logs->listener(log->logs->context, log->machine, &kept);
}

static void write_part(struct lease_log *log);

static void write_if_due(struct lease_log *log)
{
    if (log->is_last || log->is_ended || log->recent.size >= LOGS_PART_SIZE)
        write_part(log);
}

static void part_done(struct engine_request *request, const struct error *error)
{
    struct part *part = (struct part *)request;
    struct lease_log *log = part->log;
    if (log)
        log->writing = NULL;
    if (error) /* tried again at the next flush */
        log_event(LOG_WARN, "log_part_not_written", "lease=%" PRIu64 " error=\"%s\"", part->lease,
                  error->message);
    if (log && !error) {
        buffer_consume(&log->recent, (size_t)part->size);
        log->start += part->size;
        tell_kept(log);
        write_if_due(log);
    }
    free(part);
}

static int put_salted(struct server *server, struct text bytes, struct blob_hash *out_hash,
                      struct error *error)
{
    struct buffer blob AUTO_BUFFER;
    uint8_t salt[SALT_SIZE];
    buffer_init(&blob, BLOB_BYTES_MAX);
    randombytes_buf(salt, sizeof(salt));
    buffer_append(&blob, salt, sizeof(salt));
    buffer_append(&blob, bytes.data, bytes.size);
    if (buffer_check(&blob, error) < 0)
        return -1;
    return blob_store_put(server->blobs, NULL, buffer_text(&blob), out_hash, error);
}

/* One part is under way at a time, so that what is on disk has no gaps. */
static void write_part(struct lease_log *log)
{
    struct server *server = log->logs->server;
    if (log->writing || !log->recent.size)
        return;
    const size_t size_max = (size_t)BLOB_BYTES_MAX - SALT_SIZE;
    const struct text bytes = {(const char *)log->recent.data,
                               log->recent.size < size_max ? log->recent.size : size_max};
    struct part *part = calloc(1, sizeof(*part));
    ASSERT(part);
    *part = (struct part){
        .request = {.loop = server->loop, .on_decided = put_part, .on_done = part_done},
        .log = log,
        .lease = log->lease,
        .offset = log->start,
        .size = bytes.size};
    log->writing = part;
    log->waiting_ms = clock_monotonic_ns(server->clock) / 1000000;
    struct error error;
    if (put_salted(server, bytes, &part->hash, &error) < 0 ||
        engine_submit(server->engine, &part->request, true, &error) < 0)
        part_done(&part->request, &error);
}

/* What of the piece is new; empty when nothing is. */
static struct text new_bytes(const struct lease_log *log, const struct logs_piece *piece)
{
    const uint64_t end = log->start + log->recent.size;
    struct text bytes = piece->bytes;
    if (piece->offset > end || end - piece->offset >= bytes.size || end >= LOGS_LEASE_MAX)
        return (struct text){0};
    bytes.data += end - piece->offset;
    bytes.size -= (size_t)(end - piece->offset);
    const uint64_t room = LOGS_LEASE_MAX - last_words.size - end;
    return (struct text){bytes.data, bytes.size < room ? bytes.size : (size_t)room};
}

/* The machine has let go of bytes that are not here: the market's disk has lost them. */
static bool is_torn(const struct lease_log *log, const struct logs_piece *piece)
{
    return piece->is_resumed && piece->offset > log->start + log->recent.size;
}

/* Nothing is added to it any more, and nobody waits for it. */
static void give_up(struct lease_log *log)
{
    if (log->writing)
        TAKE(log->writing)->log = NULL;
    log->start = LOGS_LEASE_MAX;
    buffer_clear(&log->recent);
}

struct text logs_append(struct logs *logs, const struct logs_piece *piece, uint64_t *out_offset)
{
    struct lease_log *log = log_of(logs, piece);
    if (!log)
        return (struct text){0};
    *out_offset = log->start + log->recent.size;
    const struct text added = new_bytes(log, piece);
    if (is_torn(log, piece)) {
        log_event(LOG_ERROR, "log_torn", "lease=%" PRIu64 " from=%" PRIu64 " to=%" PRIu64,
                  log->lease, *out_offset, piece->offset);
        give_up(log);
    }
    if (log->recent.size + added.size + last_words.size > LOGS_WAITING_MAX)
        return (struct text){0}; /* more than a daemon sends ahead */
    if (!log->recent.size)
        log->waiting_ms = clock_monotonic_ns(logs->server->clock) / 1000000;
    buffer_append_text(&log->recent, added);
    if (added.size > 0 && *out_offset + added.size == LOGS_LEASE_MAX - last_words.size)
        buffer_append_text(&log->recent, last_words);
    log->is_last = log->is_last || piece->is_last;
    write_if_due(log);
    if (!log->recent.size)
        tell_kept(log); /* sent again, though it was there */
    return added;
}

void logs_flush(struct logs *logs, bool is_end)
{
    const int64_t now_ms = clock_monotonic_ns(logs->server->clock) / 1000000;
    for (size_t i = logs->leases.count; i-- > 0;) {
        struct lease_log *log = logs->leases.entries[i].value;
        if (!log->recent.size && log->is_ended) {
            map_remove(&logs->leases, log->lease);
            lease_log_free(log);
        } else if (is_end || log->is_ended || now_ms - log->waiting_ms >= LOGS_PART_MS) {
            write_part(log);
        }
    }
}

void logs_end(struct logs *logs, uint64_t lease)
{
    struct lease_log *log = map_get(&logs->leases, lease);
    if (log)
        log->is_ended = true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static uint64_t part_start(const struct store_value *row)
{
    return (uint64_t)row[LOGS_OFFSET].integer;
}

static uint64_t part_end(const struct store_value *row)
{
    return part_start(row) + (uint64_t)row[LOGS_SIZE].integer;
}

/* What of a part lies between two offsets within it. */
static int append_part(struct logs *logs, const struct store_value *row, uint64_t from, uint64_t to,
                       struct buffer *out, struct error *error)
{
    struct blob_hash hash;
    if (row[LOGS_HASH].bytes.size != sizeof(hash.bytes))
        return error_set(error, ERROR_CORRUPT, "the log's index is damaged");
    memcpy(hash.bytes, row[LOGS_HASH].bytes.data, sizeof(hash.bytes));
    struct buffer part AUTO_BUFFER;
    buffer_init(&part, BLOB_BYTES_MAX);
    if (blob_store_read(logs->server->blobs, &hash, &part, error) < 0)
        return -1;
    const size_t size = (size_t)row[LOGS_SIZE].integer;
    if (part.size != size && part.size != SALT_SIZE + size)
        return error_set(error, ERROR_CORRUPT, "a part of the log is damaged");
    ASSERT(part_start(row) <= from && from <= to && to <= part_end(row));
    const size_t skip = part.size - size + (size_t)(from - part_start(row));
    buffer_append(out, part.data + skip, (size_t)(to - from));
    return 0;
}

static int read_part(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
                     struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filters[] = {
        {"lease", STORE_EQUAL, store_integer((int64_t)lease)},
        {"offset", STORE_LESS_OR_EQUAL, store_integer((int64_t)offset)},
    };
    const struct store_query query = {.table = &tables[TABLE_LOGS],
                                      .filters = filters,
                                      .filter_count = 2,
                                      .is_descending = true,
                                      .limit = 1};
    struct query_rows rows;
    if (query_all(logs->server, arena, &query, &rows, error) < 0)
        return -1;
    if (!rows.count)
        return 0;
    const struct store_value *row = rows.items[0];
    if (offset >= part_end(row))
        return 0;
    const uint64_t left = part_end(row) - offset;
    return append_part(logs, row, offset, offset + (left < LOGS_READ_MAX ? left : LOGS_READ_MAX),
                       out, error);
}

int logs_read(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
              struct error *error)
{
    const struct lease_log *log = map_get(&logs->leases, lease);
    if (!log || offset < log->start)
        return read_part(logs, lease, offset, out, error);
    const uint64_t skip = offset - log->start;
    if (skip >= log->recent.size)
        return 0;
    const size_t left = log->recent.size - (size_t)skip;
    buffer_append(out, log->recent.data + skip, left < LOGS_READ_MAX ? left : LOGS_READ_MAX);
    return 0;
}

int logs_look(struct logs *logs, uint64_t lease, uint64_t offset, struct buffer *out,
              bool *out_is_all, struct error *error)
{
    *out_is_all = false;
    for (int i = 0; i < LOGS_LOOK_PARTS && out->size + LOGS_READ_MAX <= LOGS_LOOK_MAX; i++) {
        const size_t before = out->size;
        if (logs_read(logs, lease, offset + before, out, error) < 0)
            return -1;
        *out_is_all = out->size == before;
        if (*out_is_all)
            return 0;
    }
    return buffer_check(out, error);
}

/* ---- From the end ---------------------------------------------------------------------------- */

/* The newest parts on disk that begin before an offset, the newest first. */
static int find_parts(struct logs *logs, struct arena *arena, uint64_t lease, uint64_t before,
                      struct query_rows *out_rows, struct error *error)
{
    const struct store_filter filters[] = {
        {"lease", STORE_EQUAL, store_integer((int64_t)lease)},
        {"offset", STORE_LESS, store_integer((int64_t)before)},
    };
    const struct store_query query = {.table = &tables[TABLE_LOGS],
                                      .filters = filters,
                                      .filter_count = 2,
                                      .is_descending = true,
                                      .limit = LOGS_LOOK_PARTS};
    return query_all(logs->server, arena, &query, out_rows, error);
}

/* Of what is on disk, up to `size_max` bytes that end at `before`, or earlier where it ends. */
static int read_stored_last(struct logs *logs, uint64_t lease, uint64_t before, uint64_t size_max,
                            struct buffer *out, uint64_t *out_offset, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct query_rows rows = {0};
    if (find_parts(logs, arena, lease, before, &rows, error) < 0)
        return -1;
    if (!rows.count)
        return 0;
    const uint64_t end = part_end(rows.items[0]) < before ? part_end(rows.items[0]) : before;
    const uint64_t begin = end > size_max ? end - size_max : 0;
    size_t count = 1;
    while (count < rows.count && part_start(rows.items[count - 1]) > begin)
        count++;
    const uint64_t oldest = part_start(rows.items[count - 1]);
    *out_offset = oldest > begin ? oldest : begin;
    for (size_t i = count; i-- > 0;) {
        const struct store_value *row = rows.items[i];
        const uint64_t from = part_start(row) > begin ? part_start(row) : begin;
        const uint64_t to = part_end(row) < end ? part_end(row) : end;
        if (append_part(logs, row, from, to, out, error) < 0)
            return -1;
    }
    return buffer_check(out, error);
}

int logs_read_last(struct logs *logs, uint64_t lease, const struct logs_span *span,
                   struct buffer *out, uint64_t *out_offset, struct error *error)
{
    const struct lease_log *log = map_get(&logs->leases, lease);
    ASSERT(span->size_max <= LOGS_READ_MAX);
    uint64_t stored_before = span->before, size_left = span->size_max;
    struct text recent = {0};
    *out_offset = 0;
    if (log && log->recent.size && span->before > log->start) {
        const uint64_t whole = log->recent.size, wanted = span->before - log->start;
        const uint64_t end = wanted < whole ? wanted : whole;
        const uint64_t skip = end > size_left ? end - size_left : 0;
        recent = (struct text){(const char *)log->recent.data + skip, (size_t)(end - skip)};
        size_left -= end - skip;
        stored_before = log->start;
        *out_offset = log->start + skip;
    }
    if ((size_left || !recent.size) &&
        read_stored_last(logs, lease, stored_before, size_left, out, out_offset, error) < 0)
        return -1;
    buffer_append_text(out, recent);
    return buffer_check(out, error);
}
