#include "server/logs.h"

#include "base/assert.h"
#include "base/log.h"
#include "server/call.h"
#include "server/query.h"

#include <inttypes.h>
#include <stdlib.h>

struct lease_log {
    uint64_t lease;
    uint64_t start;       /* offset of the first byte in `recent` */
    struct buffer recent; /* a part that was written, and then what was not */
    size_t written_size;  /* of `recent` */
    int64_t waiting_ms;   /* since when the oldest byte not written waits */
    bool is_ended;
};

struct logs {
    struct server *server;
    struct map leases; /* lease -> struct lease_log, owned */
};

struct logs *logs_new(struct server *server)
{
    struct logs *logs = calloc(1, sizeof(*logs));
    ASSERT(logs);
    logs->server = server;
    map_init(&logs->leases);
    return logs;
}

static void lease_log_free(struct lease_log *log)
{
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
static uint64_t stored_end(struct logs *logs, uint64_t lease)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct store_filter filter = {"lease", STORE_EQUAL, store_integer((int64_t)lease)};
    const struct store_query query = {.table = &tables[TABLE_LOGS],
                                      .filters = &filter,
                                      .filter_count = 1,
                                      .is_descending = true,
                                      .limit = 1};
    struct query_rows rows;
    struct error error;
    if (query_all(logs->server, arena, &query, &rows, &error) < 0) {
        log_event(LOG_WARN, "log_index_not_read", "lease=%" PRIu64 " error=\"%s\"", lease,
                  error.message);
        return 0;
    }
    if (!rows.count)
        return 0;
    return (uint64_t)(rows.items[0][LOGS_OFFSET].integer + rows.items[0][LOGS_SIZE].integer);
}

static struct lease_log *log_of(struct logs *logs, uint64_t lease)
{
    struct lease_log *log = map_get(&logs->leases, lease);
    if (log)
        return log;
    log = calloc(1, sizeof(*log));
    ASSERT(log);
    log->lease = lease;
    log->start = stored_end(logs, lease);
    buffer_init(&log->recent, 0);
    log->recent.size_max = 4 * LOGS_PART_SIZE + LOGS_READ_MAX;
    map_put(&logs->leases, lease, log);
    return log;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct part_row {
    uint64_t lease, offset, size;
    struct blob_hash hash;
};

static void put_part(void *context, struct store_batch *batch)
{
    const struct part_row *part = context;
    const struct store_value row[LOGS_COLUMN_COUNT] = {
        [LOGS_LEASE] = store_integer((int64_t)part->lease),
        [LOGS_OFFSET] = store_integer((int64_t)part->offset),
        [LOGS_SIZE] = store_integer((int64_t)part->size),
        [LOGS_HASH] = store_blob(part->hash.bytes, sizeof(part->hash.bytes)),
    };
    store_batch_put(batch, &tables[TABLE_LOGS], row, LOGS_COLUMN_COUNT);
}

static void write_part(struct logs *logs, struct lease_log *log)
{
    /* What was written before has long been committed: only the new part stays in memory. */
    buffer_consume(&log->recent, log->written_size);
    log->start += log->written_size;
    log->written_size = log->recent.size;
    if (!log->recent.size)
        return;
    struct part_row *part = calloc(1, sizeof(*part));
    ASSERT(part);
    part->lease = log->lease;
    part->offset = log->start;
    part->size = log->recent.size;
    struct error error;
    if (blob_store_put(logs->server->blobs, NULL, buffer_text(&log->recent), &part->hash, &error) <
        0) {
        log_event(LOG_WARN, "log_part_lost", "lease=%" PRIu64 " error=\"%s\"", log->lease,
                  error.message);
        free(part);
        return;
    }
    server_put_rows(logs->server, put_part, part, free);
}

uint64_t logs_append(struct logs *logs, uint64_t lease, struct text bytes, size_t *out_size)
{
    static const struct text last_words = TEXT("\n[souk: this log is full; the rest is dropped]\n");
    struct lease_log *log = log_of(logs, lease);
    const uint64_t offset = log->start + log->recent.size;
    struct text added = bytes;
    if (offset >= LOGS_LEASE_MAX) {
        *out_size = 0;
        return offset;
    }
    if (offset + bytes.size >= LOGS_LEASE_MAX)
        added = last_words;
    if (log->recent.size == log->written_size)
        log->waiting_ms = clock_monotonic_ns(logs->server->clock) / 1000000;
    buffer_append_text(&log->recent, added);
    *out_size = added.size;
    if (offset + bytes.size >= LOGS_LEASE_MAX) {
        write_part(logs, log);
        log->start = LOGS_LEASE_MAX - log->recent.size; /* so that nothing is added any more */
    } else if (log->recent.size - log->written_size >= LOGS_PART_SIZE) {
        write_part(logs, log);
    }
    return offset;
}

void logs_flush(struct logs *logs, bool is_end)
{
    const int64_t now_ms = clock_monotonic_ns(logs->server->clock) / 1000000;
    for (size_t i = logs->leases.count; i-- > 0;) {
        struct lease_log *log = logs->leases.entries[i].value;
        const bool is_waiting = log->recent.size > log->written_size;
        if (is_waiting && (is_end || log->is_ended || now_ms - log->waiting_ms >= LOGS_PART_MS)) {
            write_part(logs, log);
        } else if (!is_waiting && log->is_ended) {
            map_remove(&logs->leases, log->lease);
            lease_log_free(log);
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
    const uint64_t start = (uint64_t)row[LOGS_OFFSET].integer;
    if (offset >= start + (uint64_t)row[LOGS_SIZE].integer)
        return 0;
    struct blob_hash hash;
    if (row[LOGS_HASH].bytes.size != sizeof(hash.bytes))
        return error_set(error, ERROR_CORRUPT, "the log's index is damaged");
    memcpy(hash.bytes, row[LOGS_HASH].bytes.data, sizeof(hash.bytes));
    struct buffer part AUTO_BUFFER;
    buffer_init(&part, BLOB_BYTES_MAX);
    if (blob_store_read(logs->server->blobs, &hash, &part, error) < 0)
        return -1;
    const size_t skip = (size_t)(offset - start);
    const size_t left = part.size > skip ? part.size - skip : 0;
    buffer_append(out, part.data + skip, left < LOGS_READ_MAX ? left : LOGS_READ_MAX);
    return 0;
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
