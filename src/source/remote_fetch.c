/*
 * All of a remote file into a file here: in one stream, or in parts on several connections.
 */
#include "base/assert.h"
#include "source/remote_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { HASHED_BYTES = 1 << 20 };

#define PART_BYTES ((uint64_t)8 << 20)

int remote_write_at(int fd, uint64_t offset, struct text bytes, struct error *error)
{
    for (size_t done = 0; done < bytes.size;) {
        const ssize_t written =
            pwrite(fd, bytes.data + done, bytes.size - done, (off_t)(offset + done));
        if (written < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write what was fetched");
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* ---- In one stream --------------------------------------------------------------------------- */

struct stream {
    struct remote *remote;
    int fd;
};

static int take_of_stream(void *context, uint64_t offset, struct text bytes, struct error *error)
{
    const struct stream *stream = context;
    const struct remote *remote = stream->remote;
    const uint64_t size = remote->identity.size;
    if (remote_write_at(stream->fd, offset, bytes, error) < 0)
        return -1;
    if (remote->options.on_progress)
        remote->options.on_progress(remote->options.context, offset + bytes.size,
                                    size == REMOTE_END ? 0 : size);
    return 0;
}

static int restart_stream(void *context, struct error *error)
{
    const struct stream *stream = context;
    return ftruncate(stream->fd, 0) == 0 ? 0 : error_set_errno(error, errno, "empty the file");
}

static int fetch_stream(struct remote *remote, int fd, struct error *error)
{
    struct stream stream = {remote, fd};
    struct remote_reading reading = remote_whole(remote);
    reading.sink =
        (struct remote_sink){.take = take_of_stream, .restart = restart_stream, .context = &stream};
    return remote_run(&reading, error);
}

/* ---- In parts -------------------------------------------------------------------------------- */

struct parts {
    struct remote *remote;
    int fd;
    uint64_t size;
    /* Guarded by the remote's mutex: */
    uint64_t next; /* the first byte that nobody has taken on */
    uint64_t done_bytes;
    bool is_failed;
    bool is_changed;
    struct error error; /* the first */
};

static int take_of_part(void *context, uint64_t offset, struct text bytes, struct error *error)
{
    struct parts *parts = context;
    struct remote *remote = parts->remote;
    if (remote_write_at(parts->fd, offset, bytes, error) < 0)
        return -1;
    pthread_mutex_lock(remote->mutex);
    const bool is_failed = parts->is_failed;
    parts->done_bytes += bytes.size;
    if (remote->options.on_progress && !is_failed)
        remote->options.on_progress(remote->options.context, parts->done_bytes, parts->size);
    pthread_mutex_unlock(remote->mutex);
    return is_failed ? error_set(error, ERROR_CONFLICT, "another part failed") : 0;
}

static bool take_on(struct parts *parts, uint64_t *out_first)
{
    pthread_mutex_lock(parts->remote->mutex);
    const bool has_more = !parts->is_failed && parts->next < parts->size;
    *out_first = parts->next;
    if (has_more)
        parts->next += PART_BYTES;
    pthread_mutex_unlock(parts->remote->mutex);
    return has_more;
}

static void note_failure(struct parts *parts, const struct remote_reading *reading,
                         const struct error *error)
{
    pthread_mutex_lock(parts->remote->mutex);
    if (!parts->is_failed)
        parts->error = *error;
    parts->is_failed = true;
    parts->is_changed = parts->is_changed || reading->is_changed;
    pthread_mutex_unlock(parts->remote->mutex);
}

static void *fetch_some(void *context)
{
    struct parts *parts = context;
    AUTO(http_session) struct http_session *session = http_session_new();
    uint64_t first;
    while (take_on(parts, &first)) {
        struct error error;
        struct remote_reading reading = remote_whole(parts->remote);
        reading.session = session;
        reading.first = first;
        reading.end = parts->size - first < PART_BYTES ? parts->size : first + PART_BYTES;
        reading.sink = (struct remote_sink){.take = take_of_part, .context = parts};
        random_init(&reading.random, parts->remote->options.seed + first);
        if (remote_run(&reading, &error) < 0)
            note_failure(parts, &reading, &error);
    }
    return NULL;
}

static int fetch_parts(struct remote *remote, int fd, struct error *error)
{
    for (int changes = 0;; changes++) {
        struct parts parts = {.remote = remote, .fd = fd};
        if (remote_size(remote, &parts.size, error) < 0)
            return -1;
        if (parts.size <= PART_BYTES)
            return fetch_stream(remote, fd, error);
        remote_run_threads(remote, fetch_some, &parts);
        if (!parts.is_failed)
            return 0;
        *error = parts.error;
        if (!parts.is_changed || changes >= REMOTE_CHANGES_MAX)
            return -1;
        remote->identity = (struct remote_identity){0};
        if (ftruncate(fd, 0) < 0)
            return error_set_errno(error, errno, "empty the file");
    }
}

/* ---- Whether it is what was meant ------------------------------------------------------------ */

static int hash_file(int fd, uint8_t out[PLACE_HASH_SIZE], struct error *error)
{
    uint8_t *bytes = malloc(HASHED_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(bytes && context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1);
    off_t offset = 0;
    ssize_t got;
    while ((got = pread(fd, bytes, HASHED_BYTES, offset)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0)
            EVP_DigestUpdate(context, bytes, (size_t)got);
        offset += got > 0 ? got : 0;
    }
    const int failure = errno;
    EVP_DigestFinal_ex(context, out, NULL);
    EVP_MD_CTX_free(context);
    free(bytes);
    return got < 0 ? error_set_errno(error, failure, "read what was fetched") : 0;
}

static int check_hash(const struct remote *remote, int fd, struct error *error)
{
    char name[PLACE_NAME_SIZE], hex[2 * PLACE_HASH_SIZE + 1];
    uint8_t found[PLACE_HASH_SIZE];
    if (hash_file(fd, found, error) < 0)
        return -1;
    if (memcmp(found, remote->place.hash, sizeof(found)) == 0)
        return 0;
    text_hex_encode(found, sizeof(found), hex);
    return error_set(error, ERROR_CORRUPT, "%s: its SHA-256 is %s, not what the address says",
                     place_describe(text_of(remote->address), name), hex);
}

int remote_fetch(struct remote *remote, int fd, struct error *error)
{
    const bool is_parallel = remote->scheme->is_parallel && remote->options.connections > 1;
    if ((is_parallel ? fetch_parts : fetch_stream)(remote, fd, error) < 0)
        return -1;
    return remote->place.has_hash ? check_hash(remote, fd, error) : 0;
}
