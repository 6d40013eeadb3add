#include "peer/probe_speed.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ACCUMULATORS = 12,
    LOOP_COUNT = 50000,
    MEASURE_NS = 25000000,
    COPY_ROUNDS = 4,
};

#define COPY_BYTES_MAX (INT64_C(64) << 20)

/* Enough independent sums to hide the latency of a multiply-add, each in one register of the target
 * and all of them in registers at once: of vectors wider than those the compiler makes single
 * numbers. */
#define FMA_LOOP(name, lanes, attributes)                                                          \
    attributes static float name(int loop_count, float factor)                                     \
    {                                                                                              \
        lanes sums[ACCUMULATORS];                                                                  \
        for (int i = 0; i < ACCUMULATORS; i++)                                                     \
            sums[i] = (lanes){0} + (float)i;                                                       \
        const lanes scale = (lanes){0} + factor, added = (lanes){0} + 1.0f;                        \
        for (int loop = 0; loop < loop_count; loop++)                                              \
            for (int i = 0; i < ACCUMULATORS; i++)                                                 \
                sums[i] = sums[i] * scale + added;                                                 \
        float total = 0;                                                                           \
        for (int i = 0; i < ACCUMULATORS; i++)                                                     \
            total += sums[i][i % (int)(sizeof(lanes) / sizeof(float))];                            \
        return total;                                                                              \
    }

#define OPTIMIZED __attribute__((noinline)) PROBE_OPTIMIZE
#ifdef __clang__
#define PROBE_OPTIMIZE
#else
#define PROBE_OPTIMIZE __attribute__((optimize("O3", "fp-contract=fast")))
#endif

enum { PLAIN_LANES = 4, AVX2_LANES = 8, AVX512_LANES = 16 };

typedef float plain_lanes __attribute__((vector_size(PLAIN_LANES * sizeof(float))));
FMA_LOOP(fma_plain, plain_lanes, OPTIMIZED)
#ifdef __x86_64__
typedef float avx2_lanes __attribute__((vector_size(AVX2_LANES * sizeof(float))));
typedef float avx512_lanes __attribute__((vector_size(AVX512_LANES * sizeof(float))));
FMA_LOOP(fma_avx2, avx2_lanes, OPTIMIZED __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_avx512, avx512_lanes, OPTIMIZED __attribute__((target("avx512f,fma"))))
#endif

struct fma_loop {
    float (*run)(int loop_count, float factor);
    int lanes;
};

static struct fma_loop fma_pick(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return (struct fma_loop){fma_avx512, AVX512_LANES};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (struct fma_loop){fma_avx2, AVX2_LANES};
#endif
    return (struct fma_loop){fma_plain, PLAIN_LANES};
}

static int64_t cpu_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The best of many short rounds by CPU time: a busy machine is not a slow one. */
double probe_gflops(void)
{
    const struct fma_loop fma = fma_pick();
    const double operations = 2.0 * fma.lanes * ACCUMULATORS * LOOP_COUNT;
    double best = 0;
    volatile float sink = 0;
    for (int64_t spent_ns = 0; spent_ns < MEASURE_NS;) {
        const int64_t begin_ns = cpu_time_ns();
        sink = fma.run(LOOP_COUNT, 0.999f);
        const int64_t round_ns = cpu_time_ns() - begin_ns;
        spent_ns += round_ns > 0 ? round_ns : 1;
        if (round_ns > 0 && operations / (double)round_ns > best)
            best = operations / (double)round_ns;
    }
    (void)sink;
    return best;
}

/* Larger than caches, and a small part of a small machine. */
int64_t probe_ram_bytes_per_s(int64_t ram_bytes)
{
    const int64_t wanted = ram_bytes / 32 < COPY_BYTES_MAX ? ram_bytes / 32 : COPY_BYTES_MAX;
    const size_t size = (size_t)wanted;
    uint8_t *from = malloc(size), *to = malloc(size);
    double best = 0;
    if (size > 0 && from && to) {
        memset(from, 1, size); /* every page is there before the clock runs */
        memset(to, 2, size);
        for (int round = 0; round < COPY_ROUNDS; round++) {
            const int64_t begin_ns = cpu_time_ns();
            memcpy(to, from, size);
            /* The copy is wanted for its own sake. */
            __asm__ volatile("" : : "r"(to) : "memory");
            const int64_t span_ns = cpu_time_ns() - begin_ns;
            if (span_ns > 0 && (double)size / (double)span_ns > best)
                best = (double)size / (double)span_ns;
        }
    }
    free(from);
    free(to);
    return (int64_t)(best * 1e9);
}
