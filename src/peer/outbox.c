#include "peer/outbox.h"

#include "base/assert.h"

#include <stdlib.h>

enum { TYPE_MAX = 256 };

struct entry {
    uint16_t type;
    int64_t sent_ns;
    size_t size;
    char payload[];
};

/* What it takes of memory: most are small. */
static size_t entry_bytes(const struct entry *entry)
{
    return sizeof(*entry) + entry->size;
}

/* Oldest first. */
struct queue {
    struct entry **items;
    size_t first; /* index of the oldest */
    size_t count;
    size_t capacity;
};

struct outbox {
    struct outbox_carrier carrier; /* send is NULL: there is none */
    struct queue waiting;
    struct queue sent; /* those that may have to be sent again */
    size_t waiting_bytes;
    size_t waiting_counts[TYPE_MAX]; /* by type */
    size_t sent_bytes;
    struct buffer scratch;
};

static struct entry *queue_at(const struct queue *queue, size_t index)
{
    return queue->items[queue->first + index];
}

static void queue_push(struct queue *queue, struct entry *entry)
{
    /* Moved only when at least half of the room is gained: a long queue is not moved at each push.
     */
    const bool is_at_end = queue->first + queue->count == queue->capacity;
    if (is_at_end && queue->first > queue->count) {
        memmove(queue->items, queue->items + queue->first, queue->count * sizeof(struct entry *));
        queue->first = 0;
    } else if (is_at_end) {
        queue->capacity = queue->capacity ? 2 * queue->capacity : 64;
        queue->items = realloc(queue->items, queue->capacity * sizeof(struct entry *));
        ASSERT(queue->items);
    }
    queue->items[queue->first + queue->count++] = entry;
}

static struct entry *queue_remove(struct queue *queue, size_t index)
{
    struct entry *entry = queue_at(queue, index);
    if (index == 0)
        queue->first++;
    else
        memmove(queue->items + queue->first + index, queue->items + queue->first + index + 1,
                (queue->count - index - 1) * sizeof(struct entry *));
    if (--queue->count == 0)
        queue->first = 0;
    return entry;
}

static void queue_done(struct queue *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        free(queue_at(queue, i));
    free(queue->items);
}

struct outbox *outbox_new(void)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));
    ASSERT(outbox);
    buffer_init(&outbox->scratch, LEASE_MESSAGE_SIZE_MAX);
    return outbox;
}

void outbox_free(struct outbox *outbox)
{
    if (!outbox)
        return;
    queue_done(&outbox->waiting);
    queue_done(&outbox->sent);
    buffer_done(&outbox->scratch);
    free(outbox);
}

static void outbox_drop(struct outbox *outbox, size_t index)
{
    struct entry *dropped = queue_remove(&outbox->waiting, index);
    outbox->waiting_bytes -= dropped->size;
    outbox->waiting_counts[dropped->type]--;
    free(dropped);
}

/* What matters least goes first, the oldest of it before the newer. */
static void outbox_make_room(struct outbox *outbox)
{
    static const struct {
        uint16_t type;
        size_t bytes_max;
    } dispensable[] = {{LEASE_MESSAGE_HEARTBEAT, OUTBOX_WAITING_BYTES_MAX},
                       {LEASE_MESSAGE_REPORT, OUTBOX_WAITING_BYTES_MAX},
                       {LEASE_MESSAGE_METER, OUTBOX_METER_BYTES_MAX}};
    for (size_t kind = 0; kind < sizeof(dispensable) / sizeof(*dispensable); kind++) {
        size_t i = 0;
        while (i < outbox->waiting.count && outbox->waiting_bytes > dispensable[kind].bytes_max &&
               outbox->waiting_counts[dispensable[kind].type] > 0) {
            if (queue_at(&outbox->waiting, i)->type != dispensable[kind].type) {
                i++;
                continue;
            }
            outbox_drop(outbox, i);
        }
    }
}

/* Those sent too long ago to be sent again, and those that a market had us say to fill our memory.
 */
static void outbox_expire(struct outbox *outbox, int64_t now_ns)
{
    while (outbox->sent.count > 0 &&
           (outbox->sent_bytes > OUTBOX_SENT_BYTES_MAX ||
            now_ns - queue_at(&outbox->sent, 0)->sent_ns > OUTBOX_REPLAY_MS * INT64_C(1000000))) {
        struct entry *expired = queue_remove(&outbox->sent, 0);
        outbox->sent_bytes -= entry_bytes(expired);
        free(expired);
    }
}

