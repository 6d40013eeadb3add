#include "server/rate_limit.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUCKET_MAX = 100000, MINUTE_MS = 60000, TEN_MINUTES_MS = 600000, HOUR_MS = 3600000 };

static const struct {
    const char *name;
    struct rate_rule rule;
} classes[RATE_CLASS_COUNT] = {
    [RATE_SIGN_UP] = {"sign-up", {20, HOUR_MS}},
    [RATE_SIGN_IN] = {"sign-in", {20, TEN_MINUTES_MS}},
    [RATE_SIGN_IN_NAME] = {"sign-in-name", {20, TEN_MINUTES_MS}},
    [RATE_WRITE] = {"write", {1200, MINUTE_MS}},
    [RATE_READ] = {"read", {6000, MINUTE_MS}},
    [RATE_WRITE_ADDRESS] = {"write-address", {120, MINUTE_MS}},
    [RATE_READ_ADDRESS] = {"read-address", {1200, MINUTE_MS}},
};

/* One map per class: a key of one is then never taken for the same number of another. */
struct bucket {
    struct list_node node; /* in the order of use, the oldest first */
    enum rate_class class;
    uint64_t key;
    int64_t full_ns; /* when it will be full again, if nobody asks */
};

struct rate_limits {
    struct rate_limits_options options;
    struct map buckets[RATE_CLASS_COUNT];
    struct list used;
    size_t count;
};

const char *rate_class_name(enum rate_class class)
{
    ASSERT(class < RATE_CLASS_COUNT);
    return classes[class].name;
}

struct rate_rule rate_class_default(enum rate_class class)
{
    ASSERT(class < RATE_CLASS_COUNT);
    return classes[class].rule;
}

struct rate_limits *rate_limits_new(const struct rate_limits_options *options)
{
    struct rate_limits *limits = calloc(1, sizeof(*limits));
    ASSERT(limits);
    limits->options = *options;
    if (!limits->options.bucket_max)
        limits->options.bucket_max = BUCKET_MAX;
    for (size_t i = 0; i < RATE_CLASS_COUNT; i++)
        map_init(&limits->buckets[i]);
    list_init(&limits->used);
    return limits;
}

void rate_limits_free(struct rate_limits *limits)
{
    if (!limits)
        return;
    struct list_node *node;
    while ((node = list_take_first(&limits->used)))
        free(LIST_ITEM(node, struct bucket, node));
    for (size_t i = 0; i < RATE_CLASS_COUNT; i++)
        map_done(&limits->buckets[i]);
    free(limits);
}

size_t rate_limits_bucket_count(const struct rate_limits *limits)
{
    return limits->count;
}

static struct bucket *use_bucket(struct rate_limits *limits, enum rate_class class, uint64_t key)
{
    struct bucket *bucket = map_get(&limits->buckets[class], key);
    if (bucket) {
        list_remove(&bucket->node);
        list_append(&limits->used, &bucket->node);
        return bucket;
    }
    if (limits->count < limits->options.bucket_max) {
        bucket = calloc(1, sizeof(*bucket));
        ASSERT(bucket);
        limits->count++;
    } else {
        bucket = LIST_ITEM(list_take_first(&limits->used), struct bucket, node);
        map_remove(&limits->buckets[bucket->class], bucket->key);
    }
    *bucket = (struct bucket){.class = class, .key = key};
    map_put(&limits->buckets[class], key, bucket);
    list_append(&limits->used, &bucket->node);
    return bucket;
}

static int64_t window_ns(const struct rate_rule *rule)
{
    return rule->window_ms * INT64_C(1000000);
}

struct rate_verdict rate_limits_take(struct rate_limits *limits, enum rate_class class,
                                     uint64_t key)
{
    ASSERT(class < RATE_CLASS_COUNT);
    const struct rate_rule *rule = &limits->options.rules[class];
    struct rate_verdict verdict = {
        .is_allowed = true, .limit = rule->limit, .window_ms = rule->window_ms};
    if (rule->limit <= 0)
        return verdict;
    const int64_t now_ns = clock_monotonic_ns(limits->options.clock);
    const int64_t each_ns = window_ns(rule) / rule->limit;
    struct bucket *bucket = use_bucket(limits, class, key);
    int64_t missing_ns = bucket->full_ns > now_ns ? bucket->full_ns - now_ns : 0;
    verdict.is_allowed = missing_ns + each_ns <= window_ns(rule);
    if (verdict.is_allowed) {
        missing_ns += each_ns;
        bucket->full_ns = now_ns + missing_ns;
    }
    verdict.remaining = each_ns > 0 ? (window_ns(rule) - missing_ns) / each_ns : rule->limit;
    if (verdict.remaining == 0)
        verdict.retry_after_ms = (missing_ns + each_ns - window_ns(rule) + 999999) / 1000000;
    return verdict;
}

void rate_limits_give_back(struct rate_limits *limits, enum rate_class class, uint64_t key)
{
    ASSERT(class < RATE_CLASS_COUNT);
    const struct rate_rule *rule = &limits->options.rules[class];
    struct bucket *bucket = map_get(&limits->buckets[class], key);
    if (bucket && rule->limit > 0)
        bucket->full_ns -= window_ns(rule) / rule->limit;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

void rate_verdict_policy(const struct rate_verdict *verdict, enum rate_class class,
                         char out[RATE_FIELD_SIZE])
{
    snprintf(out, RATE_FIELD_SIZE, "\"%s\";q=%" PRId64 ";w=%" PRId64, rate_class_name(class),
             verdict->limit, (verdict->window_ms + 999) / 1000);
}

void rate_verdict_state(const struct rate_verdict *verdict, enum rate_class class,
                        char out[RATE_FIELD_SIZE])
{
    snprintf(out, RATE_FIELD_SIZE, "\"%s\";r=%" PRId64 ";t=%" PRId64, rate_class_name(class),
             verdict->remaining, (verdict->retry_after_ms + 999) / 1000);
}

int64_t rate_verdict_retry_after_s(const struct rate_verdict *verdict)
{
    const int64_t seconds = (verdict->retry_after_ms + 999) / 1000;
    return seconds > 0 ? seconds : 1;
}
