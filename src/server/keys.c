#include "server/keys.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PEM_SIZE_MAX = 64 << 10, PATH_SIZE = 4096, CERTIFICATE_DAYS = 3650 };

struct keys {
    uint8_t root[KEYS_SECRET_SIZE];
    uint8_t sign_public[crypto_sign_PUBLICKEYBYTES];
    uint8_t sign_secret[crypto_sign_SECRETKEYBYTES];
    char *certificate_pem;
    char *certificate_key_pem;
    char fingerprint[KEYS_FINGERPRINT_SIZE];
};

static int make_path(const char *dir, const char *name, char out[PATH_SIZE], struct error *error)
{
    const int size = snprintf(out, PATH_SIZE, "%s/%s", dir, name);
    if (size < 0 || size >= PATH_SIZE)
        return error_set(error, ERROR_INVALID, "the path of the keys folder is too long");
    return 0;
}

/* Whole or not at all: a crash between leaves the old file or none, never half a key. */
static int write_secret(const char *path, const void *data, size_t size, struct error *error)
{
    char temporary[PATH_SIZE + 8];
    if (snprintf(temporary, sizeof(temporary), "%s.new", path) < 0)
        return error_set(error, ERROR_INVALID, "the path of the keys folder is too long");
    AUTO_FD int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "create \"%s\"", temporary);
    if (write(fd, data, size) != (ssize_t)size || fsync(fd) < 0)
        return error_set_errno(error, errno, "write \"%s\"", temporary);
    if (rename(temporary, path) < 0)
        return error_set_errno(error, errno, "rename \"%s\"", temporary);
    return 0;
}

/* 1 when the file is not there. A secret that others can read is refused, as ssh does. */
static int read_file(const char *path, bool is_secret, void *out, size_t size_max, size_t *out_size,
                     struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 1;
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "examine \"%s\"", path);
    if (is_secret && (status.st_mode & 077))
        return error_set(error, ERROR_REFUSED, "\"%s\" can be read by others: run chmod 600 on it",
                         path);
    const ssize_t size = read(fd, out, size_max);
    if (size < 0)
        return error_set_errno(error, errno, "read \"%s\"", path);
    if (status.st_size != size)
        return error_set(error, ERROR_CORRUPT, "\"%s\" is larger than a key can be", path);
    *out_size = (size_t)size;
    return 0;
}

static int open_secret(const char *dir, const char *name, uint8_t out[KEYS_SECRET_SIZE],
                       struct error *error)
{
    char path[PATH_SIZE];
    if (make_path(dir, name, path, error) < 0)
        return -1;
    uint8_t bytes[KEYS_SECRET_SIZE + 1];
    size_t size = 0;
    const int result = read_file(path, true, bytes, sizeof(bytes), &size, error);
    if (result < 0)
        return -1;
    if (result == 0 && size != KEYS_SECRET_SIZE)
        return error_set(error, ERROR_CORRUPT, "\"%s\" has %zu bytes, not %d", path, size,
                         KEYS_SECRET_SIZE);
    if (result > 0) {
        randombytes_buf(bytes, KEYS_SECRET_SIZE);
        if (write_secret(path, bytes, KEYS_SECRET_SIZE, error) < 0)
            return -1;
    }
    memcpy(out, bytes, KEYS_SECRET_SIZE);
    sodium_memzero(bytes, sizeof(bytes));
    return 0;
}

static char *bio_string(BIO *bio)
{
    char *data = NULL;
    const long size = BIO_get_mem_data(bio, &data);
    return size > 0 ? strndup(data, (size_t)size) : NULL;
}

static int add_extension(X509 *certificate, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    const int is_added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return is_added;
}

static int fill_certificate(X509 *certificate, EVP_PKEY *key)
{
    uint64_t serial = 0;
    randombytes_buf(&serial, sizeof(serial));
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, X509_VERSION_3) &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -86400) &&
           X509_time_adj_ex(X509_getm_notAfter(certificate), CERTIFICATE_DAYS, 0, NULL) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const uint8_t *)"souk market", -1,
                                      -1, 0) &&
           X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key) &&
           add_extension(certificate, NID_subject_alt_name,
                         "DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1") &&
           add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
           X509_sign(certificate, key, EVP_sha256());
}

