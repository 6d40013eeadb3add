#include "net/tls_certificate.h"

#include "base/assert.h"
#include "base/scope.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/stat.h>

enum { PEM_SIZE_MAX = 256 * 1024, VALID_DAYS = 3650 };

#define DEFINE_OPENSSL_AUTO(name, type, function)                                                  \
    static void auto_##name(type **owned) /* NOLINT(bugprone-macro-parentheses) */                 \
    {                                                                                              \
        function(*owned);                                                                          \
    }
#define OPENSSL_AUTO(name) __attribute__((cleanup(auto_##name)))

DEFINE_OPENSSL_AUTO(key, EVP_PKEY, EVP_PKEY_free)
DEFINE_OPENSSL_AUTO(x509, X509, X509_free)
DEFINE_OPENSSL_AUTO(bio, BIO, BIO_free_all)

void tls_certificate_init(struct tls_certificate *certificate)
{
    buffer_init(&certificate->certificate_pem, PEM_SIZE_MAX);
    buffer_init(&certificate->key_pem, PEM_SIZE_MAX);
    certificate->fingerprint[0] = '\0';
}

void tls_certificate_done(struct tls_certificate *certificate)
{
    if (certificate->key_pem.data)
        OPENSSL_cleanse(certificate->key_pem.data, certificate->key_pem.capacity);
    buffer_done(&certificate->certificate_pem);
    buffer_done(&certificate->key_pem);
}

static int fail(struct error *error, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    error_set(error, ERROR_INVALID, "%s: %s", what, reason ? reason : "failed");
    ERR_clear_error();
    return -1;
}

/* --- making --- */

static int add_name(GENERAL_NAMES *names, const char *name)
{
    GENERAL_NAME *general = GENERAL_NAME_new();
    if (!general)
        return -1;
    ASN1_STRING *value = NULL;
    uint8_t address[16];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1) {
        value = a2i_IPADDRESS(name);
        GENERAL_NAME_set0_value(general, GEN_IPADD, value);
    } else {
        value = ASN1_IA5STRING_new();
        if (value && ASN1_STRING_set(value, name, -1) != 1) {
            ASN1_STRING_free(value);
            value = NULL;
        }
        GENERAL_NAME_set0_value(general, GEN_DNS, value);
    }
    if (!value || sk_GENERAL_NAME_push(names, general) == 0) {
        GENERAL_NAME_free(general);
        return -1;
    }
    return 0;
}

static int add_names(X509 *x509, const char *const *names, size_t name_count)
{
    GENERAL_NAMES *list = sk_GENERAL_NAME_new_null();
    int result = list ? 0 : -1;
    for (size_t i = 0; result == 0 && i < name_count; i++)
        result = add_name(list, names[i]);
    if (result == 0 && X509_add1_ext_i2d(x509, NID_subject_alt_name, list, 0, 0) != 1)
        result = -1;
    sk_GENERAL_NAME_pop_free(list, GENERAL_NAME_free);
    return result;
}

static int add_extension(X509 *x509, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    const int result = extension && X509_add_ext(x509, extension, -1) == 1 ? 0 : -1;
    X509_EXTENSION_free(extension);
    return result;
}

static int set_serial(X509 *x509)
{
    uint8_t random[16];
    if (RAND_bytes(random, sizeof(random)) != 1)
        return -1;
    random[0] &= 0x7f; /* positive, as RFC 5280 4.1.2.2 asks */
    BIGNUM *number = BN_bin2bn(random, sizeof(random), NULL);
    const int result = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)) ? 0 : -1;
    BN_free(number);
    return result;
}

static int fill_certificate(X509 *x509, EVP_PKEY *key, const char *const *names, size_t name_count)
{
    X509_NAME *subject = X509_get_subject_name(x509);
    /* A day back, for clients whose clock is behind. */
    return X509_set_version(x509, X509_VERSION_3) == 1 && set_serial(x509) == 0 &&
                   X509_gmtime_adj(X509_getm_notBefore(x509), -24L * 3600) &&
                   X509_gmtime_adj(X509_getm_notAfter(x509), (long)VALID_DAYS * 24 * 3600) &&
                   X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                              (const unsigned char *)names[0], -1, -1, 0) == 1 &&
                   X509_set_issuer_name(x509, subject) == 1 && X509_set_pubkey(x509, key) == 1 &&
                   add_names(x509, names, name_count) == 0 &&
                   add_extension(x509, NID_basic_constraints, "critical,CA:FALSE") == 0 &&
                   add_extension(x509, NID_key_usage, "critical,digitalSignature") == 0 &&
                   add_extension(x509, NID_ext_key_usage, "serverAuth") == 0 &&
                   X509_sign(x509, key, EVP_sha256()) > 0
               ? 0
               : -1;
}

