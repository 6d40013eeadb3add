#include "server/keys.h"

#include "base/assert.h"
#include "base/file.h"
#include "net/tls_certificate.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

struct keys {
    uint8_t root[KEYS_SECRET_SIZE];
    uint8_t sign_public[crypto_sign_PUBLICKEYBYTES];
    uint8_t sign_secret[crypto_sign_SECRETKEYBYTES];
    struct tls_certificate certificate;
};

static int make_path(const char *dir, const char *name, char out[PATH_SIZE], struct error *error)
{
    const int size = snprintf(out, PATH_SIZE, "%s/%s", dir, name);
    if (size < 0 || size >= PATH_SIZE)
        return error_set(error, ERROR_INVALID, "the path of the keys folder is too long");
    return 0;
}

/* A secret that others can read is no secret: refused, as ssh does. A file that is not there is. */
static int check_private(const char *path, struct error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return errno == ENOENT ? 0 : error_set_errno(error, errno, "examine \"%s\"", path);
    if (status.st_mode & 077)
        return error_set(error, ERROR_REFUSED, "\"%s\" can be read by others: run chmod 600 on it",
                         path);
    return 0;
}

static int open_secret(const char *dir, const char *name, uint8_t out[KEYS_SECRET_SIZE],
                       struct error *error)
{
    char path[PATH_SIZE];
    if (make_path(dir, name, path, error) < 0 || check_private(path, error) < 0)
        return -1;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 4096);
    struct error reason;
    if (file_read(path, &bytes, &reason) < 0) {
        if (reason.code != ERROR_NOT_FOUND) {
            *error = reason;
            return -1;
        }
        randombytes_buf(out, KEYS_SECRET_SIZE);
        const struct text secret = {(const char *)out, KEYS_SECRET_SIZE};
        return file_replace(path, &secret, 1, 0600, error);
    }
    if (bytes.size != KEYS_SECRET_SIZE)
        return error_set(error, ERROR_CORRUPT, "\"%s\" has %zu bytes, not %d", path, bytes.size,
                         KEYS_SECRET_SIZE);
    memcpy(out, bytes.data, KEYS_SECRET_SIZE);
    sodium_memzero(bytes.data, bytes.size);
    return 0;
}

static int open_certificate(struct keys *keys, const char *dir, struct error *error)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    char key_path[PATH_SIZE];
    char certificate_path[PATH_SIZE];
    if (make_path(dir, "tls.key", key_path, error) < 0 ||
        make_path(dir, "tls.crt", certificate_path, error) < 0 ||
        check_private(key_path, error) < 0)
        return -1;
    if (access(key_path, F_OK) == 0)
        return tls_certificate_read(certificate_path, key_path, &keys->certificate, error);
    if (tls_certificate_make(names, 3, &keys->certificate, error) < 0)
        return -1;
    return tls_certificate_write(&keys->certificate, certificate_path, key_path, error);
}

int keys_open(const char *dir, struct keys **out_keys, struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "the system has no randomness for libsodium");
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "create \"%s\"", dir);
    AUTO(keys) struct keys *keys = calloc(1, sizeof(*keys));
    ASSERT(keys);
    tls_certificate_init(&keys->certificate);
    uint8_t seed[KEYS_SECRET_SIZE];
    if (open_secret(dir, "root.key", keys->root, error) < 0 ||
        open_secret(dir, "sign.key", seed, error) < 0 || open_certificate(keys, dir, error) < 0)
        return -1;
    crypto_sign_seed_keypair(keys->sign_public, keys->sign_secret, seed);
    sodium_memzero(seed, sizeof(seed));
    *out_keys = TAKE(keys);
    return 0;
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    tls_certificate_done(&keys->certificate);
    sodium_memzero(keys, sizeof(*keys));
    free(keys);
}

int keys_use_certificate(struct keys *keys, const char *certificate_file, const char *key_file,
                         struct error *error)
{
    struct tls_certificate given;
    tls_certificate_init(&given);
    if (tls_certificate_read(certificate_file, key_file, &given, error) < 0) {
        tls_certificate_done(&given);
        return -1;
    }
    tls_certificate_done(&keys->certificate);
    keys->certificate = given;
    return 0;
}

const char *keys_certificate_pem(const struct keys *keys)
{
    return (const char *)keys->certificate.certificate_pem.data;
}

const char *keys_certificate_key_pem(const struct keys *keys)
{
    return (const char *)keys->certificate.key_pem.data;
}

const char *keys_fingerprint(const struct keys *keys)
{
    return keys->certificate.fingerprint;
}

