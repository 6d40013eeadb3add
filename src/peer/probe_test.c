/* covers probe.c, probe_gpu.c, probe_package.c, probe_speed.c, nvml_fixture.c */
#include "base/clock.h"
#include "base/json.h"
#include "peer/probe.h"
#include "peer/probe_package.h"
#include "peer/probe_speed.h"
#include "sandbox/folder.h"
#include "testing/testing.h"

#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    char root[64];
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    snprintf(fixture->root, sizeof(fixture->root), "/tmp/souk-probe-test-XXXXXX");
    *state = fixture;
    return mkdtemp(fixture->root) ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    struct error error;
    const int result = folder_remove(fixture->root, &error);
    free(fixture);
    return result;
}

/* A file below the root, with the folders on its way. */
static void put(const struct fixture *fixture, const char *path, const char *content)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof(whole), "%s%s", fixture->root, path);
    for (char *slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    fputs(content, file);
    assert_int_equal(fclose(file), 0);
}

static struct machine_probe probe_of(const struct fixture *fixture, struct probe_options options)
{
    static const struct machine_probe known = {.gflops = 50, .ram_bytes_per_s = 7};
    struct error error = {0};
    struct machine_probe probe;
    options.root = fixture->root;
    options.state_dir = "/tmp";
    options.known = &known;
    if (!options.nvml)
        options.nvml = "/no/such/library.so";
    ASSERT_OK(machine_probe_read(&options, &probe, &error));
    return probe;
}

static void assert_label(const struct machine_probe *probe, const char *word, bool is_there)
{
    struct labels_probe labels = {.size = strlen(probe->labels)};
    memcpy(labels.text, probe->labels, sizeof(labels.text));
    if (labels_probe_has(&labels, text_of(word)) != is_there)
        fail_msg("\"%s\" in \"%s\" should be %d", word, probe->labels, is_there);
}

