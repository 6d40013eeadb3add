#include "net/seal.h"

#include "base/assert.h"
#include "net/gcm_internal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SEAL_TAG_SIZE == (int)GCM_TAG_SIZE, "a record ends with its tag");

struct seal {
    SSL *tls;
    struct gcm *cipher;
    bool is_from_client;
    bool is_opening;
    int64_t key_bytes;
    int64_t used_bytes;
    uint64_t key_records; /* 0: no bound */
    size_t begun_size;    /* of the content begun and not ended; 0: none */
    size_t begun_done;
    uint32_t key_number;
    uint64_t record_number; /* under this key */
    uint8_t nonce[GCM_NONCE_SIZE];
};

static void write_le32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static int fail(struct error *error, const char *what)
{
    ERR_clear_error();
    return error_set(error, ERROR_UNAVAILABLE, "%s", what);
}

static int set_key(struct seal *seal, struct error *error)
{
    static const char label[] = "EXPORTER-souk-seal";
    uint8_t context[5] = {seal->is_from_client};
    write_le32(context + 1, seal->key_number);
    uint8_t material[GCM_KEY_SIZE + GCM_NONCE_SIZE];
    if (SSL_export_keying_material(seal->tls, material, sizeof(material), label, sizeof(label) - 1,
                                   context, sizeof(context), 1) != 1)
        return fail(error, "TLS gives no key for records");
    const int result = seal->cipher->ops->set_key(seal->cipher, material);
    memcpy(seal->nonce, material + GCM_KEY_SIZE, GCM_NONCE_SIZE);
    OPENSSL_cleanse(material, sizeof(material));
    seal->record_number = 0;
    seal->used_bytes = 0;
    return result == 0 ? 0 : fail(error, "AES-GCM could not be set up");
}

int seal_new(const struct seal_options *options, struct seal **out_seal, struct error *error)
{
    struct seal *seal = calloc(1, sizeof(*seal));
    ASSERT(seal);
    *seal = (struct seal){.tls = options->tls,
                          .cipher = gcm_new(NULL, options->is_opening),
                          .is_from_client = options->is_from_client,
                          .is_opening = options->is_opening,
                          .key_bytes = options->key_bytes ? options->key_bytes : SEAL_KEY_BYTES,
                          .key_records = options->key_records};
    ASSERT(seal->cipher);
    if (set_key(seal, error) < 0) {
        seal_free(seal);
        return -1;
    }
    *out_seal = seal;
    return 0;
}

void seal_free(struct seal *seal)
{
    if (!seal)
        return;
    gcm_free(seal->cipher);
    OPENSSL_cleanse(seal, sizeof(*seal));
    free(seal);
}

/* Begins the next record, by its header, with its nonce and, where it is due, a new key. */
static int next_record(struct seal *seal, const uint8_t header[SEAL_HEADER_SIZE],
                       size_t content_size, struct error *error)
{
    ASSERT(seal->begun_size == 0);
    if (seal->used_bytes >= seal->key_bytes ||
        (seal->key_records > 0 && seal->record_number >= seal->key_records)) {
        seal->key_number++;
        if (set_key(seal, error) < 0)
            return -1;
    }
    seal->used_bytes += (int64_t)content_size;
    uint8_t nonce[GCM_NONCE_SIZE];
    memcpy(nonce, seal->nonce, GCM_NONCE_SIZE);
    for (int i = 0; i < 8; i++)
        nonce[GCM_NONCE_SIZE - 1 - i] ^= (uint8_t)(seal->record_number >> 8 * i);
    seal->record_number++;
    if (seal->cipher->ops->begin(seal->cipher, nonce, header, SEAL_HEADER_SIZE) < 0)
        return fail(error, "AES-GCM did not begin a record");
    seal->begun_size = content_size;
    seal->begun_done = 0;
    return 0;
}

int seal_begin(struct seal *seal, uint8_t *record, size_t content_size, struct error *error)
{
    ASSERT(!seal->is_opening && content_size > 0 && content_size < INT32_MAX);
    write_le32(record, (uint32_t)content_size);
    return next_record(seal, record, content_size, error);
}

int seal_add(struct seal *seal, uint8_t *record, struct text part, struct error *error)
{
    ASSERT(part.size <= seal->begun_size - seal->begun_done);
    if (part.size == 0)
        return 0;
    if (seal->cipher->ops->add(seal->cipher, (const uint8_t *)part.data, part.size,
                               record + SEAL_HEADER_SIZE + seal->begun_done) < 0)
        return fail(error, "AES-GCM did not seal a record");
    seal->begun_done += part.size;
    return 0;
}

int seal_end(struct seal *seal, uint8_t *record, struct error *error)
{
    ASSERT(seal->begun_size > 0 && seal->begun_done == seal->begun_size);
    uint8_t *tag = record + SEAL_HEADER_SIZE + seal->begun_size;
    seal->begun_size = 0;
    if (seal->cipher->ops->seal_end(seal->cipher, tag) < 0)
        return fail(error, "AES-GCM did not end a record");
    return 0;
}

int seal_close(struct seal *seal, uint8_t *record, size_t content_size, struct error *error)
{
    const struct text content = {(const char *)record + SEAL_HEADER_SIZE, content_size};
    return seal_begin(seal, record, content_size, error) < 0 ||
                   seal_add(seal, record, content, error) < 0
               ? -1
               : seal_end(seal, record, error);
}

size_t seal_content_size(const uint8_t header[SEAL_HEADER_SIZE])
{
    return (size_t)header[3] << 24 | (size_t)header[2] << 16 | (size_t)header[1] << 8 | header[0];
}

static int not_sealed(struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "a record is not what the peer sealed");
}

int seal_open_begin(struct seal *seal, const uint8_t header[SEAL_HEADER_SIZE], struct error *error)
{
    const size_t content_size = seal_content_size(header);
    ASSERT(seal->is_opening && content_size > 0 && content_size < INT32_MAX);
    return next_record(seal, header, content_size, error);
}

int seal_open_part(struct seal *seal, const uint8_t *part, size_t size, uint8_t *out,
                   struct error *error)
{
    ASSERT(size <= seal->begun_size - seal->begun_done);
    if (size > 0 && seal->cipher->ops->add(seal->cipher, part, size, out) < 0)
        return not_sealed(error);
    seal->begun_done += size;
    return 0;
}

int seal_open_end(struct seal *seal, const uint8_t tag[SEAL_TAG_SIZE], struct error *error)
{
    ASSERT(seal->begun_size > 0 && seal->begun_done == seal->begun_size);
    seal->begun_size = 0;
    if (seal->cipher->ops->open_end(seal->cipher, tag) < 0)
        return not_sealed(error);
    return 0;
}

int seal_open(struct seal *seal, uint8_t *record, size_t content_size, struct error *error)
{
    ASSERT(content_size == seal_content_size(record));
    uint8_t *content = record + SEAL_HEADER_SIZE;
    return seal_open_begin(seal, record, error) < 0 ||
                   seal_open_part(seal, content, content_size, content, error) < 0
               ? -1
               : seal_open_end(seal, content + content_size, error);
}
