/*
 * Lease messages: what the market and a lender's daemon say to each other on the control link.
 *
 * Each is the payload of one frame (wire/frame.h) whose type is enum lease_message_type. The bytes
 * of every message are described in lease_message.c. Decoded text and bytes point into the
 * payload; decoded lists live in the arena given. Everything from outside has a maximum below, and
 * a payload with bytes left over is refused.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "market/lease.h"
#include "market/machine.h"
#include "market/resources.h"
#include "runtime/result_name.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LEASE_MESSAGE_VERSION = 15,
    LEASE_KEY_SIZE = 32,    /* of a lease's link key */
    LEASE_TICKET_SIZE = 32, /* names a relayed stream; in the SOUK-STREAM line as 64 hex digits */
    LEASE_SIGNATURE_SIZE = 64, /* Ed25519 */
    LEASE_HASH_SIZE = 32,      /* BLAKE2b-256 */
    LEASE_INSTANCE_SIZE = 16,  /* tells two daemons with one key apart */

    LEASE_HEARTBEAT_MS = 1000,       /* while the machine has leases */
    LEASE_HEARTBEAT_IDLE_MS = 15000, /* otherwise; the first few after a welcome come quickly */

    LEASE_MESSAGE_SIZE_MAX = 512 << 10, /* any payload; the frame maximum of control links */
    LEASE_DOCUMENT_SIZE_MAX = 64 << 10,
    LEASE_SECRETS_SIZE_MAX = 32 << 10,
    LEASE_REPORT_SIZE_MAX = 256 << 10,
    LEASE_LOG_SIZE_MAX = 64 << 10,
    LEASE_PROBE_SIZE_MAX = 8 << 10,
    LEASE_FILL_SIZE_MAX = 64 << 10,
    LEASE_MEASURE_BYTES_MAX = 4 << 20,
    LEASE_PEERS_MAX = 1024,
    LEASE_RUNNING_MAX = 1024,
    LEASE_OFFERS_MAX = 16,
    LEASE_TOKEN_SIZE_MAX = 128,
    LEASE_NAME_SIZE_MAX = RESULT_NAME_SIZE_MAX,
    LEASE_REASON_SIZE_MAX = 240,
    LEASE_ADDRESSES_MAX = 8,
    LEASE_TRY_MS_MAX = 5000,
    LEASE_ADDRESS_SIZE_MAX = 64, /* "192.0.2.1:7600", "[2001:db8::1]:7600" */
};

#define LEASE_PAUSE_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

enum lease_message_type {
    /* daemon to market */
    LEASE_MESSAGE_HELLO = 1,
    LEASE_MESSAGE_HEARTBEAT = 2,
    LEASE_MESSAGE_STATE = 3,
    LEASE_MESSAGE_METER = 4,
    LEASE_MESSAGE_REPORT = 5,
    LEASE_MESSAGE_LOG = 6,
    LEASE_MESSAGE_ARTIFACT = 7,
    LEASE_MESSAGE_STREAM_READY = 8,
    LEASE_MESSAGE_PONG = 9,
    LEASE_MESSAGE_PROBE = 10,
    LEASE_MESSAGE_FILL = 11,
    LEASE_MESSAGE_YIELD = 12,
    LEASE_MESSAGE_ADDRESSES = 13,
    LEASE_MESSAGE_TRIED = 14,
    LEASE_MESSAGE_CHUNKS_AT = 20,
    LEASE_MESSAGE_LOGS_AT = 21,
    LEASE_MESSAGE_CHECKPOINT_WANTED = 22,
    /* market to daemon */
    LEASE_MESSAGE_WELCOME = 64,
    LEASE_MESSAGE_START = 65,
    LEASE_MESSAGE_PEER = 66,
    LEASE_MESSAGE_STOP = 67,
    LEASE_MESSAGE_STREAM_OPEN = 68,
    LEASE_MESSAGE_OFFERS = 69,
    LEASE_MESSAGE_RENEW = 70,
    LEASE_MESSAGE_REFUSED = 71,
    LEASE_MESSAGE_PING = 72,
    LEASE_MESSAGE_MEASURE = 73,
    LEASE_MESSAGE_PAUSE = 74,
    LEASE_MESSAGE_RANK = 75,
    LEASE_MESSAGE_LOG_KEPT = 76,
    LEASE_MESSAGE_TRY = 77,
    LEASE_MESSAGE_EARNINGS = 78,
    LEASE_MESSAGE_CHUNK_PEER = 80,
    LEASE_MESSAGE_LOG_READER = 81,
    LEASE_MESSAGE_CHECKPOINTS = 82,
};

