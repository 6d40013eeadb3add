/*
 * Two threads share the work: the caller's reads the log and checks its chain, another decodes and
 * applies. They hand over blocks of events, so neither waits for single ones; a log that fits into
 * one block is applied by the caller itself.
 */
#include "base/assert.h"
#include "server/engine_load.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { BLOCK_EVENTS = 512, BLOCK_BYTES = 1 << 20, BLOCK_COUNT = 4 };

struct stored {
    uint64_t sequence;
    size_t at, size; /* of the body, in the block's bytes */
};

struct block {
    struct stored events[BLOCK_EVENTS];
    size_t count;
    struct buffer bytes;
};

struct replay {
    struct core *core;
    struct arena *arena;
    engine_replay_function *each;
    void *context;

    struct block blocks[BLOCK_COUNT]; /* in turn; a block is of the one thread or the other */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t filled, applied; /* blocks so far; guarded by mutex, as all below */
    bool is_read;           /* no more will be filled */
    bool is_over;           /* no more will be applied: failed, or `each` had enough */
    int result;
    struct error error;
};

/* ---- Applying -------------------------------------------------------------------------------- */

static int apply_event(struct replay *replay, const struct stored *stored, struct text body,
                       struct error *error)
{
    struct event event;
    arena_clear(replay->arena);
    int result = event_decode(replay->arena, body, &event, error);
    if (result == 0)
        result = core_apply(replay->core, &event, error);
    if (result == 0 && event.sequence != stored->sequence)
        result = error_set(error, ERROR_CORRUPT, "it says it is event %" PRIu64, event.sequence);
    if (result < 0) {
        error->code = ERROR_CORRUPT;
        return error_wrap(error, "event %" PRIu64, stored->sequence);
    }
    return replay->each ? replay->each(replay->context, replay->core, &event, error) : 0;
}

/* 1: `each` had enough. */
static int apply_block(struct replay *replay, struct block *block, struct error *error)
{
    int result = 0;
    for (size_t i = 0; i < block->count && result == 0; i++) {
        const struct stored *stored = &block->events[i];
        const struct text body = {(const char *)block->bytes.data + stored->at, stored->size};
        result = apply_event(replay, stored, body, error);
    }
    block->count = 0;
    buffer_clear(&block->bytes);
    return result;
}

static void *apply_blocks(void *context)
{
    struct replay *replay = context;
    pthread_mutex_lock(&replay->mutex);
    while (!replay->is_over) {
        while (replay->applied == replay->filled && !replay->is_read)
            pthread_cond_wait(&replay->changed, &replay->mutex);
        if (replay->applied == replay->filled)
            break;
        struct block *block = &replay->blocks[replay->applied % BLOCK_COUNT];
        struct error error;
        pthread_mutex_unlock(&replay->mutex);
        const int result = apply_block(replay, block, &error);
        pthread_mutex_lock(&replay->mutex);
        replay->applied++;
        if (result != 0) {
            replay->is_over = true;
            replay->result = result < 0 ? -1 : 0;
            replay->error = error;
        }
        pthread_cond_signal(&replay->changed);
    }
    pthread_mutex_unlock(&replay->mutex);
    return NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Hands the block over, and waits until the next one is free. True: nothing more is wanted. */
static bool hand_over(struct replay *replay)
{
    pthread_mutex_lock(&replay->mutex);
    replay->filled++;
    pthread_cond_signal(&replay->changed);
    while (replay->filled - replay->applied == BLOCK_COUNT && !replay->is_over)
        pthread_cond_wait(&replay->changed, &replay->mutex);
    const bool is_over = replay->is_over;
    pthread_mutex_unlock(&replay->mutex);
    return is_over;
}

static int read_event(const struct store_event *event, void *context, struct error *error)
{
    struct replay *replay = context;
    struct block *block = &replay->blocks[replay->filled % BLOCK_COUNT];
    block->events[block->count++] = (struct stored){
        .sequence = event->sequence, .at = block->bytes.size, .size = event->body.size};
    buffer_append_text(&block->bytes, event->body);
    if (buffer_check(&block->bytes, error) < 0)
        return -1;
    if (block->count < BLOCK_EVENTS && block->bytes.size < BLOCK_BYTES)
        return 0;
    if (!replay->has_thread) {
        const int started = pthread_create(&replay->thread, NULL, apply_blocks, replay);
        if (started)
            return error_set_errno(error, started, "start a thread to replay with");
        replay->has_thread = true;
    }
    return hand_over(replay);
}

/* What is left is applied, and the thread ended. An error in applying is of an earlier event than
 * one in reading. */
static int finish(struct replay *replay, int read_result, struct error *error)
{
    struct block *block = &replay->blocks[replay->filled % BLOCK_COUNT];
    if (!replay->has_thread) {
        struct error failed;
        const int applied = apply_block(replay, block, &failed);
        if (applied < 0)
            *error = failed;
        return applied < 0 ? -1 : applied > 0 ? 0 : read_result;
    }
    pthread_mutex_lock(&replay->mutex);
    replay->filled += block->count > 0 && !replay->is_over;
    replay->is_read = true;
    pthread_cond_signal(&replay->changed);
    pthread_mutex_unlock(&replay->mutex);
    pthread_join(replay->thread, NULL);
    if (replay->result < 0) {
        *error = replay->error;
        return -1;
    }
    return replay->is_over ? 0 : read_result;
}

int engine_replay(struct store_reader *reader, uint64_t from_sequence, struct core *core,
                  engine_replay_function *each, void *context, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct replay *replay = calloc(1, sizeof(*replay));
    ASSERT(replay);
    replay->core = core;
    replay->arena = arena;
    replay->each = each;
    replay->context = context;
    pthread_mutex_init(&replay->mutex, NULL);
    pthread_cond_init(&replay->changed, NULL);
    for (size_t i = 0; i < BLOCK_COUNT; i++)
        buffer_init(&replay->blocks[i].bytes, BLOCK_BYTES + STORE_BODY_BYTES_MAX);
    const int read_result = store_read_events(reader, from_sequence, read_event, replay, error);
    const int result = finish(replay, read_result, error);
    for (size_t i = 0; i < BLOCK_COUNT; i++)
        buffer_done(&replay->blocks[i].bytes);
    pthread_cond_destroy(&replay->changed);
    pthread_mutex_destroy(&replay->mutex);
    free(replay);
    return result;
}
