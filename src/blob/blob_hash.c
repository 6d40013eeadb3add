#include "blob/blob_store.h"

#include <sodium.h>

void blob_hash_of(const void *data, size_t size, struct blob_hash *out_hash)
{
    crypto_generichash(out_hash->bytes, BLOB_HASH_SIZE, data, size, NULL, 0);
}

bool blob_hash_equal(const struct blob_hash *left, const struct blob_hash *right)
{
    return memcmp(left->bytes, right->bytes, BLOB_HASH_SIZE) == 0;
}

int blob_hash_parse(struct text text, struct blob_hash *out_hash, struct error *error)
{
    struct blob_hash hash;
    char again[BLOB_HASH_TEXT_SIZE];
    /* Upper case would be a second name for the same file: only what we would write is taken. */
    if (text_hex_decode(text, hash.bytes, BLOB_HASH_SIZE, error) < 0 ||
        !text_equal(text, text_of(blob_hash_format(&hash, again))))
        return error_set(error, ERROR_INVALID, "a hash is %d lower-case hex digits",
                         2 * BLOB_HASH_SIZE);
    *out_hash = hash;
    return 0;
}

const char *blob_hash_format(const struct blob_hash *hash, char out[BLOB_HASH_TEXT_SIZE])
{
    text_hex_encode(hash->bytes, BLOB_HASH_SIZE, out);
    return out;
}
