#include "base/assert.h"
#include "net/link_tls_internal.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static const char SUITE[] = "TLS_AES_128_GCM_SHA256";
static const uint8_t SUITE_NUMBER[2] = {0x13, 0x01};

/* Made once, then only read. */
struct shared {
    pthread_once_t once;
    SSL_CTX *contexts[2]; /* client, server */
    BIO_METHOD *bio_method;
};

static struct shared shared = {.once = PTHREAD_ONCE_INIT};

/* --- a socket BIO that never raises SIGPIPE, as OpenSSL's own does --- */

static int bio_write(BIO *bio, const char *data, int size)
{
    BIO_clear_retry_flags(bio);
    const struct link_tls_keys *keys = BIO_get_data(bio);
    const ssize_t sent = send(keys->fd, data, (size_t)size, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int bio_read(BIO *bio, char *out, int size)
{
    BIO_clear_retry_flags(bio);
    const struct link_tls_keys *keys = BIO_get_data(bio);
    const ssize_t got = recv(keys->fd, out, (size_t)size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    else if (got == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return (int)got;
}

static long bio_control(BIO *bio, int command, long number __attribute__((unused)),
                        void *pointer __attribute__((unused)))
{
    switch (command) {
    case BIO_CTRL_FLUSH:
        return 1;
    case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    default:
        return 0;
    }
}

static BIO_METHOD *make_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "souk socket");
    ASSERT(method);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    return method;
}

/* --- the key --- */

static SSL_SESSION *make_session(SSL *ssl, const uint8_t key[LINK_KEY_SIZE])
{
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, SUITE_NUMBER);
    SSL_SESSION *session = SSL_SESSION_new();
    ASSERT(cipher && session);
    if (SSL_SESSION_set1_master_key(session, key, LINK_KEY_SIZE) != 1 ||
        SSL_SESSION_set_cipher(session, cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **out_identity,
                       size_t *out_identity_size, SSL_SESSION **out_session)
{
    struct link_tls_keys *keys = SSL_get_app_data(ssl);
    *out_session = NULL;
    /* By type: OpenSSL 3 gives another pointer for the same digest. */
    if (digest && EVP_MD_get_type(digest) != NID_sha256)
        return 1;
    *out_session = make_session(ssl, keys->key);
    *out_identity = (const unsigned char *)keys->identity;
    *out_identity_size = strlen(keys->identity);
    return *out_session != NULL;
}

static int find_session(SSL *ssl, const unsigned char *identity, size_t identity_size,
                        SSL_SESSION **out_session)
{
    struct link_tls_keys *keys = SSL_get_app_data(ssl);
    const struct text name = {(const char *)identity, identity_size};
    *out_session = NULL;
    /* Control characters would spoil every message the identity is named in. */
    bool is_plain = identity_size > 0 && identity_size < sizeof(keys->identity);
    for (size_t i = 0; is_plain && i < identity_size; i++)
        is_plain = identity[i] > 0x20 && identity[i] < 0x7f;
    uint8_t key[LINK_KEY_SIZE];
    if (!is_plain || keys->find_key(*keys->context, name, key) < 0) {
        keys->is_identity_unknown = true;
        return 1; /* no such key: the handshake ends for want of a certificate */
    }
    memcpy(keys->identity, identity, identity_size);
    keys->identity[identity_size] = '\0';
    *out_session = make_session(ssl, key);
    OPENSSL_cleanse(key, sizeof(key));
    return *out_session != NULL;
}

/* --- what follows the handshake --- */

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *offered, unsigned int offered_size,
                           void *context __attribute__((unused)))
{
    const struct link_tls_keys *keys = SSL_get_app_data(ssl);
    const size_t wanted_size = keys->protocol ? strlen(keys->protocol) : 0;
    /* OpenSSL has checked that the sizes add up. */
    for (unsigned int at = 0; at < offered_size; at += 1U + offered[at])
        if (wanted_size > 0 && offered[at] == wanted_size &&
            memcmp(offered + at + 1, keys->protocol, wanted_size) == 0) {
            *out = offered + at + 1;
            *out_size = offered[at];
            return SSL_TLSEXT_ERR_OK;
        }
    return SSL_TLSEXT_ERR_NOACK;
}

static bool offer_protocol(SSL *ssl, const char *protocol)
{
    unsigned char offer[64];
    const size_t size = strlen(protocol);
    ASSERT(size > 0 && size < sizeof(offer));
    offer[0] = (unsigned char)size;
    memcpy(offer + 1, protocol, size);
    return SSL_set_alpn_protos(ssl, offer, (unsigned int)size + 1) == 0; /* 0 is success */
}

bool link_tls_is_agreed(SSL *ssl, const struct link_tls_keys *keys)
{
    const unsigned char *selected = NULL;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl, &selected, &size);
    return keys->protocol && size > 0 && size == strlen(keys->protocol) &&
           memcmp(selected, keys->protocol, size) == 0;
}

static SSL_CTX *make_context(bool is_server)
{
    char groups[] = "X25519"; /* OpenSSL's macro wants it writable */
    SSL_CTX *context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (!context)
        return NULL;
    /* SSL_VERIFY_PEER with no authority: whoever answers with a certificate is refused. */
    SSL_CTX_set_verify(context, is_server ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    if (is_server) {
        SSL_CTX_set_psk_find_session_callback(context, find_session);
        SSL_CTX_set_alpn_select_cb(context, select_protocol, NULL);
    } else {
        SSL_CTX_set_psk_use_session_callback(context, use_session);
    }
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_ciphersuites(context, SUITE) == 1 &&
        SSL_CTX_set1_groups_list(context, groups) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

static void make_shared(void)
{
    /* The system's configuration must not widen what is spoken, and costs memory. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    shared.bio_method = make_bio_method();
    shared.contexts[0] = make_context(/* is_server= */ false);
    shared.contexts[1] = make_context(/* is_server= */ true);
}

int link_tls_new(bool is_server, int fd, struct link_tls_keys *keys, SSL **out_ssl,
                 struct error *error)
{
    ASSERT(pthread_once(&shared.once, make_shared) == 0);
    SSL_CTX *context = shared.contexts[is_server];
    SSL *ssl = context ? SSL_new(context) : NULL;
    BIO *bio = ssl ? BIO_new(shared.bio_method) : NULL;
    if (!bio || (!is_server && keys->protocol && !offer_protocol(ssl, keys->protocol))) {
        BIO_free(bio);
        SSL_free(ssl);
        ERR_clear_error();
        return error_set(error, ERROR_EXHAUSTED, "TLS could not be set up");
    }
    keys->fd = fd;
    BIO_set_data(bio, keys);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, keys);
    if (is_server)
        SSL_set_accept_state(ssl);
    else
        SSL_set_connect_state(ssl);
    *out_ssl = ssl;
    return 0;
}

int link_tls_handshake(SSL *ssl, struct link_tls_keys *keys, bool *out_wants_write,
                       struct error *error)
{
    ERR_clear_error();
    errno = 0;
    const int result = SSL_do_handshake(ssl);
    if (result != 1) {
        const int kind = SSL_get_error(ssl, result);
        *out_wants_write = kind == SSL_ERROR_WANT_WRITE;
        if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
            return 0;
        return link_tls_error(ssl, result, keys, error);
    }
    OPENSSL_cleanse(keys->key, sizeof(keys->key));
    /* Without this an end that presents a certificate instead of the key would do. */
    if (SSL_session_reused(ssl) != 1)
        return error_set(error, ERROR_REFUSED, "the peer did not prove that it holds the key");
    return 1;
}

static int handshake_error(unsigned long code, const struct link_tls_keys *keys,
                           struct error *error)
{
    if (keys->is_identity_unknown)
        return error_set(error, ERROR_REFUSED, "the peer's identity is unknown");
    if (ERR_GET_REASON(code) == SSL_R_BINDER_DOES_NOT_VERIFY)
        return error_set(error, ERROR_REFUSED, "the peer does not hold the key of \"%s\"",
                         keys->identity);
    const char *reason = ERR_reason_error_string(code);
    return error_set(error, ERROR_REFUSED, "TLS handshake: %s", reason ? reason : "failed");
}

int link_tls_error(SSL *ssl, int result, const struct link_tls_keys *keys, struct error *error)
{
    const int saved_errno = errno;
    const int kind = SSL_get_error(ssl, result);
    const unsigned long code = ERR_peek_error();
    const bool is_handshake = !SSL_is_init_finished(ssl);
    ERR_clear_error();
    if (kind == SSL_ERROR_SYSCALL && saved_errno != 0) {
        error_set_errno(error, saved_errno, "connection");
        error->code = ERROR_UNAVAILABLE;
        return -1;
    }
    if (kind == SSL_ERROR_SYSCALL || kind == SSL_ERROR_ZERO_RETURN ||
        ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return error_set(error, ERROR_UNAVAILABLE,
                         is_handshake ? "connection closed during the handshake"
                                      : "connection closed without a farewell");
    if (is_handshake)
        return handshake_error(code, keys, error);
    const char *reason = ERR_reason_error_string(code);
    return error_set(error, ERROR_CORRUPT, "TLS: %s", reason ? reason : "failed");
}
