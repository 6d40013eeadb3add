#include "peer/guard.h"

#include "base/assert.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_PER_MS INT64_C(1000000)
#define GIB       (INT64_C(1) << 30)

enum { HEAT_LOW_MILLI = 5000, HEAT_COOLED_MILLI = 10000, RESUME_MAX_MS = 600000 };

static const char *const level_names[GUARD_LEVEL_COUNT] = {
    [GUARD_FULL] = "full",
    [GUARD_LOW] = "low",
    [GUARD_FROZEN] = "frozen",
    [GUARD_RELEASED] = "released",
};

const char *guard_level_name(enum guard_level level)
{
    ASSERT(level < GUARD_LEVEL_COUNT);
    return level_names[level];
}

static const char *const cause_names[GUARD_CAUSE_COUNT] = {
    [GUARD_CAUSE_NONE] = "",         [GUARD_CAUSE_PAUSE] = "pause",
    [GUARD_CAUSE_MEMORY] = "memory", [GUARD_CAUSE_CPU] = "cpu",
    [GUARD_CAUSE_HEAT] = "heat",     [GUARD_CAUSE_BATTERY] = "battery",
    [GUARD_CAUSE_GPU] = "gpu",       [GUARD_CAUSE_NETWORK] = "network",
    [GUARD_CAUSE_LID] = "lid",       [GUARD_CAUSE_INPUT] = "input",
};

const char *guard_cause_name(enum guard_cause cause)
{
    ASSERT(cause < GUARD_CAUSE_COUNT);
    return cause_names[cause];
}

void guard_readings_init(struct guard_readings *readings)
{
    *readings = (struct guard_readings){GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN,
                                        GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN,
                                        GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN};
}

void guard_wishes_init(struct guard_wishes *wishes)
{
    *wishes = (struct guard_wishes){
        .cpu_low_share_milli = 100,
        .cpu_freeze_share_milli = 250,
        .input_quiet_ms = 180000,
        .gpu_share_milli = 200,
        .temperature_max = 90,
        .resume_ms = 10000,
        .on_input = GUARD_LOW,
        .on_battery = GUARD_FROZEN,
        .on_lid = GUARD_LOW,
        .on_metered = GUARD_FROZEN,
    };
}

static int64_t memory_kept(const struct guard_wishes *wishes, int64_t ram_bytes)
{
    if (wishes->memory_bytes > 0)
        return wishes->memory_bytes;
    if (wishes->memory_share_milli > 0)
        return ram_bytes / 1000 * wishes->memory_share_milli;
    return ram_bytes / 10 < 2 * GIB ? ram_bytes / 10 : 2 * GIB;
}

void guard_limits_wish(struct guard_limits *limits, const struct guard_wishes *wishes,
                       int64_t cores_milli, int64_t ram_bytes)
{
    *limits = (struct guard_limits){
        .cpu_low_milli = cores_milli * wishes->cpu_low_share_milli / 1000,
        .cpu_freeze_milli = cores_milli * wishes->cpu_freeze_share_milli / 1000,
        .freeze_after_ms = 300,
        .memory_keep_bytes = memory_kept(wishes, ram_bytes),
        .memory_stall_milli = 100,
        .memory_release_ms = 3000,
        .input_quiet_ms = wishes->input_quiet_ms,
        .gpu_milli = wishes->gpu_share_milli,
        .temperature_milli = wishes->temperature_max * 1000,
        .on_input = wishes->on_input,
        .on_battery = wishes->on_battery,
        .on_lid = wishes->on_lid,
        .on_metered = wishes->on_metered,
        .resume_ms = wishes->resume_ms,
        .resume_max_ms = wishes->resume_ms < RESUME_MAX_MS ? RESUME_MAX_MS : wishes->resume_ms,
    };
}

void guard_limits_init(struct guard_limits *limits, int64_t cores_milli, int64_t ram_bytes)
{
    struct guard_wishes wishes;
    guard_wishes_init(&wishes);
    guard_limits_wish(limits, &wishes, cores_milli, ram_bytes);
}

void guard_init(struct guard *guard, const struct guard_limits *limits, int64_t now_ns)
{
    *guard =
        (struct guard){.limits = *limits, .now_ns = now_ns, .resume_wait_ms = limits->resume_ms};
    guard_readings_init(&guard->readings);
}

/* ---- What each reading asks for -------------------------------------------------------------- */

struct demand {
    enum guard_level level;
    enum guard_cause cause;
};

static void ask(struct demand *demand, enum guard_level level, enum guard_cause cause)
{
    if (level > demand->level)
        *demand = (struct demand){level, cause};
}

static bool has_passed(bool is_since, int64_t since_ns, int64_t now_ns, int64_t span_ms)
{
    return is_since && now_ns - since_ns >= span_ms * NS_PER_MS;
}

/* The limit that keeps what is yielded is lower than the one that made it yield. */
static int64_t limit_of(int64_t limit, bool is_keeping)
{
    return is_keeping ? limit * 3 / 4 : limit;
}

