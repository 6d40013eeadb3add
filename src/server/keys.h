/*
 * Keys: the market's secrets, what is derived from them, and fresh tokens and codes.
 *
 * Kept in DATA/keys, mode 0600, made on first start:
 *     root.key         32 random bytes; every link key, lease key and fetch token derives from it
 *     sign.key         Ed25519 seed, 32 bytes; signs leases
 *     tls.key, tls.crt ECDSA P-256 key and self-signed certificate, PEM
 * The fingerprint that others pin is SHA-256 over the certificate's public key (SPKI, DER), hex.
 *
 * Derived keys are BLAKE2b-256 keyed with the root secret over the purpose and two numbers, so
 * none is ever stored: the same lease and fence give the same key after a restart.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEYS_SECRET_SIZE = 32,
    KEYS_PUBLIC_SIZE = 32,
    KEYS_SIGNATURE_SIZE = 64,
    KEYS_HASH_SIZE = 32,
    KEYS_FINGERPRINT_SIZE = 65, /* hex and a zero byte */
    KEYS_TOKEN_SIZE = 128,      /* room for any token or code and a zero byte */
};

struct keys;

/* Reads the folder, making what is absent. CORRUPT when a file has the wrong size or is not a key;
 * REFUSED when a secret can be read by others. */
MUST_CHECK int keys_open(const char *dir, struct keys **out_keys, struct error *error);
void keys_free(struct keys *keys); /* wipes the secrets; NULL is fine */
DEFINE_AUTO(keys);

/* Takes a certificate from elsewhere in place of our own; the fingerprint follows it. */
MUST_CHECK int keys_use_certificate(struct keys *keys, const char *certificate_file,
                                    const char *key_file, struct error *error);

const char *keys_certificate_pem(const struct keys *keys);
const char *keys_certificate_key_pem(const struct keys *keys);
const char *keys_fingerprint(const struct keys *keys);
const uint8_t *keys_public(const struct keys *keys); /* KEYS_PUBLIC_SIZE bytes */

void keys_sign(const struct keys *keys, struct text bytes, uint8_t out[KEYS_SIGNATURE_SIZE]);
bool keys_verify(const uint8_t public_key[KEYS_PUBLIC_SIZE], struct text bytes,
                 const uint8_t signature[KEYS_SIGNATURE_SIZE]);

/* The pre-shared key of a machine's control link. */
void keys_machine(const struct keys *keys, uint64_t machine, uint64_t generation,
                  uint8_t out[KEYS_SECRET_SIZE]);
/* The pre-shared key of the streams between a lease and the parameter servers it dials. */
void keys_lease(const struct keys *keys, uint64_t lease, uint64_t fence,
                uint8_t out[KEYS_SECRET_SIZE]);

/* What the secrets of an account's jobs are sealed with. */
void keys_job_secrets(const struct keys *keys, uint64_t account, uint8_t out[KEYS_SECRET_SIZE]);

struct keys_stream {
    uint64_t lease;       /* that dials */
    uint32_t server_rank; /* whom; below 256 */
    uint64_t attempt;     /* counts how often it was dialled anew */
};
/* Names the relayed stream of a lease to one of its job's parameter servers. */
void keys_ticket(const struct keys *keys, const struct keys_stream *stream,
                 uint8_t out[KEYS_SECRET_SIZE]);

struct keys_pair {
    uint64_t low_lease, low_fence; /* the lease with the lower number */
    uint64_t high_lease, high_fence;
};
/* The pre-shared key between two ranks of a job's network, and what names their stream. */
void keys_pair(const struct keys *keys, const struct keys_pair *pair,
               uint8_t out_key[KEYS_SECRET_SIZE], uint8_t out_ticket[KEYS_SECRET_SIZE]);

/* The pre-shared key between two workers of a job that exchange chunks. */
void keys_chunks(const struct keys *keys, const struct keys_pair *pair,
                 uint8_t out_key[KEYS_SECRET_SIZE]);

/* "souk_lease_LEASE_FENCE_HEX": lets the holder of a lease fetch and store chunks. */
void keys_fetch_token(const struct keys *keys, uint64_t lease, uint64_t fence,
                      char out[KEYS_TOKEN_SIZE]);
/* False when the token is not of that form or its secret part is wrong. */
bool keys_read_fetch_token(const struct keys *keys, struct text token, uint64_t *out_lease,
                           uint64_t *out_fence);

/* "souk_objects_LEASE_FENCE_HEX": for the functions that a lease calls, and its objects alone. */
void keys_objects_token(const struct keys *keys, uint64_t lease, uint64_t fence,
                        char out[KEYS_TOKEN_SIZE]);
bool keys_read_objects_token(const struct keys *keys, struct text token, uint64_t *out_lease,
                             uint64_t *out_fence);

/* Stands for an address block where it is kept: cannot be turned back without the root secret. */
uint64_t keys_address_block(const struct keys *keys, uint64_t block);

/* Fresh, from the system's randomness: "souk_" PREFIX "_" and 32 bytes as hex. */
void token_new(const char *prefix, char out[KEYS_TOKEN_SIZE]);
/* The token of a request that may be repeated: the same for the same request, never stored. */
void keys_token(const struct keys *keys, const char *prefix,
                const uint8_t request_hash[KEYS_HASH_SIZE], char out[KEYS_TOKEN_SIZE]);
/* What is stored of a request's body, which may hold a password: cannot be guessed at without the
 * root secret. */
void keys_request_hash(const struct keys *keys, struct text body, uint8_t out[KEYS_HASH_SIZE]);
/* What is stored of a token or code: BLAKE2b-256. */
void token_hash(struct text token, uint8_t out[KEYS_HASH_SIZE]);
