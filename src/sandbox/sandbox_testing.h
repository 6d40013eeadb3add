/*
 * Trials of real sandboxes, for tests: each has a host, a writable folder /lease and a folder
 * /data.
 *
 * Run by root, everything is done twice: as root, and as a plain user with the softer limits.
 */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRIAL_OUTPUT_MAX = 65536, TRIAL_SKIPPED = 77 };
#define TRIAL_MIB INT64_C(1048576)

struct trial {
    char folder[64];
    char lease[96];
    char data[96];
    struct sandbox_host *host;
};

/* What a test leaves out has a default. */
struct run {
    const char *verb; /* of the program under test */
    const char *argument;
    const char *const *argv; /* instead of it */
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t pids_max;
    int64_t io_bytes_per_s;
    int64_t disk_bytes; /* of /lease, bounded by root */
    int control_fd;
    int64_t wait_ms;
    bool has_local_sockets;
    const char *root; /* of an image */
    int (*set_up_network)(void *context, pid_t inside, struct error *error);
    /* Called about every 10 ms while the program runs. */
    void (*on_turn)(void *context);
    void *turn_context;
};

#define RUN(...) ((struct run){__VA_ARGS__})

/* Setup and teardown of one test: *state is a struct trial. */
int trial_set_up(void **state);
int trial_tear_down(void **state);
#define TRIAL_TEST(test) cmocka_unit_test_setup_teardown(test, trial_set_up, trial_tear_down)

struct sandbox *trial_start(struct trial *trial, struct run wanted, int output_fd);

/* Runs to the end, pacing where that is needed, and gives back what was printed. */
struct sandbox_exit trial_run(struct trial *trial, struct run wanted,
                              char output[TRIAL_OUTPUT_MAX]);

void trial_assert_says(const char *output, const char *words);

/* Runs the tests with the program of that name beside this one shown as /souk. */
int trial_main(const char *program, int (*run_all)(const char *name));
