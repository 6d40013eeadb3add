/* Any bytes as .npz, and as .npy: refused, or an import that is whole. */
#include "base/assert.h"
#include "train/npy_array.h"
#include "train/reader_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct import_options options;
    import_options_default(&options);
    options.size_max = 1 << 20;
    const struct text bytes = {(const char *)data, size};
    struct import import AUTO_IMPORT = {0};
    if (reader_npz_read(bytes, &options, &import, &error) == 0)
        ASSERT(import_finish(&import, &error) == 0 || error.code == ERROR_INVALID);
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct npy_header header;
    float value;
    if (data_stream_open_bytes(bytes, options.size_max, &stream, &error) < 0 ||
        npy_header_read(stream, options.size_max, &header, &error) < 0)
        return 0;
    ASSERT(header.count > 0 && header.rank <= NPY_RANK_MAX);
    for (uint64_t i = 0; i < header.count; i++)
        if (npy_floats_read(stream, &header, &value, 1, &error) < 0)
            break;
    return 0;
}