const uint8_t *keys_public(const struct keys *keys)
{
    return keys->sign_public;
}

void keys_sign(const struct keys *keys, struct text bytes, uint8_t out[KEYS_SIGNATURE_SIZE])
{
    crypto_sign_detached(out, NULL, (const uint8_t *)bytes.data, bytes.size, keys->sign_secret);
}

bool keys_verify(const uint8_t public_key[KEYS_PUBLIC_SIZE], struct text bytes,
                 const uint8_t signature[KEYS_SIGNATURE_SIZE])
{
    return crypto_sign_verify_detached(signature, (const uint8_t *)bytes.data, bytes.size,
                                       public_key) == 0;
}

/* BLAKE2b-256(key = root, purpose padded to 16 bytes | first u64 LE | second u64 LE). */
static void derive(const struct keys *keys, const char *purpose, uint64_t first, uint64_t second,
                   uint8_t out[KEYS_SECRET_SIZE])
{
    uint8_t input[32] = {0};
    const size_t purpose_size = strlen(purpose);
    ASSERT(purpose_size < 16);
    memcpy(input, purpose, purpose_size);
    for (int i = 0; i < 8; i++) {
        input[16 + i] = (uint8_t)(first >> (8 * i));
        input[24 + i] = (uint8_t)(second >> (8 * i));
    }
    crypto_generichash(out, KEYS_SECRET_SIZE, input, sizeof(input), keys->root, sizeof(keys->root));
}

void keys_machine(const struct keys *keys, uint64_t machine, uint64_t generation,
                  uint8_t out[KEYS_SECRET_SIZE])
{
    derive(keys, "machine", machine, generation, out);
}

uint64_t keys_address_block(const struct keys *keys, uint64_t block)
{
    uint8_t derived[KEYS_SECRET_SIZE];
    uint64_t hash;
    derive(keys, "address block", block, 0, derived);
    memcpy(&hash, derived, sizeof(hash));
    return hash;
}

void keys_lease(const struct keys *keys, uint64_t lease, uint64_t fence,
                uint8_t out[KEYS_SECRET_SIZE])
{
    derive(keys, "lease", lease, fence, out);
}

void keys_job_secrets(const struct keys *keys, uint64_t account, uint8_t out[KEYS_SECRET_SIZE])
{
    derive(keys, "job secrets", account, 0, out);
}

void keys_ticket(const struct keys *keys, const struct keys_stream *stream,
                 uint8_t out[KEYS_SECRET_SIZE])
{
    ASSERT(stream->server_rank < 256);
    derive(keys, "stream", stream->lease, stream->attempt << 8 | stream->server_rank, out);
}

void keys_pair(const struct keys *keys, const struct keys_pair *pair,
               uint8_t out_key[KEYS_SECRET_SIZE], uint8_t out_ticket[KEYS_SECRET_SIZE])
{
    uint8_t leases[KEYS_SECRET_SIZE];
    derive(keys, "pair", pair->low_lease, pair->high_lease, leases);
    const uint64_t key_of[] = {0, pair->low_fence, pair->high_fence};
    const uint64_t ticket_of[] = {1, pair->low_fence, pair->high_fence};
    // NOLINTBEGIN(readability-suspicious-call-argument): it is in this order
    crypto_generichash(out_key, KEYS_SECRET_SIZE, (const uint8_t *)key_of, sizeof(key_of), leases,
                       sizeof(leases));
    crypto_generichash(out_ticket, KEYS_SECRET_SIZE, (const uint8_t *)ticket_of, sizeof(ticket_of),
                       leases, sizeof(leases));
    // NOLINTEND(readability-suspicious-call-argument)
    sodium_memzero(leases, sizeof(leases));
}

void keys_chunks(const struct keys *keys, const struct keys_pair *pair,
                 uint8_t out_key[KEYS_SECRET_SIZE])
{
    uint8_t leases[KEYS_SECRET_SIZE];
    derive(keys, "chunks", pair->low_lease, pair->high_lease, leases);
    const uint64_t key_of[] = {pair->low_fence, pair->high_fence};
    // NOLINTNEXTLINE(readability-suspicious-call-argument): it is in this order
    crypto_generichash(out_key, KEYS_SECRET_SIZE, (const uint8_t *)key_of, sizeof(key_of), leases,
                       sizeof(leases));
    sodium_memzero(leases, sizeof(leases));
}

