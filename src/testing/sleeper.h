/* A child that does nothing until it is ended: a process to count, weigh or look for. */
#pragma once

#include "testing/testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline pid_t sleeper_start(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

static inline void sleeper_end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}
