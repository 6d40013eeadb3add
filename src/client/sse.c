#include "client/sse.h"

#include <string.h>

void sse_reader_init(struct sse_reader *reader, sse_function *callback, void *context)
{
    *reader = (struct sse_reader){.callback = callback, .context = context};
    buffer_init(&reader->line, SSE_DATA_MAX + 64);
    buffer_init(&reader->data, SSE_DATA_MAX);
}

void sse_reader_done(struct sse_reader *reader)
{
    buffer_done(&reader->line);
    buffer_done(&reader->data);
}

static void dispatch(struct sse_reader *reader)
{
    if (reader->has_data && !reader->data.is_overflowed && !reader->line.is_overflowed)
        reader->callback(reader->context, reader->name[0] ? reader->name : "message",
                         buffer_text(&reader->data));
    buffer_clear(&reader->data);
    reader->has_data = false;
    reader->name[0] = '\0';
}

static void end_line(struct sse_reader *reader)
{
    struct text line = buffer_text(&reader->line), name, value = {0};
    if (line.size == 0) {
        dispatch(reader);
        return;
    }
    if (line.data[0] == ':')
        return;
    text_cut(line, ':', &name, &value);
    if (value.size && value.data[0] == ' ') {
        value.data++;
        value.size--;
    }
    if (text_equal(name, TEXT("data"))) {
        if (reader->has_data)
            buffer_append_byte(&reader->data, '\n');
        buffer_append_text(&reader->data, value);
        reader->has_data = true;
    } else if (text_equal(name, TEXT("event"))) {
        struct error ignored;
        if (text_copy(value, reader->name, sizeof(reader->name), &ignored) < 0)
            reader->name[0] = '\0';
    }
}

void sse_reader_feed(struct sse_reader *reader, struct text bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const char byte = bytes.data[i];
        if (byte == '\n' && reader->is_after_return) {
            reader->is_after_return = false;
            continue;
        }
        reader->is_after_return = byte == '\r';
        if (byte != '\n' && byte != '\r') {
            buffer_append_byte(&reader->line, (uint8_t)byte);
            continue;
        }
        if (reader->line.is_overflowed)
            reader->data.is_overflowed = true; /* the event it belongs to is lost as a whole */
        else
            end_line(reader);
        buffer_clear(&reader->line);
    }
}
