/*
 * Checkpoints: what is in the write-ahead log is copied into the database beside the commits.
 *
 * SQLite by itself copies at the end of the commit that made the log long, and whoever waits for
 * that commit waits for thousands of pages and another sync. Here a thread with a connection of its
 * own copies instead, twice, the second time what was committed during the first. What little was
 * committed since is copied by the next commit, and the one after it starts the log over. A log
 * that grows all the same (readers hold it, the disk is slow) is copied by the commit after all,
 * once the thread is through with what it is at: so its length stays bounded.
 *
 * A checkpoint that fails loses nothing: the log keeps what was not copied, and the next one tries
 * again. Should the disk be at fault, the commits will say so.
 */
#include "base/assert.h"
#include "store/store_sqlite_internal.h"

#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 2 };

enum state { STATE_IDLE, STATE_COPYING, STATE_COPIED, STATE_STOPPING };

struct sqlite_checkpointer {
    const struct sqlite_connection *writer;
    struct sqlite_checkpoint_limits limits;
    bool is_started; /* the thread, at the first commit that wants it */
    pthread_t thread;
    struct sqlite_connection connection; /* the thread's */
    int seen_count; /* pages in the log when it was last copied as far as could be */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum state state; /* guarded by mutex */
};

/* ---- The thread ------------------------------------------------------------------------------ */

static bool wait_until_wanted(struct sqlite_checkpointer *self)
{
    pthread_mutex_lock(&self->mutex);
    while (self->state != STATE_COPYING && self->state != STATE_STOPPING)
        pthread_cond_wait(&self->changed, &self->mutex);
    const bool goes_on = self->state != STATE_STOPPING;
    pthread_mutex_unlock(&self->mutex);
    return goes_on;
}

static void set_copied(struct sqlite_checkpointer *self)
{
    pthread_mutex_lock(&self->mutex);
    if (self->state == STATE_COPYING)
        self->state = STATE_COPIED;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
}

static void *run(void *context)
{
    struct sqlite_checkpointer *self = context;
    pthread_setname_np(pthread_self(), "souk-checkpoint");
    while (wait_until_wanted(self)) {
        for (int round = 0; round < ROUNDS; round++)
            (void)sqlite3_wal_checkpoint_v2(self->connection.handle, NULL,
                                            SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        set_copied(self);
    }
    return NULL;
}

static int start(struct sqlite_checkpointer *self, struct error *error)
{
    const struct store_options options = {.location = self->writer->path};
    /* As a writer: it syncs, and what it sets first lets it find the log. */
    if (sqlite_connection_open(&self->connection, &options, CONNECTION_WRITE, error) < 0)
        return -1;
    const int result = pthread_create(&self->thread, NULL, run, self);
    if (result == 0) {
        self->is_started = true;
        return 0;
    }
    sqlite_connection_close(&self->connection);
    return error_set_errno(error, result, "start the thread for checkpoints");
}

static void stop(struct sqlite_checkpointer *self)
{
    pthread_mutex_lock(&self->mutex);
    self->state = STATE_STOPPING;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->mutex);
    pthread_join(self->thread, NULL);
    sqlite_connection_close(&self->connection);
}

/* ---- The writer ------------------------------------------------------------------------------ */

/* Lets the thread begin, or says that it is done and the rest is the caller's. */
static bool step(struct sqlite_checkpointer *self)
{
    pthread_mutex_lock(&self->mutex);
    const bool is_copied = self->state == STATE_COPIED;
    if (is_copied) {
        self->state = STATE_IDLE;
    } else if (self->state == STATE_IDLE) {
        self->state = STATE_COPYING;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->mutex);
    return is_copied;
}

/* While it copies nobody else can. */
static void wait_until_copied(struct sqlite_checkpointer *self)
{
    pthread_mutex_lock(&self->mutex);
    while (self->state == STATE_COPYING)
        pthread_cond_wait(&self->changed, &self->mutex);
    pthread_mutex_unlock(&self->mutex);
}

static int after_commit(void *context, sqlite3 *handle, const char *name, int page_count)
{
    struct sqlite_checkpointer *self = context;
    struct error error;
    if (page_count < self->seen_count)
        self->seen_count = 0; /* it was started over */
    if (page_count - self->seen_count < self->limits.pages_wanted)
        return SQLITE_OK;
    if (!self->is_started && !self->limits.is_alone && start(self, &error) < 0)
        self->limits.is_alone = true; /* slower at times, and nothing else */
    const bool is_rest = self->is_started && step(self);
    if (page_count >= self->limits.pages_max)
        wait_until_copied(self);
    if (is_rest || self->limits.is_alone || page_count >= self->limits.pages_max) {
        (void)sqlite3_wal_checkpoint_v2(handle, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        self->seen_count = page_count;
    }
    return SQLITE_OK;
}

struct sqlite_checkpointer *sqlite_checkpointer_new(struct sqlite_connection *writer,
                                                    const struct sqlite_checkpoint_limits *limits)
{
    struct sqlite_checkpointer *self = calloc(1, sizeof(*self));
    ASSERT(self);
    self->writer = writer;
    self->limits = *limits;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->changed, NULL);
    sqlite3_wal_hook(writer->handle, after_commit, self);
    return self;
}

void sqlite_checkpointer_free(struct sqlite_checkpointer *self)
{
    if (!self)
        return;
    sqlite3_wal_hook(self->writer->handle, NULL, NULL);
    if (self->is_started)
        stop(self);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}
