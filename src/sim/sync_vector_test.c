#include "base/random.h"
#include "sim/sync_vector.h"
#include "testing/testing.h"

#include <math.h>
#include <string.h>

enum { COUNT = 37 };

static struct sync_vector *random_vector(struct sync_vectors *pool, struct random *random)
{
    struct sync_vector *vector = sync_vector_new(pool);
    for (int i = 0; i < COUNT; i++)
        vector->values[i] = (float)random_normal(random);
    return vector;
}

static void steps_equal_the_kernels(struct sgd_rule rule)
{
    struct error error;
    AUTO(kernel_set) struct kernel_set *kernels = NULL;
    ASSERT_OK(kernel_set_open("plain", &kernels, &error));
    struct random random;
    random_init(&random, 3);
    struct sync_vectors pool;
    sync_vectors_init(&pool, COUNT);
    struct sync_vector *local = random_vector(&pool, &random);
    float weights[COUNT], velocity[COUNT] = {0}, own_velocity[COUNT] = {0}, gradient[COUNT];
    memcpy(weights, local->values, sizeof(weights));
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < COUNT; i++)
            gradient[i] = (float)random_normal(&random);
        kernel_sgd(kernels, &rule, weights, velocity, gradient, COUNT);
        sync_vector_step(&pool, &local, &rule, rule.momentum > 0 ? own_velocity : NULL, gradient);
        for (int i = 0; i < COUNT; i++)
            assert_true(fabsf(weights[i] - local->values[i]) < 1e-6F);
    }
    sync_vector_release(&pool, &local);
    sync_vectors_done(&pool);
}

TEST(a_step_is_the_kernels_sgd)
{
    steps_equal_the_kernels((struct sgd_rule){.lr = 0.1F});
    steps_equal_the_kernels((struct sgd_rule){.lr = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F});
    steps_equal_the_kernels((struct sgd_rule){.lr = 0.1F, .momentum = 0.9F, .is_nesterov = true});
}

TEST(a_shared_vector_is_not_written)
{
    struct random random;
    random_init(&random, 5);
    struct sync_vectors pool;
    sync_vectors_init(&pool, COUNT);
    struct sync_vector *model = random_vector(&pool, &random);
    struct sync_vector *local = sync_vector_hold(model);
    float before[COUNT], gradient[COUNT] = {0};
    memcpy(before, model->values, sizeof(before));
    const uint64_t stamp = model->stamp;
    gradient[0] = 1;
    sync_vector_step(&pool, &local, &(struct sgd_rule){.lr = 1}, NULL, gradient);
    assert_ptr_not_equal(local, model);
    assert_memory_equal(model->values, before, sizeof(before));
    assert_int_equal(model->stamp, stamp);
    assert_int_not_equal(local->stamp, stamp);
    assert_true(fabsf(local->values[0] - (before[0] - 1)) < 1e-6F);

    /* Alone it is written in place, and the stamp says so. */
    const struct sync_vector *same = local;
    const uint64_t old = local->stamp;
    sync_vector_shift(&pool, &local, model, local);
    assert_ptr_equal(local, same);
    assert_int_not_equal(local->stamp, old);
    assert_true(fabsf(local->values[0] - before[0]) < 1e-6F);

    struct sync_vector *difference = sync_vector_subtract(&pool, model, model);
    for (int i = 0; i < COUNT; i++)
        assert_true(difference->values[i] == 0);
    sync_vector_release(&pool, &difference);
    sync_vector_release(&pool, &local);
    sync_vector_release(&pool, &model);
    assert_null(model);
    sync_vectors_done(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_kernels_sgd),
        cmocka_unit_test(a_shared_vector_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