/* What a lease's holder shows: "souk_KIND_LEASE_FENCE_HEX". */
static void lease_token(const struct keys *keys, const char *kind, uint64_t lease, uint64_t fence,
                        char out[KEYS_TOKEN_SIZE])
{
    uint8_t secret[KEYS_SECRET_SIZE];
    char hex[2 * KEYS_SECRET_SIZE + 1];
    /* The purpose is older than the token's name. */
    derive(keys, strcmp(kind, "lease") == 0 ? "fetch" : kind, lease, fence, secret);
    text_hex_encode(secret, sizeof(secret), hex);
    const int size = snprintf(out, KEYS_TOKEN_SIZE, "souk_%s_%" PRIu64 "_%" PRIu64 "_%s", kind,
                              lease, fence, hex);
    ASSERT(size > 0 && size < KEYS_TOKEN_SIZE);
}

static bool read_lease_token(const struct keys *keys, const char *kind, struct text token,
                             uint64_t *out_lease, uint64_t *out_fence)
{
    char expected[KEYS_TOKEN_SIZE];
    snprintf(expected, sizeof(expected), "souk_%s_", kind);
    const struct text prefix = text_of(expected);
    if (!text_starts_with(token, prefix))
        return false;
    struct text rest = {token.data + prefix.size, token.size - prefix.size};
    struct text lease_text, fence_text;
    struct error ignored; /* any failure means: not such a token */
    uint64_t lease, fence;
    if (!text_cut(rest, '_', &lease_text, &rest) || !text_cut(rest, '_', &fence_text, &rest) ||
        text_parse_u64(lease_text, &lease, &ignored) < 0 ||
        text_parse_u64(fence_text, &fence, &ignored) < 0)
        return false;
    lease_token(keys, kind, lease, fence, expected);
    if (!text_equal_secret(token, text_of(expected)))
        return false;
    *out_lease = lease;
    *out_fence = fence;
    return true;
}

void keys_fetch_token(const struct keys *keys, uint64_t lease, uint64_t fence,
                      char out[KEYS_TOKEN_SIZE])
{
    lease_token(keys, "lease", lease, fence, out);
}

bool keys_read_fetch_token(const struct keys *keys, struct text token, uint64_t *out_lease,
                           uint64_t *out_fence)
{
    return read_lease_token(keys, "lease", token, out_lease, out_fence);
}

void keys_objects_token(const struct keys *keys, uint64_t lease, uint64_t fence,
                        char out[KEYS_TOKEN_SIZE])
{
    lease_token(keys, "objects", lease, fence, out);
}

bool keys_read_objects_token(const struct keys *keys, struct text token, uint64_t *out_lease,
                             uint64_t *out_fence)
{
    return read_lease_token(keys, "objects", token, out_lease, out_fence);
}

static void format_token(const char *prefix, const uint8_t secret[KEYS_SECRET_SIZE],
                         char out[KEYS_TOKEN_SIZE])
{
    char hex[2 * KEYS_SECRET_SIZE + 1];
    text_hex_encode(secret, KEYS_SECRET_SIZE, hex);
    const int size = snprintf(out, KEYS_TOKEN_SIZE, "souk_%s_%s", prefix, hex);
    ASSERT(size > 0 && size < KEYS_TOKEN_SIZE);
}

void keys_token(const struct keys *keys, const char *prefix,
                const uint8_t request_hash[KEYS_HASH_SIZE], char out[KEYS_TOKEN_SIZE])
{
    uint8_t key[KEYS_SECRET_SIZE];
    uint8_t secret[KEYS_SECRET_SIZE];
    derive(keys, "token", 0, 0, key);
    crypto_generichash(secret, sizeof(secret), request_hash, KEYS_HASH_SIZE, key, sizeof(key));
    format_token(prefix, secret, out);
    sodium_memzero(key, sizeof(key));
}

void keys_request_hash(const struct keys *keys, struct text body, uint8_t out[KEYS_HASH_SIZE])
{
    uint8_t key[KEYS_SECRET_SIZE];
    derive(keys, "request", 0, 0, key);
    crypto_generichash(out, KEYS_HASH_SIZE, (const uint8_t *)body.data, body.size, key,
                       sizeof(key));
    sodium_memzero(key, sizeof(key));
}

void token_new(const char *prefix, char out[KEYS_TOKEN_SIZE])
{
    uint8_t secret[KEYS_SECRET_SIZE];
    randombytes_buf(secret, sizeof(secret));
    format_token(prefix, secret, out);
}

void token_hash(struct text token, uint8_t out[KEYS_HASH_SIZE])
{
    crypto_generichash(out, KEYS_HASH_SIZE, (const uint8_t *)token.data, token.size, NULL, 0);
}
