#include "sim/sync_profile.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/json_schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FILE_BYTES_MAX = 1 << 20,
    STEP_MS_MAX = 24 * 3600 * 1000,
    QUOTA_MS = 100, /* the kernel's default */
    GROUPS_MAX = 1024,
    TRACE_SPEED_MAX = 1000000,
};

static const double spread_max = 1000, cores_min = 0.001;

/*
 * The testbed of the ADSP paper: virtual processors stand for relative speed, a t3's counted a
 * tenth higher. A machine of mean speed takes a second for a step.
 */
#define TESTBED(heterogeneity, commit_ms, larges, xlarges, xxlarges, t3s)                          \
    "\"heterogeneity\":" heterogeneity ",\"mean_step_ms\":1000,\"machines\":["                     \
    "{\"kind\":\"t2.large\",\"count\":" larges ",\"step_ms\":4400,\"commit_ms\":" commit_ms "},"   \
    "{\"kind\":\"t2.xlarge\",\"count\":" xlarges ",\"step_ms\":2200,\"commit_ms\":" commit_ms "}," \
    "{\"kind\":\"t2.2xlarge\",\"count\":" xxlarges ",\"step_ms\":1100,\"commit_ms\":" commit_ms    \
    "},"                                                                                           \
    "{\"kind\":\"t3.xlarge\",\"count\":" t3s ",\"step_ms\":2000,\"commit_ms\":" commit_ms "}]"
#define TESTBED_18(heterogeneity, commit_ms) TESTBED(heterogeneity, commit_ms, "7", "5", "4", "2")
#define TESTBED_36(heterogeneity, commit_ms) TESTBED(heterogeneity, commit_ms, "14", "10", "8", "4")

/* Boards and laptops behind one home's line: assumed, not measured. */
#define HOME                                                                                       \
    "\"machines\":["                                                                               \
    "{\"kind\":\"Raspberry Pi 4\",\"count\":3,\"step_ms\":4000,\"commit_ms\":60,\"mbit\":40},"     \
    "{\"kind\":\"Raspberry Pi 5\",\"count\":1,\"step_ms\":1500,\"commit_ms\":60,\"mbit\":100},"    \
    "{\"kind\":\"old laptop\",\"count\":2,\"step_ms\":900,\"commit_ms\":80,\"mbit\":20},"          \
    "{\"kind\":\"laptop\",\"count\":2,\"step_ms\":450,\"commit_ms\":80,\"mbit\":50}]"

static const struct builtin {
    const char *name;
    const char *json;
} builtins[] = {
    {"testbed-h1.45", TESTBED_18("1.45", "1000")},
    {"testbed-h2.0", TESTBED_18("2.0", "1000")},
    {"testbed-h2.6", TESTBED_18("2.6", "1000")},
    {"testbed-h3.2", TESTBED_18("3.2", "1000")},
    {"testbed36", TESTBED_36("3.2", "1000")},
    {"delay-0", TESTBED_18("2.0", "0")},
    {"delay-2", TESTBED_18("2.0", "2000")},
    {"delay-5", TESTBED_18("2.0", "5000")},
    {"delay-10", TESTBED_18("2.0", "10000")},
    {"home", HOME},
    {"spot", TESTBED_18("2.0", "1000") ",\"trace\":\"1-node/aws-02-15-2023\",\"trace_speed\":100"},
};
enum { BUILTIN_COUNT = sizeof(builtins) / sizeof(*builtins) };

struct group {
    char kind[32];
    int64_t count, step_ms, commit_ms, mbit, kbit, quota_ms;
    double cores;
};

static const struct json_field group_fields[] = {
    {"kind", JSON_CHARS, offsetof(struct group, kind), .is_required = true,
     .size_max = sizeof(((struct group *)0)->kind)},
    {"count", JSON_I64, offsetof(struct group, count), .minimum = 1, .maximum = SYNC_MACHINES_MAX},
    {"step_ms", JSON_I64, offsetof(struct group, step_ms), .is_required = true, .minimum = 1,
     .maximum = STEP_MS_MAX},
    {"commit_ms", JSON_I64, offsetof(struct group, commit_ms), .minimum = 0,
     .maximum = STEP_MS_MAX},
    {"mbit", JSON_I64, offsetof(struct group, mbit), .minimum = 0, .maximum = 1000000},
    {"kbit", JSON_I64, offsetof(struct group, kbit), .minimum = 0, .maximum = 1000000000},
    {"cores", JSON_DOUBLE, offsetof(struct group, cores)},
    {"quota_ms", JSON_I64, offsetof(struct group, quota_ms), .minimum = 1, .maximum = STEP_MS_MAX},
};
static const struct json_schema group_schema = JSON_SCHEMA("machine", group_fields, struct group);

