/*
 * Keeper messages: what the lender's daemon and the keeper of a lease say to each other beside the
 * lease messages of the market's link, which the daemon passes on both ways.
 *
 * A new keeper gets SETUP, MARKET and START. A daemon that finds a keeper of a former daemon says
 * TAKE, and the keeper answers HELLO; a version that is not its own it does not talk to. The bytes
 * are described in keeper_message.c.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "peer/open_terms.h"
#include "runtime/lease_message.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KEEPER_VERSION = 13,
    KEEPER_PATH_MAX = 4096,
    KEEPER_ADDRESS_MAX = 1024,
    KEEPER_SANDBOX_MAX = 64 << 10,
    KEEPER_SOFTWARE_MAX = 8,
    KEEPER_KEY_MAX = 3072,
};

/* Apart from enum lease_message_type. */
enum keeper_message_type {
    KEEPER_MESSAGE_FIRST = 128,
    /* daemon to keeper */
    KEEPER_MESSAGE_SETUP = KEEPER_MESSAGE_FIRST,
    KEEPER_MESSAGE_TAKE,
    KEEPER_MESSAGE_MARKET,
    KEEPER_MESSAGE_RECLAIM,
    KEEPER_MESSAGE_YIELD,
    KEEPER_MESSAGE_RELEASE, /* the market has the last state: nothing is left to do */
    /* keeper to daemon */
    KEEPER_MESSAGE_HELLO,
    KEEPER_MESSAGE_END,
};

/* How much of its share a lease gets while the machine's owner works. */
enum yield_level {
    YIELD_FULL, /* all of it */
    YIELD_LOW,  /* a part, and only what others leave over */
    YIELD_FROZEN,
    YIELD_LEVEL_COUNT,
};
const char *yield_level_name(enum yield_level level);

/* Of struct remote_credentials. */
enum keeper_key {
    KEEPER_KEY_ACCESS,
    KEEPER_KEY_SECRET,
    KEEPER_KEY_SESSION,
    KEEPER_KEY_REGION,
    KEEPER_KEY_ENDPOINT,
    KEEPER_KEY_COUNT,
};

/* Functions that do a lease's work in place of its own process. */
struct keeper_functions {
    uint32_t memory_mb;    /* of each, at most; 0: there are none */
    uint32_t time_ms;      /* of a call, at most */
    uint32_t keep_warm_ms; /* one without calls */
    /* What the processes of all leases have of this machine, where functions are elsewhere. */
    uint64_t process_bytes;
    /* Those of a host elsewhere, by its token, or of Lambda, by the keys. */
    struct text name;  /* empty: they run here, and all else is empty, too */
    struct text url;   /* empty: Lambda's */
    struct text token; /* empty: calls are signed */
    struct text store; /* where they and the lease meet: function/object_store.h */
    struct text keys[KEEPER_KEY_COUNT];
};

/* What a keeper is started with; none of it changes. */
struct keeper_setup {
    uint8_t log_level;
    uint64_t machine;
    uint8_t server_public_key[32];
    struct text leases_dir;
    struct text blobs_dir;
    uint64_t disk_bytes;    /* what is lent of the disk, for all leases */
    uint32_t gpus;          /* which the lease has: struct lent_use */
    uint64_t cache_bytes;   /* the most that blobs_dir holds */
    bool is_direct;         /* other lenders' machines may connect to leases of a job network */
    struct open_terms open; /* of a lease with the Internet */
    struct text data_path;  /* own data that the lease learns from; empty: none */
    struct text index_url;  /* where packages are fetched; empty: pip knows */
    /* Folders that the lease sees at the same paths: peer/software.h. */
    struct text software[KEEPER_SOFTWARE_MAX];
    uint32_t software_count;
    struct text sdk_folder; /* sdk.h; empty: none */
    struct keeper_functions functions;
    struct text sandbox_host; /* of sandbox_host_export */
};

struct keeper_take {
    uint32_t version;
    uint64_t lease;
    uint64_t fence;
};

/* The market as the daemon sees it now; sent again whenever that changes. */
struct keeper_market {
    bool is_linked;   /* messages reach it */
    int64_t ahead_ms; /* its clock less ours */
    struct text server_url;
    struct text fingerprint; /* empty: not pinned */
    struct text link_address;
    uint32_t link_ipv4; /* whom the daemon is linked to, in host byte order; 0: unknown */
    uint32_t seen_ipv4; /* where the market sees the daemon; 0: unknown */
};

struct keeper_reclaim {
    uint32_t grace_ms;
    struct text reason;
};

struct keeper_hello {
    uint32_t version;
    enum lease_run_state state;
    uint32_t gpus;        /* of its setup */
    struct text document; /* the lease as the market signed it last */
    uint8_t signature[LEASE_SIGNATURE_SIZE];
};

struct keeper_message {
    enum keeper_message_type type;
    union {
        struct keeper_setup setup;
        struct keeper_take take;
        struct keeper_market market;
        struct keeper_reclaim reclaim;
        enum yield_level yield;
        struct keeper_hello hello;
    };
};

/* Appends the payload; texts keep to their maxima (asserted by the buffer's). */
void keeper_message_encode(const struct keeper_message *message, struct buffer *payload);
/* CORRUPT for an unknown type or bytes that are not such a message. Texts point into `payload`. */
MUST_CHECK int keeper_message_decode(uint16_t type, struct text payload,
                                     struct keeper_message *out_message, struct error *error);