static int make_certificate(struct keys *keys, struct error *error)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    BIO *key_bio = BIO_new(BIO_s_mem());
    BIO *certificate_bio = BIO_new(BIO_s_mem());
    if (key && certificate && key_bio && certificate_bio && fill_certificate(certificate, key) &&
        PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) &&
        PEM_write_bio_X509(certificate_bio, certificate)) {
        keys->certificate_key_pem = bio_string(key_bio);
        keys->certificate_pem = bio_string(certificate_bio);
    }
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    X509_free(certificate);
    EVP_PKEY_free(key);
    if (!keys->certificate_key_pem || !keys->certificate_pem)
        return error_set(error, ERROR_UNAVAILABLE, "OpenSSL could not make a certificate");
    return 0;
}

/* SHA-256 over the SPKI, the value that pinning compares (RFC 7469 section 2.4). */
static int take_fingerprint(struct keys *keys, struct error *error)
{
    BIO *bio = BIO_new_mem_buf(keys->certificate_pem, -1);
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO *key_bio = BIO_new_mem_buf(keys->certificate_key_pem, -1);
    EVP_PKEY *key = key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL) : NULL;
    const bool is_pair = certificate && key && X509_check_private_key(certificate, key);
    uint8_t *spki = NULL;
    const int size = is_pair ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &spki) : -1;
    uint8_t hash[32];
    if (size > 0) {
        EVP_Q_digest(NULL, "SHA256", NULL, spki, (size_t)size, hash, NULL);
        text_hex_encode(hash, sizeof(hash), keys->fingerprint);
    }
    OPENSSL_free(spki);
    EVP_PKEY_free(key);
    BIO_free(key_bio);
    X509_free(certificate);
    BIO_free(bio);
    if (size <= 0)
        return error_set(error, ERROR_CORRUPT,
                         "the TLS certificate and its key are not a pair in PEM form");
    return 0;
}

static int read_pem(const char *path, bool is_secret, char **out_pem, struct error *error)
{
    char *pem = calloc(1, PEM_SIZE_MAX + 1);
    ASSERT(pem);
    size_t size = 0;
    const int result = read_file(path, is_secret, pem, PEM_SIZE_MAX, &size, error);
    if (result != 0) {
        free(pem);
        return result;
    }
    *out_pem = pem;
    return 0;
}

static int open_certificate(struct keys *keys, const char *dir, struct error *error)
{
    char key_path[PATH_SIZE];
    char certificate_path[PATH_SIZE];
    if (make_path(dir, "tls.key", key_path, error) < 0 ||
        make_path(dir, "tls.crt", certificate_path, error) < 0)
        return -1;
    const int key_result = read_pem(key_path, true, &keys->certificate_key_pem, error);
    const int result =
        key_result ? key_result : read_pem(certificate_path, false, &keys->certificate_pem, error);
    if (result < 0)
        return -1;
    if (result > 0) {
        free(keys->certificate_key_pem);
        keys->certificate_key_pem = NULL;
        if (make_certificate(keys, error) < 0 ||
            write_secret(key_path, keys->certificate_key_pem, strlen(keys->certificate_key_pem),
                         error) < 0 ||
            write_secret(certificate_path, keys->certificate_pem, strlen(keys->certificate_pem),
                         error) < 0)
            return -1;
    }
    return take_fingerprint(keys, error);
}

int keys_open(const char *dir, struct keys **out_keys, struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "the system has no randomness for libsodium");
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "create \"%s\"", dir);
    AUTO(keys) struct keys *keys = calloc(1, sizeof(*keys));
    ASSERT(keys);
    uint8_t seed[KEYS_SECRET_SIZE];
    if (open_secret(dir, "root.key", keys->root, error) < 0 ||
        open_secret(dir, "sign.key", seed, error) < 0 || open_certificate(keys, dir, error) < 0)
        return -1;
    crypto_sign_seed_keypair(keys->sign_public, keys->sign_secret, seed);
    sodium_memzero(seed, sizeof(seed));
    *out_keys = TAKE(keys);
    return 0;
}

