/*
 * Peer: the lender's daemon, `souk lend`. Enlists the machine, keeps one link to its market, and
 * runs the leases it is given, each in a sandbox.
 *
 * One loop, and for each lease a process of its own, its keeper (keeper.h). The state folder holds
 *
 *     machine.key      the machine's Ed25519 seed, mode 0600
 *     enrolment.json   what the market gave it, mode 0600
 *     host.json        hashed marks of the machine, so that a copied disk is noticed
 *     blobs/           chunks fetched, by hash, within the quota
 *     leases/ID-FENCE/ one running lease: data/, lease/ and the keeper's socket
 *     sandboxes/       notes of running sandboxes
 *     owner.socket     over which "souk lend pause" and the like reach the daemon
 *     owner.json       that the owner has paused it, or takes no new leases
 *     earnings.json    what the market last said it has earned
 *     lock             held by the one daemon that uses the folder
 *
 * A lease runs until it ends, is stopped, or expires, whether or not the market can be reached, and
 * whether or not there is a daemon: the next one on the folder takes it up.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "market/offer.h" /* enum offer_network */
#include "peer/guard.h"
#include "peer/open_terms.h"

#include <stdbool.h>
#include <stdint.h>

struct remote_credentials;

/* Functions that do the work of leases: training, in place of anything else. */
struct peer_functions {
    uint32_t count;        /* at a time; 0: leases do their own work */
    uint32_t memory_mb;    /* of each; it has MB / 1769 of a core */
    uint32_t time_ms;      /* of a call, at most */
    uint32_t keep_warm_ms; /* one without calls, within a lease */
    /* Those of a host elsewhere, or of Lambda. */
    const char *name;  /* of the function; NULL: they are this machine's, and all else is NULL */
    const char *url;   /* of the host; NULL: Lambda's */
    const char *token; /* of the host */
    const char *store; /* where lease and function meet: function/object_store.h */
    const struct remote_credentials *credentials; /* of Lambda and S3; NULL: none */
    /* Of this machine's memory, for the processes of all their leases; 0: half of it. */
    int64_t process_bytes;
    int64_t process_share_milli; /* instead of an amount; 0: none given */
};

/* Bits of peer_options.roles. */
enum peer_role { PEER_ROLE_WORKER = 1, PEER_ROLE_SERVER = 2, PEER_ROLE_ALL = 3 };

struct peer_options {
    const char *state_dir; /* made when absent, mode 0700 */
    /* The market's addresses, "https://market.example:7600", the best first: enlisting takes the
     * first, linking the first that answers. None: the one enlisted with. */
    const char *const *servers;
    size_t server_count;
    /* 64 hex digits, SHA-256 of the market's public key; NULL: the one enlisted with. Without any,
     * the system's authorities decide, and plain HTTP is taken on loopback only. */
    const char *fingerprint;
    /* One-time enrolment code; NULL when the machine is enlisted already. */
    const char *code;
    const char *name; /* shown in the market; NULL: the host's name */

    /* The most that is lent of the machine, whatever is offered in the market. */
    int64_t cores_milli; /* thousandths of a core; 0: all of them */
    int64_t ram_bytes;   /* 0: half of the machine's */
    int64_t disk_bytes;  /* for data and results; 0: half of what is free, at most 20 GiB */
    int64_t cache_bytes; /* of data kept for later leases; 0: a quarter of that, at most 16 GiB */
    int64_t gpus_max;    /* of one model; negative: all of them */
    /* Instead of an amount: thousandths of what the machine has; 0: none given. */
    int64_t cores_share_milli, ram_share_milli, disk_share_milli;
    uint32_t roles;             /* of enum peer_role; 0: all */
    enum offer_network network; /* the most that a lease may reach */
    bool has_images;            /* leases may bring images to run in */
    enum offer_install install; /* the most that may be installed for a lease */
    bool offers_install;        /* and so the first offer */
    const char *index_url;      /* where packages are fetched for leases; empty: pip knows */
    struct open_terms open;     /* of leases with the Internet */
    struct peer_functions functions;

    /* The least prices of the first offer, of an hour of a core and of a GiB; 0: any will do. */
    int64_t minimum_core_micro, minimum_ram_micro;

    /* When the first offer is open: words of --when, and their zone; NULL: always. */
    const char *when, *zone;
    /* Labels to show besides those found, and those never to show. */
    const char *const *labels;
    size_t label_count;
    const char *const *hidden_labels;
    size_t hidden_label_count;

    /* Data that leases may learn from where they lie: own_data.h. */
    const char *const *data;
    size_t data_count;
    /* Folders that leases may use: software.h. */
    const char *const *software;
    size_t software_count;

    /* What leases of programs of one's own find, part of this program: sdk.h; NULL: nothing. */
    const struct sdk *sdk;

    const char *root;    /* of the files of the kernel and the system; NULL: "" */
    const char *display; /* X11's, ":0"; NULL: none */
    int64_t return_ms;   /* how often the first server is tried while linked to another; 0: 5 min */
    int64_t look_ms;     /* how often the machine is looked at for changes; 0: a minute */
    /* Called once it has enlisted with a code, before it lends; -1 ends it. May be NULL. */
    int (*on_enlisted)(void *context, struct error *error);
    /* Called when another machine has that name: the one to try instead, NULL to give up. May be
     * NULL. */
    const char *(*on_name_taken)(void *context, const char *taken);
    void *context;

    bool is_new;  /* forget the key and the enrolment of before */
    bool is_same; /* the same machine with new parts: no copied disk */

    struct guard_wishes owner; /* when work yields to whoever uses the machine */
    bool is_blind;             /* nobody is watched: only the owner's word counts */
    bool is_metered;           /* the network is paid for by the byte, whatever it looks like */
    /* Ranks of a job network on other machines may connect to this one, where they reach it. */
    bool is_direct;

    const char *program; /* what runs inside sandboxes as /souk; NULL: this program */

    /*
     * Once the market has welcomed the machine one line of JSON is written here and the descriptor
     * is closed: {"ready":true,"machine":7,"name":"kitchen","sandbox":"CPU, memory ..."}; -1: none.
     */
    int ready_fd;
    int stop_fd; /* readable or at its end: stop, as by SIGTERM; -1: none */
};

/* Everything unset: descriptors -1, the owner as by default, the rest zero. */
void peer_options_init(struct peer_options *options);

/*
 * Runs until SIGTERM, SIGINT or stop_fd; then stops the leases with grace, tells the market and
 * returns 0. On SIGUSR1 it returns 0 at once and the leases go on without it; on SIGUSR2 likewise,
 * but it starts the program anew, from its file, with the arguments it had. The caller starts no
 * threads before it and has no signal handlers of its own. CONFLICT: another daemon uses the state
 * folder. REFUSED: the market did not take the code, or its key is not the pinned one. UNAVAILABLE:
 * the market cannot be reached for enlisting, or this machine cannot start sandboxes. A market that
 * is away later is waited for.
 */
MUST_CHECK int peer_run(const struct peer_options *options, struct error *error);

/* Whether a daemon with this state folder has enlisted. */
bool peer_is_enlisted(const char *state_dir);

/* What this machine is and can enforce, one finding a line, for `souk lend --doctor`. */
MUST_CHECK int peer_doctor(const struct peer_options *options, struct buffer *out,
                           struct error *error);
