/*
 * Machine: what a lender enlisted, what it can do, what its owner offers, what is leased of it.
 */
#pragma once

#include "market/account.h"
#include "market/price.h"
#include "market/resources.h"

#include <stddef.h>

enum { MACHINE_KEY_SIZE = 32, MACHINE_CPU_MODEL_SIZE = 96, MACHINE_LABELS_SIZE = 256 };

/* What the daemon found on the machine. */
struct probe {
    struct resources resources;
    int64_t speed_weight_milli; /* per core, against the reference; used for bills and matching */
    char cpu_model[MACHINE_CPU_MODEL_SIZE];
    char labels[MACHINE_LABELS_SIZE]; /* "avx2,arm64": words with a comma between, or empty */
};

/* Bits of struct offer's roles: what the owner lets run. */
enum machine_role { MACHINE_ROLE_WORKER = 1, MACHINE_ROLE_SERVER = 2, MACHINE_ROLE_ALL = 3 };

struct offer {
    struct resources resources;  /* never more than the probe found */
    uint64_t roles;              /* of enum machine_role */
    struct price_vector minimum; /* the owner's own rates; zero: any price will do */
    bool is_paused;              /* no new leases; running ones go on */
};

enum machine_state {
    MACHINE_STATE_OFFLINE,     /* never seen, or gone */
    MACHINE_STATE_ONLINE,      /* its link is up */
    MACHINE_STATE_UNREACHABLE, /* silent: its leases may still run */
    MACHINE_STATE_COUNT,
};

const char *machine_state_name(enum machine_state state);

struct lease;

struct machine {
    uint64_t id;
    uint64_t owner; /* account */
    char name[MARKET_NAME_SIZE];
    uint8_t public_key[MACHINE_KEY_SIZE]; /* Ed25519 */
    uint64_t generation;                  /* 1, raised by each new enrolment of the same key */
    struct probe probe;
    bool has_offer;
    struct offer offer;
    enum machine_state state;
    int64_t enrolled_ms;
    int64_t state_changed_ms; /* while unreachable or offline: when it was missed */
    struct resources leased;  /* the sum over its leases that have not ended */
    struct lease **leases;    /* those, oldest first */
    size_t lease_count;
    size_t lease_capacity;
};

/* INVALID when a part is out of range, or the texts are. */
MUST_CHECK int probe_check(const struct probe *probe, struct error *error);
/* INVALID when the offer is empty, out of range, or more than the probe found. */
MUST_CHECK int offer_check(const struct offer *offer, const struct probe *probe,
                           struct error *error);

/* Offered less leased; parts are negative when the offer shrank under running leases. */
struct resources machine_free(const struct machine *machine);

/* Online, offered and not paused, with the role. Says nothing about room. */
bool machine_takes_leases(const struct machine *machine, enum machine_role role);

/* A lender is willing when the lease's rate at the posted price reaches its rate at the minimum. */
bool offer_accepts_price(const struct offer *offer, struct price_units units,
                         struct price_vector price);
