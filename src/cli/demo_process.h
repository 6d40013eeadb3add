/*
 * Demo process: another souk program started by `souk demo`, exactly as a person would start it.
 *
 * It runs in its own process group, so that Ctrl-C reaches the demo alone, which then ends it in
 * order. It holds the reading end of a pipe (--stop-fd): when the demo ends in whatever way, the
 * pipe closes and the program stops by itself. It says that it is ready on another (--ready-fd).
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#include <sys/types.h>

struct demo_process {
    const char *name;     /* for messages */
    const char *log_path; /* its standard output and error */
    pid_t pid;            /* 0: not running */
    int pidfd;
    int stop_fd;
    int ready_fd;
};

#define DEMO_PROCESS_NONE ((struct demo_process){.pidfd = -1, .stop_fd = -1, .ready_fd = -1})

/* `arguments` are those after the program's name, ended by NULL. */
MUST_CHECK int demo_process_start(struct demo_process *process, const char *program,
                                  const char *const *arguments, struct error *error);

/*
 * Waits for the line of JSON it writes when ready. UNAVAILABLE with the last line of its log when
 * it ended instead. *out_is_interrupted: `signal_fd` became readable first; then it fails too.
 */
MUST_CHECK int demo_process_wait_ready(struct demo_process *process, int signal_fd,
                                       struct arena *arena, struct text *out_json,
                                       bool *out_is_interrupted, struct error *error);

/* Asks it to stop; several can be asked before the first is waited for. */
void demo_process_ask_stop(struct demo_process *process);
/* Asks, waits for its end, kills what does not end within ten seconds. Does nothing if none runs.
 */
void demo_process_stop(struct demo_process *process);
