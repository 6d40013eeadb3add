/*
 * Replica: follows the lead of a model's servers (server.h), so as to take its place when it is
 * lost: has the newest whole model that the lead sent, with the training behind it.
 *
 * It lives on the owner's loop and is used from that loop's thread only. What comes is put in the
 * place of what was there once it is whole: a lead that dies in the middle of it leaves the one
 * before.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/server.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replica_options {
    struct loop *loop;
    uint64_t lease, fence; /* its own */
    uint8_t key[LINK_KEY_SIZE];
    uint32_t servers;       /* that the model is split among */
    size_t parameter_count; /* of the whole model */
    /* The first whole model has come. May be NULL. */
    void (*on_model)(void *context);
    /* The link to the lead is lost, for this reason; for the log. May be NULL. */
    void (*on_lost)(void *context, const struct error *reason);
    /* The lead has ended training, and is gone. In it or after it the owner frees the replica. */
    void (*on_end)(void *context, const char *reason);
    void *context;
};

struct replica_model {
    const float *parameters;
    const float *momentum; /* NULL: none yet */
    struct exchange_progress_made done;
};

struct replica;

MUST_CHECK int replica_open(const struct replica_options *options, struct replica **out_replica,
                            struct error *error);
void replica_free(struct replica *replica); /* NULL is fine; no callbacks */
DEFINE_AUTO(replica);

/* A stream to the lead of this term, in place of the one before. Takes `fd` on success only. */
MUST_CHECK int replica_attach_take(struct replica *replica, int fd, uint64_t term,
                                   struct error *error);

/* False: none has come. Valid until the loop runs again. */
bool replica_newest(const struct replica *replica, struct replica_model *out_model);
/* Monotonic; 0 while the lead is there. */
int64_t replica_lost_since_ns(const struct replica *replica);
