/* Any bytes may come as a frame: they are refused, or hold at most a blob's bytes. */
#include "base/assert.h"
#include "blob/blob_coding.h"
#include "blob/blob_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct buffer plain AUTO_BUFFER;
    struct buffer frame AUTO_BUFFER;
    struct buffer again AUTO_BUFFER;
    buffer_init(&plain, BLOB_BYTES_MAX);
    buffer_init(&frame, BLOB_BYTES_MAX);
    buffer_init(&again, BLOB_BYTES_MAX);
    const struct text bytes = {(const char *)data, size};
    if (blob_decode(bytes, &plain, &error) == 0)
        ASSERT(plain.size > size && plain.size <= BLOB_BYTES_MAX);
    else
        ASSERT(plain.size == 0);
    if (blob_encode(bytes, &frame)) {
        ASSERT(frame.size < size);
        const int result = blob_decode(buffer_text(&frame), &again, &error);
        ASSERT(result == 0 && text_equal(buffer_text(&again), bytes));
    }
    return 0;
}
