/*
 * Sync vector: parameter vectors that workers and answers share until somebody writes.
 *
 * Most of what a simulated exchange copies is never changed: after a round eighteen workers hold
 * the same model. A vector is counted by its holders and written only while it has one. Its stamp
 * changes with its values: two vectors of one stamp are equal.
 *
 * A pool belongs to one thread.
 */
#pragma once

#include "base/scope.h"
#include "tensor/kernel.h"

#include <stddef.h>
#include <stdint.h>

struct sync_vector {
    struct sync_vector *next; /* in the pool, while nobody holds it */
    uint32_t holder_count;
    uint64_t stamp;
    float *values; /* [pool's count] */
};

struct sync_vectors {
    size_t count; /* floats of each */
    uint64_t stamp;
    struct sync_vector *free;
};

void sync_vectors_init(struct sync_vectors *pool, size_t count);
/* Every vector has been released. */
void sync_vectors_done(struct sync_vectors *pool);

/* A vector of its own, values not set. */
struct sync_vector *sync_vector_new(struct sync_vectors *pool);
/* The same with these values. */
struct sync_vector *sync_vector_copy(struct sync_vectors *pool, const float *values);
struct sync_vector *sync_vector_hold(struct sync_vector *vector);
/* NULL is fine; *vector becomes NULL. */
void sync_vector_release(struct sync_vectors *pool, struct sync_vector **vector);

/* *local -= an SGD step of `gradient`. `velocity` may be NULL without momentum. */
void sync_vector_step(struct sync_vectors *pool, struct sync_vector **local,
                      const struct sgd_rule *rule, float *velocity, const float *gradient);
/* left - right */
struct sync_vector *sync_vector_subtract(struct sync_vectors *pool, const struct sync_vector *left,
                                         const struct sync_vector *right);
/* *local += to - from */
void sync_vector_shift(struct sync_vectors *pool, struct sync_vector **local,
                       const struct sync_vector *to, const struct sync_vector *from);
