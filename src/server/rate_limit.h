/*
 * Rate limit: how often an account, an address or a name may ask for each class of thing.
 *
 * Each key has a bucket that holds a whole window's quota and fills evenly; one int64 is all of it
 * (the generic cell rate algorithm: the instant at which the bucket would be full again). Buckets
 * are kept for at most `bucket_max` keys; beyond that the one asked for longest ago is forgotten,
 * which can only be to its advantage.
 *
 *     to add a class: its enumerator, its row in rate_limit.c, and where it is asked
 *
 * Belongs to one thread.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

enum rate_class {
    RATE_SIGN_UP,       /* by address: accounts opened */
    RATE_SIGN_IN,       /* by address: passwords and codes tried */
    RATE_SIGN_IN_NAME,  /* by name: passwords tried, from wherever */
    RATE_WRITE,         /* by account: requests that change something */
    RATE_READ,          /* by account: the others */
    RATE_WRITE_ADDRESS, /* by address, where there is no account */
    RATE_READ_ADDRESS,
    RATE_CLASS_COUNT,
    RATE_NONE = RATE_CLASS_COUNT,
};

struct rate_rule {
    int64_t limit; /* in a window; 0: no limit */
    int64_t window_ms;
};

/* The name in RateLimit fields and the rule where the operator sets none. */
const char *rate_class_name(enum rate_class class);
struct rate_rule rate_class_default(enum rate_class class);

struct rate_verdict {
    bool is_allowed;
    int64_t limit, window_ms;
    int64_t remaining;      /* requests left now */
    int64_t retry_after_ms; /* until one more is allowed; 0 when one is */
};

struct rate_limits_options {
    const struct clock *clock;
    struct rate_rule rules[RATE_CLASS_COUNT];
    size_t bucket_max; /* 0: 100000, about 13 MB */
};

struct rate_limits;

struct rate_limits *rate_limits_new(const struct rate_limits_options *options);
void rate_limits_free(struct rate_limits *limits); /* NULL is fine */
DEFINE_AUTO(rate_limits);

/* Takes one from the key's bucket if there is one. */
struct rate_verdict rate_limits_take(struct rate_limits *limits, enum rate_class class,
                                     uint64_t key);
/* Puts one back: what was taken turned out not to count. */
void rate_limits_give_back(struct rate_limits *limits, enum rate_class class, uint64_t key);
size_t rate_limits_bucket_count(const struct rate_limits *limits);

/* Values of the fields RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers). */
enum { RATE_FIELD_SIZE = 80 };
void rate_verdict_policy(const struct rate_verdict *verdict, enum rate_class class,
                         char out[RATE_FIELD_SIZE]);
void rate_verdict_state(const struct rate_verdict *verdict, enum rate_class class,
                        char out[RATE_FIELD_SIZE]);
/* Whole seconds, at least 1, for Retry-After. */
int64_t rate_verdict_retry_after_s(const struct rate_verdict *verdict);
