#include "cli/lend_slurm_beat.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { BEAT_MS = 2000, BEAT_SIZE = 32 };

struct lend_slurm_beat {
    char *path;
    uint64_t number; /* the thread's, after the first */
    int stop_fds[2]; /* the thread ends when it can read there */
    pthread_t thread;
};

/* In place: who opens it anew reads what is there now, over NFS too. */
static int write_beat(struct lend_slurm_beat *beat, struct error *error)
{
    char number[BEAT_SIZE];
    const int size = snprintf(number, sizeof(number), "%020" PRIu64 "\n", ++beat->number);
    AUTO_FD int fd = open(beat->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, number, (size_t)size, 0) != size)
        return error_set_errno(error, errno, "write \"%s\"", beat->path);
    return 0;
}

static void *run(void *context)
{
    struct lend_slurm_beat *beat = context;
    struct pollfd polled = {.fd = beat->stop_fds[0], .events = POLLIN};
    bool is_failing = false;
    while (poll(&polled, 1, BEAT_MS) <= 0) {
        struct error error = {0};
        const bool has_failed = write_beat(beat, &error) < 0;
        if (has_failed && !is_failing)
            log_event(LOG_ERROR, "no_beat", "reason=\"%s\" then=\"nodes end in half a minute\"",
                      error.message);
        is_failing = has_failed;
    }
    return NULL;
}

int lend_slurm_beat_open(const char *path, struct lend_slurm_beat **out_beat, struct error *error)
{
    struct lend_slurm_beat *beat = memory_zeroed(1, sizeof(*beat));
    beat->path = strdup(path);
    ASSERT(beat->path);
    /* Not the numbers of the daemon before: its nodes see a change at once. */
    if (getrandom(&beat->number, sizeof(beat->number) / 2, 0) < 0 || write_beat(beat, error) < 0 ||
        pipe2(beat->stop_fds, O_CLOEXEC) < 0) {
        if (error->code == ERROR_NONE)
            error_set_errno(error, errno, "start a beat");
        free(beat->path);
        free(beat);
        return -1;
    }
    ASSERT(pthread_create(&beat->thread, NULL, run, beat) == 0);
    *out_beat = beat;
    return 0;
}

void lend_slurm_beat_free(struct lend_slurm_beat *beat)
{
    if (!beat)
        return;
    close(beat->stop_fds[1]); /* the end can be read */
    ASSERT(pthread_join(beat->thread, NULL) == 0);
    close(beat->stop_fds[0]);
    free(beat->path);
    free(beat);
}