struct profile_file {
    char name[64];
    double heterogeneity;
    int64_t mean_step_ms;
    struct json_array machines;
    char trace[64];
    int64_t trace_speed;
};

static const struct json_field profile_fields[] = {
    {"name", JSON_CHARS, offsetof(struct profile_file, name),
     .size_max = sizeof(((struct profile_file *)0)->name)},
    {"heterogeneity", JSON_DOUBLE, offsetof(struct profile_file, heterogeneity)},
    {"mean_step_ms", JSON_I64, offsetof(struct profile_file, mean_step_ms), .minimum = 0,
     .maximum = STEP_MS_MAX},
    {"machines", JSON_ARRAY, offsetof(struct profile_file, machines), .is_required = true,
     .schema = &group_schema, .size_max = GROUPS_MAX},
    {"trace", JSON_CHARS, offsetof(struct profile_file, trace),
     .size_max = sizeof(((struct profile_file *)0)->trace)},
    {"trace_speed", JSON_I64, offsetof(struct profile_file, trace_speed), .minimum = 1,
     .maximum = TRACE_SPEED_MAX},
};
static const struct json_schema profile_schema =
    JSON_SCHEMA("profile", profile_fields, struct profile_file);

const char *sync_profile_name_at(uint32_t index)
{
    return index < BUILTIN_COUNT ? builtins[index].name : NULL;
}

static double speed_of(const struct sync_machine *machine)
{
    return 1e9 / (double)machine->step_ns;
}

static double mean_speed(const struct sync_profile *profile)
{
    double sum = 0;
    for (uint32_t i = 0; i < profile->machine_count; i++)
        sum += speed_of(&profile->machines[i]);
    return sum / profile->machine_count;
}

static double least_speed(const struct sync_profile *profile)
{
    double least = speed_of(&profile->machines[0]);
    for (uint32_t i = 1; i < profile->machine_count; i++)
        least = fmin(least, speed_of(&profile->machines[i]));
    return least;
}

double sync_profile_heterogeneity(const struct sync_profile *profile)
{
    return mean_speed(profile) / least_speed(profile);
}

int64_t sync_profile_mean_step_ns(const struct sync_profile *profile)
{
    return llround(1e9 / mean_speed(profile));
}

/* mean(v) / min(v) of the speeds raised to `power`. */
static double spread_at(const struct sync_profile *profile, double power)
{
    const double least = least_speed(profile);
    double sum = 0;
    for (uint32_t i = 0; i < profile->machine_count; i++)
        sum += pow(speed_of(&profile->machines[i]) / least, power);
    return sum / profile->machine_count;
}

static void set_mean_step(struct sync_profile *profile, double mean_step_ns)
{
    const double factor = mean_step_ns / 1e9 * mean_speed(profile);
    for (uint32_t i = 0; i < profile->machine_count; i++) {
        const int64_t step_ns = llround((double)profile->machines[i].step_ns * factor);
        profile->machines[i].step_ns = step_ns > 0 ? step_ns : 1;
    }
}