/* One lease as its holder knows it; `fence` tells two holders of one lease apart. */
struct lease_fence {
    uint64_t lease;
    uint64_t fence;
};

/* The first message of the daemon. The market stops every running lease it no longer knows. */
struct hello_message {
    uint32_t version; /* LEASE_MESSAGE_VERSION */
    uint64_t machine;
    uint8_t instance[LEASE_INSTANCE_SIZE]; /* random, of this daemon's process */
    struct resources
        ceiling; /* the most its owner lends of it, by the options it was started with */
    const struct lease_fence *running;
    uint32_t running_count;
};

enum lease_power { LEASE_POWER_UNKNOWN, LEASE_POWER_MAINS, LEASE_POWER_BATTERY, LEASE_POWER_COUNT };
const char *lease_power_name(enum lease_power power); /* "mains" */

/* Every LEASE_HEARTBEAT_MS or LEASE_HEARTBEAT_IDLE_MS. */
struct heartbeat_message {
    uint32_t load_milli; /* the machine's load in thousandths of a core, other work included */
    uint32_t running_count;
    uint64_t free_ram_bytes;
    uint8_t temperature_c; /* of its hottest sensor; 0: not known */
    enum lease_power power;
    uint8_t battery_percent; /* while it has a battery */
};

/* Echoes a PING, so that the market measures the way there and back, and knows who is alive. */
struct pong_message {
    uint64_t nonce;
};

/* What the machine is, found anew: the `probe` object of POST /v1/machines as JSON. */
struct probe_message {
    struct text json; /* at most LEASE_PROBE_SIZE_MAX */
};

/* Bytes without a meaning, asked for by a MEASURE. */
struct fill_message {
    bool is_last;
    struct text bytes; /* at most LEASE_FILL_SIZE_MAX */
};

enum lease_run_state {
    LEASE_RUN_STARTING,
    LEASE_RUN_RUNNING,
    LEASE_RUN_SUCCEEDED,
    LEASE_RUN_FAILED,
    LEASE_RUN_STOPPED,
    LEASE_RUN_RECLAIMED, /* the machine's owner ended it */
    LEASE_RUN_LOST,      /* the machine lost it: after a power cut, or what looked after it died */
    LEASE_RUN_STATE_COUNT,
};
const char *lease_run_state_name(enum lease_run_state state);

struct state_message {
    uint64_t lease;
    uint64_t fence;
    enum lease_run_state state;
    int32_t exit_code;  /* of the process, once it ended; 128 + signal when killed */
    struct text reason; /* for people; at most LEASE_REASON_SIZE_MAX */
};

/* What a lease used in one tick; the counters are of this tick, not since the start. */
struct meter_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t tick_index; /* from 0 */
    uint64_t wall_ms;
    uint64_t cpu_ms;
    uint64_t gpu_ms; /* of a whole GPU; two at half their speed for a second are 1000 */
    uint64_t memory_peak_bytes;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint8_t signature[LEASE_SIGNATURE_SIZE]; /* by the machine's key over meter_message_signed */
};

/* What the process in the sandbox reported (child_message.h says what), as JSON. */
struct report_message {
    uint64_t lease;
    uint64_t fence;
    struct text json; /* at most LEASE_REPORT_SIZE_MAX */
};

/* A piece of what the lease's process printed. The daemon keeps it until LOG_KEPT covers it and
 * sends it again on a new link; what the market has already it leaves out. */
struct log_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t offset;   /* of the first byte, in all that the lease ever printed */
    bool is_resumed;   /* the first on this link: all before it was kept */
    bool is_last;      /* nothing will follow: the lease ends once this is kept */
    struct text bytes; /* at most LEASE_LOG_SIZE_MAX */
};

/* A file the lease produced; its chunks are in the market's blob store already. */
struct artifact_message {
    uint64_t lease;
    uint64_t fence;
    struct text name;
    uint8_t manifest[LEASE_HASH_SIZE];
    uint64_t size_bytes;
};

