/*
 * Watch: how the machine's owner uses it, read from the kernel: small files below a root.
 *
 * The root is "" on a machine and a folder of files in tests. What a machine does not have reads as
 * GUARD_UNKNOWN. Each part keeps what it read last and belongs to one thread; none of them blocks.
 */
#pragma once

#include "peer/guard.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the file whole, ended by a zero byte, at most out_size - 1 bytes; false: there is none. */
bool watch_read(const char *root, const char *path, char *out, size_t out_size);
/* The number in the file; GUARD_UNKNOWN when there is none. */
int64_t watch_read_number(const char *root, const char *path);

/* The shorter of two times; GUARD_UNKNOWN is none. */
int64_t watch_shortest_ms(int64_t left_ms, int64_t right_ms);

/* Calls back for each name in the folder, at most 4096, but those that begin with a dot. */
typedef void watch_entry_function(void *context, const char *folder, const char *name);
void watch_each(const char *root, const char *folder, watch_entry_function *callback,
                void *context);

/* watch_cpu.c: all time that was not idle, less that of the leases and of this process. */
struct watch_cpu {
    const char *root;
    bool has_read;
    int64_t read_ns, busy_ms, ours_ms;
    int64_t cpu_milli; /* the last answer */
};
/* `ours_ms`: CPU time of this program and its leases so far; when it falls, a lease has ended. */
int64_t watch_cpu_read(struct watch_cpu *watch, int64_t ours_ms, int64_t now_ns);

/* watch_memory.c */
struct watch_memory {
    const char *root;
    bool has_read;
    int64_t read_ns, stall_us;
    int64_t stall_milli; /* the last answer */
};
void watch_memory_read(struct watch_memory *watch, int64_t now_ns, int64_t *out_free_bytes,
                       int64_t *out_stall_milli);
/* A descriptor that has priority events (LOOP_PRIORITY) when programs wait for memory, at most once
 * in two seconds; -1: this kernel or user cannot. The caller closes it. */
int watch_memory_open_trigger(const char *root);

/* watch_input.c: when a terminal was typed at, or a keyboard or pointer moved. */
struct watch_input {
    const char *root;
    bool has_read;
    uint64_t count;   /* events of keyboards and pointers so far */
    int64_t atime_ms; /* the latest of all terminals */
    int64_t last_ns;  /* of input */
    bool has_input;
    bool has_terminals, has_devices; /* for the doctor */
};
/* `utc_ms` is the time now as files have it. */
int64_t watch_input_read(struct watch_input *watch, int64_t now_ns, int64_t utc_ms);

/* watch_power.c: battery, lid and heat. */
struct watch_power {
    int64_t is_on_battery, is_lid_closed;
    int64_t temperature_milli;
    int64_t battery_percent; /* of all batteries together */
};
void watch_power_read(const char *root, struct watch_power *out_power);

/* watch_gpu.c: the busiest GPU, in thousandths. */
int64_t watch_gpu_read(const char *root);
