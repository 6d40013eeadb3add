#include "peer/logbook.h"

#include "base/assert.h"

/* A process that is gone leaves two full pipes, of a MiB each if it made them so large. */
enum { HOLD_BYTES_MAX = LOGBOOK_BYTES_MAX + (3 << 20) };
_Static_assert((int)LOGBOOK_PIECE_BYTES <= (int)LEASE_LOG_SIZE_MAX, "a piece is one message");

void logbook_init(struct logbook *book)
{
    *book = (struct logbook){.is_resuming = true};
    buffer_init(&book->bytes, HOLD_BYTES_MAX);
}

void logbook_done(struct logbook *book)
{
    buffer_done(&book->bytes);
}

static uint64_t logbook_end_offset(const struct logbook *book)
{
    return book->start + book->bytes.size;
}

void logbook_add(struct logbook *book, struct text bytes)
{
    const uint64_t lease_room = LOGBOOK_LEASE_MAX - logbook_end_offset(book);
    const size_t book_room = HOLD_BYTES_MAX - book->bytes.size;
    const size_t room = lease_room < book_room ? (size_t)lease_room : book_room;
    ASSERT(!book->has_ended);
    buffer_append(&book->bytes, bytes.data, bytes.size < room ? bytes.size : room);
}

void logbook_end(struct logbook *book)
{
    book->has_ended = true;
}

bool logbook_has_room(const struct logbook *book)
{
    return book->bytes.size < LOGBOOK_BYTES_MAX;
}

void logbook_rewind(struct logbook *book)
{
    book->sent = book->start;
    book->is_resuming = true;
    book->is_end_sent = false;
}

bool logbook_next(struct logbook *book, struct log_message *out_log)
{
    const uint64_t end = logbook_end_offset(book);
    const bool has_bytes = book->sent < end;
    const bool is_end_due = book->has_ended && !book->is_end_sent && book->bytes.size > 0;
    ASSERT(book->sent >= book->start && book->sent <= end);
    if (!has_bytes && !is_end_due)
        return false;
    const uint64_t left = end - book->sent;
    const size_t size = left < LOGBOOK_PIECE_BYTES ? (size_t)left : LOGBOOK_PIECE_BYTES;
    const char *first = (const char *)book->bytes.data + (book->sent - book->start);
    *out_log = (struct log_message){.offset = book->sent,
                                    .is_resumed = book->is_resuming,
                                    .is_last = book->has_ended && size == left,
                                    .bytes = {first, size}};
    book->sent += size;
    book->is_resuming = false;
    book->is_end_sent = out_log->is_last;
    return true;
}

void logbook_kept(struct logbook *book, uint64_t offset)
{
    const uint64_t end = logbook_end_offset(book);
    if (offset <= book->start)
        return;
    if (offset > end)
        offset = end;
    buffer_consume(&book->bytes, (size_t)(offset - book->start));
    book->start = offset;
    book->sent = book->sent > offset ? book->sent : offset;
    if (book->bytes.size == 0) { /* a flood's memory is given back */
        buffer_done(&book->bytes);
        buffer_init(&book->bytes, HOLD_BYTES_MAX);
    }
}

bool logbook_is_settled(const struct logbook *book)
{
    return book->has_ended && book->bytes.size == 0;
}