static void ask_for_cpu(const struct guard *guard, bool is_keeping, struct demand *demand)
{
    const struct guard_limits *limits = &guard->limits;
    const int64_t used = guard->readings.cpu_milli;
    const int64_t low = limit_of(limits->cpu_low_milli, is_keeping);
    const int64_t freeze = limit_of(limits->cpu_freeze_milli, is_keeping);
    if (used < 0)
        return;
    if (used > low || used > freeze)
        ask(demand, GUARD_LOW, GUARD_CAUSE_CPU);
    if (used > freeze && (is_keeping || has_passed(guard->is_busy, guard->busy_ns, guard->now_ns,
                                                   limits->freeze_after_ms)))
        ask(demand, GUARD_FROZEN, GUARD_CAUSE_CPU);
}

static bool memory_is_short(const struct guard *guard, bool is_keeping)
{
    const struct guard_limits *limits = &guard->limits;
    const int64_t free_bytes = guard->readings.memory_free_bytes;
    const int64_t keep =
        limits->memory_keep_bytes + (is_keeping ? limits->memory_keep_bytes / 4 : 0);
    if (free_bytes >= 0 && free_bytes < keep)
        return true;
    /* A lease that strains against its own limit stalls too, with much memory free. */
    return guard->readings.memory_stall_milli > limit_of(limits->memory_stall_milli, is_keeping) &&
           (free_bytes < 0 || free_bytes < 2 * limits->memory_keep_bytes);
}

static void ask_for_memory(const struct guard *guard, bool is_keeping, struct demand *demand)
{
    const struct guard_limits *limits = &guard->limits;
    const int64_t free_bytes = guard->readings.memory_free_bytes;
    if (!memory_is_short(guard, is_keeping))
        return;
    ask(demand, GUARD_FROZEN, GUARD_CAUSE_MEMORY);
    /* What was given back is not taken again before there is enough of it. */
    const bool is_kept = is_keeping && guard->level == GUARD_RELEASED;
    const bool is_critical = free_bytes >= 0 && free_bytes < limits->memory_keep_bytes / 2;
    if (is_kept || is_critical ||
        has_passed(guard->is_short, guard->short_ns, guard->now_ns, limits->memory_release_ms))
        ask(demand, GUARD_RELEASED, GUARD_CAUSE_MEMORY);
}

static void ask_for_rest(const struct guard *guard, bool is_keeping, struct demand *demand)
{
    const struct guard_limits *limits = &guard->limits;
    const struct guard_readings *readings = &guard->readings;
    const int64_t hot = limits->temperature_milli - (is_keeping ? HEAT_COOLED_MILLI : 0);
    if (readings->temperature_milli > hot)
        ask(demand, GUARD_FROZEN, GUARD_CAUSE_HEAT);
    else if (readings->temperature_milli > hot - HEAT_LOW_MILLI)
        ask(demand, GUARD_LOW, GUARD_CAUSE_HEAT);
    if (readings->is_on_battery == 1)
        ask(demand, limits->on_battery, GUARD_CAUSE_BATTERY);
    if (readings->gpu_milli > limit_of(limits->gpu_milli, is_keeping))
        ask(demand, GUARD_FROZEN, GUARD_CAUSE_GPU);
    if (readings->is_metered == 1)
        ask(demand, limits->on_metered, GUARD_CAUSE_NETWORK);
    if (readings->is_lid_closed == 1)
        ask(demand, limits->on_lid, GUARD_CAUSE_LID);
    if (readings->input_idle_ms >= 0 && readings->input_idle_ms < limits->input_quiet_ms)
        ask(demand, limits->on_input, GUARD_CAUSE_INPUT);
}

static struct demand guard_demand(const struct guard *guard, bool is_keeping)
{
    struct demand demand = {GUARD_FULL, GUARD_CAUSE_NONE};
    ask_for_memory(guard, is_keeping, &demand);
    ask_for_cpu(guard, is_keeping, &demand);
    ask_for_rest(guard, is_keeping, &demand);
    return demand;
}

/* ---- Rising and falling ---------------------------------------------------------------------- */

static void note_since(bool is_so, bool *is_since, int64_t *since_ns, int64_t now_ns)
{
    if (is_so && !*is_since)
        *since_ns = now_ns;
    *is_since = is_so;
}

static void guard_rise(struct guard *guard, struct demand demand)
{
    const struct guard_limits *limits = &guard->limits;
    /* How long the owner was away tells how early the resumption was. */
    if (guard->has_resumed) {
        const int64_t away_ms = (guard->now_ns - guard->resumed_ns) / NS_PER_MS;
        int64_t wait_ms = limits->resume_ms;
        if (away_ms < limits->resume_max_ms)
            wait_ms = 2 * guard->resume_wait_ms;
        guard->resume_wait_ms = wait_ms < limits->resume_max_ms ? wait_ms : limits->resume_max_ms;
    }
    guard->has_resumed = false;
    guard->level = demand.level;
    guard->cause = demand.cause;
    guard->is_quiet = false;
}

static void guard_fall(struct guard *guard)
{
    guard->level = guard->calm_level;
    guard->cause = guard->calm_cause;
    guard->is_quiet = false;
    guard->has_resumed = true;
    guard->resumed_ns = guard->now_ns;
}

