/*
 * Remote: a file that lies elsewhere (source/place.h), brought here or read in part.
 *
 * Calls block. A server that answers 5xx, 408 or 429, resets, sends too little or too slowly is
 * asked again after a pause that doubles, with seeded jitter; reading goes on where it stood as
 * long as the file is the same by its ETag, date or size, and begins anew when it is not. Every
 * refusal is one sentence that names the place, without its query.
 *
 * A program that fetches on behalf of strangers sets `may_dial` (address_is_public): it is asked of
 * every address that a host's name stands for, redirects and data nodes included, at the moment it
 * is dialled. No proxy is used then.
 *
 *     AUTO(remote) struct remote *remote = NULL;
 *     if (remote_open(&options, &remote, error) < 0 || remote_fetch(remote, fd, error) < 0)
 *         return -1;
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"
#include "net/address.h"
#include "source/place.h"

#include <stdbool.h>
#include <stdint.h>

/* They are in memory alone: no call writes or logs them, and messages do not hold them. */
struct remote_credentials {
    char access_key[132];     /* S3: AWS_ACCESS_KEY_ID; "": requests are not signed */
    char secret_key[132];     /* AWS_SECRET_ACCESS_KEY */
    char session_token[3072]; /* AWS_SESSION_TOKEN; "": none */
    char region[64];          /* AWS_REGION; "": us-east-1, or what the bucket says */
    char
        endpoint_url[256]; /* AWS_ENDPOINT_URL: of S3 elsewhere, "http://host:9000"; "": Amazon's */
    char hdfs_user[64];    /* HADOOP_USER_NAME; "": the name node's default */
    char hdfs_token[1024]; /* a delegation token; "": none */
};

/* INVALID: no such name as above, or too long. The value is never in the message. */
MUST_CHECK int remote_credentials_set(struct remote_credentials *credentials, struct text name,
                                      struct text value, struct error *error);
/* The names that are known, to be looked for in an environment; a later one counts more. NULL:
 * there are no more. */
const char *remote_credential_name(size_t index);
/* Those of this process's environment. */
MUST_CHECK int remote_credentials_take_environment(struct remote_credentials *credentials,
                                                   struct error *error);
void remote_credentials_wipe(struct remote_credentials *credentials);
#define AUTO_CREDENTIALS __attribute__((cleanup(remote_credentials_wipe)))

struct http_session; /* net/http_client.h */

struct remote_options {
    const char *address; /* of place.h, not file:// */

    uint64_t size_max;          /* a larger file fails with EXHAUSTED; 0: 64 GiB */
    int64_t connect_timeout_ms; /* 0: 10 s */
    int64_t bytes_per_s_min;    /* fewer over slow_ms: the connection is given up; 0: 1024 */
    int64_t slow_ms;            /* 0: 20 s */
    uint32_t attempts_max;      /* in a row that bring less than a MiB each; 0: 5 */
    uint32_t connections;       /* of S3, at a time; 0: 4; 8 at most */
    int64_t pause_ms;           /* before the second attempt, then twice that; 0: 500 */
    uint64_t seed;              /* of the jitter */

    const struct remote_credentials *credentials; /* copied; NULL: none */
    /* Of connections that several remotes of one thread share; outlives them. NULL: its own. */
    struct http_session *session;

    /* All may be NULL. With several connections they are called from threads of ours, one at a
     * time. */
    bool (*may_dial)(void *context, const struct address *address);
    /* Asked of each address that a server redirects to; false: REFUSED. */
    bool (*may_follow)(void *context, const char *url);
    /* About once a second, also while nothing comes; true: CONFLICT "stopped". */
    bool (*is_stopped)(void *context);
    /* What there is of it so far; `total_bytes` is 0 while it is not known. May go back. */
    void (*on_progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    /* Before each pause: why, and how long it is. */
    void (*on_retry)(void *context, const struct error *reason, int64_t pause_ms);
    void *context;
};

struct remote;

/* Asks the server nothing yet. INVALID: the address is none, or is file://. */
MUST_CHECK int remote_open(const struct remote_options *options, struct remote **out_remote,
                           struct error *error);
/* Wipes its credentials. NULL is fine. */
void remote_free(struct remote *remote);
DEFINE_AUTO(remote);

/*
 * All of them fail with NOT_FOUND: there is no such file; REFUSED: the server or a hook does not
 * want it; EXHAUSTED: it is larger than size_max; UNAVAILABLE: gave up; CORRUPT: the bytes are not
 * those of the hash, or an answer is none; CONFLICT: stopped, or it changed all the time.
 */

/* Asks, once, whether it is there and may be read. */
MUST_CHECK int remote_check(struct remote *remote, struct error *error);

/* Asks for the size once. UNAVAILABLE when the server does not tell it. */
MUST_CHECK int remote_size(struct remote *remote, uint64_t *out_size, struct error *error);

/* Exactly these bytes: `offset` + `size` is within remote_size. UNAVAILABLE when the server reads
 * no ranges; CONFLICT when it is another file than at the first call. */
MUST_CHECK int remote_read(struct remote *remote, uint64_t offset, void *out, size_t size,
                           struct error *error);

/* Writes the whole to the empty file behind `fd`, from its first byte, and checks the hash where
 * the address has one. After a failure a part may be there. */
MUST_CHECK int remote_fetch(struct remote *remote, int fd, struct error *error);

/*
 * The files below an address that ends in a slash, into the folder `folder`, which is there and
 * empty; folders within it are made. S3 and HDFS only: INVALID of a web server, which lists none.
 * NOT_FOUND: there are no files. EXHAUSTED: more than `files_max`, or than size_max bytes together.
 */
MUST_CHECK int remote_fetch_folder(struct remote *remote, const char *folder, uint32_t files_max,
                                   struct error *error);

/* Puts all of the file behind `fd` there, in place of what is there. S3 and HDFS only, of an
 * address without a slash behind it: INVALID otherwise. Whole or not at all, but of HDFS a part may
 * be left when it fails. */
MUST_CHECK int remote_put(struct remote *remote, int fd, struct error *error);

/* All of it in place of what `out` holds; past its maximum EXHAUSTED. */
MUST_CHECK int remote_read_all(struct remote *remote, struct buffer *out, struct error *error);

/* Objects of S3 only: INVALID of other places. Bytes in memory, put by one request; `is_once`:
 * CONFLICT, changing nothing, where something is there already. That may be what an attempt of this
 * very call has put, whose answer got lost. */
MUST_CHECK int remote_put_bytes(struct remote *remote, struct text bytes, bool is_once,
                                struct error *error);
/* One that is not there is fine. */
MUST_CHECK int remote_delete(struct remote *remote, struct error *error);

/* Of the last answer; "": it did not say. Valid until the next call. */
const char *remote_content_type(const struct remote *remote);
