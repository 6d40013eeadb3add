/*
 * Listen: where a command takes requests: plain HTTP on loopback alone, HTTPS or behind a proxy
 * elsewhere.
 */
#pragma once

#include "base/error.h"
#include "net/address.h"
#include "net/tls_certificate.h"

#include <stdbool.h>

/* As of --listen, --tls-cert, --tls-key and --behind-proxy. */
struct listen_options {
    const char *listen, *tls_cert, *tls_key;
    bool is_behind_proxy;
};

/* The address, and the certificate where there is one; `certificate` was initialised and stays
 * empty otherwise. INVALID, naming the option. */
MUST_CHECK int listen_find(const struct listen_options *options, struct address *out_address,
                           struct tls_certificate *certificate, struct error *error);

enum { LISTEN_URL_SIZE = 96 };
/* "http://127.0.0.1:8501". */
void listen_url(const struct listen_options *options, const struct address *address, uint16_t port,
                char out[LISTEN_URL_SIZE]);
