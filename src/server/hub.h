/*
 * Hub: the link port: lenders' control links, and the relayed streams between their leases.
 *
 * The first byte of a connection decides. 0x16 is a TLS ClientHello: a machine's control link with
 * the identity "machine:ID:GENERATION". 'S' begins the line "SOUK-STREAM <64 hex ticket>\n": the
 * two connections that name the same ticket are joined and their bytes copied, blind.
 *
 * Everything here runs on the hub's own thread and loop, but for hub_listen, which the core thread
 * calls with what was committed.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "core/core.h"
#include "net/address.h"
#include "runtime/lease_message.h"
#include "runtime/source_key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;
struct hub;

/* Listens; takes over the machines and open leases of `core`, which nobody changes meanwhile. */
MUST_CHECK int hub_open(struct server *server, const char *listen, const struct core *core,
                        struct hub **out_hub, struct error *error);
/* After the engine stopped. Closes every link. NULL is fine. */
void hub_free(struct hub *hub);
DEFINE_AUTO(hub);

uint16_t hub_port(const struct hub *hub);
MUST_CHECK int hub_start(struct hub *hub, struct error *error);
/* Ends the thread; the core's answers may still be posted until hub_free. */
void hub_stop(struct hub *hub);

/* An engine_listener. Core thread. */
void hub_listen(void *context, const struct core *core, const struct event *events,
                size_t event_count);

/* What a machine's heartbeat said last: not events, and gone with the link. */
struct hub_live {
    int64_t heard_ms; /* UTC */
    int64_t rtt_us;   /* 0: not known */
    uint32_t load_milli;
    uint64_t free_ram_bytes;
    uint8_t temperature_c; /* 0: not known */
    enum lease_power power;
    uint8_t battery_percent;
};
/* For its owner: fields of an object that is open. */
void hub_live_write(struct json_writer *writer, const struct hub_live *live);
/* UTC; 0: it is not linked or not paused, or paused until its owner resumes. From any thread. */
int64_t hub_machine_paused_until_ms(struct hub *hub, uint64_t machine);
/* False while it is not linked. From any thread. */
bool hub_machine_live(struct hub *hub, uint64_t machine, struct hub_live *out_live);
/* How long ago anything came from it; false: not since the market started. From any thread. */
bool hub_machine_silence(struct hub *hub, uint64_t machine, int64_t *out_silence_ms);

/* Machines that it was tried with lately and reached, the nearest first. Returns how many. From any
 * thread. */
enum { HUB_NEAR_MAX = 5 };
struct hub_near {
    uint64_t machine;
    int64_t rtt_us;
    int64_t measured_ns;
};
size_t hub_machine_near(struct hub *hub, uint64_t machine, struct hub_near out[HUB_NEAR_MAX]);

/* Passes the owner's word on to the machine, if it is linked. From any thread. */
void hub_pause(struct hub *hub, uint64_t machine, const struct pause_message *pause);
/* Tells the machine what it need not keep any more. From any thread; the context is the hub. */
void hub_log_kept(void *context, uint64_t machine, const struct log_kept_message *kept);

/* Where what a running lease prints may be read from its keeper, and a fresh key for one reader,
 * of which the keeper is told. False: nowhere. From any thread. */
struct hub_log_place {
    uint64_t reader;
    uint8_t key[LEASE_KEY_SIZE];
    char addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1];
    uint32_t address_count;
};
bool hub_open_log(struct hub *hub, uint64_t lease, struct hub_log_place *out_place);

/* A borrower that has a job's data and would send it to the job's leases: server/borrower.c. From
 * any thread. */
struct hub_borrower {
    uint64_t account;
    uint8_t manifest[LEASE_HASH_SIZE]; /* of the job's first input */
    uint8_t secret[SOURCE_SECRET_SIZE];
    struct host_port seen_at; /* where its call came from, with the port that it named */
    char addresses[LEASE_ADDRESSES_MAX][LEASE_ADDRESS_SIZE_MAX + 1]; /* what leases may be told */
    uint32_t address_count;
    /* Once, on the hub's thread: whether the market could link to it. */
    void (*on_checked)(void *context, bool is_reached);
    void *context;
};
void hub_add_borrower(struct hub *hub, const struct hub_borrower *options);

/* A job with a lease on the machine finds it silent: server/suspect.c. From any thread. */
void hub_report_silent(struct hub *hub, uint64_t machine, uint64_t job);

/* Has machines tried with one another that a request which finds too few near each other could
 * have: server/seek.c. True: something may be known in a moment. Core thread. */
bool hub_seek(struct hub *hub, const struct core_seeker *seeker);

struct hub_counts {
    uint64_t links, relays, waiting_streams, bad_meters;
};
struct hub_counts hub_counts(const struct hub *hub); /* from any thread */
