/*
 * Server, inside: what the parts of a running market share.
 *
 * Who owns what, by thread:
 *     main  http, reader, live, logs, lender, everything in struct server not named below
 *     link  hub (links, relays, leases to start and stop, ticks)
 *     core  engine
 * They speak by engine_submit, by loop_post, and through what is constant: options, keys, blobs.
 */
#pragma once

#include "base/clock.h"
#include "base/map.h"
#include "blob/blob_store.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "server/download.h"
#include "server/engine.h"
#include "server/keys.h"
#include "server/server.h"
#include "store/store.h"

struct answers;
struct audits;
struct background;
struct catalogue_shelf;
struct cloud;
struct datasets;
struct health_view;
struct holdings;
struct hub;
struct imports;
struct live;
struct logs;
struct objects;
struct looks;
struct local_lender;
struct passwords;
struct rate_limits;
struct renewal;
struct row_cache;
struct sealed;
struct token_uses;
struct upkeep;
struct versions;

enum { SERVER_TEXT_SIZE = 512, SERVER_PATH_SIZE = 4096 };

struct server_counts {
    uint64_t requests, client_errors, server_errors, replays;
    uint64_t limited; /* answered with 429 */
    uint64_t request_ns;
};

struct server {
    struct server_options options;
    const struct clock *clock;
    char name[SERVER_TEXT_SIZE];
    char url[SERVER_TEXT_SIZE];          /* "http://127.0.0.1:7600" */
    char link_address[SERVER_TEXT_SIZE]; /* "127.0.0.1:7601" */
    char local_url[SERVER_TEXT_SIZE];    /* for this machine's own lender */
    bool is_tls;                         /* this program ends TLS, not a proxy */
    bool is_address_guessed;             /* url or link_address: nobody gave it */
    struct core_settings settings;
    char market_path[SERVER_PATH_SIZE]; /* DATA/market.db */
    struct keys *keys;
    struct sealed *sealed; /* jobs' secrets */
    struct blob_store *blobs;
    struct holdings *holdings; /* who has what of them */
    struct objects *objects;   /* and what lies in them by name */
    struct datasets *datasets; /* of the catalogue, on this machine */
    struct engine *engine;

    struct loop *loop; /* main */
    struct http_server *http;
    struct store_reader *reader;
    struct versions *versions; /* moved by the core, read here */
    struct answers *answers;
    struct row_cache *rows;
    struct live *live;
    struct logs *logs;
    struct local_lender *lender;
    struct upkeep *upkeep;
    struct audits *audits;
    struct catalogue_shelf *catalogue; /* of clouds */
    struct cloud *cloud;               /* NULL: none */
    struct imports *imports;
    struct looks *looks;
    struct renewal *renewal;
    struct passwords *passwords; /* has a thread of its own, as has the next */
    struct background *background;
    struct rate_limits *limits;
    struct token_uses *token_uses;
    struct loop_signal *signals[2];
    struct loop_watch *stop_watch;
    struct downloads downloads;
    struct map calls; /* idempotency keys being worked on, by the hash's hex */
    struct server_counts counts;
    int64_t started_ms;
    bool is_stopping;
    bool stops_leases; /* and ends cloud machines: it was stopped for good */

    struct hub *hub;
    struct health_view *health; /* core: what was last seen of the market's health */
};
