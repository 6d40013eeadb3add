/*
 * Remote, inside: what is asked of a server for one kind of place, and one reading of a range.
 */
#pragma once

#include "base/arena.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/random.h"
#include "net/http_client.h"
#include "source/remote.h"

#include <pthread.h>

#define REMOTE_END UINT64_MAX /* of a range: wherever the file ends */

enum {
    REMOTE_URL_SIZE = 3 * PLACE_SIZE_MAX + 1024, /* every byte of a path may become three */
    REMOTE_HEADERS_MAX = 6,
    REMOTE_HEADER_SIZE = 192,
    REMOTE_REDIRECTS_MAX = 8,
    REMOTE_CHANGES_MAX = 3, /* of a file under our hands */
    REMOTE_CONNECTIONS_MAX = 8,
};

/* By what a file is told from a later one of its name. */
struct remote_identity {
    bool is_known;
    uint64_t size; /* REMOTE_END: not told */
    char etag[128];
    char last_modified[64];
};

struct remote {
    struct remote_options options; /* with all defaults filled in */
    char *address;
    struct place place;
    const struct remote_scheme *scheme;
    struct remote_credentials credentials;
    struct http_session *session;
    struct remote_identity identity;
    char content_type[128];
    bool has_found_region;  /* the bucket said where it is */
    pthread_mutex_t *mutex; /* held around the caller's hooks; those of a folder share one */
};

/* Where bytes go, in rising order of their offsets. */
struct remote_sink {
    int (*take)(void *context, uint64_t offset, struct text bytes, struct error *error);
    /* Nothing of what was given counts any more. NULL: then CONFLICT. */
    int (*restart)(void *context, struct error *error);
    void *context;
};

struct remote_reading {
    struct remote *remote;
    struct http_session *session; /* of the thread that reads */
    uint64_t first, end;          /* of the range; end REMOTE_END: to the file's end */
    uint64_t position;            /* of the next byte that is wanted */
    struct remote_sink sink;
    struct random random;

    bool has_head;       /* of this attempt */
    bool is_changed;     /* it is another file now */
    bool is_enough;      /* only the head is wanted */
    bool is_all_coming;  /* of this attempt: no part was asked for, or the server knows none */
    struct error reason; /* why our side ended the exchange; code NONE: it did not */
};

struct remote_request {
    char url[REMOTE_URL_SIZE];
    struct http_header headers[REMOTE_HEADERS_MAX];
    char values[REMOTE_HEADERS_MAX][REMOTE_HEADER_SIZE];
    size_t header_count;
    bool is_signed;
    bool stays; /* redirects are not followed */
    struct http_signing signing;
};

/* What was found below a folder. */
struct remote_entry {
    struct text name; /* below the folder: "a/b.csv" */
    uint64_t size;
};

struct remote_listing {
    struct arena *arena; /* of the names */
    struct buffer entries;
    uint64_t total_bytes, bytes_max;
    uint32_t files_max;
};
/* INVALID for a name that would lead out of the folder, EXHAUSTED past the maxima. */
MUST_CHECK int remote_listing_add(struct remote_listing *listing, struct text name, uint64_t size,
                                  struct error *error);

/* To add a kind of place: its row in remote.c and a file remote_NAME.c with this. */
struct remote_scheme {
    /* What to ask for the rest of the reading. */
    int (*prepare)(const struct remote_reading *reading, struct remote_request *out_request,
                   struct error *error);
    /* Before each attempt; may find that the file changed. NULL: nothing to do. */
    int (*check)(struct remote_reading *reading, struct error *error);
    /* What a refusal means here: true when the same should be asked again at once. NULL: nothing.
     */
    bool (*explain)(struct remote *remote, struct http_response *response, struct error *error);
    /* Tells of every file below the remote's folder; NULL: there are no folders. */
    int (*list)(struct remote_reading *reading, struct remote_listing *listing,
                struct error *error);
    /* Puts these bytes in its place; NULL: it cannot be written. Errors name the place. */
    int (*put)(struct remote_reading *reading, struct text bytes, struct error *error);
    bool is_offset_in_url; /* a part is a file of its own to the server: 200, not 206 */
    bool is_parallel;      /* it is made for many connections at once */
};

extern const struct remote_scheme remote_http;
extern const struct remote_scheme remote_s3;
extern const struct remote_scheme remote_hdfs;

/* remote_s3_put.c, remote_hdfs_put.c, and what they need of the readers. */
MUST_CHECK int remote_s3_put(struct remote_reading *reading, struct text bytes,
                             struct error *error);
MUST_CHECK int remote_hdfs_put(struct remote_reading *reading, struct text bytes,
                               struct error *error);
void remote_s3_write_url(const struct remote *remote, struct buffer *out);
/* `body_hash`: SHA-256 of the body, in hex. */
void remote_s3_sign(const struct remote *remote, const char *body_hash,
                    struct remote_request *request);
MUST_CHECK int remote_hdfs_write_url(const struct remote *remote, struct text path,
                                     const char *operation, char out[REMOTE_URL_SIZE],
                                     struct error *error);

/* remote_put.c */
enum { REMOTE_HASH_TEXT_SIZE = 65 };
void remote_hash_hex(struct text bytes, char out[REMOTE_HASH_TEXT_SIZE]);
/* 0 for a status of 200 and so on; UNAVAILABLE when it may be tried again. */
MUST_CHECK int remote_judge_put(struct remote *remote, struct http_response *response,
                                struct error *error);

/* To where the response redirects, if that may be. */
MUST_CHECK int remote_follow(struct remote *remote, const struct http_response *response,
                             struct remote_request *request, struct error *error);
/* The caller's on_progress. */
void remote_tell_progress(struct remote *remote, uint64_t done_bytes, uint64_t total_bytes);

/* A reading of all of it, without a sink yet. */
struct remote_reading remote_whole(struct remote *remote);

MUST_CHECK int remote_write_at(int fd, uint64_t offset, struct text bytes, struct error *error);

/* Runs it on as many threads as there are to be connections, this one among them, until all have
 * returned. */
void remote_run_threads(const struct remote *remote, void *(*function)(void *), void *context);

/* Reads until the range is whole: attempts, pauses, redirects. Errors name the place. */
MUST_CHECK int remote_run(struct remote_reading *reading, struct error *error);

/* The headers of a part; `condition` is the header that must name the same file: If-Range of
 * HTTP. */
void remote_add_range(const struct remote_reading *reading, const char *condition,
                      struct remote_request *request);
void remote_add_header(struct remote_request *request, const char *name, struct text value);

/* As many attempts as a reading has, of an exchange whose answer is gathered. `what` is done once
 * for each: 0, or -1 with UNAVAILABLE when it may be tried again. */
MUST_CHECK int remote_insist(struct remote_reading *reading,
                             int (*what)(struct remote_reading *reading, void *context,
                                         struct error *error),
                             void *context, struct error *error);

/* What a status says by itself. */
void remote_refuse(int status, struct error *error);

/* Fills in all of `options` but what is done with the body; follows redirects of what is not
 * signed. */
MUST_CHECK int remote_exchange(struct remote_reading *reading, struct remote_request *request,
                               struct http_call_options *options, struct http_response *response,
                               struct error *error);
