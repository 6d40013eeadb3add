/*
 * Trials: finds out how far this machine is from another, before either has a lease.
 *
 * The market tells two machines of each other (TRY): where the other may be reached, a ticket and a
 * key that only these two have. Both listen, both dial, until the market's limit. A connection
 * begins with the line "SOUK-STREAM ticket" of who dialled; then both put TRIAL_ROUNDS questions,
 * one after the other, and time the answers. Every message has TRIAL_MESSAGE_SIZE bytes:
 *
 *     'Q' and 32 random bytes
 *     'A' and the keyed BLAKE2b hash of the question's 32 bytes
 *
 * so an answer cannot be given before the question came, nor by who has not the key. The least of
 * the times is told to the market. Who has more to ask or says anything else is hung up on.
 *
 * The port is held all the time, so that it can be told, but listens only while a trial is under
 * way: at other times a connection is refused by the kernel. At most TRIAL_VISITORS_MAX
 * connections at once are those of nobody known yet, TRIAL_VISITORS_OF_ONE of one address, and each
 * has a second to name its ticket.
 */
#pragma once

#include "base/scope.h"
#include "net/loop.h"
#include "peer/path.h"
#include "runtime/lease_message.h"

enum {
    TRIAL_ROUNDS = 2,
    TRIAL_MESSAGE_SIZE = 1 + 32,
    TRIALS_MAX = 64, /* at once; of more the market is told that nobody was reached */
    TRIAL_VISITORS_MAX = 32,
    TRIAL_VISITORS_OF_ONE = 8,
};

struct trials;

struct trials_options {
    struct loop *loop;
    bool is_direct; /* otherwise it has no address, dials nobody and tells that it reached nobody */
    /* May come from inside trials_begin. */
    void (*on_tried)(void *context, const struct tried_message *tried);
    void *context;
};

struct trials *trials_new(const struct trials_options *options);
void trials_free(struct trials *trials); /* NULL is fine */
DEFINE_AUTO(trials);

/* Where it may be reached while a trial is under way; returns how many. */
size_t trials_addresses(const struct trials *trials, struct host_port out[PATH_CANDIDATE_MAX]);
void trials_begin(struct trials *trials, const struct try_message *message);