/* The daemon has dialled the stream to `peer_lease` and handed it into the sandbox. */
struct stream_ready_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t peer_lease;
};

/* What the machine's owner leaves to leases, after the welcome and whenever it changes. Why is
 * nobody's business but the owner's. */
struct yield_message {
    enum machine_yield yield;
    uint64_t left_ms; /* of a pause, at most LEASE_PAUSE_MS_MAX; 0: until the owner resumes */
};

struct welcome_message {
    uint32_t version;
    uint64_t machine;
    int64_t now_ms;     /* the market's clock, UTC */
    uint32_t seen_ipv4; /* where the link comes from, in host byte order; 0: not from IPv4 */
};

/*
 * The other end of a stream. The link in it has the key of the lease that dials it: a worker dials
 * every parameter server, and a parameter server the lead, which is that of rank 0. Who is dialled
 * is told that key; who dials has it already, and is told zeroes.
 */
struct lease_peer {
    uint64_t lease;
    uint64_t fence;
    enum lease_role role;
    uint32_t rank; /* within the role */
    uint8_t key[LEASE_KEY_SIZE];
    uint8_t ticket[LEASE_TICKET_SIZE]; /* dial the link port with it */
};

struct start_message {
    struct text document;                    /* the lease as canonical JSON: native.h reads it */
    uint8_t signature[LEASE_SIGNATURE_SIZE]; /* by the market's key over `document` */
    uint8_t key[LEASE_KEY_SIZE];             /* the lease's own */
    struct text fetch_token;                 /* bearer token for /v1/chunks */
    struct text secrets;                     /* the job's: job_secrets.h; empty: none */
    const struct lease_peer *peers;
    uint32_t peer_count;
};

/* Who will dial and came later, told to the parameter server that is dialled. */
struct peer_message {
    uint64_t lease;
    uint64_t fence;
    struct lease_peer peer;
};

/* A lease that the daemon has, signed anew with a later end. */
struct renew_message {
    struct text document;
    uint8_t signature[LEASE_SIGNATURE_SIZE];
};

struct stop_message {
    uint64_t lease;
    uint64_t fence;
    uint32_t grace_ms; /* between asking the process to end and killing it */
    struct text reason;
};

/* Dial the stream again, with a new ticket: the old one broke. */
struct stream_open_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t peer_lease;
    uint64_t peer_fence;
    enum lease_role peer_role;
    uint32_t peer_rank;
    uint8_t ticket[LEASE_TICKET_SIZE];
};

/* The owner's word, said in the market: as if said at the machine. */
struct pause_message {
    bool is_paused;  /* false: go on */
    uint64_t for_ms; /* 0: until told to go on */
};

/* What the machine has earned since it was enlisted: after the welcome, and when it has changed. */
struct earnings_message {
    int64_t earned_micro;   /* by verified work for others, less fees */
    int64_t withheld_micro; /* of it, until the machine is proven */
};

/* One of the machine's offers, as far as its daemon looks after it. */
struct lent_offer {
    uint64_t offer;
    struct resources resources;
    uint32_t roles; /* bits: 1 << enum lease_role */
};

/* All offers of the machine as they are now: after the welcome, and whenever one has changed. A
 * lease is started under one of those told last; what runs already goes on. */
struct offers_message {
    const struct lent_offer *offers;
    uint32_t offer_count;
};

/* Instead of a welcome, before the market closes the link. */
struct refused_message {
    bool is_final;      /* trying again changes nothing until a person does something */
    struct text reason; /* for people; at most LEASE_REASON_SIZE_MAX */
};

struct ping_message {
    uint64_t nonce; /* random: a PONG cannot be sent ahead */
};

/* Send so many bytes as FILLs, as fast as the way takes them. */
struct measure_message {
    uint32_t bytes; /* at most LEASE_MEASURE_BYTES_MAX */
};

/* Where a lease in a job network may be reached directly; none: only through the relay. As
 * CHUNKS_AT: where its data may be fetched from. As LOGS_AT: where what it prints may be read. */
struct addresses_message {
    uint64_t lease; /* 0: where the machine itself may be tried, fence 0 too */
    uint64_t fence;
    struct text addresses[LEASE_ADDRESSES_MAX];
    uint32_t address_count;
};

