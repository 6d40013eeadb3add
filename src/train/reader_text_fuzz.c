/* Any bytes as texts: refused, or tokens below the vocabulary. */
#include "base/assert.h"
#include "train/reader_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct import_options options;
    import_options_default(&options);
    options.size_max = 1 << 20;
    options.length = 8;
    options.vocabulary = 100;
    options.buckets = 10;
    options.are_words_hashed = size % 2;
    options.unit = size % 3 ? IMPORT_WORDS : IMPORT_CHARACTERS;
    const struct reader_source source = {.bytes = {(const char *)data, size}};
    struct import import AUTO_IMPORT = {0};
    if (reader_text_read(&source, &options, &import, &error) < 0)
        return 0;
    const int32_t *tokens = (const int32_t *)(const void *)import.train.values.data;
    for (size_t i = 0; i < import.train.values.size / sizeof(*tokens); i++)
        ASSERT(tokens[i] >= 0 && (uint32_t)tokens[i] < import.vocabulary);
    return 0;
}
