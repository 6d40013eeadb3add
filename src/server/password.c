#include "server/password.h"

#include "base/assert.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_MAX = 16, PASSES = 3, MEMORY_BYTES = 64 << 20 };

/* Of random bytes that nobody kept, made with the constants above: what a password for an unknown
 * name is compared with, so that it takes as long. */
static const char unknown[] = "$argon2id$v=19$m=65536,t=3,p=1$"
                              "sIcLIwJn5LJuTRTAEk1nsg$Ilrj32j2SssNGD6qVYn66IeMedhb4MBfwiRsEQbnCVg";

_Static_assert(PASSWORD_HASH_SIZE == crypto_pwhash_STRBYTES, "libsodium's string fits");

struct passwords {
    struct passwords_options options;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct list queue;    /* guarded by mutex */
    uint32_t queue_count; /* guarded by mutex; the one being worked on counts */
    bool is_stopping;     /* guarded by mutex */
};

int password_check(struct text password, struct text name, struct error *error)
{
    if (password.size < PASSWORD_SIZE_MIN || password.size > PASSWORD_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "password: must have %d to %d bytes, this has %zu",
                         PASSWORD_SIZE_MIN, PASSWORD_SIZE_MAX, password.size);
    if (!text_is_utf8(password) || memchr(password.data, '\0', password.size))
        return error_set(error, ERROR_INVALID, "password: must be UTF-8 text");
    if (text_equal(password, name))
        return error_set(error, ERROR_INVALID,
                         "password: is the account's name, which is tried first; take another");
    if (password_is_common(password))
        return error_set(error, ERROR_INVALID,
                         "password: is one of those that are tried first; take a few words "
                         "nobody else would put together");
    return 0;
}

/* ---- The worker ------------------------------------------------------------------------------ */

static void hash(const struct passwords *passwords, struct password_request *request)
{
    request->is_exhausted =
        crypto_pwhash_str(request->hash, request->secret, request->size, passwords->options.passes,
                          passwords->options.memory_bytes) != 0;
}

/* Out of memory and a wrong password are one thing to libsodium; a check that says no when it
 * should say "later" only makes the person try again. */
static void check(struct password_request *request)
{
    const bool is_known = request->hash[0] != '\0';
    const char *stored = is_known ? request->hash : unknown;
    const bool is_equal = crypto_pwhash_str_verify(stored, request->secret, request->size) == 0;
    request->is_match = is_known && is_equal;
}

static void done_on_loop(void *context)
{
    struct password_request *request = context;
    request->on_done(request);
}

static void finish(struct passwords *passwords, struct password_request *request)
{
    sodium_memzero(request->secret, sizeof(request->secret));
    loop_post(passwords->options.loop, done_on_loop, request);
}

static void *work(void *context)
{
    struct passwords *passwords = context;
    pthread_setname_np(pthread_self(), "souk-password");
    pthread_mutex_lock(&passwords->mutex);
    for (;;) {
        while (list_is_empty(&passwords->queue) && !passwords->is_stopping)
            pthread_cond_wait(&passwords->changed, &passwords->mutex);
        struct list_node *node = list_take_first(&passwords->queue);
        if (!node)
            break;
        const bool is_stopping = passwords->is_stopping;
        pthread_mutex_unlock(&passwords->mutex);
        struct password_request *request = LIST_ITEM(node, struct password_request, node);
        if (is_stopping)
            request->is_exhausted = true;
        else if (request->is_check)
            check(request);
        else
            hash(passwords, request);
        finish(passwords, request);
        pthread_mutex_lock(&passwords->mutex);
        passwords->queue_count--;
    }
    pthread_mutex_unlock(&passwords->mutex);
    return NULL;
}

int passwords_open(const struct passwords_options *options, struct passwords **out_passwords,
                   struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "libsodium finds no randomness");
    AUTO(passwords) struct passwords *passwords = calloc(1, sizeof(*passwords));
    ASSERT(passwords);
    passwords->options = *options;
    if (!passwords->options.queue_max)
        passwords->options.queue_max = QUEUE_MAX;
    if (!passwords->options.passes)
        passwords->options.passes = PASSES;
    if (!passwords->options.memory_bytes)
        passwords->options.memory_bytes = MEMORY_BYTES;
    list_init(&passwords->queue);
    pthread_mutex_init(&passwords->mutex, NULL);
    pthread_cond_init(&passwords->changed, NULL);
    const int result = pthread_create(&passwords->thread, NULL, work, passwords);
    if (result)
        return error_set_errno(error, result, "start the password thread");
    passwords->is_started = true;
    *out_passwords = TAKE(passwords);
    return 0;
}

void passwords_free(struct passwords *passwords)
{
    if (!passwords)
        return;
    if (passwords->is_started) {
        pthread_mutex_lock(&passwords->mutex);
        passwords->is_stopping = true;
        pthread_cond_signal(&passwords->changed);
        pthread_mutex_unlock(&passwords->mutex);
        pthread_join(passwords->thread, NULL);
    }
    pthread_cond_destroy(&passwords->changed);
    pthread_mutex_destroy(&passwords->mutex);
    free(passwords);
}

bool password_request_set(struct password_request *request, struct text secret)
{
    if (secret.size > sizeof(request->secret))
        return false;
    if (secret.size)
        memcpy(request->secret, secret.data, secret.size);
    request->size = secret.size;
    return true;
}

int passwords_submit(struct passwords *passwords, struct password_request *request,
                     struct error *error)
{
    ASSERT(request->on_done);
    if (!passwords)
        return error_set(error, ERROR_UNAVAILABLE, "the market is stopping: try again later");
    pthread_mutex_lock(&passwords->mutex);
    const bool is_full = passwords->queue_count >= passwords->options.queue_max;
    if (!is_full) {
        list_append(&passwords->queue, &request->node);
        passwords->queue_count++;
        pthread_cond_signal(&passwords->changed);
    }
    pthread_mutex_unlock(&passwords->mutex);
    if (is_full)
        return error_set(error, ERROR_UNAVAILABLE,
                         "too many people are signing in at once: try again in a few seconds");
    return 0;
}
