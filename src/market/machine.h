/*
 * Machine: what a lender enlisted, what it can do, what of it is offered and leased.
 */
#pragma once

#include "market/account.h"
#include "market/offer.h"
#include "market/reputation.h"

#include <stddef.h>

enum {
    MACHINE_KEY_SIZE = 32,
    MACHINE_CPU_MODEL_SIZE = 96,
    MACHINE_GPU_MODEL_SIZE = OFFER_GPU_MODEL_MAX + 1,
    MACHINE_LABELS_SIZE = 256,
    MACHINE_OFFERS_MAX = 16,
};

#define MACHINE_RTT_US_MAX          INT64_C(60000000)
#define MACHINE_RAM_BYTES_PER_S_MAX INT64_C(100000000000000)

/* What the daemon found on the machine. */
struct probe {
    struct resources resources;
    int64_t speed_weight_milli; /* per core, against the reference; used for bills and matching */
    int64_t gpu_ram_bytes;      /* of each GPU */
    int64_t rtt_us;             /* to the market; 0: not known */
    int64_t ram_bytes_per_s;    /* one core copying memory; 0: not known */
    /* What its daemon permits, whatever is offered; one that says nothing: the job network,
     * and uploaded wheels. */
    bool forbids_job_network, allows_open_network;
    bool allows_images;
    bool forbids_install, allows_index;
    bool forbids_programs; /* it steps over batches of training jobs, and runs nothing else */
    char gpu_model[MACHINE_GPU_MODEL_SIZE];
    char labels[MACHINE_LABELS_SIZE]; /* "avx2,arm64": words with a comma between, or empty */
    char cpu_model[MACHINE_CPU_MODEL_SIZE];
};

enum machine_state {
    MACHINE_STATE_OFFLINE,     /* never seen, or gone */
    MACHINE_STATE_ONLINE,      /* its link is up */
    MACHINE_STATE_UNREACHABLE, /* silent: its leases may still run */
    MACHINE_STATE_COUNT,
};

const char *machine_state_name(enum machine_state state);

/* What its owner leaves of it to leases, as its daemon says. */
enum machine_yield {
    MACHINE_YIELD_NONE,            /* all that is lent */
    MACHINE_YIELD_LOW,             /* what the owner's own programs leave over */
    MACHINE_YIELD_FROZEN,          /* leases are held still, and there are no new ones */
    MACHINE_YIELD_PAUSED,          /* the same, by the owner's word at the machine: it ends there */
    MACHINE_YIELD_DRAINING,        /* no new leases, as said there */
    MACHINE_YIELD_PAUSED_REMOTELY, /* by the owner's word through the market */
    MACHINE_YIELD_COUNT,
};

/* "none", "low", "frozen", "paused", "draining", "paused_remotely". */
const char *machine_yield_name(enum machine_yield yield);
/* Leases are held still. */
bool machine_yield_is_held(enum machine_yield yield);
/* What others than its owner are told: NONE, or PAUSED when it takes no leases. Not whether
 * somebody is at the machine, nor who held it up or how. */
enum machine_yield machine_yield_for_others(enum machine_yield yield);

/* What whoever looks for machines wants to know of one. */
enum machine_availability {
    MACHINE_OFFLINE,     /* never seen, or gone */
    MACHINE_UNREACHABLE, /* silent: its leases may still run */
    MACHINE_PAUSED,      /* no offer of it is open, or its owner needs it */
    MACHINE_BUSY,        /* nothing is left of its open offers */
    MACHINE_FREE,
    MACHINE_AVAILABILITY_COUNT,
};

const char *machine_availability_name(enum machine_availability availability);

struct lease;

/* Its leases of spare time that have not ended. To those who pay they are not there. */
struct machine_spare {
    struct lease **leases; /* oldest first */
    size_t count;
    size_t capacity;
    struct resources leased; /* the sum over them */
};

struct machine_pairs;