static void free_pem(char *pem)
{
    if (pem)
        sodium_memzero(pem, strlen(pem));
    free(pem);
}

void keys_free(struct keys *keys)
{
    if (!keys)
        return;
    free_pem(keys->certificate_key_pem);
    free(keys->certificate_pem);
    sodium_memzero(keys, sizeof(*keys));
    free(keys);
}

int keys_use_certificate(struct keys *keys, const char *certificate_file, const char *key_file,
                         struct error *error)
{
    struct keys given = {0};
    int result = read_pem(certificate_file, false, &given.certificate_pem, error);
    if (result == 0)
        result = read_pem(key_file, false, &given.certificate_key_pem, error);
    if (result > 0)
        error_set(error, ERROR_NOT_FOUND, "\"%s\" does not exist",
                  given.certificate_pem ? key_file : certificate_file);
    if (result == 0 && take_fingerprint(&given, error) < 0)
        result = error_wrap(error, "\"%s\" and \"%s\"", certificate_file, key_file);
    if (result != 0) {
        free(given.certificate_pem);
        free_pem(given.certificate_key_pem);
        return -1;
    }
    free(keys->certificate_pem);
    free_pem(keys->certificate_key_pem);
    keys->certificate_pem = given.certificate_pem;
    keys->certificate_key_pem = given.certificate_key_pem;
    memcpy(keys->fingerprint, given.fingerprint, sizeof(keys->fingerprint));
    return 0;
}

const char *keys_certificate_pem(const struct keys *keys)
{
    return keys->certificate_pem;
}

const char *keys_certificate_key_pem(const struct keys *keys)
{
    return keys->certificate_key_pem;
}

const char *keys_fingerprint(const struct keys *keys)
{
    return keys->fingerprint;
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

void keys_lease(const struct keys *keys, uint64_t lease, uint64_t fence,
                uint8_t out[KEYS_SECRET_SIZE])
{
    derive(keys, "lease", lease, fence, out);
}

void keys_ticket(const struct keys *keys, uint64_t lease, uint64_t attempt,
                 uint8_t out[KEYS_SECRET_SIZE])
{
    derive(keys, "stream", lease, attempt, out);
}

void keys_fetch_token(const struct keys *keys, uint64_t lease, uint64_t fence,
                      char out[KEYS_TOKEN_SIZE])
{
    uint8_t secret[KEYS_SECRET_SIZE];
    char hex[2 * KEYS_SECRET_SIZE + 1];
    derive(keys, "fetch", lease, fence, secret);
    text_hex_encode(secret, sizeof(secret), hex);
    const int size =
        snprintf(out, KEYS_TOKEN_SIZE, "souk_lease_%" PRIu64 "_%" PRIu64 "_%s", lease, fence, hex);
    ASSERT(size > 0 && size < KEYS_TOKEN_SIZE);
}

bool keys_read_fetch_token(const struct keys *keys, struct text token, uint64_t *out_lease,
                           uint64_t *out_fence)
{
    const struct text prefix = TEXT("souk_lease_");
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
    char expected[KEYS_TOKEN_SIZE];
    keys_fetch_token(keys, lease, fence, expected);
    if (!text_equal_secret(token, text_of(expected)))
        return false;
    *out_lease = lease;
    *out_fence = fence;
    return true;
}

void token_new(const char *prefix, char out[KEYS_TOKEN_SIZE])
{
    uint8_t secret[KEYS_SECRET_SIZE];
    char hex[2 * KEYS_SECRET_SIZE + 1];
    randombytes_buf(secret, sizeof(secret));
    text_hex_encode(secret, sizeof(secret), hex);
    const int size = snprintf(out, KEYS_TOKEN_SIZE, "souk_%s_%s", prefix, hex);
    ASSERT(size > 0 && size < KEYS_TOKEN_SIZE);
}

void token_hash(struct text token, uint8_t out[KEYS_HASH_SIZE])
{
    crypto_generichash(out, KEYS_HASH_SIZE, (const uint8_t *)token.data, token.size, NULL, 0);
}
