/*
 * Holding: one lease as the lender's daemon has it: the channel to its keeper, started by this
 * daemon or taken up from a former one.
 */
#pragma once

#include "base/list.h"
#include "base/scope.h"
#include "net/loop.h"
#include "peer/keeper_message.h"
#include "peer/lent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct holding;

struct holding_callbacks {
    /* A lease message, for the market. */
    void (*on_message)(struct holding *holding, uint16_t type, struct text payload, void *context);
    /* The answer of a keeper that is taken up. */
    void (*on_hello)(struct holding *holding, const struct keeper_hello *hello, void *context);
    /* The keeper is gone, or spoke nonsense; holding_free is due. */
    void (*on_gone)(struct holding *holding, void *context);
};

struct holding_options {
    struct loop *loop;
    struct lease_fence lease;
    struct list *reapers; /* of the keepers started: until they end, or holding_reapers_done */
    struct holding_callbacks callbacks;
    void *context;
};

/* Starts a keeper, this very program as `souk keeper`; `setup` goes to it at once. */
MUST_CHECK int holding_start(const struct holding_options *options,
                             const struct keeper_setup *setup, struct holding **out_holding,
                             struct error *error);
/* Connects to the keeper whose socket is in `folder` and says TAKE. UNAVAILABLE: there is none. */
MUST_CHECK int holding_take_up(const struct holding_options *options, const char *folder,
                               struct holding **out_holding, struct error *error);
/* Leaves the keeper to itself. NULL is fine. */
void holding_free(struct holding *holding);
DEFINE_AUTO(holding);
/* What is left of keepers that go on. */
void holding_reapers_done(struct list *reapers);
/* Waits a moment for a keeper that has said its last word to end by itself. */
void holding_await(struct holding *holding);
/* Kills the keeper, and with it all that runs in the lease, and waits for that. */
void holding_kill(struct holding *holding);

/* Plain data for the daemon to keep here. */
struct holding_state {
    struct lent_use use;
    int64_t gpu_us; /* used since its last tick */
    uint64_t job;
    enum lease_role role;
    char job_name[64]; /* cut short if need be */
    bool is_known;     /* what it uses is known: started here, or HELLO came */
    bool has_ended;    /* the last state came */
    bool is_released;  /* the keeper was let go */
};
struct holding_state *holding_state(struct holding *holding);
struct lease_fence holding_fence(const struct holding *holding);
pid_t holding_pid(const struct holding *holding); /* of the keeper */

/* A keeper that does not read has 8 MiB to wait; beyond that it is taken to be dead. */
void holding_send(struct holding *holding, uint16_t type, struct text payload);
void holding_tell(struct holding *holding, const struct keeper_message *message);
void holding_set_paused(struct holding *holding, bool is_paused);
