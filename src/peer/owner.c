#include "peer/owner.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "peer/watch.h"
#include "peer/watch_desktop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS INT64_C(1000000)

enum {
    SLOW_PERIOD_MS = 800,     /* battery, lid, heat: they change slowly and cost more to read */
    DESKTOP_PERIOD_MS = 2000, /* asking takes a process, some milliseconds of it */
    DESKTOP_PERIOD_IDLE_MS = 60000,
    CHANGES_KEPT = 16,
    PAUSE_FILE_MAX = 1024,
};

/* Told to the owner: when work yielded and why. */
struct change {
    int64_t at_ms; /* UTC */
    enum guard_level level;
    char reason[GUARD_REASON_SIZE];
};

struct said_pause {
    bool is_said;
    int64_t until_ns; /* INT64_MAX: until resumed */
};

struct owner {
    struct owner_options options;
    struct said_pause pauses[OWNER_PLACE_COUNT]; /* what the guard is told is all of them */
    struct guard guard;
    struct guard_readings readings;
    struct watch_cpu cpu;
    struct watch_memory memory;
    struct watch_input input;
    struct watch_desktop *desktop;
    struct watch_desktop_readings said; /* by it, last */
    int64_t slow_ns;                    /* when the slow ones were read; 0: never */
    bool is_working;
    bool is_draining;
    enum guard_level told_level;
    bool told_takes;
    enum owner_word told_word;
    int64_t told_until_ns;               /* of a pause; 0: of none */
    struct change changes[CHANGES_KEPT]; /* a ring */
    size_t change_count;
    int trigger_fd;
    struct loop_watch *trigger;
    struct loop_timer *timer;
};

static int64_t owner_now_ns(const struct owner *owner)
{
    return clock_monotonic_ns(loop_clock(owner->options.loop));
}

/* ---- A pause outlives the daemon ------------------------------------------------------------- */

struct kept_pause {
    bool is_paused[OWNER_PLACE_COUNT];
    int64_t until_ms[OWNER_PLACE_COUNT]; /* UTC; 0: until resumed */
    bool is_draining;
};

static const struct json_field kept_fields[] = {
    {"paused", JSON_BOOL, offsetof(struct kept_pause, is_paused[OWNER_HERE]), .is_required = true},
    {"until_ms", JSON_I64, offsetof(struct kept_pause, until_ms[OWNER_HERE])},
    {"paused_remotely", JSON_BOOL, offsetof(struct kept_pause, is_paused[OWNER_REMOTE])},
    {"remote_until_ms", JSON_I64, offsetof(struct kept_pause, until_ms[OWNER_REMOTE])},
    {"draining", JSON_BOOL, offsetof(struct kept_pause, is_draining)},
};
static const struct json_schema kept_schema = JSON_SCHEMA("pause", kept_fields, struct kept_pause);

static bool owner_is_paused_by(const struct owner *owner, enum owner_place place)
{
    const struct said_pause *pause = &owner->pauses[place];
    return pause->is_said && owner_now_ns(owner) < pause->until_ns;
}

/* UTC; 0: until resumed. */
static int64_t owner_utc_ms(const struct owner *owner, int64_t until_ns)
{
    if (until_ns == INT64_MAX)
        return 0;
    return clock_utc_ms(loop_clock(owner->options.loop)) +
           (until_ns - owner_now_ns(owner)) / NS_PER_MS;
}

static int64_t owner_paused_until_ms(const struct owner *owner)
{
    const struct guard *guard = &owner->guard;
    return guard->is_paused ? owner_utc_ms(owner, guard->paused_until_ns) : 0;
}

static void owner_keep(const struct owner *owner)
{
    if (!owner->options.state_dir)
        return;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/owner.json", owner->options.state_dir);
    struct kept_pause kept = {.is_draining = owner->is_draining};
    for (int i = 0; i < OWNER_PLACE_COUNT; i++) {
        kept.is_paused[i] = owner_is_paused_by(owner, (enum owner_place)i);
        kept.until_ms[i] = kept.is_paused[i] ? owner_utc_ms(owner, owner->pauses[i].until_ns) : 0;
    }
    struct error error;
    if (!kept.is_paused[OWNER_HERE] && !kept.is_paused[OWNER_REMOTE] && !kept.is_draining) {
        if (unlink(path) < 0 && errno != ENOENT)
            log_event(LOG_WARN, "pause_not_kept", "errno=%d", errno);
        return;
    }
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PAUSE_FILE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &kept_schema, &kept);
    const struct text text = buffer_text(&json);
    if (file_replace(path, &text, 1, 0600, &error) < 0)
        log_event(LOG_WARN, "pause_not_kept", "error=\"%s\"", error.message);
}

