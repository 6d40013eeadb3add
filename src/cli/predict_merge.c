#include "cli/predict_merge.h"

#include "base/arena.h"
#include "base/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_SIZE_MAX = 1 << 20, WRITTEN_SIZE = 1 << 16 };

struct part {
    FILE *file;
    struct buffer record; /* with its line's end */
};

struct parts {
    struct part *items;
    size_t count;
    struct buffer out;
};

static void parts_done(struct parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (parts->items[i].file)
            fclose(parts->items[i].file);
        buffer_done(&parts->items[i].record);
    }
    buffer_done(&parts->out);
}

/* Strangers wrote it, and it may go to a terminal: no record has other control characters. */
static bool is_plain(int byte)
{
    return (byte >= ' ' && byte != 0x7f) || byte == '\t' || byte == '\r' || byte == '\n';
}

/* One record, which in CSV may have line breaks in its quotes; an empty one at the end. */
static int read_record(const struct predict_merge_options *options, struct part *part, size_t rank,
                       struct error *error)
{
    bool is_quoted = false;
    buffer_clear(&part->record);
    for (int byte; (byte = getc(part->file)) != EOF;) {
        if (!is_plain(byte))
            return error_set(error, ERROR_CORRUPT, "what rank %zu told has control characters",
                             rank);
        if (part->record.size == RECORD_SIZE_MAX)
            break;
        buffer_append_byte(&part->record, (uint8_t)byte);
        is_quoted ^= byte == '"' && !options->is_json;
        if (byte == '\n' && !is_quoted)
            return buffer_check(&part->record, error);
    }
    if (ferror(part->file))
        return error_set_errno(error, errno, "read \"%.150s\"", options->paths[rank]);
    if (part->record.size == 0)
        return 0;
    return error_set(error, ERROR_CORRUPT, "what rank %zu told breaks off, or is no such file",
                     rank);
}

static bool has_index(const struct predict_merge_options *options, const struct part *part,
                      uint64_t index)
{
    char expected[64];
    snprintf(expected, sizeof(expected), "%s%" PRIu64 ",", options->is_json ? "{\"index\":" : "",
             index);
    return text_starts_with(buffer_text(&part->record), text_of(expected));
}

static int put(const struct predict_merge_options *options, struct parts *parts, struct text record,
               struct error *error)
{
    buffer_append_text(&parts->out, record);
    if (parts->out.size < WRITTEN_SIZE)
        return 0;
    if (options->write(options->context, buffer_text(&parts->out), error) < 0)
        return -1;
    buffer_clear(&parts->out);
    return 0;
}

static int merge_headings(const struct predict_merge_options *options, struct parts *parts,
                          struct error *error)
{
    for (size_t i = 0; i < parts->count; i++) {
        if (read_record(options, &parts->items[i], i, error) < 0)
            return -1;
        const struct text heading = buffer_text(&parts->items[i].record);
        if (!heading.size || !text_equal(heading, buffer_text(&parts->items[0].record)))
            return error_set(error, ERROR_CORRUPT, "what rank %zu told has another heading", i);
    }
    return put(options, parts, buffer_text(&parts->items[0].record), error);
}

static int refuse_record(size_t rank, uint64_t index, struct error *error)
{
    return error_set(
        error, ERROR_CORRUPT,
        "what the ranks told does not fit together: rank %zu has another record in the "
        "place of record %" PRIu64,
        rank, index);
}

/* One record of each rank in turn: record i is of rank i modulo their number. */
static int merge_round(const struct predict_merge_options *options, struct parts *parts,
                       uint64_t *index, bool *has_ended, struct error *error)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->items[i];
        if (read_record(options, part, i, error) < 0)
            return -1;
        if (part->record.size == 0) {
            *has_ended = true;
            continue;
        }
        if (*has_ended || !has_index(options, part, *index))
            return refuse_record(i, *index, error);
        if (put(options, parts, buffer_text(&part->record), error) < 0)
            return -1;
        ++*index;
    }
    return 0;
}

static int merge_records(const struct predict_merge_options *options, struct parts *parts,
                         uint64_t *out_records, struct error *error)
{
    bool has_ended = false;
    uint64_t index = 0;
    while (!has_ended)
        if (merge_round(options, parts, &index, &has_ended, error) < 0)
            return -1;
    const uint64_t count = index;
    if (merge_round(options, parts, &index, &has_ended, error) < 0) /* nobody has more */
        return -1;
    *out_records = count;
    return parts->out.size ? options->write(options->context, buffer_text(&parts->out), error) : 0;
}

int predict_merge(const struct predict_merge_options *options, uint64_t *out_records,
                  struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    __attribute__((cleanup(parts_done))) struct parts parts = {
        .items = arena_alloc(arena, (options->count + 1) * sizeof(*parts.items))};
    memset(parts.items, 0, (options->count + 1) * sizeof(*parts.items));
    buffer_init(&parts.out, WRITTEN_SIZE + RECORD_SIZE_MAX);
    for (; parts.count < options->count; parts.count++) {
        struct part *part = &parts.items[parts.count];
        part->file = fopen(options->paths[parts.count], "re");
        if (!part->file)
            return error_set_errno(error, errno, "open \"%.150s\"", options->paths[parts.count]);
        buffer_init(&part->record, RECORD_SIZE_MAX);
    }
    if (!options->is_json && merge_headings(options, &parts, error) < 0)
        return -1;
    return merge_records(options, &parts, out_records, error);
}
