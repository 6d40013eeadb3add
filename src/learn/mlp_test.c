#include "learn/mlp.h"
#include "testing/testing.h"

#include <math.h>

#define assert_near(value, expected, within) assert_true(fabs((value) - (expected)) <= (within))

static const struct mlp_shape shape = {3, {3, 5, 4, 2}};

static double loss_of(struct mlp *mlp, const double *input)
{
    const double *out = mlp_forward(mlp, input);
    return 0.7 * out[0] * out[0] - 1.3 * out[1];
}

TEST(gradients_are_those_of_finite_differences)
{
    struct random random;
    random_init(&random, 3);
    AUTO(mlp) struct mlp *mlp = mlp_new(&shape, &random);
    double *parameters = mlp_parameters(mlp);
    const size_t count = mlp_parameter_count(&shape);
    for (size_t i = 0; i < count; i++)
        parameters[i] = 0.5 * random_normal(&random);
    const double input[3] = {0.3, -1.2, 0.8};
    const double *out = mlp_forward(mlp, input);
    mlp_backward(mlp, (const double[]){1.4 * out[0], -1.3});
    const double step = 1e-6;
    for (size_t i = 0; i < count; i++) {
        const double kept = parameters[i];
        parameters[i] = kept + step;
        const double above = loss_of(mlp, input);
        parameters[i] = kept - step;
        const double below = loss_of(mlp, input);
        parameters[i] = kept;
        assert_near(mlp_gradient(mlp)[i], (above - below) / (2 * step), 1e-7);
    }
}

TEST(a_network_learns_a_curve)
{
    struct random random;
    random_init(&random, 4);
    AUTO(mlp) struct mlp *mlp = mlp_new(&(struct mlp_shape){3, {1, 16, 16, 1}}, &random);
    double squares = 0;
    for (int step = 0; step < 2000; step++) {
        squares = 0;
        for (int i = 0; i < 16; i++) {
            const double x = i / 7.5 - 1;
            const double off = mlp_forward(mlp, &x)[0] - sin(3 * x);
            squares += off * off / 16;
            mlp_backward(mlp, &(double){off / 16});
        }
        mlp_step(mlp, 0.01, 1);
    }
    assert_true(squares < 1e-3);
}

TEST(the_same_seed_gives_the_same_network)
{
    struct random one, other;
    random_init(&one, 5);
    random_init(&other, 5);
    AUTO(mlp) struct mlp *first = mlp_new(&shape, &one);
    AUTO(mlp) struct mlp *second = mlp_new(&shape, &other);
    assert_memory_equal(mlp_parameters(first), mlp_parameters(second),
                        mlp_parameter_count(&shape) * sizeof(double));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_finite_differences),
        cmocka_unit_test(a_network_learns_a_curve),
        cmocka_unit_test(the_same_seed_gives_the_same_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
