#include "sim/sync_vector.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

void sync_vectors_init(struct sync_vectors *pool, size_t count)
{
    *pool = (struct sync_vectors){.count = count};
}

void sync_vectors_done(struct sync_vectors *pool)
{
    while (pool->free) {
        struct sync_vector *vector = pool->free;
        pool->free = vector->next;
        free(vector->values);
        free(vector);
    }
}

static void written(struct sync_vectors *pool, struct sync_vector *vector)
{
    vector->stamp = ++pool->stamp;
}

struct sync_vector *sync_vector_new(struct sync_vectors *pool)
{
    struct sync_vector *vector = pool->free;
    if (vector) {
        pool->free = vector->next;
    } else {
        enum { LINE = 64 };
        vector = calloc(1, sizeof(*vector));
        ASSERT(vector);
        vector->values =
            aligned_alloc(LINE, (pool->count * sizeof(float) + LINE - 1) / LINE * LINE);
        ASSERT(vector->values);
    }
    vector->holder_count = 1;
    written(pool, vector);
    return vector;
}

struct sync_vector *sync_vector_copy(struct sync_vectors *pool, const float *values)
{
    struct sync_vector *vector = sync_vector_new(pool);
    memcpy(vector->values, values, pool->count * sizeof(float));
    return vector;
}

struct sync_vector *sync_vector_hold(struct sync_vector *vector)
{
    vector->holder_count++;
    return vector;
}

void sync_vector_release(struct sync_vectors *pool, struct sync_vector **vector)
{
    struct sync_vector *released = TAKE(*vector);
    if (!released || --released->holder_count > 0)
        return;
    released->next = pool->free;
    pool->free = released;
}

/* Where new values of *vector go: itself when nobody else holds it, else one of its own. */
static struct sync_vector *target_of(struct sync_vectors *pool, struct sync_vector *vector)
{
    return vector->holder_count == 1 ? vector : sync_vector_new(pool);
}

static void become(struct sync_vectors *pool, struct sync_vector **vector,
                   struct sync_vector *target)
{
    if (target != *vector) {
        sync_vector_release(pool, vector);
        *vector = target;
    }
    written(pool, target);
}

void sync_vector_step(struct sync_vectors *pool, struct sync_vector **local,
                      const struct sgd_rule *rule, float *velocity, const float *gradient)
{
    ASSERT(velocity || rule->momentum == 0);
    struct sync_vector *target = target_of(pool, *local);
    const float *from = (*local)->values;
    float *to = target->values;
    const float lr = rule->lr, decay = rule->weight_decay, momentum = rule->momentum;
    if (!velocity) {
        for (size_t i = 0; i < pool->count; i++)
            to[i] = from[i] - lr * (gradient[i] + decay * from[i]);
    } else {
        const float direct = rule->is_nesterov ? 1 : 0;
        const float carried = rule->is_nesterov ? momentum : 1;
        for (size_t i = 0; i < pool->count; i++) {
            const float slope = gradient[i] + decay * from[i];
            velocity[i] = momentum * velocity[i] + slope;
            to[i] = from[i] - lr * (direct * slope + carried * velocity[i]);
        }
    }
    become(pool, local, target);
}

struct sync_vector *sync_vector_subtract(struct sync_vectors *pool, const struct sync_vector *left,
                                         const struct sync_vector *right)
{
    struct sync_vector *vector = sync_vector_new(pool);
    for (size_t i = 0; i < pool->count; i++)
        vector->values[i] = left->values[i] - right->values[i];
    return vector;
}

void sync_vector_shift(struct sync_vectors *pool, struct sync_vector **local,
                       const struct sync_vector *to, const struct sync_vector *from)
{
    struct sync_vector *target = target_of(pool, *local);
    const float *old = (*local)->values;
    for (size_t i = 0; i < pool->count; i++)
        target->values[i] = old[i] + (to->values[i] - from->values[i]);
    become(pool, local, target);
}
