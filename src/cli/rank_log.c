#include "cli/rank_log.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE_MAX = 64 << 10 };

struct rank_log_lease {
    uint64_t rank;
    uint64_t next_offset;
    struct buffer line; /* without its end yet */
    uint64_t ahead_offset;
    struct buffer ahead; /* what came before its time */
};

struct rank_log {
    struct rank_log_options options;
    struct map leases; /* struct rank_log_lease by id */
    uint64_t width;    /* of the largest rank's number */
};

struct rank_log *rank_log_new(const struct rank_log_options *options)
{
    struct rank_log *log = calloc(1, sizeof(*log));
    ASSERT(log);
    log->options = *options;
    log->width = 1;
    map_init(&log->leases);
    return log;
}

void rank_log_free(struct rank_log *log)
{
    if (!log)
        return;
    for (size_t i = 0; i < log->leases.count; i++) {
        struct rank_log_lease *lease = log->leases.entries[i].value;
        buffer_done(&lease->line);
        buffer_done(&lease->ahead);
        free(lease);
    }
    map_done(&log->leases);
    free(log);
}

static struct rank_log_lease *find_or_add(struct rank_log *log, uint64_t id, uint64_t rank)
{
    struct rank_log_lease *lease = map_get(&log->leases, id);
    if (lease)
        return lease;
    lease = calloc(1, sizeof(*lease));
    ASSERT(lease);
    lease->rank = rank;
    buffer_init(&lease->line, LINE_SIZE_MAX);
    buffer_init(&lease->ahead, RANK_LOG_AHEAD_MAX);
    map_put(&log->leases, id, lease);
    uint64_t width = 1;
    for (uint64_t left = rank; left >= 10; left /= 10)
        width++;
    log->width = width > log->width ? width : log->width;
    return lease;
}

void rank_log_add(struct rank_log *log, uint64_t lease, uint64_t rank)
{
    find_or_add(log, lease, rank);
}

uint64_t rank_log_next(const struct rank_log *log, uint64_t lease)
{
    const struct rank_log_lease *known = map_get(&log->leases, lease);
    return known ? known->next_offset : 0;
}

static void print_line(struct rank_log *log, struct rank_log_lease *lease)
{
    /* Colours that are told apart on light and dark: 31 to 36. */
    static const char *const colors[] = {"\033[36m", "\033[32m", "\033[33m",
                                         "\033[35m", "\033[34m", "\033[31m"};
    FILE *file = log->options.file;
    char prefix[40];
    if (!log->options.is_single) {
        const int size =
            snprintf(prefix, sizeof(prefix), "rank %*" PRIu64 " |", (int)log->width, lease->rank);
        if (log->options.has_color)
            fprintf(file, "%s%.*s\033[0m ", colors[lease->rank % 6], size, prefix);
        else
            fprintf(file, "%.*s ", size, prefix);
    }
    if (log->options.is_plain)
        for (size_t i = 0; i < lease->line.size; i++) {
            const unsigned char c = (unsigned char)lease->line.data[i];
            if ((c < 0x20 && c != '\t') || c == 0x7f)
                lease->line.data[i] = '?';
        }
    fwrite(lease->line.data, 1, lease->line.size, file);
    fputc('\n', file);
    buffer_clear(&lease->line);
}

static void take_bytes(struct rank_log *log, struct rank_log_lease *lease, struct text bytes)
{
    while (bytes.size) {
        const char *end = memchr(bytes.data, '\n', bytes.size);
        const size_t room = LINE_SIZE_MAX - lease->line.size;
        size_t size = end ? (size_t)(end - bytes.data) : bytes.size;
        const bool is_whole = end && size <= room;
        size = size < room ? size : room;
        buffer_append(&lease->line, bytes.data, size);
        bytes.data += size + is_whole;
        bytes.size -= size + is_whole;
        if (is_whole || lease->line.size == LINE_SIZE_MAX)
            print_line(log, lease);
    }
}

/* What was held, as far as its time has come. */
static void release(struct rank_log *log, struct rank_log_lease *lease)
{
    if (lease->ahead.size == 0 || lease->ahead_offset > lease->next_offset)
        return;
    const uint64_t known = lease->next_offset - lease->ahead_offset;
    if (known < lease->ahead.size) {
        const size_t left = lease->ahead.size - (size_t)known;
        take_bytes(log, lease, (struct text){(const char *)lease->ahead.data + known, left});
        lease->next_offset += left;
    }
    buffer_clear(&lease->ahead);
}

bool rank_log_take(struct rank_log *log, uint64_t id, uint64_t rank, uint64_t offset,
                   struct text bytes)
{
    struct rank_log_lease *lease = find_or_add(log, id, rank);
    if (offset > lease->next_offset)
        return false;
    const uint64_t known = lease->next_offset - offset;
    if (known >= bytes.size)
        return true;
    take_bytes(log, lease, (struct text){bytes.data + known, bytes.size - (size_t)known});
    lease->next_offset = offset + bytes.size;
    release(log, lease);
    fflush(log->options.file);
    return true;
}

bool rank_log_take_text(struct rank_log *log, uint64_t id, uint64_t rank,
                        const struct rank_log_text *text)
{
    struct rank_log_lease *lease = find_or_add(log, id, rank);
    if (text->next_offset <= text->offset || text->next_offset - text->offset == text->text.size)
        return rank_log_take(log, id, rank, text->offset, text->text);
    if (text->next_offset <= lease->next_offset)
        return true;
    if (text->offset != lease->next_offset)
        return false;
    take_bytes(log, lease, text->text);
    lease->next_offset = text->next_offset;
    release(log, lease);
    fflush(log->options.file);
    return true;
}

bool rank_log_take_ahead(struct rank_log *log, uint64_t id, uint64_t rank, uint64_t offset,
                         struct text bytes)
{
    struct rank_log_lease *lease = find_or_add(log, id, rank);
    if (offset > UINT64_MAX - bytes.size)
        return false;
    if (rank_log_take(log, id, rank, offset, bytes))
        return true;
    if (lease->ahead.size == 0)
        lease->ahead_offset = offset;
    const bool follows = offset == lease->ahead_offset + lease->ahead.size;
    if (!follows || bytes.size > RANK_LOG_AHEAD_MAX - lease->ahead.size) {
        buffer_clear(&lease->ahead);
        return false;
    }
    buffer_append(&lease->ahead, bytes.data, bytes.size);
    return true;
}

bool rank_log_is_waiting(const struct rank_log *log, uint64_t lease)
{
    const struct rank_log_lease *known = map_get(&log->leases, lease);
    return known && known->ahead.size > 0;
}

void rank_log_finish(struct rank_log *log)
{
    for (size_t i = 0; i < log->leases.count; i++) {
        struct rank_log_lease *lease = log->leases.entries[i].value;
        if (lease->line.size)
            print_line(log, lease);
    }
    fflush(log->options.file);
}