int sync_profile_spread(struct sync_profile *profile, double wanted, struct error *error)
{
    if (!(wanted >= 1 && wanted <= spread_max))
        return error_set(error, ERROR_INVALID, "a heterogeneity of %g is not from 1 to %g", wanted,
                         spread_max);
    double low = 0, high = 1;
    while (spread_at(profile, high) < wanted && high < spread_max)
        high *= 2;
    if (spread_at(profile, high) < wanted)
        return error_set(error, ERROR_INVALID,
                         "machines that are equally fast cannot have a heterogeneity of %g",
                         wanted);
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (spread_at(profile, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    const double mean_step_ns = 1e9 / mean_speed(profile);
    const double least = least_speed(profile);
    for (uint32_t i = 0; i < profile->machine_count; i++) {
        struct sync_machine *machine = &profile->machines[i];
        machine->step_ns = llround(1e12 / pow(speed_of(machine) / least, high));
        if (machine->step_ns < 1)
            machine->step_ns = 1;
    }
    set_mean_step(profile, mean_step_ns);
    return 0;
}

static int check_cores(const struct group *group, struct error *error)
{
    if (group->cores == 0 || (group->cores >= cores_min && group->cores <= 1))
        return 0;
    return error_set(error, ERROR_INVALID, "machine.cores: a share of one, from %g to 1",
                     cores_min);
}

static int add_machines(struct arena *arena, const struct profile_file *file,
                        struct sync_profile *profile, struct error *error)
{
    const struct group *groups = file->machines.items;
    uint64_t count = 0;
    for (size_t i = 0; i < file->machines.count; i++)
        count += groups[i].count > 0 ? (uint64_t)groups[i].count : 1;
    if (count < 1 || count > SYNC_MACHINES_MAX)
        return error_set(error, ERROR_INVALID, "a profile has 1 to %d machines", SYNC_MACHINES_MAX);
    profile->machines = arena_alloc(arena, count * sizeof(*profile->machines));
    for (size_t i = 0; i < file->machines.count; i++) {
        if (check_cores(&groups[i], error) < 0)
            return -1;
        struct sync_machine machine = {
            .step_ns = groups[i].step_ms * 1000000,
            .commit_ns = groups[i].commit_ms * 1000000,
            .bytes_per_s = groups[i].mbit * 125000 + groups[i].kbit * 125,
            .cores = groups[i].cores < 1 ? groups[i].cores : 0,
            .quota_ns = 1000000 * (groups[i].quota_ms > 0 ? groups[i].quota_ms : QUOTA_MS),
        };
        memcpy(machine.kind, groups[i].kind, sizeof(machine.kind));
        for (int64_t n = 0; n == 0 || n < groups[i].count; n++)
            profile->machines[profile->machine_count++] = machine;
    }
    return 0;
}

int sync_profile_read(struct arena *arena, struct text json, struct sync_profile *out_profile,
                      struct error *error)
{
    struct profile_file file = {.trace_speed = 1};
    if (json_read(arena, json, &profile_schema, &file, error) < 0)
        return -1;
    struct sync_profile profile = {.trace_speed = file.trace_speed};
    memcpy(profile.name, file.name, sizeof(profile.name));
    memcpy(profile.trace, file.trace, sizeof(profile.trace));
    if (strstr(profile.trace, ".."))
        return error_set(error, ERROR_INVALID, "profile.trace: names a folder below the traces'");
    if (add_machines(arena, &file, &profile, error) < 0 ||
        (file.heterogeneity != 0 && sync_profile_spread(&profile, file.heterogeneity, error) < 0))
        return -1;
    if (file.mean_step_ms > 0)
        set_mean_step(&profile, 1e6 * (double)file.mean_step_ms);
    *out_profile = profile;
    return 0;
}

static int unknown(const char *name, struct error *error)
{
    char names[200] = "";
    size_t size = 0;
    for (uint32_t i = 0; i < BUILTIN_COUNT; i++) {
        const int added =
            snprintf(names + size, sizeof(names) - size, "%s%s", i ? ", " : "", builtins[i].name);
        if (added < 0 || (size += (size_t)added) >= sizeof(names))
            break;
    }
    return error_set(error, ERROR_NOT_FOUND, "\"%.40s\" is neither a file nor one of %s", name,
                     names);
}

int sync_profile_find(struct arena *arena, const char *name, struct sync_profile *out_profile,
                      struct error *error)
{
    for (uint32_t i = 0; i < BUILTIN_COUNT; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return sync_profile_read(
                arena, text_of(arena_format(arena, "{\"name\":\"%s\",%s}", name, builtins[i].json)),
                out_profile, error);
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, FILE_BYTES_MAX);
    if (file_read(name, &bytes, error) < 0)
        return error->code == ERROR_NOT_FOUND ? unknown(name, error) : -1;
    if (sync_profile_read(arena, buffer_text(&bytes), out_profile, error) < 0)
        return error_wrap(error, "%.150s", name);
    return 0;
}
