/* Sync engine: rounds, as the program calls them: long ones are several. */
#include "library/sync_internal.h"

#include <inttypes.h>
#include <string.h>

int sync_check_host(struct souk_sync *sync)
{
    if (sync->is_refused)
        return sync_fail(sync, "rank 0 refuses rank %" PRIu32 ": %s", sync->place.rank,
                         sync->failure);
    if (sync->lost_since_ns > 0 && sync_place_is_over(&sync->place))
        return sync_fail(sync, "rank 0 has ended well: nothing is left for rank %" PRIu32 " to do",
                         sync->place.rank);
    const int64_t lost_ns = sync->lost_since_ns > 0 ? sync_now_ns(sync) - sync->lost_since_ns : 0;
    if (lost_ns > sync->place.join_ms * 1000000)
        return sync_fail(sync, "rank 0 at %s:%u: not heard for %" PRId64 " s",
                         sync->place.host.host, sync->place.host.port, lost_ns / 1000000000);
    return 0;
}

static void call_post(void *context)
{
    member_call(context);
}

/* One round; returns its contributors. */
static int round_make(struct souk_sync *sync, enum sync_call_kind kind, uint32_t root, void *bytes,
                      size_t size)
{
    int result = 0;
    pthread_mutex_lock(&sync->mutex);
    sync->call = (struct sync_call){++sync->round, kind, root, (uint32_t)size};
    sync->call_bytes = bytes;
    sync->contributors = 0;
    sync->turn = SYNC_TURN_CALLED;
    pthread_mutex_unlock(&sync->mutex);
    loop_post(sync->loop, call_post, sync);
    pthread_mutex_lock(&sync->mutex);
    while (sync->turn == SYNC_TURN_CALLED && result == 0) {
        sync_wait(sync);
        if (sync->turn == SYNC_TURN_CALLED)
            result = sync_check_host(sync);
    }
    if (sync->turn == SYNC_TURN_FAILED)
        result = sync_fail(sync, "%s", sync->call_error);
    const bool is_given_up = sync->turn == SYNC_TURN_CALLED;
    sync->turn = SYNC_TURN_NONE;
    sync->call_bytes = NULL;
    const int contributors = (int)sync->contributors;
    pthread_mutex_unlock(&sync->mutex);
    if (is_given_up)
        sync_run(sync, member_cancel); /* until then its bytes may be read */
    return result < 0 ? -1 : contributors;
}

int souk_sync_barrier(struct souk_sync *sync)
{
    return round_make(sync, SYNC_CALL_BARRIER, 0, NULL, 0) < 0 ? -1 : 0;
}

int souk_sync_broadcast(struct souk_sync *sync, void *data, size_t size, int root)
{
    if (root < 0 || root >= souk_sync_size(sync))
        return sync_fail(sync, "there is no rank %d", root);
    for (size_t at = 0; at < size; at += SYNC_ROUND_MAX_BYTES) {
        const size_t piece = size - at < SYNC_ROUND_MAX_BYTES ? size - at : SYNC_ROUND_MAX_BYTES;
        if (round_make(sync, SYNC_CALL_BROADCAST, (uint32_t)root, (uint8_t *)data + at, piece) < 0)
            return -1;
    }
    return 0;
}

int souk_sync_allreduce(struct souk_sync *sync, float *values, size_t count, enum souk_sync_op op)
{
    enum { PIECE = SYNC_ROUND_MAX_BYTES / sizeof(float) };
    int fewest = souk_sync_size(sync);
    for (size_t at = 0; at < count; at += PIECE) {
        const size_t piece = count - at < PIECE ? count - at : PIECE;
        float *part = values + at;
        const int ranks = round_make(sync, SYNC_CALL_ALLREDUCE, 0, part, piece * sizeof(float));
        if (ranks < 0)
            return -1;
        for (size_t i = 0; op == SOUK_SYNC_MEAN && ranks > 0 && i < piece; i++)
            part[i] /= (float)ranks;
        fewest = ranks < fewest ? ranks : fewest;
    }
    return fewest;
}