/* Another rank of the job's network; as CHUNK_PEER, one to exchange chunks of data with, under a
 * key of its own and without a ticket; its lease 0 is the job's borrower (source_key.h). The key
 * belongs to these two leases; the ticket names their stream on the market's link port and to each
 * other's listeners. */
struct rank_message {
    uint64_t lease;
    uint64_t fence;
    struct lease_peer peer;
    struct text addresses[LEASE_ADDRESSES_MAX];
    uint32_t address_count;
};

/* What the lease printed before `offset` is on the market's disk, or is of no use to it. */
struct log_kept_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t offset; /* LEASE_LOG_ALL: whatever was sent */
};
#define LEASE_LOG_ALL UINT64_MAX

/* Somebody of the lease's own account may read what it prints from its keeper: runtime/log_link.h.
 */
struct log_reader_message {
    uint64_t lease;
    uint64_t fence;
    uint64_t reader; /* random; names the key */
    uint8_t key[LEASE_KEY_SIZE];
};

/* A checkpoint of a borrower's program, in the market's blob store as one file. */
struct lease_checkpoint {
    uint8_t manifest[LEASE_HASH_SIZE];
    uint64_t size_bytes; /* 0: there is none */
};

/* The newest ones for a lease, as CHECKPOINT_WANTED asked for them: whatever the lease's daemon
 * announced before it asked is among them, unless it was refused. */
struct checkpoints_message {
    uint64_t lease;
    uint64_t fence;
    struct lease_checkpoint of_job; /* which rank 0 leaves */
    struct lease_checkpoint of_rank;
};

/* Find out how far the machine is from another, which is told the same: peer/trial.h. */
struct try_message {
    uint64_t trial;
    uint8_t key[LEASE_KEY_SIZE]; /* of these two */
    uint8_t ticket[LEASE_TICKET_SIZE];
    uint32_t limit_ms; /* after which it is not reached; at most LEASE_TRY_MS_MAX */
    struct text addresses[LEASE_ADDRESSES_MAX];
    uint32_t address_count;
};

/* How a trial ended. */
struct tried_message {
    uint64_t trial;
    uint32_t rtt_us; /* 0: not reached */
};

struct lease_message {
    enum lease_message_type type;
    union {
        struct hello_message hello;
        struct heartbeat_message heartbeat;
        struct state_message state;
        struct meter_message meter;
        struct report_message report;
        struct log_message log;
        struct artifact_message artifact;
        struct stream_ready_message stream_ready;
        struct yield_message yield;
        struct welcome_message welcome;
        struct start_message start;
        struct peer_message peer;
        struct renew_message renew;
        struct stop_message stop;
        struct stream_open_message stream_open;
        struct offers_message offers;
        struct addresses_message addresses;
        struct rank_message rank;
        struct log_kept_message log_kept;
        struct log_reader_message log_reader;
        struct lease_fence checkpoint_wanted;
        struct checkpoints_message checkpoints;
        struct pong_message pong;
        struct probe_message probe;
        struct fill_message fill;
        struct refused_message refused;
        struct ping_message ping;
        struct measure_message measure;
        struct pause_message pause;
        struct try_message try;
        struct tried_message tried;
        struct earnings_message earnings;
    };
};

/* Whether the lease that is told of the peer accepts its dialling: it is given the key. */
bool lease_peer_dials(const struct lease_peer *peer);

/* The name in logs: "HELLO"; "unknown" for a type that is none. */
const char *lease_message_type_name(enum lease_message_type type);

/* Appends the payload of a frame of type message->type. Lists and text keep to the maxima above:
 * longer ones are the caller's mistake (asserted). */
void lease_message_encode(const struct lease_message *message, struct buffer *payload);

/* CORRUPT for an unknown type or bytes that are not such a message. */
MUST_CHECK int lease_message_decode(struct arena *arena, uint16_t type, struct text payload,
                                    struct lease_message *out_message, struct error *error);

/* The version a HELLO is of, whatever follows it there: it comes first in every version, and so a
 * market can tell a daemon of another one (REFUSED never changes). 0: there is none. */
uint32_t hello_message_version(struct text payload);

/* The bytes a meter message's signature covers. */
enum { METER_SIGNED_SIZE = 16 + 9 * 8 };
void meter_message_signed(const struct meter_message *meter, uint8_t out[METER_SIGNED_SIZE]);
