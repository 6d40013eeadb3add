/*
 * Server: the market as a program: REST API, page, matching, ledger, links to lenders, job control.
 *
 * server_run owns the data folder (market.db, blobs/, keys/, lender/) for as long as it runs; a
 * second server on the same folder is refused. It returns when SIGTERM or SIGINT arrives or the
 * caller's `stop_fd` becomes readable, after every acknowledged change is on disk and the local
 * lender has ended. Its leases and cloud machines end with it, but on SIGTERM: then they wait for
 * the next server, as leases of other lenders do.
 *
 * Threads: one loop for HTTP, one for the links and relays, one core thread that alone changes the
 * market's state and waits for the disk (engine.h). Signals are taken by signalfd; the caller
 * starts no threads before server_run.
 */
#pragma once

#include "base/error.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum server_economy { SERVER_ECONOMY_KEPT, SERVER_ECONOMY_CREDITS, SERVER_ECONOMY_KARMA };

struct server_options {
    const char *data_dir;    /* made when absent, mode 0700 */
    const char *name;        /* shown on the page; NULL: "souk" */
    const char *listen;      /* HTTP, "127.0.0.1:7600"; port 0 takes a free one */
    const char *link_listen; /* links and relays, "127.0.0.1:7601" */

    /* What lenders and the page's address use instead of the listening addresses; NULL: those. */
    const char *public_url;   /* "https://market.example:7600" */
    const char *link_address; /* "market.example:7601" */

    /* HTTPS. Neither given: plain on loopback, our own self-signed certificate elsewhere. */
    const char *tls_cert; /* PEM file; with tls_key */
    const char *tls_key;
    bool is_behind_proxy; /* a proxy in front ends TLS: plain HTTP on any address is allowed */
    uint64_t proxy_count; /* how many stand in front and append to X-Forwarded-For */

    int64_t grant_v6_prefix; /* bits of an IPv6 address that one grant a day is for; 48 to 64 */
    /* How often one may ask: see rate_limit.h. < 0: as is usual, 0: without limit. */
    int64_t sign_ups_per_hour, sign_ins_per_10_minutes, writes_per_minute, reads_per_minute;

    bool has_no_local_lender; /* do not enrol this machine as the lender `market` */
    const char *program;      /* the souk binary for the local lender; NULL: /proc/self/exe */

    const char *cloud_file;   /* what may be started at a cloud; NULL: nothing */
    const char *datasets_dir; /* DIR/NAME: built-in data sets without a package; NULL: none */

    enum server_economy economy;   /* of a market that has given out no credits yet */
    int64_t grant_microcredits;    /* to a new account at once; < 0: as the settings say */
    int64_t fee_basis_points;      /* the market's part of each post; < 0: the default */
    bool has_slot_offset;          /* false: as the market has it */
    int64_t slot_offset_ms;        /* of the price slots from UTC */
    int64_t blob_quota_bytes;      /* all chunks together; <= 0: the default, 64 GiB */
    int64_t account_quota_bytes;   /* chunks one account may upload; <= 0: the default, 16 GiB */
    int64_t import_size_bytes;     /* of data read for somebody; <= 0: the default, 4 GiB */
    bool is_import_private;        /* data may be fetched from private addresses, too */
    int64_t keep_ms;               /* chunks and logs that nobody used; <= 0: 30 days */
    int64_t profile_keep_ms;       /* what runs showed; <= 0: 180 days */
    bool has_shared_profiles;      /* accounts that say so learn from each other's runs */
    int64_t answers_bytes_max;     /* memory for answers that are kept; 0: none are */
    uint32_t snapshot_event_count; /* events between snapshots; 0: the default, 10000 */

    /*
     * Once requests are taken one line of JSON is written here and the descriptor is closed:
     * {"ready":true,"url":"http://127.0.0.1:7600","http_port":7600,"link_address":"127.0.0.1:7601",
     *  "link_port":7601,"fingerprint":"64 hex","operator_token_file":"DIR/keys/operator.token"}
     * -1: none.
     */
    int ready_fd;
    int stop_fd; /* readable or at its end: stop, as by SIGINT; -1: none */
};

/* Everything unset: descriptors -1, numbers at their defaults, loopback addresses. */
void server_options_init(struct server_options *options);

/*
 * INVALID: an option is wrong, or a plain HTTP address that is not loopback. CONFLICT: the folder
 * or a port is in use. CORRUPT: the store breaks its own rules (run `souk audit`).
 */
MUST_CHECK int server_run(const struct server_options *options, struct error *error);

/* docs/api.md, from the route table. */
void server_print_api(FILE *file);

/* docs/openapi/openapi.json as it is embedded in the program. */
void server_print_openapi(FILE *file);
