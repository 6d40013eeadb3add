/*
 * Guard: how much of the machine its owner leaves to leases now.
 *
 * Pure: readings and the time in, a level out. Work yields on the first reading past a limit and
 * resumes after a time without one. A reading close below a limit keeps what is yielded, and a
 * resumption that was too early makes the next one wait twice as long, so the level does not flap:
 * while the owner comes and goes it rises at most once in resume_max_ms, but for a few times first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum guard_level {
    GUARD_FULL,     /* all that is lent */
    GUARD_LOW,      /* idle priority and a small share */
    GUARD_FROZEN,   /* held still */
    GUARD_RELEASED, /* leases end, and give their memory back */
    GUARD_LEVEL_COUNT,
};
const char *guard_level_name(enum guard_level level);

enum guard_cause {
    GUARD_CAUSE_NONE,
    GUARD_CAUSE_PAUSE, /* the owner said so */
    GUARD_CAUSE_MEMORY,
    GUARD_CAUSE_CPU,
    GUARD_CAUSE_HEAT,
    GUARD_CAUSE_BATTERY,
    GUARD_CAUSE_GPU,
    GUARD_CAUSE_NETWORK,
    GUARD_CAUSE_LID,
    GUARD_CAUSE_INPUT,
    GUARD_CAUSE_COUNT,
};
const char *guard_cause_name(enum guard_cause cause);

/* In any field: this machine cannot say. */
enum { GUARD_UNKNOWN = -1 };

struct guard_readings {
    int64_t cpu_milli;          /* thousandths of a core, used by others than the leases */
    int64_t memory_free_bytes;  /* that programs can have without swapping */
    int64_t memory_stall_milli; /* thousandths of the time that programs waited for memory */
    int64_t input_idle_ms;      /* since a key, pointer or terminal was used */
    int64_t gpu_milli;          /* thousandths of the busiest GPU, used by others */
    int64_t temperature_milli;  /* thousandths of a degree Celsius, of the hottest part */
    int64_t is_on_battery;      /* 0 or 1, as are the next */
    int64_t is_lid_closed;
    int64_t is_metered;
};

/* All GUARD_UNKNOWN. */
void guard_readings_init(struct guard_readings *readings);

struct guard_limits {
    int64_t cpu_low_milli;    /* others use so much: low */
    int64_t cpu_freeze_milli; /* frozen, when they still do after freeze_after_ms */
    int64_t freeze_after_ms;
    int64_t memory_keep_bytes;  /* less is free: frozen; half of it: released */
    int64_t memory_stall_milli; /* frozen too, when less than twice memory_keep_bytes is free */
    int64_t memory_release_ms;  /* frozen and still short of memory after so long: released */
    int64_t input_quiet_ms;     /* nobody is at the machine after so long without input */
    int64_t gpu_milli;          /* frozen */
    int64_t temperature_milli;  /* frozen; from 5 degrees below: low */
    enum guard_level on_input, on_battery, on_lid, on_metered;
    int64_t resume_ms;     /* without a reason before work goes on */
    int64_t resume_max_ms; /* the same, after resuming too early again and again */
};

/* What is good for most machines, of this many thousandths of a core and this much memory. */
void guard_limits_init(struct guard_limits *limits, int64_t cores_milli, int64_t ram_bytes);

/* The limits as an owner writes them: shares in thousandths of whatever the machine has. */
struct guard_wishes {
    int64_t cpu_low_share_milli, cpu_freeze_share_milli;
    int64_t memory_bytes, memory_share_milli; /* both 0: the default */
    int64_t input_quiet_ms;
    int64_t gpu_share_milli;
    int64_t temperature_max; /* degrees Celsius */
    int64_t resume_ms;
    enum guard_level on_input, on_battery, on_lid, on_metered;
};

/* Those of guard_limits_init. */
void guard_wishes_init(struct guard_wishes *wishes);
void guard_limits_wish(struct guard_limits *limits, const struct guard_wishes *wishes,
                       int64_t cores_milli, int64_t ram_bytes);

/* Plain data; its fields are the guard's own. */
struct guard {
    struct guard_limits limits;
    struct guard_readings readings; /* the last */
    enum guard_level level;         /* by the readings; a pause comes on top */
    enum guard_cause cause;
    int64_t now_ns;
    bool is_paused;
    int64_t paused_until_ns; /* INT64_MAX: until resumed */

    bool is_busy; /* the CPU limit for freezing is passed, since: */
    int64_t busy_ns;
    bool is_short; /* of memory, since: */
    int64_t short_ns;

    bool is_quiet; /* less than `level` is asked for, since: */
    int64_t quiet_ns;
    enum guard_level calm_level; /* the most that was asked for since then */
    enum guard_cause calm_cause;
    int64_t resume_wait_ms;
    bool has_resumed; /* at: */
    int64_t resumed_ns;
};

/* Time is monotonic, and never goes back from call to call. */
void guard_init(struct guard *guard, const struct guard_limits *limits, int64_t now_ns);
void guard_step(struct guard *guard, const struct guard_readings *readings, int64_t now_ns);

/* INT64_MAX: for good. Frozen at least. */
void guard_pause(struct guard *guard, int64_t until_ns);
void guard_unpause(struct guard *guard); /* and nothing else */
/* Ends a pause, and any waiting for more quiet. */
void guard_resume(struct guard *guard, int64_t now_ns);

/* With the pause. */
enum guard_level guard_level(const struct guard *guard);
enum guard_cause guard_cause(const struct guard *guard);

/* In how many milliseconds a step is due though no reading changes; -1: none. */
int64_t guard_wait_ms(const struct guard *guard, int64_t now_ns);

/* Why, in words: "other programs use 1.3 cores"; "" at GUARD_FULL. */
enum { GUARD_REASON_SIZE = 96 };
const char *guard_reason(const struct guard *guard, char out[GUARD_REASON_SIZE]);
