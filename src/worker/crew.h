/*
 * Crew: the ranks of a job that start together. Rank 0 listens in the job's network and keeps the
 * muster (runtime/muster.h); the others dial it, and again when it is lost.
 *
 * Nobody else can come: the network carries only what the job's leases send, each from its own
 * address. Only rank 0 listens: what another is told to start comes over a connection that it made
 * itself. A launcher on rank 0 shows the secret that this process gave its script.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"
#include "runtime/muster_message.h"

struct crew;

struct crew_callbacks {
    /* Start the script; the members live until the next. Never from inside crew_open. */
    void (*on_start)(void *context, uint64_t round, const struct muster_rank *members,
                     size_t count);
    /* Stop it; then crew_exit. */
    void (*on_stop)(void *context);
    /* The job is done, or this rank ends as its script did; `text` says why if another was lost. */
    void (*on_end)(void *context, bool is_ok, const char *text);
    /* The scripts of these ranks have ended well while this one goes on. */
    void (*on_done)(void *context, const struct muster_rank *ranks, size_t count);
    /* Start a command besides; then crew_launched. */
    void (*on_launch)(void *context, uint64_t id, struct text command);
};

struct crew_options {
    struct loop *loop;
    struct muster_options muster;
    struct muster_rank own;
    uint32_t port;
    uint32_t (*address)(uint32_t rank); /* of a rank in the network, in host byte order */
    struct crew_callbacks callbacks;
    void *context;
};

MUST_CHECK int crew_open(const struct crew_options *options, struct crew **out_crew,
                         struct error *error);
void crew_free(struct crew *crew); /* NULL is fine */
DEFINE_AUTO(crew);

/* How the script of the newest round ended. */
void crew_exit(struct crew *crew, int status);
void crew_launched(struct crew *crew, uint64_t id, int status);
/* Of rank 0, for the environment of its script. */
const uint8_t *crew_secret(const struct crew *crew);
