#include "base/assert.h"
#include "store/store_internal.h"

#include <endian.h>
#include <inttypes.h>
#include <sodium.h>

static void hash_u64(crypto_generichash_state *state, uint64_t value)
{
    value = htole64(value);
    crypto_generichash_update(state, (const void *)&value, sizeof(value));
}

static void hash_bytes(crypto_generichash_state *state, const void *data, size_t size)
{
    if (size)
        crypto_generichash_update(state, data, size);
}

void store_chain_next(struct store_head *head, int64_t time_ms, struct text kind, struct text body)
{
    const uint32_t kind_size = htole32((uint32_t)kind.size);
    head->sequence++;
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, STORE_HASH_SIZE);
    hash_bytes(&state, head->hash, STORE_HASH_SIZE);
    hash_u64(&state, head->sequence);
    hash_u64(&state, (uint64_t)time_ms);
    hash_bytes(&state, &kind_size, sizeof(kind_size));
    hash_bytes(&state, kind.data, kind.size);
    hash_bytes(&state, body.data, body.size);
    crypto_generichash_final(&state, head->hash, STORE_HASH_SIZE);
}

void store_snapshot_checksum(const struct store_snapshot *snapshot, uint8_t out[STORE_HASH_SIZE])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, STORE_HASH_SIZE);
    hash_u64(&state, snapshot->head.sequence);
    hash_bytes(&state, snapshot->head.hash, STORE_HASH_SIZE);
    hash_bytes(&state, snapshot->bytes.data, snapshot->bytes.size);
    crypto_generichash_final(&state, out, STORE_HASH_SIZE);
}

/* Follows the chain, and hands on each event that continues it. */
struct walk {
    struct store_head head;         /* the last good event */
    bool is_stopped;                /* the callback had enough */
    bool is_broken;                 /* after head */
    store_event_callback *callback; /* NULL: only check */
    void *context;
};

static int walk_event(const struct store_event *event, void *context, struct error *error)
{
    struct walk *walk = context;
    struct store_head next = walk->head;
    store_chain_next(&next, event->time_ms, event->kind, event->body);
    if (event->sequence != next.sequence) {
        walk->is_broken = true;
        return error_set(error, ERROR_CORRUPT,
                         "event %" PRIu64 " is missing from the log: after %" PRIu64
                         " comes %" PRIu64,
                         next.sequence, walk->head.sequence, event->sequence);
    }
    if (memcmp(event->hash, next.hash, STORE_HASH_SIZE) != 0) {
        walk->is_broken = true;
        return error_set(error, ERROR_CORRUPT,
                         "event %" PRIu64 " was changed after it was written: its hash is wrong",
                         event->sequence);
    }
    walk->head = next;
    if (!walk->callback)
        return 0;
    const int result = walk->callback(event, walk->context, error);
    walk->is_stopped = result > 0;
    return result;
}

/* The event before the walk is taken on trust: it is where the chain is joined. */
static int walk_join(const struct store_event *event, void *context,
                     struct error *error __attribute__((unused)))
{
    struct walk *walk = context;
    if (event->sequence == walk->head.sequence) {
        memcpy(walk->head.hash, event->hash, STORE_HASH_SIZE);
        walk->is_broken = false;
    }
    return 1;
}

static int walk_log(struct store_reader *reader, uint64_t from_sequence, struct walk *walk,
                    struct error *error)
{
    const struct store_ops *ops = reader->ops;
    struct store_head end;
    if (ops->read_head(reader, &end, error) < 0)
        return -1;
    if (from_sequence > end.sequence + 1) {
        walk->head = end;
        return 0;
    }
    walk->head.sequence = from_sequence - 1;
    if (from_sequence > 1) {
        walk->is_broken = true;
        if (ops->read_events(reader, from_sequence - 1, walk_join, walk, error) < 0)
            return -1;
        if (walk->is_broken) {
            walk->head.sequence--;
            return error_set(error, ERROR_CORRUPT, "event %" PRIu64 " is missing from the log",
                             from_sequence - 1);
        }
    }
    if (ops->read_events(reader, from_sequence, walk_event, walk, error) < 0)
        return -1;
    if (walk->is_stopped)
        return 0;
    /* A log that was cut off at its end is a perfect chain; only the last commit's mark shows it.
     */
    if (walk->head.sequence < end.sequence) {
        walk->is_broken = true;
        return error_set(error, ERROR_CORRUPT,
                         "event %" PRIu64 " is missing from the log: %" PRIu64 " were committed",
                         walk->head.sequence + 1, end.sequence);
    }
    if (walk->head.sequence > end.sequence ||
        memcmp(walk->head.hash, end.hash, STORE_HASH_SIZE) != 0) {
        walk->is_broken = true;
        walk->head.sequence = end.sequence - (end.sequence > 0);
        return error_set(error, ERROR_CORRUPT,
                         "the log's end is not what the last commit left at event %" PRIu64,
                         end.sequence);
    }
    return 0;
}

static int walk_run(struct store_reader *reader, uint64_t from_sequence, struct walk *walk,
                    struct error *error)
{
    ASSERT(from_sequence >= 1);
    if (store_reader_begin(reader, error) < 0)
        return -1;
    const int result = walk_log(reader, from_sequence, walk, error);
    store_reader_end(reader);
    return result;
}

int store_read_events(struct store_reader *reader, uint64_t from_sequence,
                      store_event_callback *callback, void *context, struct error *error)
{
    struct walk walk = {.callback = callback, .context = context};
    return walk_run(reader, from_sequence, &walk, error);
}

int store_verify(struct store_reader *reader, uint64_t from_sequence, uint64_t *out_sequence,
                 struct error *error)
{
    struct walk walk = {0};
    if (walk_run(reader, from_sequence, &walk, error) < 0) {
        if (walk.is_broken)
            *out_sequence = walk.head.sequence + 1;
        return -1;
    }
    *out_sequence = walk.head.sequence;
    return 0;
}
