#include "tensor/onednn_library.h"
#include "testing/testing.h"

#include <math.h>

static struct onednn_library *open_or_skip(void)
{
    struct error error;
    struct onednn_library *library = NULL;
    if (onednn_library_open(&library, &error) < 0)
        SKIP("%s", error.message);
    return library;
}

static void assert_product(struct onednn_library *library, bool is_a_transposed,
                           bool is_b_transposed, uint32_t side)
{
    enum { SIDE_MAX = 128 };
    static float a[SIDE_MAX * SIDE_MAX], b[SIDE_MAX * SIDE_MAX], c[SIDE_MAX * SIDE_MAX];
    for (uint32_t i = 0; i < side * side; i++) {
        a[i] = (float)(i % 5) - 2;
        b[i] = (float)(i % 7) - 3;
    }
    const struct gemm gemm = {side, side, side, is_a_transposed, is_b_transposed, a, b, c};
    onednn_library_gemm(library, &gemm);
    for (uint32_t row = 0; row < side; row++)
        for (uint32_t column = 0; column < side; column++) {
            float sum = 0;
            for (uint32_t k = 0; k < side; k++)
                sum += a[is_a_transposed ? k * side + row : row * side + k] *
                       b[is_b_transposed ? column * side + k : k * side + column];
            assert_true(fabsf(sum - c[row * side + column]) < 1e-3F);
        }
}

TEST(products_small_and_large_are_right_in_each_order)
{
    AUTO(onednn_library) struct onednn_library *library = open_or_skip();
    assert_product(library, false, false, 13);
    assert_product(library, false, true, 13);
    assert_product(library, true, false, 13);
    assert_product(library, false, false, 128); /* past what goes to OpenBLAS */
    assert_product(library, false, true, 128);
    assert_product(library, true, false, 128);
}

TEST(oneDNN_alone_gives_the_same_products)
{
    AUTO(onednn_library) struct onednn_library *library = open_or_skip();
    library->blas_sgemm = NULL;
    assert_product(library, false, true, 13);
    assert_product(library, true, false, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_small_and_large_are_right_in_each_order),
        cmocka_unit_test(oneDNN_alone_gives_the_same_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
