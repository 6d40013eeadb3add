/*
 * Objects of S3, by one request each; connections are kept. Objects that are read in parts stay
 * open: their size and ETag are asked for once.
 */
#include "base/memory.h"
#include "function/object_store_internal.h"
#include "net/http_client.h"
#include "source/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 8, ADDRESS_SIZE = 512 };

struct s3_store {
    struct object_store store;
    struct remote_credentials credentials;
    struct http_session *session;
    uint32_t attempts_max;
    bool (*is_stopped)(void *context);
    void *context;
    char prefix[ADDRESS_SIZE]; /* without a slash behind it */
    /* Those read in parts, the newest first. */
    struct {
        char key[OBJECT_KEY_SIZE];
        struct remote *remote;
    } open[OPEN_MAX];
};

static struct s3_store *s3_of(struct object_store *store)
{
    return (struct s3_store *)store;
}

/* `bytes_max` 0: as many as there are. */
static int open_within(struct object_store *store, const char *key, size_t bytes_max,
                       struct remote **out_remote, struct error *error)
{
    const struct s3_store *s3 = s3_of(store);
    char address[ADDRESS_SIZE + OBJECT_KEY_SIZE];
    snprintf(address, sizeof(address), "%s/%s", s3->prefix, key);
    const struct remote_options options = {.address = address,
                                           .credentials = &s3->credentials,
                                           .attempts_max = s3->attempts_max,
                                           .size_max = bytes_max,
                                           .connections = 1,
                                           .session = s3->session,
                                           .is_stopped = s3->is_stopped,
                                           .context = s3->context};
    return remote_open(&options, out_remote, error);
}

static int open_object(struct object_store *store, const char *key, struct remote **out_remote,
                       struct error *error)
{
    return open_within(store, key, 0, out_remote, error);
}

static int s3_read(struct object_store *store, const char *key, struct buffer *out,
                   struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return open_object(store, key, &remote, error) < 0 ? -1 : remote_read_all(remote, out, error);
}

static int find_open(struct s3_store *s3, const char *key, struct remote **out_remote,
                     struct error *error)
{
    for (int i = 0; i < OPEN_MAX && s3->open[i].remote; i++)
        if (strcmp(s3->open[i].key, key) == 0) {
            *out_remote = s3->open[i].remote;
            return 0;
        }
    struct remote *remote;
    if (open_object(&s3->store, key, &remote, error) < 0)
        return -1;
    remote_free(s3->open[OPEN_MAX - 1].remote);
    memmove(&s3->open[1], &s3->open[0], (OPEN_MAX - 1) * sizeof(s3->open[0]));
    snprintf(s3->open[0].key, sizeof(s3->open[0].key), "%s", key);
    s3->open[0].remote = *out_remote = remote;
    return 0;
}

static int s3_read_part(struct object_store *store, const char *key, uint64_t offset, void *out,
                        size_t size, struct error *error)
{
    struct remote *remote;
    uint64_t whole;
    if (find_open(s3_of(store), key, &remote, error) < 0 || remote_size(remote, &whole, error) < 0)
        return -1;
    if (offset > whole || size > whole - offset)
        return error_set(error, ERROR_CORRUPT, "\"%s\" ends too early", key);
    return remote_read(remote, offset, out, size, error);
}

static int s3_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                  struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return open_object(store, key, &remote, error) < 0
               ? -1
               : remote_put_bytes(remote, bytes, is_once, error);
}

static int s3_fetch(struct object_store *store, const char *key, int fd, size_t bytes_max,
                    struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return open_within(store, key, bytes_max, &remote, error) < 0 ? -1
                                                                  : remote_fetch(remote, fd, error);
}

static int s3_put_file(struct object_store *store, const char *key, int fd, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return open_object(store, key, &remote, error) < 0 ? -1 : remote_put(remote, fd, error);
}

static int s3_delete(struct object_store *store, const char *key, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    return open_object(store, key, &remote, error) < 0 ? -1 : remote_delete(remote, error);
}

static void s3_free(struct object_store *store)
{
    struct s3_store *s3 = s3_of(store);
    for (int i = 0; i < OPEN_MAX; i++)
        remote_free(s3->open[i].remote);
    http_session_free(s3->session);
    remote_credentials_wipe(&s3->credentials);
    free(s3);
}

static const struct object_store_ops s3_ops = {
    .read = s3_read,
    .read_part = s3_read_part,
    .put = s3_put,
    .fetch = s3_fetch,
    .put_file = s3_put_file,
    .delete = s3_delete,
    .free = s3_free,
};

int object_store_open_s3(const struct object_store_options *options,
                         struct object_store **out_store, struct error *error)
{
    struct text place = text_of(options->place);
    struct place parsed;
    while (text_ends_with(place, TEXT("/")))
        place.size--;
    struct s3_store *s3 = memory_zeroed(1, sizeof(*s3));
    s3->store.ops = &s3_ops;
    s3->attempts_max = options->attempts_max;
    s3->is_stopped = options->is_stopped;
    s3->context = options->context;
    s3->session = http_session_new();
    if (options->credentials)
        s3->credentials = *options->credentials;
    /* A bucket alone is a folder, too: only what lies in it is an object. */
    char trial[ADDRESS_SIZE + 2];
    if (text_copy(place, s3->prefix, sizeof(s3->prefix), error) < 0 ||
        (snprintf(trial, sizeof(trial), "%s/x", s3->prefix) > 0 &&
         place_parse(text_of(trial), &parsed, error) < 0)) {
        s3_free(&s3->store);
        return error_wrap(error, "the store");
    }
    *out_store = &s3->store;
    return 0;
}