static int append_bio(struct buffer *buffer, BIO *bio, struct error *error)
{
    char *data = NULL;
    const long size = BIO_get_mem_data(bio, &data);
    buffer_clear(buffer);
    buffer_append(buffer, data, size > 0 ? (size_t)size : 0);
    OPENSSL_cleanse(data, size > 0 ? (size_t)size : 0);
    (void)buffer_string(buffer);
    return buffer_check(buffer, error);
}

static int set_fingerprint(EVP_PKEY *key, struct tls_certificate *certificate, struct error *error)
{
    unsigned char *der = NULL;
    const int size = i2d_PUBKEY(key, &der);
    if (size <= 0)
        return fail(error, "encode a public key");
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_size = 0;
    const int result = EVP_Digest(der, (size_t)size, digest, &digest_size, EVP_sha256(), NULL);
    OPENSSL_free(der);
    if (result != 1 || digest_size != 32)
        return fail(error, "digest a public key");
    text_hex_encode(digest, digest_size, certificate->fingerprint);
    return 0;
}

int tls_certificate_make(const char *const *names, size_t name_count,
                         struct tls_certificate *certificate, struct error *error)
{
    ASSERT(name_count > 0);
    OPENSSL_AUTO(key) EVP_PKEY *key = EVP_EC_gen("P-256");
    OPENSSL_AUTO(x509) X509 *x509 = X509_new();
    OPENSSL_AUTO(bio) BIO *certificate_bio = BIO_new(BIO_s_mem());
    OPENSSL_AUTO(bio) BIO *key_bio = BIO_new(BIO_s_mem());
    if (!key || !x509 || !certificate_bio || !key_bio ||
        fill_certificate(x509, key, names, name_count) < 0 ||
        PEM_write_bio_X509(certificate_bio, x509) != 1 ||
        PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return fail(error, "make a certificate");
    if (append_bio(&certificate->certificate_pem, certificate_bio, error) < 0 ||
        append_bio(&certificate->key_pem, key_bio, error) < 0)
        return -1;
    return set_fingerprint(key, certificate, error);
}

/* --- files --- */

static int read_pem(const char *path, struct buffer *buffer, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    buffer_clear(buffer);
    for (;;) {
        uint8_t piece[4096];
        const ssize_t got = read(fd, piece, sizeof(piece));
        if (got < 0)
            return error_set_errno(error, errno, "read \"%s\"", path);
        if (got == 0)
            break;
        buffer_append(buffer, piece, (size_t)got);
        OPENSSL_cleanse(piece, sizeof(piece));
    }
    (void)buffer_string(buffer);
    if (buffer_check(buffer, error) < 0)
        return error_wrap(error, "read \"%s\"", path);
    return 0;
}

int tls_certificate_read(const char *certificate_path, const char *key_path,
                         struct tls_certificate *certificate, struct error *error)
{
    if (read_pem(certificate_path, &certificate->certificate_pem, error) < 0 ||
        read_pem(key_path, &certificate->key_pem, error) < 0)
        return -1;
    OPENSSL_AUTO(bio)
    BIO *certificate_bio =
        BIO_new_mem_buf(certificate->certificate_pem.data, (int)certificate->certificate_pem.size);
    OPENSSL_AUTO(bio)
    BIO *key_bio = BIO_new_mem_buf(certificate->key_pem.data, (int)certificate->key_pem.size);
    OPENSSL_AUTO(x509) X509 *x509 = PEM_read_bio_X509(certificate_bio, NULL, NULL, NULL);
    if (!x509)
        return fail(error, certificate_path);
    /* An empty passphrase, so that nobody is asked for one on the terminal. */
    char passphrase[] = "";
    OPENSSL_AUTO(key) EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, passphrase);
    if (!key)
        return fail(error, key_path);
    if (X509_check_private_key(x509, key) != 1) {
        ERR_clear_error();
        return error_set(error, ERROR_INVALID, "key \"%s\" does not belong to certificate \"%s\"",
                         key_path, certificate_path);
    }
    return set_fingerprint(key, certificate, error);
}

static int write_new(const char *path, mode_t mode, const struct buffer *buffer,
                     struct error *error)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && errno == EEXIST)
        return error_set(error, ERROR_CONFLICT, "\"%s\" exists already", path);
    if (fd < 0)
        return error_set_errno(error, errno, "create \"%s\"", path);
    size_t done = 0;
    while (done < buffer->size) {
        const ssize_t written = write(fd, buffer->data + done, buffer->size - done);
        if (written < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write \"%s\"", path);
        done += written > 0 ? (size_t)written : 0;
    }
    if (fsync(fd) < 0)
        return error_set_errno(error, errno, "write \"%s\"", path);
    return 0;
}

int tls_certificate_write(const struct tls_certificate *certificate, const char *certificate_path,
                          const char *key_path, struct error *error)
{
    if (write_new(key_path, 0600, &certificate->key_pem, error) < 0)
        return -1;
    return write_new(certificate_path, 0644, &certificate->certificate_pem, error);
}
