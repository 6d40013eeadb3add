/*
 * Offer: what an owner lends of a machine, and on which terms.
 *
 * A machine has up to MACHINE_OFFERS_MAX of them; they may overlap, and all leases together stay
 * within what the machine has. A lease keeps the terms it was made under when its offer changes.
 */
#pragma once

#include "base/json_schema.h"
#include "base/text.h"
#include "market/name.h"
#include "market/price.h"
#include "market/window.h"

enum {
    OFFER_ACCOUNTS_MAX = 64,
    OFFER_GPU_MODEL_MAX = 47,
    OFFER_LABELS_MAX = 255,
    OFFER_SCHEDULE_MAX = 400,
};

/* Paused until somebody resumes it. */
#define OFFER_PAUSED_FOREVER MARKET_TIME_MS_MAX

/* Bits of struct offer_terms' roles: what the owner lets run. */
enum machine_role { MACHINE_ROLE_WORKER = 1, MACHINE_ROLE_SERVER = 2, MACHINE_ROLE_ALL = 3 };

/* What a lease may reach: nothing but its own streams, the job's other ranks, the Internet. */
enum offer_network {
    OFFER_NETWORK_NONE,
    OFFER_NETWORK_JOB,
    OFFER_NETWORK_OPEN,
    OFFER_NETWORK_COUNT,
};

/* What may be installed for a job: nothing, uploaded wheels, wheels of the machine's index. */
enum offer_install {
    OFFER_INSTALL_NONE,
    OFFER_INSTALL_WHEELS,
    OFFER_INSTALL_INDEX,
    OFFER_INSTALL_COUNT,
};

enum offer_audience {
    OFFER_AUDIENCE_ANYONE,
    OFFER_AUDIENCE_ACCOUNTS, /* those listed */
    OFFER_AUDIENCE_GROUP,    /* the members of one group */
    OFFER_AUDIENCE_COUNT,
};

const char *offer_network_name(enum offer_network network);
const char *offer_install_name(enum offer_install install);
const char *offer_audience_name(enum offer_audience audience);

/* The owner of a machine may always use it. */
struct offer_account {
    uint64_t account;
};

struct offer_terms {
    struct resources resources;  /* never more than the probe found */
    uint64_t roles;              /* of enum machine_role */
    struct price_vector minimum; /* the owner's own rates; zero: any price will do */
    int64_t max_lease_ms;        /* the longest run it takes; 0: any */
    int64_t paused_until_ms;     /* no new leases before; running ones go on; 0: not paused */
    enum offer_network network;
    enum offer_install install;
    enum offer_audience audience;
    bool is_spare;              /* what is not sold is free for members who have next to nothing */
    uint64_t group;             /* of audience group */
    int64_t gpu_ram_bytes;      /* of each GPU */
    struct text gpu_model;      /* "T4"; empty: unknown, or no GPU */
    struct text labels;         /* "python3-torch,cuda-12": words with a comma between, or empty */
    struct text schedule;       /* in the owner's words, for the shell that made the spans */
    struct json_array accounts; /* of struct offer_account, by id */
    struct json_array spans;    /* of struct span; none: always open */
};

struct machine;
struct offer_shared;

/* Those of an offer that is kept, of which there are many: fields as above. */
struct offer_kept_terms {
    struct resources resources;
    struct price_vector minimum;
    int64_t max_lease_ms;
    int64_t paused_until_ms;
    uint64_t group;
    int64_t gpu_ram_bytes;
    uint8_t roles;
    uint8_t network;
    uint8_t install;
    uint8_t audience;
    bool is_spare;
};

struct offer {
    uint64_t id;
    struct machine *machine;
    const struct offer_shared *shared; /* texts, accounts and spans */
    struct resources leased;           /* under this offer, by leases that have not ended */
    uint32_t lease_count;              /* those */
    uint32_t listing_number;           /* in the book of open offers; 0: not there */
    uint64_t last_lease; /* the newest lease made under it: who waited longest comes first */
    int64_t turns_ms;    /* when that may change by itself; 0: never */
    bool is_open;        /* as of the last event about it */
    struct offer_kept_terms terms;
};

struct probe;

/* "avx2,arm64": words of printable characters with one comma between, or nothing. */
bool offer_are_labels(struct text labels);

/* INVALID, naming the field, when a part is out of range, more than the probe found, or no span is
 * left after now. Whether accounts and groups exist is the core's matter. */
MUST_CHECK int offer_terms_check(const struct offer_terms *terms, const struct probe *probe,
                                 int64_t now_ms, struct error *error);

/*
 * Terms of an offer whose machine is enlisted again, saying what it lends now (`said`, of what
 * `now` found): what its owner changed stays. An amount, or reach, that was all the machine lent
 * follows what it lends now; a smaller one stays, as far as there is so much; so do roles that are
 * still lent. What `said` leaves at zero stays whole. Texts and arrays are those of `had` or of
 * `said`.
 */
struct offer_terms offer_terms_again(const struct offer_terms *had, const struct probe *before,
                                     const struct offer_terms *said, const struct probe *now);

struct offer_shares;
/* Gives the offer its terms, first ones or others. */
void offer_set_terms(struct offer *offer, struct offer_shares *shares,
                     const struct offer_terms *terms);
/* All of them; texts and arrays are the offer's. */
struct offer_terms offer_terms(const struct offer *offer);
/* With texts and arrays in the arena. */
struct offer_terms offer_terms_copy_to(struct arena *arena, const struct offer_terms *terms);

struct window offer_window(const struct offer *offer);
/* Not paused and inside a span. Says nothing of the machine's state. */
bool offer_is_open(const struct offer *offer, int64_t now_ms);
/* When that changes by itself; INT64_MAX: never. */
int64_t offer_next_change_ms(const struct offer *offer, int64_t now_ms);

/* Whether an account, a member of `group` (0: of none), may lease under it. */
bool offer_admits(const struct offer *offer, uint64_t account, uint64_t group);

/* A lender is willing when the lease's rate at the posted price reaches its rate at the minimum. */
bool offer_accepts_price(const struct offer *offer, struct price_units units,
                         struct price_vector price);

/* Free of the offer and of its machine; parts are negative when either shrank under leases. */
struct resources offer_free(const struct offer *offer);
/* The same of what is not used as spare time either. */
struct resources offer_spare_free(const struct offer *offer);
