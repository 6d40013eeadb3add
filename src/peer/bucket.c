#include "peer/bucket.h"

#include "base/assert.h"

enum { BURST_PARTS = 10, BURST_MIN = 64 << 10, WAIT_MS_MAX = 60000 };

#define NS_PER_S INT64_C(1000000000)
#define FILL_NS  (10 * NS_PER_S) /* longer than any bucket takes to fill from above zero */
#define RATE_MAX INT64_C(100000000000)

static int64_t burst_of(const struct bucket *bucket)
{
    const int64_t part = bucket->bytes_per_s / BURST_PARTS;
    return part > BURST_MIN ? part : BURST_MIN;
}

void bucket_init(struct bucket *bucket, int64_t now_ns)
{
    *bucket = (struct bucket){.bytes_per_s = 1, .bytes = BURST_MIN, .filled_ns = now_ns};
}

void bucket_set_rate(struct bucket *bucket, int64_t bytes_per_s)
{
    ASSERT(bytes_per_s > 0);
    bucket->bytes_per_s = bytes_per_s < RATE_MAX ? bytes_per_s : RATE_MAX;
}

void bucket_fill(struct bucket *bucket, int64_t now_ns)
{
    int64_t passed_ns = now_ns - bucket->filled_ns;
    if (passed_ns > FILL_NS)
        passed_ns = FILL_NS;
    const int64_t passed_us = passed_ns / 1000;
    const int64_t added = passed_us * bucket->bytes_per_s / 1000000;
    if (added <= 0) /* too little time for a byte: it is counted the next time */
        return;
    const int64_t burst = burst_of(bucket);
    bucket->bytes = bucket->bytes + added < burst ? bucket->bytes + added : burst;
    bucket->filled_ns = now_ns;
}

void bucket_take(struct bucket *bucket, size_t size)
{
    bucket->bytes -= (int64_t)(size > BUCKET_PACKET_MIN ? size : BUCKET_PACKET_MIN);
}

bool bucket_has_some(const struct bucket *bucket)
{
    return bucket->bytes > 0;
}

int bucket_wait_ms(const struct bucket *bucket)
{
    if (bucket->bytes > 0)
        return -1;
    const int64_t wait_ms = (1 - bucket->bytes) * 1000 / bucket->bytes_per_s + 1;
    return (int)(wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX);
}
