/* Fetch, inside: shared by fetch.c (what, from where, and when again) and fetch_market.c. */
#pragma once

#include "blob/blob_partial.h"
#include "blob/blob_pins.h"
#include "peer/fetch.h"

struct fetch_item {
    struct fetch *fetch;
    struct blob_hash hash;
    struct blob_partial *partial;   /* what has come; while it is ours to fetch */
    struct http_transfer *transfer; /* while it runs */
    struct loop_timer *retry;
    struct chunk_patience patience;
    uint64_t begun_bytes; /* of the partial, when the transfer began */
    enum chunk_state state;
    int64_t begun_ns; /* when it got under way */
    int source;       /* while it is under way: a peer, or CHUNK_SOURCE_MARKET */
    bool is_others;   /* somebody else fetches it */
    bool has_head;
    uint32_t wrong_count;
    uint32_t room_count;
    struct error own; /* why we ended the transfer; code NONE: we did not */
};

struct fetch {
    struct chunk_access access;
    struct fetch_item *items; /* each blob once */
    size_t item_count;
    size_t left_count;
    size_t market_count; /* under way from the market */
    int64_t moved_ns;    /* when a peer sent a blob last, or the fetch began */
    struct loop_timer *pump;
    struct blob_pins *pins;
    int others_fd; /* -1 until somebody is waited for */
    struct loop_watch *others;
    bool has_failed;
    struct error error;
    char slow[200];          /* what fetch_trouble says without any */
    struct error trouble;    /* of the last try that failed; code NONE: none */
    struct loop_timer *done; /* so that the callback never comes from inside a call */
    fetch_function *callback;
    void *context;
};

/* NULL `reason`: if nothing is left. */
void fetch_finish(struct fetch *fetch, const struct error *reason);
void fetch_item_done(struct fetch_item *item);
/* It rests and is tried again, or the fetch has failed. `response` may be NULL. */
void fetch_item_fail(struct fetch_item *item, const struct error *error,
                     const struct http_response *response);

/* fetch_market.c: its partial is open. */
MUST_CHECK int fetch_ask_market(struct fetch_item *item, struct error *error);