/* What matching looks at comes first, side by side. */
struct machine {
    uint64_t id;
    uint64_t owner;        /* account */
    struct offer **offers; /* by id */
    size_t offer_count;
    enum machine_state state;
    enum machine_yield yield;
    bool is_barred;          /* its owner is frozen: no new leases; running ones go on */
    bool is_unproven;        /* it has not earned enough yet: its speed counts as 1 at most */
    uint64_t touched_at;     /* scratch of matching: its jobs are to be tried; 0: they are not */
    struct resources leased; /* the sum over its leases that have not ended */
    struct lease **leases;   /* those, oldest first */
    size_t lease_count;
    size_t lease_capacity;
    struct machine_spare *spare; /* NULL: it never had any */
    struct machine_pairs *pairs; /* pair.h; NULL: it was tried with no other */
    struct reputation reputation;
    struct probe probe;
    char name[MARKET_NAME_SIZE];
    uint8_t public_key[MACHINE_KEY_SIZE]; /* Ed25519 */
    uint64_t generation;                  /* 1, raised by each new enrolment of the same key */
    int64_t enrolled_ms;
    int64_t state_changed_ms; /* while unreachable or offline: when it was missed */
    int64_t lent_again_ms; /* when its owner, who had needed it, last left it to leases; 0: never */
    int64_t withheld_micro; /* of what it earned: its owner's once it is proven */
    int64_t counted_ms; /* until when what it lends is counted towards prices, or left out; 0: not
                           yet */
};

/* INVALID when a part is out of range, or the texts are. */
MUST_CHECK int probe_check(const struct probe *probe, struct error *error);
bool probe_equal(const struct probe *left, const struct probe *right);
/* The most its daemon lets a lease reach. */
enum offer_network probe_network(const struct probe *probe);
enum offer_install probe_install(const struct probe *probe);
/* Keeps the order of ids. The array is the machine's own, the offers are not. */
void machine_add_offer(struct machine *machine, struct offer *offer);
void machine_remove_offer(struct machine *machine, const struct offer *offer);

/* The one with the id; NULL: it has none such. */
struct offer *machine_offer(const struct machine *machine, uint64_t offer);

/* What it has less what is leased, whatever is offered; parts are negative when a probe found less
 * than before under running leases. */
struct resources machine_free(const struct machine *machine);
/* The same of what is not used as spare time either. */
struct resources machine_spare_free(const struct machine *machine);
size_t machine_spare_count(const struct machine *machine);
void machine_add_spare(struct machine *machine, struct lease *lease);
void machine_remove_spare(struct machine *machine, const struct lease *lease);
/* Of these leases the newest that stands in the way of what is wanted under the offer; NULL: there
 * is room, or none does. */
const struct lease *machine_spare_in_way(const struct machine *machine, const struct offer *offer,
                                         struct resources wanted);
void machine_free_spare(struct machine *machine);

/* What its claimed speed counts for in bills, prices and placement: no more than the reference's
 * until it is proven. */
int64_t machine_speed_milli(const struct machine *machine);
/* The same of a claim that is kept elsewhere. */
int64_t machine_speed_counted_milli(int64_t claimed_milli, bool is_unproven);

/* How sure a lease there is to end as it should: of its reputation. */
int64_t machine_reliability_milli(const struct machine *machine);

/* Online, and neither barred nor wanted by its owner: its open offers count. */
bool machine_is_lent(const struct machine *machine);

/* Lent, and some offer with the role is open. Says nothing about room. */
bool machine_takes_leases(const struct machine *machine, enum machine_role role, int64_t now_ms);

/* As of the last event about it: the shell shows it beside what it measures. */
enum machine_availability machine_availability(const struct machine *machine);
/* What its open offers leave free together, no part negative; nothing while it takes no leases. */
struct resources machine_open_free(const struct machine *machine);

/* Over all its offers: the most of each part that is offered. */
struct resources machine_offered(const struct machine *machine);
