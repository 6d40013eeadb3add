/*
 * Seal: records sealed with AES-128-GCM under keys taken from a finished TLS 1.3 handshake
 * (RFC 8446, 7.5), one sealer for each direction.
 *
 * TLS's own records hold 16 KiB and cost more than the cipher; these hold hundreds of KiB and are
 * sealed where they lie.
 *
 *     offset  size  field
 *          0     4  size of the content, little-endian, above 0; authenticated
 *          4     -  the content, encrypted
 *          -    16  the tag
 *
 * Records are counted and the count is part of the nonce: none can be left out, repeated or moved.
 * After SEAL_KEY_BYTES under one key, or a number of records where the options bound it, both ends
 * go on to the next, which needs no word between them.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_HEADER_SIZE = 4, SEAL_TAG_SIZE = 16 };
enum { SEAL_OVERHEAD = SEAL_HEADER_SIZE + SEAL_TAG_SIZE };
#define SEAL_KEY_BYTES                                                                             \
    (INT64_C(1) << 36) /* AES-GCM's bound (RFC 8446, 5.5) is five times higher                     \
                        */

struct seal;

struct seal_options {
    SSL *tls; /* its handshake is done; outlives the seal */
    bool is_from_client;
    bool is_opening;      /* opens what the peer sealed */
    int64_t key_bytes;    /* under one key; 0: SEAL_KEY_BYTES */
    uint64_t key_records; /* under one key; 0: as many as the bytes allow */
};

MUST_CHECK int seal_new(const struct seal_options *options, struct seal **out_seal,
                        struct error *error);
void seal_free(struct seal *seal); /* NULL is fine */
DEFINE_AUTO(seal);

/* `record` has the content at SEAL_HEADER_SIZE and room for the tag behind it. */
MUST_CHECK int seal_close(struct seal *seal, uint8_t *record, size_t content_size,
                          struct error *error);
/*
 * The same from content that lies elsewhere, which is not copied first: begin, the parts in order
 * with content_size bytes in all, end. No other record of this seal may come between.
 */
MUST_CHECK int seal_begin(struct seal *seal, uint8_t *record, size_t content_size,
                          struct error *error);
MUST_CHECK int seal_add(struct seal *seal, uint8_t *record, struct text part, struct error *error);
MUST_CHECK int seal_end(struct seal *seal, uint8_t *record, struct error *error);

/* The size of the content that a header announces; 0 is no record's. */
size_t seal_content_size(const uint8_t header[SEAL_HEADER_SIZE]);
/*
 * Opens in parts that go elsewhere: begin with the header, the content's parts in order, end with
 * the tag. Nothing of the content may be used before the end has succeeded.
 */
MUST_CHECK int seal_open_begin(struct seal *seal, const uint8_t header[SEAL_HEADER_SIZE],
                               struct error *error);
MUST_CHECK int seal_open_part(struct seal *seal, const uint8_t *part, size_t size, uint8_t *out,
                              struct error *error);
MUST_CHECK int seal_open_end(struct seal *seal, const uint8_t tag[SEAL_TAG_SIZE],
                             struct error *error);
/* `record` is whole: content_size + SEAL_OVERHEAD bytes. CORRUPT when it is not what was sealed. */
MUST_CHECK int seal_open(struct seal *seal, uint8_t *record, size_t content_size,
                         struct error *error);