/* The longest of all that were said holds. */
static void owner_hold(struct owner *owner)
{
    int64_t until_ns = 0;
    for (int i = 0; i < OWNER_PLACE_COUNT; i++)
        if (owner_is_paused_by(owner, (enum owner_place)i) && owner->pauses[i].until_ns > until_ns)
            until_ns = owner->pauses[i].until_ns;
    if (until_ns == 0)
        guard_unpause(&owner->guard);
    else
        guard_pause(&owner->guard, until_ns);
}

static void owner_set_pause(struct owner *owner, enum owner_place place, int64_t for_ms)
{
    const int64_t now_ns = owner_now_ns(owner);
    const bool is_bounded = for_ms > 0 && for_ms < (INT64_MAX - now_ns) / NS_PER_MS;
    owner->pauses[place] = (struct said_pause){
        .is_said = true, .until_ns = is_bounded ? now_ns + for_ms * NS_PER_MS : INT64_MAX};
}

/* A file that cannot be understood is a pause: the owner has once asked for one. */
static void owner_recall(struct owner *owner)
{
    if (!owner->options.state_dir)
        return;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/owner.json", owner->options.state_dir);
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PAUSE_FILE_MAX);
    if (file_read(path, &json, &error) < 0 && error.code == ERROR_NOT_FOUND)
        return;
    AUTO(arena) struct arena *arena = arena_new(0);
    struct kept_pause kept = {0};
    if (json_read(arena, buffer_text(&json), &kept_schema, &kept, &error) < 0) {
        log_event(LOG_WARN, "pause_unclear", "error=\"%s\"", error.message);
        kept = (struct kept_pause){.is_paused[OWNER_HERE] = true};
    }
    const int64_t now_ms = clock_utc_ms(loop_clock(owner->options.loop));
    owner->is_draining = kept.is_draining;
    for (int i = 0; i < OWNER_PLACE_COUNT; i++) {
        const int64_t left_ms = kept.until_ms[i] ? kept.until_ms[i] - now_ms : 0;
        if (kept.is_paused[i] && (!kept.until_ms[i] || left_ms > 0))
            owner_set_pause(owner, (enum owner_place)i, left_ms);
    }
    owner_hold(owner);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static int64_t our_cpu_ms(const struct owner *owner)
{
    struct timespec own;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    const int64_t own_ms = (int64_t)own.tv_sec * 1000 + own.tv_nsec / NS_PER_MS;
    return own_ms + owner->options.our_cpu_ms(owner->options.context);
}

static void owner_read_desktop(struct owner *owner, int64_t now_ns, int64_t utc_ms)
{
    struct guard_readings *readings = &owner->readings;
    watch_desktop_read(owner->desktop, now_ns, utc_ms,
                       owner->is_working ? DESKTOP_PERIOD_MS : DESKTOP_PERIOD_IDLE_MS,
                       &owner->said);
    if (readings->is_lid_closed == GUARD_UNKNOWN)
        readings->is_lid_closed = owner->said.is_lid_closed;
    readings->is_metered = owner->options.is_metered ? 1 : owner->said.is_metered;
}

