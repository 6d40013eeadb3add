/*
 * Link TLS: the two OpenSSL contexts all links share, client and server, fixed after they are made.
 *
 * TLS 1.3 only, one suite, one group, no certificates, tickets or caches. A connection finds its
 * keys through struct link_tls_keys, which hangs on the SSL object.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "net/link.h"

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct link_tls_keys {
    char identity[LINK_IDENTITY_SIZE_MAX]; /* ended by a zero byte; the client's */
    uint8_t key[LINK_KEY_SIZE];            /* the client's; wiped after the handshake */
    int (*find_key)(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE]);
    void **context; /* the link's, which may change */
    bool is_identity_unknown;
    int fd; /* borrowed */
};

/* A TLS object on `fd`, which stays the caller's. `keys` outlives it. */
MUST_CHECK int link_tls_new(bool is_server, int fd, struct link_tls_keys *keys, SSL **out_ssl,
                            struct error *error);

/*
 * Goes on with the handshake. Returns 1 when it is done and the peer has proved that it holds the
 * key, which is wiped then; 0 when it waits, to write if *out_wants_write; -1 when it failed.
 */
MUST_CHECK int link_tls_handshake(SSL *ssl, struct link_tls_keys *keys, bool *out_wants_write,
                                  struct error *error);

/* What the failed call on `ssl` means; `result` is what it returned. Clears OpenSSL's queue. */
int link_tls_error(SSL *ssl, int result, const struct link_tls_keys *keys, struct error *error);
