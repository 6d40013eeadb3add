/*
 * Link TLS: the two OpenSSL contexts all links share, client and server, fixed after they are made.
 *
 * TLS 1.3 only, one suite, one group, no certificates, tickets or caches. A connection finds its
 * keys through struct link_tls_keys, which hangs on the SSL object.
 *
 * What follows the handshake is agreed in it (ALPN, RFC 7301): the client offers at most one
 * protocol, the server names it back where it wants the same. Offer and answer are part of what the
 * handshake authenticates, so nobody on the way can take them out. Without agreement frames follow
 * in TLS records.
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
    int fd;               /* borrowed */
    const char *protocol; /* to agree on; NULL: none */
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

/* Whether both ends want `keys->protocol`; after the handshake. */
bool link_tls_is_agreed(SSL *ssl, const struct link_tls_keys *keys);

/* What the failed call on `ssl` means; `result` is what it returned. Clears OpenSSL's queue. */
int link_tls_error(SSL *ssl, int result, const struct link_tls_keys *keys, struct error *error);