static void owner_read(struct owner *owner)
{
    const int64_t now_ns = owner_now_ns(owner);
    struct guard_readings *readings = &owner->readings;
    if (owner->options.is_blind)
        return;
    readings->cpu_milli = watch_cpu_read(&owner->cpu, our_cpu_ms(owner), now_ns);
    watch_memory_read(&owner->memory, now_ns, &readings->memory_free_bytes,
                      &readings->memory_stall_milli);
    const int64_t utc_ms = clock_utc_ms(loop_clock(owner->options.loop));
    readings->input_idle_ms = watch_shortest_ms(watch_input_read(&owner->input, now_ns, utc_ms),
                                                owner->said.input_idle_ms);
    if (owner->slow_ns != 0 && now_ns - owner->slow_ns < SLOW_PERIOD_MS * NS_PER_MS)
        return;
    owner->slow_ns = now_ns;
    struct watch_power power;
    watch_power_read(owner->options.root, &power);
    readings->is_on_battery = power.is_on_battery;
    readings->is_lid_closed = power.is_lid_closed;
    readings->temperature_milli = power.temperature_milli;
    readings->gpu_milli = owner->options.uses_gpu(owner->options.context)
                              ? owner->options.others_gpu_milli(owner->options.context)
                              : watch_gpu_read(owner->options.root);
    owner_read_desktop(owner, now_ns, utc_ms);
}

static void owner_tell(struct owner *owner)
{
    const enum guard_level level = owner_level(owner);
    const bool takes = owner_takes_leases(owner);
    const enum owner_word word = owner_word(owner);
    const int64_t until_ns = owner->guard.is_paused ? owner->guard.paused_until_ns : 0;
    if (level == owner->told_level && takes == owner->told_takes && word == owner->told_word &&
        until_ns == owner->told_until_ns)
        return;
    if (level != owner->told_level) {
        struct change *change = &owner->changes[owner->change_count++ % CHANGES_KEPT];
        change->at_ms = clock_utc_ms(loop_clock(owner->options.loop));
        change->level = level;
        guard_reason(&owner->guard, change->reason);
        log_event(LOG_INFO, "owner", "level=%s was=%s reason=\"%s\"", guard_level_name(level),
                  guard_level_name(owner->told_level), change->reason);
    }
    owner->told_level = level;
    owner->told_takes = takes;
    owner->told_word = word;
    owner->told_until_ns = until_ns;
    owner->options.on_change(owner->options.context);
}

