/*
 * TLS certificate: self-signed ECDSA P-256, and the fingerprint by which clients pin it.
 *
 * P-256 because browsers do not take Ed25519. The fingerprint is the SHA-256 of the public key
 * (SubjectPublicKeyInfo), so it survives a renewed certificate with the same key.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

enum { TLS_FINGERPRINT_SIZE = 65 }; /* 64 hex digits and the zero byte */

struct tls_certificate {
    struct buffer certificate_pem; /* both end with a zero byte that does not count */
    struct buffer key_pem;
    char fingerprint[TLS_FINGERPRINT_SIZE];
};

void tls_certificate_init(struct tls_certificate *certificate);
void tls_certificate_done(struct tls_certificate *certificate); /* wipes the key */
#define AUTO_TLS_CERTIFICATE __attribute__((cleanup(tls_certificate_done)))

/* Names are DNS names or numeric addresses, at least one; the first is the common name. Valid for
 * ten years. `certificate` was initialised. */
MUST_CHECK int tls_certificate_make(const char *const *names, size_t name_count,
                                    struct tls_certificate *certificate, struct error *error);
/* From two files; the key must belong to the certificate (the first, of a chain). */
MUST_CHECK int tls_certificate_read(const char *certificate_path, const char *key_path,
                                    struct tls_certificate *certificate, struct error *error);
/* Writes two new files, the key with mode 0600; CONFLICT when one exists. */
MUST_CHECK int tls_certificate_write(const struct tls_certificate *certificate,
                                     const char *certificate_path, const char *key_path,
                                     struct error *error);
