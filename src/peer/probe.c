#include "peer/probe.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/scope.h"
#include "base/text.h"
#include "peer/probe_package.h"
#include "peer/probe_speed.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { CPUINFO_LINE_SIZE = 8192, CUDA_MAJOR_MIN = 11 };

/* A word of the processor's, and what it is called here. */
static const struct {
    const char *flag;
    const char *label;
} isa_labels[] = {
    {"avx2", "avx2"},        {"fma", "fma"},       {"avx512f", "avx512"},
    {"avx512_vnni", "vnni"}, {"avx_vnni", "vnni"}, {"avx512_bf16", "avx512-bf16"},
    {"amx_tile", "amx"},     {"asimd", "neon"},    {"neon", "neon"},
    {"sve", "sve"},          {"sve2", "sve2"},     {"bf16", "arm-bf16"},
};

static bool has_word(struct text line, const char *word)
{
    struct text next;
    for (bool has_more = true; has_more;) {
        has_more = text_cut(line, ' ', &next, &line);
        if (text_equal(text_trim(next), text_of(word)))
            return true;
    }
    return false;
}

static void add_isa(struct text flags, struct labels_probe *labels)
{
    for (size_t i = 0; i < sizeof(isa_labels) / sizeof(*isa_labels); i++)
        if (has_word(flags, isa_labels[i].flag))
            labels_probe_add(labels, text_of(isa_labels[i].label));
}

/* "model name : X" and "flags : avx2 ..." in /proc/cpuinfo, of the first processor; ARM has
 * "Features", and the model elsewhere or nowhere. */
static void read_cpu(const char *root, struct machine_probe *probe, struct labels_probe *labels)
{
    char path[PATH_MAX], line[CPUINFO_LINE_SIZE];
    snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
    AUTO_FILE FILE *file = fopen(path, "re");
    bool has_flags = false;
    while (file && fgets(line, sizeof(line), file)) {
        struct text key, value;
        if (!text_cut(text_of(line), ':', &key, &value))
            continue;
        key = text_trim(key);
        value = text_trim(value);
        const bool is_model = text_equal(key, TEXT("model name")) ||
                              text_equal(key, TEXT("Model")) || text_equal(key, TEXT("Hardware"));
        if (is_model && !probe->cpu_model[0])
            snprintf(probe->cpu_model, sizeof(probe->cpu_model), "%.*s", (int)value.size,
                     value.data);
        const bool is_flags = text_equal(key, TEXT("flags")) || text_equal(key, TEXT("Features"));
        if (is_flags && !has_flags)
            add_isa(value, labels);
        has_flags = has_flags || is_flags;
    }
}

static int64_t speed_weight(double gflops)
{
    const int64_t weight = (int64_t)(gflops * 1000 / PROBE_REFERENCE_GFLOPS);
    if (weight < PROBE_SPEED_WEIGHT_MIN)
        return PROBE_SPEED_WEIGHT_MIN;
    return weight > PROBE_SPEED_WEIGHT_MAX ? PROBE_SPEED_WEIGHT_MAX : weight;
}

static int read_resources(const struct probe_options *options, struct machine_probe *probe,
                          struct error *error)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) < 0)
        return error_set_errno(error, errno, "count the cores");
    probe->cores_milli = (int64_t)CPU_COUNT(&cores) * 1000;
    probe->ram_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    struct statvfs disk;
    if (statvfs(options->state_dir, &disk) < 0)
        return error_set_errno(error, errno, "look at the disk of \"%s\"", options->state_dir);
    probe->disk_bytes = (int64_t)(disk.f_bavail * disk.f_frsize);
    return 0;
}

/* In the order in which they are worth keeping, should there be too many: the owner's own, what the
 * processor is, its graphics, then what is installed. */
static void read_labels(const struct probe_options *options, struct machine_probe *probe)
{
    struct labels_probe labels;
    labels_probe_init(&labels, options->hidden, options->hidden_count);
    for (size_t i = 0; i < options->label_count; i++)
        labels_probe_add(&labels, text_of(options->labels[i]));
    labels_probe_add(&labels, text_of(probe->architecture));
    read_cpu(options->root, probe, &labels);
    /* A driver runs what was built for the versions before its own. */
    for (int major = probe->gpus.cuda_version / 1000; major >= CUDA_MAJOR_MIN; major--) {
        char cuda[32];
        snprintf(cuda, sizeof(cuda), "cuda-%d", major);
        labels_probe_add(&labels, text_of(cuda));
    }
    packages_probe_read(options->root, &labels);
    _Static_assert(sizeof(probe->labels) == sizeof(labels.text), "one is copied to the other");
    memcpy(probe->labels, labels.text, sizeof(probe->labels));
    probe->label_overflow = labels.left_out;
}

int machine_probe_read(const struct probe_options *options, struct machine_probe *out_probe,
                       struct error *error)
{
    struct machine_probe probe = {0};
    struct utsname name;
    if (read_resources(options, &probe, error) < 0)
        return -1;
    if (uname(&name) < 0)
        return error_set_errno(error, errno, "uname");
    snprintf(probe.architecture, sizeof(probe.architecture), "%.31s", name.machine);
    snprintf(probe.kernel, sizeof(probe.kernel), "%.31s %.63s", name.sysname, name.release);
    gpus_probe_read(options->nvml, &probe.gpus);
    read_labels(options, &probe);
    probe.gflops = options->known ? options->known->gflops : probe_gflops();
    probe.ram_bytes_per_s =
        options->known ? options->known->ram_bytes_per_s : probe_ram_bytes_per_s(probe.ram_bytes);
    probe.speed_weight_milli = speed_weight(probe.gflops);
    *out_probe = probe;
    return 0;
}

void machine_probe_write(const struct machine_probe *probe, const struct probe_lent *lent,
                         struct json_writer *writer)
{
    const struct gpus_probe *gpus = &probe->gpus;
    const struct gpu_group group = gpus_probe_largest(gpus);
    json_object_begin(writer);
    json_field_i64(writer, "cores_milli", lent->cores_milli);
    json_field_i64(writer, "speed_weight_milli", probe->speed_weight_milli);
    json_field_i64(writer, "ram_bytes", lent->ram_bytes);
    json_field_i64(writer, "disk_bytes", lent->disk_bytes);
    json_field_i64(writer, "ram_bytes_per_s", probe->ram_bytes_per_s);
    json_field_i64(writer, "gpus_milli", (int64_t)group.count * 1000);
    json_field_string(writer, "gpu_model", group.model);
    json_field_i64(writer, "gpu_ram_bytes", group.ram_bytes);
    json_field_string(writer, "cpu_model", probe->cpu_model);
    json_field_string(writer, "labels", probe->labels);
    json_field_bool(writer, "forbids_job_network", lent->network < OFFER_NETWORK_JOB);
    json_field_bool(writer, "allows_open_network", lent->network >= OFFER_NETWORK_OPEN);
    json_field_bool(writer, "allows_images", lent->has_images);
    if (lent->install == OFFER_INSTALL_NONE) /* an older market knows neither */
        json_field_bool(writer, "forbids_install", true);
    if (lent->install >= OFFER_INSTALL_INDEX)
        json_field_bool(writer, "allows_index", true);
    if (lent->forbids_programs) /* nor this */
        json_field_bool(writer, "forbids_programs", true);
    json_object_end(writer);
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