/* Until there is news without a reading: -1, never. Of two pauses the shorter one's end is. */
static int64_t owner_due_ms(const struct owner *owner)
{
    const int64_t now_ns = owner_now_ns(owner);
    int64_t due_ms = guard_wait_ms(&owner->guard, now_ns);
    for (int i = 0; i < OWNER_PLACE_COUNT; i++) {
        const int64_t until_ns = owner->pauses[i].until_ns;
        if (!owner_is_paused_by(owner, (enum owner_place)i) || until_ns == INT64_MAX)
            continue;
        const int64_t left_ms = (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
        if (due_ms < 0 || left_ms < due_ms)
            due_ms = left_ms;
    }
    return due_ms;
}

static void owner_look(void *context)
{
    struct owner *owner = context;
    owner_read(owner);
    guard_step(&owner->guard, &owner->readings, owner_now_ns(owner));
    int64_t wait_ms = owner->is_working ? OWNER_PERIOD_MS : OWNER_PERIOD_IDLE_MS;
    const int64_t due_ms = owner_due_ms(owner);
    if (owner->options.is_blind || (due_ms >= 0 && due_ms < wait_ms))
        wait_ms = due_ms;
    if (wait_ms >= 0)
        loop_timer_start(owner->timer, wait_ms);
    else
        loop_timer_stop(owner->timer);
    owner_tell(owner);
}

static void owner_on_pressure(void *context, uint32_t events)
{
    struct owner *owner = context;
    if (events & LOOP_HANGUP) {
        loop_watch_free(TAKE(owner->trigger));
        return;
    }
    owner_look(owner);
}

static void owner_close_trigger(struct owner *owner)
{
    loop_watch_free(TAKE(owner->trigger));
    if (owner->trigger_fd >= 0)
        close(TAKE_FD(owner->trigger_fd));
}

/* The kernel looks at the pressure for us as long as the trigger is open. */
static void owner_open_trigger(struct owner *owner)
{
    struct error error;
    owner->trigger_fd = watch_memory_open_trigger(owner->options.root);
    if (owner->trigger_fd >= 0 &&
        loop_watch_open(owner->options.loop, owner->trigger_fd, LOOP_PRIORITY, owner_on_pressure,
                        owner, &owner->trigger, &error) < 0) {
        log_event(LOG_WARN, "pressure_not_watched", "error=\"%s\"", error.message);
        owner_close_trigger(owner);
    }
}

void owner_set_working(struct owner *owner, bool is_working)
{
    if (is_working == owner->is_working)
        return;
    owner->is_working = is_working;
    if (owner->options.is_blind)
        return;
    if (is_working)
        owner_open_trigger(owner);
    else
        owner_close_trigger(owner);
    loop_timer_start(owner->timer, 0);
}

/* ---- The owner's word ------------------------------------------------------------------------ */

static void owner_said(struct owner *owner)
{
    owner_keep(owner);
    owner_look(owner);
}

void owner_pause(struct owner *owner, enum owner_place place, int64_t for_ms)
{
    owner_set_pause(owner, place, for_ms);
    owner_hold(owner);
    owner_said(owner);
}

void owner_resume(struct owner *owner, enum owner_place place)
{
    owner->pauses[place].is_said = false;
    if (place == OWNER_HERE) { /* the last word on everything */
        owner->pauses[OWNER_REMOTE].is_said = false;
        owner->is_draining = false;
        guard_resume(&owner->guard, owner_now_ns(owner));
    }
    owner_hold(owner);
    owner_said(owner);
}

void owner_drain(struct owner *owner)
{
    owner->is_draining = true;
    owner_said(owner);
}

enum guard_level owner_level(const struct owner *owner)
{
    return guard_level(&owner->guard);
}

enum owner_word owner_word(const struct owner *owner)
{
    if (owner->guard.is_paused)
        return owner_is_paused_by(owner, OWNER_HERE) ? OWNER_WORD_PAUSE : OWNER_WORD_PAUSE_REMOTELY;
    return owner->is_draining ? OWNER_WORD_DRAIN : OWNER_WORD_NONE;
}

int64_t owner_pause_left_ms(const struct owner *owner)
{
    const struct guard *guard = &owner->guard;
    if (!guard->is_paused || guard->paused_until_ns == INT64_MAX)
        return 0;
    const int64_t left_ns = guard->paused_until_ns - owner_now_ns(owner);
    return left_ns > 0 ? (left_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

bool owner_takes_leases(const struct owner *owner)
{
    return !owner->is_draining && owner_level(owner) < GUARD_FROZEN;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static void write_reading(struct json_writer *writer, const char *name, int64_t value)
{
    json_key(writer, name);
    if (value == GUARD_UNKNOWN)
        json_null(writer);
    else
        json_i64(writer, value);
}

/* The oldest that is kept first. */
static void write_changes(const struct owner *owner, struct json_writer *writer)
{
    json_key(writer, "changes");
    json_array_begin(writer);
    const size_t first =
        owner->change_count > CHANGES_KEPT ? owner->change_count - CHANGES_KEPT : 0;
    for (size_t i = first; i < owner->change_count; i++) {
        const struct change *change = &owner->changes[i % CHANGES_KEPT];
        json_object_begin(writer);
        json_field_i64(writer, "at_ms", change->at_ms);
        json_field_string(writer, "level", guard_level_name(change->level));
        json_field_string(writer, "reason", change->reason);
        json_object_end(writer);
    }
    json_array_end(writer);
}

void owner_write(const struct owner *owner, struct json_writer *writer)
{
    const struct guard_readings *readings = &owner->readings;
    char reason[GUARD_REASON_SIZE];
    json_field_string(writer, "level", guard_level_name(owner_level(owner)));
    json_field_string(writer, "cause", guard_cause_name(guard_cause(&owner->guard)));
    json_field_string(writer, "reason", guard_reason(&owner->guard, reason));
    json_field_bool(writer, "paused", owner->guard.is_paused);
    json_field_string(writer, "paused_from",
                      !owner->guard.is_paused                 ? ""
                      : owner_is_paused_by(owner, OWNER_HERE) ? "here"
                                                              : "market");
    json_field_i64(writer, "paused_until_ms", owner_paused_until_ms(owner));
    json_field_bool(writer, "draining", owner->is_draining);
    json_field_bool(writer, "watching", !owner->options.is_blind);
    json_key(writer, "readings");
    json_object_begin(writer);
    write_reading(writer, "cpu_milli", readings->cpu_milli);
    write_reading(writer, "memory_free_bytes", readings->memory_free_bytes);
    write_reading(writer, "memory_stall_milli", readings->memory_stall_milli);
    write_reading(writer, "input_idle_ms", readings->input_idle_ms);
    write_reading(writer, "gpu_milli", readings->gpu_milli);
    write_reading(writer, "temperature_milli", readings->temperature_milli);
    write_reading(writer, "on_battery", readings->is_on_battery);
    write_reading(writer, "lid_closed", readings->is_lid_closed);
    write_reading(writer, "metered", readings->is_metered);
    json_object_end(writer);
    char words[WATCH_DESKTOP_WORDS_SIZE];
    json_field_string(writer, "desktop", watch_desktop_describe(owner->desktop, words));
    write_changes(owner, writer);
}

void owner_doctor(const char *root, const char *display, struct buffer *out)
{
    struct watch_cpu cpu = {.root = root};
    struct watch_memory memory = {.root = root};
    struct watch_input input = {.root = root};
    struct watch_power power;
    int64_t free_bytes, stall_milli;
    const bool has_cpu = (watch_cpu_read(&cpu, 0, 1), cpu.has_read);
    watch_memory_read(&memory, 1, &free_bytes, &stall_milli);
    AUTO_FD int trigger_fd = watch_memory_open_trigger(root);
    watch_input_read(&input, 1, 0);
    watch_power_read(root, &power);
    buffer_append_format(out, "watch cpu: %s\n", has_cpu ? "ok" : "missing: /proc/stat");
    buffer_append_format(out, "watch memory: %s\n",
                         trigger_fd >= 0    ? "ok, told by the kernel"
                         : stall_milli >= 0 ? "ok, looked at while leases run"
                         : free_bytes >= 0  ? "ok, without pressure (no /proc/pressure/memory)"
                                            : "missing: /proc/meminfo");
    buffer_append_format(out, "watch input: %s%s%s\n", input.has_terminals ? "terminals" : "",
                         input.has_terminals && input.has_devices ? ", " : "",
                         input.has_devices     ? "keyboard and pointer"
                         : input.has_terminals ? "; no keyboard or pointer found"
                                               : "missing: no terminal, keyboard or pointer found");
    buffer_append_format(out, "watch power: %s, %s\n",
                         power.is_on_battery >= 0 ? "battery found" : "no battery",
                         power.is_lid_closed >= 0 ? "lid found" : "no lid");
    buffer_append_format(out, "watch heat: %s\n",
                         power.temperature_milli >= 0 ? "ok" : "missing: no sensor found");
    buffer_append_format(out, "watch gpu: %s\n",
                         watch_gpu_read(root) >= 0 ? "ok" : "missing: no GPU that tells it");
    char words[WATCH_DESKTOP_WORDS_SIZE];
    buffer_append_format(out, "watch desktop: %s\n", watch_desktop_probe(root, display, words));
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct owner *owner_new(const struct owner_options *options)
{
    struct owner *owner = calloc(1, sizeof(*owner));
    ASSERT(owner);
    owner->options = *options;
    owner->trigger_fd = -1;
    owner->cpu.root = owner->memory.root = owner->input.root = options->root;
    guard_readings_init(&owner->readings);
    owner->desktop = watch_desktop_new(options->loop, options->root, options->display);
    owner->said = (struct watch_desktop_readings){GUARD_UNKNOWN, GUARD_UNKNOWN, GUARD_UNKNOWN};
    guard_init(&owner->guard, &options->limits, owner_now_ns(owner));
    owner_recall(owner);
    owner->told_level = owner_level(owner);
    owner->told_takes = owner_takes_leases(owner);
    owner->told_word = owner_word(owner);
    owner->told_until_ns = owner->guard.is_paused ? owner->guard.paused_until_ns : 0;
    owner->timer = loop_timer_new(options->loop, owner_look, owner);
    loop_timer_start(owner->timer, 0);
    return owner;
}

void owner_free(struct owner *owner)
{
    if (!owner)
        return;
    owner_close_trigger(owner);
    watch_desktop_free(owner->desktop);
    loop_timer_free(owner->timer);
    free(owner);
}
