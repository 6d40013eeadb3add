/*
 * Sync host: rank 0's side of the meeting: the other ranks' links, their rounds (sync_rounds.h),
 * and the parameter server of their training (exchange/server.h).
 *
 * It lives on the library's loop and is used from that thread only.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "exchange/server.h"
#include "net/address.h"
#include "net/link.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sync_host_options {
    struct loop *loop;
    struct host_port address; /* where it listens; with a world of 1 nowhere */
    uint32_t world;
    uint64_t process; /* of this host */
    uint8_t key[LINK_KEY_SIZE];
    int64_t join_ms, lost_ms;
    /* Somebody came, left or is given up; the server opened. */
    void (*on_change)(void *context);
    void *context;
};

/* How the model is trained; text lives as long as the host. */
struct sync_host_training {
    struct text policy;
    struct sync_settings sync;
    struct exchange_compress compress;
    size_t parameter_count;
    const float *parameters; /* rank 0's; they stay until the server is open */
};

struct sync_host;

MUST_CHECK int sync_host_open(const struct sync_host_options *options, struct sync_host **out_host,
                              struct error *error);
void sync_host_free(struct sync_host *host); /* NULL is fine */
DEFINE_AUTO(sync_host);

/* The link of rank 0 itself. Takes `fd` on success only. */
MUST_CHECK int sync_host_attach_take(struct sync_host *host, int fd, struct error *error);
/* Rank 0's own stream to the parameter server, which is open; the same. */
MUST_CHECK int sync_host_attach_worker_take(struct sync_host *host, int fd, struct error *error);
/* Nobody is waited for: all came, or were given up. */
bool sync_host_is_complete(const struct sync_host *host);
/* All but rank 0 said goodbye, or are lost. */
bool sync_host_is_left(const struct sync_host *host);

/* Opens the parameter server, with the model of another rank if that has trained already: rank 0
 * was started again. OPENED tells all ranks; on failure `error` of sync_host_failure does. */
void sync_host_train(struct sync_host *host, const struct sync_host_training *training);
/* Why it could not, or training has ended by itself; NULL: it did not. */
const char *sync_host_failure(const struct sync_host *host);
/* Copies the model; false where there is none. */
bool sync_host_snapshot(const struct sync_host *host, float *out_parameters);
/* Training is over: the server goes. */
void sync_host_train_end(struct sync_host *host);
