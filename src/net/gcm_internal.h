/*
 * GCM: AES-128-GCM of records (net/seal.h), by the fastest code there is.
 *
 * OpenSSL's serves everywhere. Intel's multi-buffer library, where it is installed and the
 * processor has VAES, takes a third of the time of OpenSSL 3.0, which has no code for that. Both
 * give the same bytes: the ends of a link need not agree.
 *
 * A record is begun with its nonce and what is only authenticated, gets its content in any parts,
 * and is ended by its tag. Functions return 0, or -1 when the cipher fails.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GCM_KEY_SIZE = 16, GCM_NONCE_SIZE = 12, GCM_TAG_SIZE = 16 };

struct gcm {
    const struct gcm_ops *ops;
    bool is_opening;
};

struct gcm_ops {
    const char *name;
    struct gcm *(*make)(void); /* NULL: this machine has not what it takes */
    void (*free)(struct gcm *gcm);
    int (*set_key)(struct gcm *gcm, const uint8_t key[GCM_KEY_SIZE]);
    int (*begin)(struct gcm *gcm, const uint8_t nonce[GCM_NONCE_SIZE], const uint8_t *head,
                 size_t head_size);
    int (*add)(struct gcm *gcm, const uint8_t *part, size_t size, uint8_t *out);
    int (*seal_end)(struct gcm *gcm, uint8_t out_tag[GCM_TAG_SIZE]);
    /* -1 also where the tag is another. */
    int (*open_end)(struct gcm *gcm, const uint8_t tag[GCM_TAG_SIZE]);
};

extern const struct gcm_ops gcm_openssl;
extern const struct gcm_ops gcm_vaes; /* Intel's */

/* By `ops`, or, where that is NULL, by the fastest; NULL where this machine has not what it takes.
 */
struct gcm *gcm_new(const struct gcm_ops *ops, bool is_opening);
void gcm_free(struct gcm *gcm); /* NULL is fine */
DEFINE_AUTO(gcm);
