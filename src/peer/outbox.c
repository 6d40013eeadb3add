#include "peer/outbox.h"

#include "base/assert.h"
#include "base/list.h"

#include <stdlib.h>

struct entry {
    struct list_node node;
    uint16_t type;
    int64_t sent_ns;
    size_t size;
    char payload[];
};

struct outbox {
    struct link *link;
    struct list waiting;
    struct list sent; /* meters and states, oldest first */
    size_t waiting_bytes;
    size_t waiting_count;
    struct buffer scratch;
};

struct outbox *outbox_new(void)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));
    ASSERT(outbox);
    list_init(&outbox->waiting);
    list_init(&outbox->sent);
    buffer_init(&outbox->scratch, LEASE_MESSAGE_SIZE_MAX);
    return outbox;
}

static struct entry *take_first(struct list *list)
{
    struct list_node *node = list_take_first(list);
    return node ? LIST_ITEM(node, struct entry, node) : NULL;
}

void outbox_free(struct outbox *outbox)
{
    if (!outbox)
        return;
    struct entry *entry;
    while ((entry = take_first(&outbox->waiting)) || (entry = take_first(&outbox->sent)))
        free(entry);
    buffer_done(&outbox->scratch);
    free(outbox);
}

static void outbox_forget_waiting(struct outbox *outbox, struct entry *entry)
{
    list_remove(&entry->node);
    outbox->waiting_bytes -= entry->size;
    outbox->waiting_count--;
}

/* The oldest message of the kind that matters least. */
static void outbox_make_room(struct outbox *outbox)
{
    static const uint16_t dispensable[] = {LEASE_MESSAGE_HEARTBEAT, LEASE_MESSAGE_LOG,
                                           LEASE_MESSAGE_REPORT, LEASE_MESSAGE_METER};
    for (size_t kind = 0; kind < sizeof(dispensable) / sizeof(*dispensable); kind++) {
        LIST_EACH(&outbox->waiting, node)
        {
            struct entry *entry = LIST_ITEM(node, struct entry, node);
            if (outbox->waiting_bytes <= OUTBOX_WAITING_BYTES_MAX)
                return;
            if (entry->type != dispensable[kind])
                continue;
            outbox_forget_waiting(outbox, entry);
            free(entry);
        }
    }
}

static bool is_replayed(uint16_t type)
{
    return type == LEASE_MESSAGE_METER || type == LEASE_MESSAGE_STATE;
}

void outbox_flush(struct outbox *outbox, int64_t now_ns)
{
    while (outbox->link && !list_is_empty(&outbox->waiting)) {
        struct entry *entry = LIST_ITEM(outbox->waiting.head.next, struct entry, node);
        const struct text payload = {entry->payload, entry->size};
        struct error error;
        /* A full queue says when it has drained; a closed link says so itself. */
        if (link_send_text(outbox->link, entry->type, payload, &error) < 0)
            return;
        outbox_forget_waiting(outbox, entry);
        if (is_replayed(entry->type)) {
            entry->sent_ns = now_ns;
            list_append(&outbox->sent, &entry->node);
        } else {
            free(entry);
        }
    }
    LIST_EACH(&outbox->sent, node)
    {
        struct entry *entry = LIST_ITEM(node, struct entry, node);
        if (now_ns - entry->sent_ns <= OUTBOX_REPLAY_MS * INT64_C(1000000))
            break;
        list_remove(node);
        free(entry);
    }
}

void outbox_send(struct outbox *outbox, const struct lease_message *message, int64_t now_ns)
{
    buffer_clear(&outbox->scratch);
    lease_message_encode(message, &outbox->scratch);
    ASSERT(!outbox->scratch.is_overflowed);
    if (message->type == LEASE_MESSAGE_HEARTBEAT && !outbox->link)
        return; /* of no use later */
    const size_t size = outbox->scratch.size;
    struct entry *entry = calloc(1, sizeof(*entry) + size);
    ASSERT(entry);
    entry->type = (uint16_t)message->type;
    entry->size = size;
    memcpy(entry->payload, outbox->scratch.data, size);
    list_append(&outbox->waiting, &entry->node);
    outbox->waiting_bytes += size;
    outbox->waiting_count++;
    outbox_flush(outbox, now_ns);
    outbox_make_room(outbox);
}

void outbox_attach(struct outbox *outbox, struct link *link, int64_t now_ns)
{
    /* What the old link may have lost comes first, then what waited. */
    struct list waiting;
    list_init(&waiting);
    struct entry *entry;
    while ((entry = take_first(&outbox->waiting)))
        list_append(&waiting, &entry->node);
    while ((entry = take_first(&outbox->sent))) {
        if (now_ns - entry->sent_ns > OUTBOX_REPLAY_MS * INT64_C(1000000)) {
            free(entry);
            continue;
        }
        list_append(&outbox->waiting, &entry->node);
        outbox->waiting_bytes += entry->size;
        outbox->waiting_count++;
    }
    while ((entry = take_first(&waiting)))
        list_append(&outbox->waiting, &entry->node);
    outbox->link = link;
    outbox_flush(outbox, now_ns);
}

void outbox_detach(struct outbox *outbox)
{
    outbox->link = NULL;
}

bool outbox_is_attached(const struct outbox *outbox)
{
    return outbox->link != NULL;
}

bool outbox_has_room(const struct outbox *outbox)
{
    return outbox->waiting_bytes < OUTBOX_ROOM_BYTES;
}

size_t outbox_waiting_count(const struct outbox *outbox)
{
    return outbox->waiting_count;
}