static void guard_calm(struct guard *guard, struct demand kept)
{
    if (kept.level >= guard->level) {
        guard->is_quiet = false;
        if (kept.level == guard->level && kept.cause != GUARD_CAUSE_NONE)
            guard->cause = kept.cause;
        return;
    }
    if (!guard->is_quiet || kept.level > guard->calm_level) {
        if (!guard->is_quiet)
            guard->quiet_ns = guard->now_ns;
        guard->is_quiet = true;
        guard->calm_level = kept.level;
        guard->calm_cause = kept.cause;
    }
    if (!has_passed(true, guard->quiet_ns, guard->now_ns, guard->resume_wait_ms))
        return;
    guard_fall(guard);
    /* What was asked for during the quiet may be over by now; that has its own quiet to pass. */
    guard_calm(guard, kept);
}

void guard_step(struct guard *guard, const struct guard_readings *readings, int64_t now_ns)
{
    ASSERT(now_ns >= guard->now_ns);
    guard->now_ns = now_ns;
    guard->readings = *readings;
    if (guard->is_paused && now_ns >= guard->paused_until_ns)
        guard->is_paused = false;
    note_since(readings->cpu_milli > guard->limits.cpu_freeze_milli, &guard->is_busy,
               &guard->busy_ns, now_ns);
    note_since(memory_is_short(guard, false), &guard->is_short, &guard->short_ns, now_ns);
    const struct demand demand = guard_demand(guard, false);
    if (demand.level > guard->level)
        guard_rise(guard, demand);
    else if (guard->level > GUARD_FULL)
        guard_calm(guard, guard_demand(guard, true));
}

/* ---- The owner's word ------------------------------------------------------------------------ */

void guard_pause(struct guard *guard, int64_t until_ns)
{
    guard->is_paused = true;
    guard->paused_until_ns = until_ns;
}

void guard_unpause(struct guard *guard)
{
    guard->is_paused = false;
}

void guard_resume(struct guard *guard, int64_t now_ns)
{
    guard->is_paused = false;
    guard->now_ns = now_ns;
    guard->resume_wait_ms = guard->limits.resume_ms;
    guard->has_resumed = false;
    guard->is_quiet = false;
    const struct demand demand = guard_demand(guard, false);
    guard->level = demand.level;
    guard->cause = demand.cause;
}

/* ---- Answers --------------------------------------------------------------------------------- */

enum guard_level guard_level(const struct guard *guard)
{
    return guard->is_paused && guard->level < GUARD_FROZEN ? GUARD_FROZEN : guard->level;
}

enum guard_cause guard_cause(const struct guard *guard)
{
    return guard->is_paused && guard->level <= GUARD_FROZEN ? GUARD_CAUSE_PAUSE : guard->cause;
}

int64_t guard_wait_ms(const struct guard *guard, int64_t now_ns)
{
    int64_t due_ns = INT64_MAX;
    if (guard->is_paused)
        due_ns = guard->paused_until_ns;
    if (guard->is_quiet && guard->quiet_ns + guard->resume_wait_ms * NS_PER_MS < due_ns)
        due_ns = guard->quiet_ns + guard->resume_wait_ms * NS_PER_MS;
    if (due_ns == INT64_MAX)
        return -1;
    return due_ns <= now_ns ? 0 : (due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
}

const char *guard_reason(const struct guard *guard, char out[GUARD_REASON_SIZE])
{
    const struct guard_readings *readings = &guard->readings;
    char amount[UNITS_TEXT_SIZE];
    const char *words = "";
    if (guard->is_quiet && !guard->is_paused) {
        snprintf(out, GUARD_REASON_SIZE, "waiting a while after: %s",
                 guard_cause_name(guard->cause));
        return out;
    }
    switch (guard_cause(guard)) {
    case GUARD_CAUSE_CPU:
        snprintf(out, GUARD_REASON_SIZE, "other programs use %.1f cores",
                 (double)readings->cpu_milli / 1000);
        return out;
    case GUARD_CAUSE_MEMORY:
        snprintf(out, GUARD_REASON_SIZE, "memory is short: %s free",
                 units_format_bytes(readings->memory_free_bytes, amount));
        return out;
    case GUARD_CAUSE_HEAT:
        snprintf(out, GUARD_REASON_SIZE, "the machine is hot: %" PRId64 " degrees",
                 readings->temperature_milli / 1000);
        return out;
    case GUARD_CAUSE_NONE:
        break;
    case GUARD_CAUSE_PAUSE:
        words = "paused by its owner";
        break;
    case GUARD_CAUSE_BATTERY:
        words = "the machine runs on its battery";
        break;
    case GUARD_CAUSE_GPU:
        words = "the GPU is used by other programs";
        break;
    case GUARD_CAUSE_NETWORK:
        words = "the network is metered";
        break;
    case GUARD_CAUSE_LID:
        words = "the lid is closed";
        break;
    case GUARD_CAUSE_INPUT:
        words = "somebody is at the machine";
        break;
    case GUARD_CAUSE_COUNT:
        ASSERT(false);
    }
    snprintf(out, GUARD_REASON_SIZE, "%s", words);
    return out;
}