static bool is_replayed(uint16_t type)
{
    return type == LEASE_MESSAGE_METER || type == LEASE_MESSAGE_STATE ||
           type == LEASE_MESSAGE_ARTIFACT;
}

/* Of no use later, or said again by who keeps it. */
static bool is_of_its_time(uint16_t type)
{
    return type == LEASE_MESSAGE_HEARTBEAT || type == LEASE_MESSAGE_LOG;
}

void outbox_flush(struct outbox *outbox, int64_t now_ns)
{
    while (outbox->carrier.send && outbox->waiting.count > 0) {
        struct entry *entry = queue_at(&outbox->waiting, 0);
        const struct text payload = {entry->payload, entry->size};
        struct error error;
        /* A full carrier says when it has drained; one that is gone says so itself. */
        if (outbox->carrier.send(outbox->carrier.context, entry->type, payload, &error) < 0)
            return;
        queue_remove(&outbox->waiting, 0);
        outbox->waiting_bytes -= entry->size;
        outbox->waiting_counts[entry->type]--;
        entry->sent_ns = now_ns;
        if (is_replayed(entry->type)) {
            queue_push(&outbox->sent, entry);
            outbox->sent_bytes += entry_bytes(entry);
        } else {
            free(entry);
        }
    }
    if (outbox->carrier.send)
        outbox_expire(outbox, now_ns);
}

void outbox_send_encoded(struct outbox *outbox, uint16_t type, struct text payload, int64_t now_ns)
{
    if (is_of_its_time(type) && !outbox->carrier.send)
        return;
    ASSERT(type < TYPE_MAX);
    struct entry *entry = calloc(1, sizeof(*entry) + payload.size);
    ASSERT(entry);
    entry->type = type;
    entry->size = payload.size;
    if (payload.size > 0)
        memcpy(entry->payload, payload.data, payload.size);
    queue_push(&outbox->waiting, entry);
    outbox->waiting_bytes += payload.size;
    outbox->waiting_counts[type]++;
    outbox_flush(outbox, now_ns);
    outbox_make_room(outbox);
}

void outbox_send(struct outbox *outbox, const struct lease_message *message, int64_t now_ns)
{
    buffer_clear(&outbox->scratch);
    lease_message_encode(message, &outbox->scratch);
    ASSERT(!outbox->scratch.is_overflowed);
    outbox_send_encoded(outbox, (uint16_t)message->type, buffer_text(&outbox->scratch), now_ns);
}

void outbox_attach(struct outbox *outbox, const struct outbox_carrier *carrier, int64_t now_ns)
{
    /* What the old carrier may have lost comes first, however long it was gone, then what waited.
     */
    for (size_t i = 0; i < outbox->sent.count; i++) {
        outbox->waiting_bytes += queue_at(&outbox->sent, i)->size;
        outbox->waiting_counts[queue_at(&outbox->sent, i)->type]++;
    }
    while (outbox->waiting.count > 0)
        queue_push(&outbox->sent, queue_remove(&outbox->waiting, 0));
    outbox->sent_bytes = 0;
    const struct queue joined = outbox->sent;
    outbox->sent = outbox->waiting;
    outbox->waiting = joined;
    outbox_reattach(outbox, carrier, now_ns);
}

void outbox_reattach(struct outbox *outbox, const struct outbox_carrier *carrier, int64_t now_ns)
{
    outbox->carrier = *carrier;
    outbox_flush(outbox, now_ns);
}

void outbox_detach(struct outbox *outbox)
{
    outbox->carrier = (struct outbox_carrier){0};
    for (size_t i = outbox->waiting.count; i-- > 0;)
        if (is_of_its_time(queue_at(&outbox->waiting, i)->type))
            outbox_drop(outbox, i);
}

bool outbox_is_attached(const struct outbox *outbox)
{
    return outbox->carrier.send != NULL;
}

bool outbox_has_room(const struct outbox *outbox)
{
    return outbox->waiting_bytes < OUTBOX_ROOM_BYTES;
}

bool outbox_is_full(const struct outbox *outbox)
{
    return outbox->waiting_bytes >= OUTBOX_WAITING_BYTES_MAX;
}

size_t outbox_waiting_count(const struct outbox *outbox)
{
    return outbox->waiting.count;
}
