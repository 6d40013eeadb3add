#include "sim/sync_presence.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "sim/trace.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANGES_MAX = 1 << 20, FILES_MAX = 64 };

struct machine_presence {
    bool is_there; /* at the start */
    int64_t *changes;
    uint32_t count, capacity;
};

struct sync_presence {
    uint32_t machine_count;
    struct machine_presence *machines;
};

static void change_at(struct machine_presence *machine, int64_t at_ns)
{
    if (machine->count == machine->capacity) {
        machine->capacity = machine->capacity ? 2 * machine->capacity : 16;
        machine->changes = realloc(machine->changes, machine->capacity * sizeof(*machine->changes));
        ASSERT(machine->changes);
    }
    machine->changes[machine->count++] = at_ns;
}

static void draw_stays(struct sync_presence *presence, const struct sync_presence_options *options)
{
    for (uint32_t i = 0; i < presence->machine_count; i++) {
        struct machine_presence *machine = &presence->machines[i];
        struct random random;
        random_init(&random, options->seed * 1000003 + i);
        machine->is_there = true;
        bool is_there = true;
        for (double at_ns = 0; machine->count < CHANGES_MAX; is_there = !is_there) {
            const int64_t mean_ms = is_there ? options->stay_ms : options->absence_ms;
            at_ns -= 1e6 * (double)mean_ms * log(1 - random_unit(&random));
            if (at_ns >= (double)options->end_ns)
                break;
            change_at(machine, (int64_t)at_ns + 1);
        }
    }
}

static void follow_trace(struct machine_presence *machine, const struct trace_samples *samples,
                         size_t start, const struct sync_presence_options *options)
{
    machine->is_there = samples->counts[start] > 0;
    bool is_there = machine->is_there;
    const double gap_ns = 1e9 * (double)samples->gap_s / (double)options->trace_speed;
    for (size_t n = 1; machine->count < CHANGES_MAX; n++) {
        const double at_ns = gap_ns * (double)n;
        if (at_ns >= (double)options->end_ns)
            return;
        const bool will_be = samples->counts[(start + n) % samples->count] > 0;
        if (will_be != is_there)
            change_at(machine, (int64_t)at_ns + 1);
        is_there = will_be;
    }
}

static int read_traces(glob_t *found, struct trace_samples *samples, struct error *error)
{
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (trace_read_samples(found->gl_pathv[i], &samples[i], error) < 0)
            return -1;
        if (samples[i].count == 0)
            return error_set(error, ERROR_CORRUPT, "%.150s has no samples", found->gl_pathv[i]);
    }
    return 0;
}

static int follow_traces(struct sync_presence *presence,
                         const struct sync_presence_options *options, struct error *error)
{
    char pattern[512];
    const int size = snprintf(pattern, sizeof(pattern), "%s/*_1.json", options->folder);
    if (size < 0 || (size_t)size >= sizeof(pattern))
        return error_set(error, ERROR_INVALID, "the path of the traces is too long");
    glob_t found;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): unsafe only beside changes of the environment */
    if (glob(pattern, 0, NULL, &found) != 0) {
        globfree(&found);
        return error_set(error, ERROR_NOT_FOUND, "no availability traces in %.150s",
                         options->folder);
    }
    struct trace_samples samples[FILES_MAX] = {0};
    int result = found.gl_pathc <= FILES_MAX
                     ? read_traces(&found, samples, error)
                     : error_set(error, ERROR_EXHAUSTED, "more than %d traces", FILES_MAX);
    for (uint32_t i = 0; result == 0 && i < presence->machine_count; i++) {
        const struct trace_samples *own = &samples[i % found.gl_pathc];
        struct random random;
        random_init(&random, options->seed * 1000003 + i);
        follow_trace(&presence->machines[i], own, (size_t)random_below(&random, own->count),
                     options);
    }
    for (size_t i = 0; i < FILES_MAX; i++)
        trace_samples_done(&samples[i]);
    globfree(&found);
    return result;
}

int sync_presence_open(const struct sync_presence_options *options,
                       struct sync_presence **out_presence, struct error *error)
{
    if ((options->stay_ms > 0) != (options->absence_ms > 0))
        return error_set(error, ERROR_INVALID, "a mean stay and a mean absence go together");
    if (options->stay_ms > 0 && options->folder)
        return error_set(error, ERROR_INVALID, "stays are drawn or follow traces, not both");
    AUTO(sync_presence) struct sync_presence *presence = memory_zeroed(1, sizeof(*presence));
    presence->machine_count = options->machine_count;
    presence->machines = memory_zeroed(options->machine_count, sizeof(*presence->machines));
    for (uint32_t i = 0; i < presence->machine_count; i++)
        presence->machines[i].is_there = true;
    if (options->stay_ms > 0)
        draw_stays(presence, options);
    if (options->folder && follow_traces(presence, options, error) < 0)
        return -1;
    *out_presence = TAKE(presence);
    return 0;
}

void sync_presence_free(struct sync_presence *presence)
{
    if (!presence)
        return;
    for (uint32_t i = 0; presence->machines && i < presence->machine_count; i++)
        free(presence->machines[i].changes);
    free(presence->machines);
    free(presence);
}

bool sync_presence_at_start(const struct sync_presence *presence, uint32_t machine)
{
    ASSERT(machine < presence->machine_count);
    return presence->machines[machine].is_there;
}

int64_t sync_presence_change_ns(const struct sync_presence *presence, uint32_t machine,
                                uint32_t index)
{
    ASSERT(machine < presence->machine_count);
    const struct machine_presence *own = &presence->machines[machine];
    return index < own->count ? own->changes[index] : INT64_MAX;
}

void sync_presence_add_change(struct sync_presence *presence, uint32_t machine, int64_t at_ns)
{
    ASSERT(machine < presence->machine_count);
    struct machine_presence *own = &presence->machines[machine];
    ASSERT(at_ns > (own->count > 0 ? own->changes[own->count - 1] : 0));
    change_at(own, at_ns);
}
