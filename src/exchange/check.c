#include "exchange/check.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>

double check_distance(const float *left, const float *right, size_t count)
{
    double apart = 0, left_square = 0, right_square = 0;
    for (size_t i = 0; i < count; i++) {
        const double a = (double)left[i], b = (double)right[i];
        apart += (a - b) * (a - b);
        left_square += a * a;
        right_square += b * b;
    }
    const double larger = fmax(left_square, right_square);
    return larger > 0 ? sqrt(apart / larger) : 0;
}

/* int8 rounds to a 127th of the largest of 1024 values, of this push and of the rest of the one
 * before: a few tens of the usual value's size at worst. */
double check_near(enum codec codec)
{
    switch (codec) {
    case CODEC_F32:
    case CODEC_F16:
    case CODEC_BF16:
        return CHECK_NEAR;
    case CODEC_INT8:
        return 3 * CHECK_NEAR;
    case CODEC_1BIT:
    case CODEC_TOPK:
    case CODEC_COUNT:
        break;
    }
    return -1;
}

bool check_has(const struct check *check, uint64_t lease)
{
    for (uint32_t i = 0; i < check->result_count; i++)
        if (check->results[i].lease == lease)
            return true;
    return false;
}

void check_add(struct check *check, uint64_t lease, float *values, enum codec codec)
{
    ASSERT(check->result_count < CHECK_RESULTS_MAX && !check_has(check, lease));
    const uint32_t last = check->result_count++;
    check->results[last] = (struct check_result){lease, values, codec};
    for (uint32_t i = 0; i < last; i++)
        check->distances[i][last] = check->distances[last][i] =
            check_distance(check->results[i].values, values, check->count);
}

void check_clear(struct check *check)
{
    for (uint32_t i = 0; i < check->result_count; i++)
        free(check->results[i].values);
    *check = (struct check){.count = check->count};
}

static bool do_agree(const struct check *check, uint32_t i, uint32_t j)
{
    return check->distances[i][j] <=
           fmax(check_near(check->results[i].codec), check_near(check->results[j].codec));
}

struct check_verdict check_judge(const struct check *check)
{
    struct check_verdict verdict = {0};
    for (uint32_t j = 1; j < check->result_count && !verdict.is_decided; j++)
        for (uint32_t i = 0; i < j && !verdict.is_decided; i++)
            if (do_agree(check, i, j))
                verdict = (struct check_verdict){.is_decided = true, .right = {i, j}};
    if (!verdict.is_decided)
        return verdict;
    for (uint32_t k = 0; k < check->result_count; k++) {
        if (k == verdict.right[0] || k == verdict.right[1])
            continue;
        verdict.distance[k] =
            fmin(check->distances[k][verdict.right[0]], check->distances[k][verdict.right[1]]);
        verdict.is_wrong[k] = verdict.distance[k] >= CHECK_FAR;
    }
    return verdict;
}
