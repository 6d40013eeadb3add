/* Any bytes as a file that may be compressed: refused, or read to the end within its limit. */
#include "base/assert.h"
#include "train/data_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SIZE_LIMIT = 1 << 20 };
    struct error error;
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (data_stream_open_bytes((struct text){(const char *)data, size}, SIZE_LIMIT, &stream,
                               &error) < 0)
        return 0;
    uint64_t lines = 0;
    for (;;) {
        struct text line;
        bool has_line;
        if (data_stream_line(stream, &line, &has_line, &error) < 0)
            return 0;
        if (!has_line)
            break;
        ASSERT(data_stream_line_number(stream) == ++lines);
    }
    ASSERT(data_stream_offset(stream) <= SIZE_LIMIT);
    return 0;
}
