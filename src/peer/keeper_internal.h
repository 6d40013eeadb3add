/* Keeper, inside: shared by keeper.c (its life and its channel) and keeper_order.c (what it is
 * told).
 */
#pragma once

#include "peer/channel.h"
#include "peer/keeper_message.h"
#include "peer/outbox.h"
#include "peer/tenancy.h"

#include <limits.h>

enum { LEASE_PATH_SIZE = PATH_MAX - 64 };

struct keeper {
    struct loop *loop;
    struct loop_signal *signals[2];
    struct channel *channel; /* to the daemon; NULL: there is none */
    bool is_taken;           /* the daemon has said TAKE, or started us */
    bool is_released;        /* nobody has anything to say to it: it goes once all is cleared */
    bool has_told;           /* this daemon was sent something, and will not lose it */
    int listen_fd;
    struct loop_watch *listen_watch;
    struct loop_timer *linger_timer;
    struct loop_timer *trim_timer;
    struct arena *arena;      /* for one message at a time */
    struct arena *kept_arena; /* of what the tenancy runs in */

    struct enrolment enrolment; /* of it: the machine and the market's key */
    bool is_set_up;
    struct tenancy_host host;
    char folder[LEASE_PATH_SIZE];
    char leases_dir[LEASE_PATH_SIZE];
    struct lease_fence lease;
    struct buffer document; /* as signed last */
    uint8_t signature[LEASE_SIGNATURE_SIZE];
    struct tenancy *tenancy;
};

/* Nothing is left to do, but perhaps to clear away. */
void keeper_release(struct keeper *keeper);
int64_t keeper_now_ns(const struct keeper *keeper);
/* The callback of its tenancy. */
void keeper_on_tenancy_ended(void *context, struct tenancy *tenancy);
/* A daemon dials its socket. */
void keeper_on_connection(void *context, uint32_t events);

/* keeper_order.c; a message that is refused ends the daemon's channel. */
MUST_CHECK int keeper_on_keeper_message(struct keeper *keeper, const struct keeper_message *message,
                                        struct error *error);
void keeper_on_lease_message(struct keeper *keeper, const struct lease_message *message);
