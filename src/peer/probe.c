#include "peer/probe.h"

#include "base/clock.h"
#include "base/scope.h"
#include "base/text.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { ACCUMULATORS = 12, LANES = 16, LOOP_COUNT = 50000, MEASURE_NS = 25000000 };

/* Enough independent sums to hide the latency of a multiply-add. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* The body is the same for all; the compiler splits the vector to what the target has. */
#define FMA_LOOP(name, attributes)                                                                 \
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
            total += sums[i][i % LANES];                                                           \
        return total;                                                                              \
    }

#define OPTIMIZED __attribute__((noinline)) PROBE_OPTIMIZE
#ifdef __clang__
#define PROBE_OPTIMIZE
#else
#define PROBE_OPTIMIZE __attribute__((optimize("O3", "fp-contract=fast")))
#endif

FMA_LOOP(fma_plain, OPTIMIZED)
#ifdef __x86_64__
FMA_LOOP(fma_avx2, OPTIMIZED __attribute__((target("avx2,fma"))))
FMA_LOOP(fma_avx512, OPTIMIZED __attribute__((target("avx512f,fma"))))
#endif

typedef float fma_function(int loop_count, float factor);

static fma_function *fma_pick(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return fma_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return fma_avx2;
#endif
    return fma_plain;
}

static int64_t cpu_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The best of many short rounds by CPU time: a busy machine is not a slow one. */
static double measure_gflops(void)
{
    fma_function *fma = fma_pick();
    const double operations = 2.0 * LANES * ACCUMULATORS * LOOP_COUNT;
    double best = 0;
    volatile float sink = 0;
    for (int64_t spent_ns = 0; spent_ns < MEASURE_NS;) {
        const int64_t begin_ns = cpu_time_ns();
        sink = fma(LOOP_COUNT, 0.999f);
        const int64_t round_ns = cpu_time_ns() - begin_ns;
        spent_ns += round_ns > 0 ? round_ns : 1;
        if (round_ns > 0 && operations / (double)round_ns > best)
            best = operations / (double)round_ns;
    }
    (void)sink;
    return best;
}

/* "model name : X" in /proc/cpuinfo; other architectures have other keys or none. */
static void read_cpu_model(char *out, size_t out_size)
{
    out[0] = '\0';
    AUTO_FILE FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        const bool is_model = strncmp(line, "model name", 10) == 0 ||
                              strncmp(line, "Model", 5) == 0 || strncmp(line, "Hardware", 8) == 0;
        if (!is_model || !colon)
            continue;
        const struct text model = text_trim(text_of(colon + 1));
        const int size = model.size < out_size ? (int)model.size : (int)out_size - 1;
        snprintf(out, out_size, "%.*s", size, model.data);
        return;
    }
}

int machine_probe_read(const char *state_dir, struct machine_probe *out_probe, struct error *error)
{
    struct machine_probe probe = {0};
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) < 0)
        return error_set_errno(error, errno, "count the cores");
    probe.cores_milli = (int64_t)CPU_COUNT(&cores) * 1000;
    probe.ram_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    struct statvfs disk;
    if (statvfs(state_dir, &disk) < 0)
        return error_set_errno(error, errno, "look at the disk of \"%s\"", state_dir);
    probe.disk_bytes = (int64_t)(disk.f_bavail * disk.f_frsize);
    read_cpu_model(probe.cpu_model, sizeof(probe.cpu_model));
    struct utsname name;
    if (uname(&name) < 0)
        return error_set_errno(error, errno, "uname");
    snprintf(probe.architecture, sizeof(probe.architecture), "%.31s", name.machine);
    snprintf(probe.kernel, sizeof(probe.kernel), "%.31s %.63s", name.sysname, name.release);

    probe.gflops = measure_gflops();
    probe.speed_weight_milli = (int64_t)(probe.gflops * 1000 / PROBE_REFERENCE_GFLOPS);
    if (probe.speed_weight_milli < 1)
        probe.speed_weight_milli = 1;
    if (probe.speed_weight_milli > PROBE_SPEED_WEIGHT_MAX)
        probe.speed_weight_milli = PROBE_SPEED_WEIGHT_MAX;
    *out_probe = probe;
    return 0;
}

/* Up to three numbers behind `key` in a file of the kernel's, added up; 0 when it is not there. */
static uint64_t read_numbers(const char *path, const char *key, int count)
{
    AUTO_FILE FILE *file = fopen(path, "re");
    char line[256];
    const size_t key_size = strlen(key);
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, key_size) != 0)
            continue;
        char *at = line + key_size;
        uint64_t sum = 0;
        for (int i = 0; i < count; i++)
            sum += strtoull(at, &at, 10);
        return sum;
    }
    return 0;
}

void load_probe_read(struct load_probe *probe, int64_t now_ns, struct machine_load *out_load)
{
    /* User, nice and system time. */
    const uint64_t busy_ticks = read_numbers("/proc/stat", "cpu ", 3);
    *out_load = (struct machine_load){.free_ram_bytes =
                                          read_numbers("/proc/meminfo", "MemAvailable:", 1) << 10};
    const int64_t span_ns = now_ns - (int64_t)probe->read_ns;
    if (probe->read_ns != 0 && span_ns > 0 && busy_ticks >= probe->busy_ticks) {
        const double busy_ns =
            (double)(busy_ticks - probe->busy_ticks) * 1e9 / (double)sysconf(_SC_CLK_TCK);
        out_load->load_milli = (uint32_t)(busy_ns * 1000 / (double)span_ns);
    }
    probe->busy_ticks = busy_ticks;
    probe->read_ns = (uint64_t)now_ns;
}