TEST(machine_is_measured_in_little_time)
{
    struct error error = {0};
    struct machine_probe probe;
    struct timespec begin, end;
    const struct probe_options options = {.root = "", .state_dir = "/tmp"};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    ASSERT_OK(machine_probe_read(&options, &probe, &error));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    const double spent_ms =
        (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
    assert_true(probe.cores_milli >= 1000);
    assert_true(probe.ram_bytes > 1 << 20);
    assert_true(probe.gflops > 0.1);
    assert_true(probe.ram_bytes_per_s > 1 << 20);
    assert_in_range(probe.speed_weight_milli, PROBE_SPEED_WEIGHT_MIN, PROBE_SPEED_WEIGHT_MAX);
    assert_string_not_equal(probe.architecture, "");
    assert_label(&probe, probe.architecture, true);
    print_message("%s: %.1f GFLOP/s, %.1f GB/s, weight %d, in %.1f ms; %s\n", probe.cpu_model,
                  probe.gflops, (double)probe.ram_bytes_per_s / 1e9, (int)probe.speed_weight_milli,
                  spent_ms, probe.labels);
    assert_true(spent_ms < 2000); /* sanitizers are slow; otherwise it is some 100 ms */
}

#ifdef __x86_64__
/* Of single numbers, one after the other: what a loop of vectors is that the compiler took apart.
 */
static double scalar_gflops(void)
{
    enum { SUMS = 12, LOOPS = 20000, ROUNDS = 20 };
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float sums[SUMS] = {0};
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        for (int loop = 0; loop < LOOPS; loop++)
#pragma GCC unroll 12
            for (int i = 0; i < SUMS; i++) { /* in registers, as the probe has its vectors */
                sums[i] = sums[i] * 0.999f + 1.0f;
                __asm__ volatile("" : "+x"(sums[i]));
            }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        const double spent_ns =
            (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
        if (spent_ns > 0 && 2.0 * SUMS * LOOPS / spent_ns > best)
            best = 2.0 * SUMS * LOOPS / spent_ns;
    }
    return best;
}

TEST(speed_is_that_of_the_processors_vectors)
{
    const double scalar = scalar_gflops(), measured = probe_gflops();
    print_message("%.1f GFLOP/s by vectors, %.1f by single numbers\n", measured, scalar);
    assert_true(measured > 3 * scalar);
}
#endif

TEST(folder_that_is_not_there_is_told)
{
    struct error error = {0};
    struct machine_probe probe;
    const struct probe_options options = {.root = "", .state_dir = "/no/such/folder"};
    ASSERT_FAILS(machine_probe_read(&options, &probe, &error), ERROR_NOT_FOUND);
}

TEST(speeds_that_are_known_are_not_measured_again)
{
    const struct machine_probe probe = probe_of(*state, (struct probe_options){0});
    assert_int_equal(probe.ram_bytes_per_s, 7);
    assert_int_equal(probe.speed_weight_milli, 500);
}

TEST(processor_of_a_pc_is_read)
{
    struct fixture *fixture = *state;
    put(fixture, "/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A fast one\nflags\t\t: fpu fma avx2 avx512f amx_tile\n"
        "processor\t: 1\nmodel name\t: A slow one\nflags\t\t: fpu sve\n");
    const struct machine_probe probe = probe_of(fixture, (struct probe_options){0});
    assert_string_equal(probe.cpu_model, "A fast one");
    assert_label(&probe, "avx2", true);
    assert_label(&probe, "avx512", true);
    assert_label(&probe, "amx", true);
    assert_label(&probe, "sve", false);
    assert_label(&probe, "fpu", false);
}

TEST(processor_of_a_board_is_read)
{
    struct fixture *fixture = *state;
    put(fixture, "/proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd crc32 sve2\n\nHardware\t: BCM2711\n"
        "Model\t\t: Raspberry Pi 4\n");
    const struct machine_probe probe = probe_of(fixture, (struct probe_options){0});
    assert_string_equal(probe.cpu_model, "BCM2711");
    assert_label(&probe, "neon", true);
    assert_label(&probe, "sve2", true);
    assert_label(&probe, "sve", false);
}

TEST(debian_packages_are_labels_once_they_are_installed)
{
    struct fixture *fixture = *state;
    put(fixture, "/var/lib/dpkg/status",
        "Package: python3-torch\nStatus: install ok installed\nVersion: 1.13\n\n"
        "Package: openmpi-bin\nStatus: deinstall ok config-files\n\n"
        "Package: libfoo\nStatus: install ok installed\nDescription: Package: runc\n");
    const struct machine_probe probe = probe_of(fixture, (struct probe_options){0});
    assert_label(&probe, "python3-torch", true);
    assert_label(&probe, "openmpi", false);
    assert_label(&probe, "runc", false);
    assert_label(&probe, "libfoo", false); /* not of the list */
}

TEST(programs_and_python_packages_are_found_where_they_usually_are)
{
    struct fixture *fixture = *state;
    put(fixture, "/usr/local/lib/python3.11/dist-packages/jax/__init__.py", "");
    put(fixture, "/usr/lib64/python3.9/site-packages/pyspark/__init__.py", "");
    put(fixture, "/usr/lib/python3/dist-packages/numpy/README", "");
    put(fixture, "/usr/bin/podman", "");
    const struct machine_probe probe = probe_of(fixture, (struct probe_options){0});
    assert_label(&probe, "python3-jax", true);
    assert_label(&probe, "spark", true);
    assert_label(&probe, "podman", true);
    assert_label(&probe, "python3-numpy", false);
}

TEST(owner_adds_and_hides_labels)
{
    struct fixture *fixture = *state;
    put(fixture, "/usr/bin/podman", "");
    const char *const added[] = {"quiet-room", "two words", "podman"};
    const char *const hidden[] = {"podman"};
    const struct machine_probe probe = probe_of(
        fixture, (struct probe_options){
                     .labels = added, .label_count = 3, .hidden = hidden, .hidden_count = 1});
    assert_label(&probe, "quiet-room", true);
    assert_label(&probe, "podman", false);
    assert_null(strstr(probe.labels, "two words"));
}

TEST(labels_that_do_not_fit_are_counted)
{
    struct labels_probe labels;
    labels_probe_init(&labels, NULL, 0);
    for (int i = 0; i < 100; i++) {
        char word[24];
        snprintf(word, sizeof(word), "label-%d", i);
        labels_probe_add(&labels, text_of(word));
    }
    assert_true(labels.left_out > 0);
    assert_true(strlen(labels.text) < LABELS_PROBE_SIZE);
    assert_true(labels_probe_has(&labels, TEXT("label-9")));
    assert_false(labels_probe_has(&labels, TEXT("label-99")));
}

TEST(fingerprint_moves_with_what_a_probe_looks_at)
{
    struct fixture *fixture = *state;
    put(fixture, "/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    const uint64_t first = probe_fingerprint(fixture->root);
    assert_int_equal(probe_fingerprint(fixture->root), first);
    put(fixture, "/proc/driver/nvidia/gpus/0000:02:00.0/information", "");
    const uint64_t second = probe_fingerprint(fixture->root);
    assert_int_not_equal(second, first);
    put(fixture, "/var/lib/dpkg/status", "");
    const uint64_t third = probe_fingerprint(fixture->root);
    assert_int_not_equal(third, second);
    put(fixture, "/sys/devices/system/cpu/online", "0-3\n");
    assert_int_not_equal(probe_fingerprint(fixture->root), third);
}

TEST(graphics_are_asked_of_the_driver)
{
    const struct machine_probe probe =
        probe_of(*state, (struct probe_options){.nvml = NVML_FIXTURE});
    assert_int_equal(probe.gpus.count, 3); /* the fourth fell off the bus */
    assert_string_equal(probe.gpus.items[0].name, "NVIDIA Large?GPU");
    assert_int_equal(probe.gpus.items[1].temperature_c, 41);
    assert_int_equal(probe.gpus.items[2].load_percent, -1);
    assert_int_equal(probe.gpus.cuda_version, 12040);
    assert_label(&probe, "cuda-12", true);
    assert_label(&probe, "cuda-11", true);
    assert_label(&probe, "cuda-13", false);
    const struct gpu_group group = gpus_probe_largest(&probe.gpus);
    assert_int_equal(group.count, 2);
    assert_string_equal(group.model, "Small");
    assert_int_equal(group.minors, 1 << 2 | 1 << 1);
    assert_int_equal(group.ram_bytes, 2 << 20);

    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 8192);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    machine_probe_write(&probe, &(struct probe_lent){1000, 2, 3}, &writer);
    assert_non_null(strstr(buffer_string(&json), "\"gpus_milli\":2000,\"gpu_model\":\"Small\""));
    assert_non_null(strstr(buffer_string(&json), "\"cores_milli\":1000"));
}

TEST(a_model_is_named_as_job_files_have_it)
{
    static const struct {
        const char *name, *model;
    } cases[] = {
        {"NVIDIA H200", "H200"},
        {"NVIDIA H100 80GB HBM3", "H100"},
        {"NVIDIA A100-SXM4-80GB", "A100"},
        {"Tesla T4", "T4"},
        {"Tesla V100-SXM2-16GB", "V100"},
        {"NVIDIA GeForce RTX 4090", "RTX4090"},
        {"NVIDIA GeForce GTX 1080 Ti", "GTX1080"},
        {"NVIDIA", "NVIDIA"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char model[GPU_MODEL_SIZE];
        gpu_model_of_name(cases[i].name, model);
        assert_string_equal(model, cases[i].model);
    }
}

TEST(a_machine_without_graphics_says_why)
{
    const struct machine_probe probe = probe_of(*state, (struct probe_options){0});
    assert_int_equal(probe.gpus.count, 0);
    assert_string_equal(probe.gpus.reason, "no NVIDIA driver");
    assert_string_equal(gpus_probe_largest(&probe.gpus).model, "");
}

TEST(load_is_of_the_time_between_two_calls)
{
    struct load_probe probe = {0};
    struct machine_load load;
    load_probe_read(&probe, clock_monotonic_ns(&clock_system), &load);
    assert_int_equal(load.load_milli, 0);
    assert_true(load.free_ram_bytes > 0);
    const int64_t begin_ns = clock_monotonic_ns(&clock_system);
    while (clock_monotonic_ns(&clock_system) - begin_ns < 200000000) /* clock: load needs a span */
        ;
    load_probe_read(&probe, clock_monotonic_ns(&clock_system), &load);
    assert_true(load.load_milli > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_is_measured_in_little_time),
#ifdef __x86_64__
        cmocka_unit_test(speed_is_that_of_the_processors_vectors),
#endif
        cmocka_unit_test(folder_that_is_not_there_is_told),
        cmocka_unit_test_setup_teardown(speeds_that_are_known_are_not_measured_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(processor_of_a_pc_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(processor_of_a_board_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(debian_packages_are_labels_once_they_are_installed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            programs_and_python_packages_are_found_where_they_usually_are, setup, teardown),
        cmocka_unit_test_setup_teardown(owner_adds_and_hides_labels, setup, teardown),
        cmocka_unit_test(labels_that_do_not_fit_are_counted),
        cmocka_unit_test_setup_teardown(fingerprint_moves_with_what_a_probe_looks_at, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(graphics_are_asked_of_the_driver, setup, teardown),
        cmocka_unit_test(a_model_is_named_as_job_files_have_it),
        cmocka_unit_test_setup_teardown(a_machine_without_graphics_says_why, setup, teardown),
        cmocka_unit_test(load_is_of_the_time_between_two_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
