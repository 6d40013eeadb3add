#include "server/import_runner.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/text.h"
#include "runtime/job_import.h"
#include "sandbox/folder.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PRIORITY = 10, PIDS_MAX = 16, LOOK_EVERY_MS = 200, MEASURE_EVERY_MS = 1000, FIRST_ARG = 4 };

#define LOOK_SAID_BYTES (INT64_C(1) << 20)

struct runner {
    struct arena *arena;
    const char *state, *data, *work; /* work NULL: nothing is written */
    const char *const *argv;         /* of the program inside */
    int64_t disk_bytes, cpu_ms, wall_ms;
    int words_fd; /* what the reader says */
    int64_t measured_ns;
};

static int misused(void)
{
    puts("not for people: the market starts it");
    return IMPORT_RUNNER_UNAVAILABLE;
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int64_t passed_ms(int64_t since_ns)
{
    return (clock_monotonic_ns(&clock_system) - since_ns) / 1000000;
}

static int check_written(const struct runner *runner, struct error *error)
{
    int64_t bytes = 0;
    struct error unseen;
    if (folder_measure(runner->work, 2 * (uint64_t)IMPORT_FILES_MAX, &bytes, &unseen) < 0 &&
        unseen.code == ERROR_EXHAUSTED)
        return error_set(error, ERROR_EXHAUSTED, "reading it makes too many files");
    if (bytes > runner->disk_bytes)
        return error_set(error, ERROR_EXHAUSTED,
                         "reading it takes more than the %" PRId64 " MiB of disk there are for it",
                         runner->disk_bytes >> 20);
    return 0;
}

/* Measuring misses files without a name, so check the free disk space too. */
static int check_disk(const struct runner *runner, struct error *error)
{
    struct statvfs disk;
    if (!runner->work)
        return 0;
    if (check_written(runner, error) < 0)
        return -1;
    if (statvfs(runner->work, &disk) == 0 &&
        (int64_t)(disk.f_bavail * disk.f_frsize) < IMPORT_DISK_FREE_BYTES)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the market's disk is nearly full; try again later");
    return 0;
}

static int check_limits(struct runner *runner, struct sandbox *sandbox, int64_t started_ns,
                        struct error *error)
{
    struct sandbox_usage usage;
    sandbox_read_usage(sandbox, &usage);
    if (usage.cpu_ms > runner->cpu_ms || passed_ms(started_ns) > runner->wall_ms)
        return error_set(error, ERROR_EXHAUSTED, "reading it takes longer than %" PRId64 " s",
                         (usage.cpu_ms > runner->cpu_ms ? runner->cpu_ms : runner->wall_ms) / 1000);
    if (passed_ms(runner->measured_ns) < MEASURE_EVERY_MS)
        return 0;
    runner->measured_ns = clock_monotonic_ns(&clock_system);
    return check_disk(runner, error);
}

/* ---- The sandbox ----------------------------------------------------------------------------- */

static int wait_for(struct runner *runner, struct sandbox *sandbox, struct sandbox_exit *out_exit,
                    struct error *error)
{
    const int64_t started_ns = clock_monotonic_ns(&clock_system);
    runner->measured_ns = started_ns;
    while (!sandbox_reap(sandbox, out_exit)) {
        const int64_t pace_ms = sandbox_pace(sandbox, clock_monotonic_ns(&clock_system));
        struct pollfd ended = {.fd = sandbox_pidfd(sandbox), .events = POLLIN};
        const int wait_ms = pace_ms >= 0 && pace_ms < LOOK_EVERY_MS ? (int)pace_ms : LOOK_EVERY_MS;
        if (poll(&ended, 1, wait_ms) < 0 && errno != EINTR)
            return error_set_errno(error, errno, "wait for the reader");
        if (check_limits(runner, sandbox, started_ns, error) < 0)
            return -1;
    }
    return 0;
}

/* Reports the reader's own message if it failed. Beyond the disk limit, the message is always
 * check_written's, no matter who notices first. */
static int refuse(const struct runner *runner, const struct sandbox_exit *exit, struct error *error)
{
    char words[sizeof(error->message)];
    const ssize_t size = runner->work ? read(runner->words_fd, words, sizeof(words) - 1)
                                      : pread(runner->words_fd, words, sizeof(words) - 1, 0);
    words[size > 0 ? size : 0] = '\0';
    words[strcspn(words, "\n")] = '\0';
    text_make_plain(words);
    if (runner->work && check_written(runner, error) < 0)
        return -1;
    if (exit->is_out_of_memory)
        return error_set(error, ERROR_EXHAUSTED,
                         "reading it takes more than the %" PRId64
                         " MiB of memory there are for it",
                         IMPORT_MEMORY_BYTES >> 20);
    if (exit->code != IMPORT_RUNNER_REFUSED || !words[0])
        return error_set(error, ERROR_INVALID, "reading it ended with status %d%s%s", exit->code,
                         words[0] ? ": " : "", words);
    return error_set(error, ERROR_INVALID, "%s", words);
}

/* Of a look the market gets what the reader says itself, a file of limited size; else a pipe's
 * worth is enough. */
static int open_words(struct runner *runner, int *out_fd, struct error *error)
{
    int fds[2];
    if (!runner->work) {
        runner->words_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        *out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        return runner->words_fd < 0 || *out_fd < 0 ? error_set_errno(error, errno, "open a file")
                                                   : 0;
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "make a pipe");
    runner->words_fd = fds[0];
    *out_fd = fds[1];
    return 0;
}

static int start(struct runner *runner, struct sandbox_host *host, struct sandbox **out_sandbox,
                 struct error *error)
{
    AUTO_FD int words_fd = -1;
    if (open_words(runner, &words_fd, error) < 0)
        return -1;
    static const char *const environment[] = {"TMPDIR=" JOB_IMPORT_FOLDER "/tmp", NULL};
    const struct sandbox_mount mounts[] = {{runner->data, "/data", .is_writable = false},
                                           {runner->work, JOB_IMPORT_FOLDER, .is_writable = true}};
    const struct sandbox_options options = {.name = "import",
                                            .argv = runner->argv,
                                            .environment = environment,
                                            .mounts = mounts,
                                            .mount_count = runner->work ? 2 : 1,
                                            .working_dir = "/data",
                                            .cpu_milli = 1000,
                                            .memory_bytes = IMPORT_MEMORY_BYTES,
                                            .pids_max = PIDS_MAX,
                                            .disk_bytes = runner->disk_bytes,
                                            .control_fd = -1,
                                            .stdout_fd = words_fd,
                                            .stderr_fd = words_fd};
    return sandbox_start(host, &options, out_sandbox, error);
}

static int run(struct runner *runner, struct error *error)
{
    AUTO(sandbox_host) struct sandbox_host *host = NULL;
    AUTO(sandbox) struct sandbox *sandbox = NULL;
    struct sandbox_exit exit;
    size_t swept;
    struct error unavailable;
    if (sandbox_host_open(runner->state, NULL, &host, &unavailable) < 0 ||
        sandbox_sweep(host, &swept, &unavailable) < 0 ||
        start(runner, host, &sandbox, &unavailable) < 0)
        return error_set(error, ERROR_UNAVAILABLE, "this market cannot read files: %s",
                         unavailable.message);
    if (wait_for(runner, sandbox, &exit, error) < 0)
        return -1;
    return exit.code == 0 ? 0 : refuse(runner, &exit, error);
}

/* ---- The process ----------------------------------------------------------------------------- */

static int set_up_read(struct runner *runner, int argc, char **argv)
{
    struct error error;
    uint64_t bytes_max;
    if (argc != FIRST_ARG + 4 ||
        text_parse_u64(text_of(argv[FIRST_ARG + 3]), &bytes_max, &error) < 0)
        return -1;
    runner->disk_bytes = (int64_t)(IMPORT_DISK_TIMES * bytes_max);
    runner->cpu_ms = IMPORT_CPU_MS;
    runner->wall_ms = IMPORT_WALL_MS;
    const char **inside = arena_alloc(runner->arena, 7 * sizeof(*inside));
    inside[0] = "/souk";
    inside[1] = "import-read";
    inside[2] = argv[FIRST_ARG + 1];
    inside[3] = argv[FIRST_ARG + 2];
    inside[4] = arena_format(runner->arena, "%" PRId64, runner->disk_bytes);
    inside[5] = arena_format(runner->arena, "%d", IMPORT_FILES_MAX);
    inside[6] = NULL;
    runner->argv = inside;
    return 0;
}

static int set_up_mount(struct runner *runner, int argc, char **argv)
{
    struct error error;
    uint64_t bytes_max;
    if (argc != FIRST_ARG + 3 ||
        text_parse_u64(text_of(argv[FIRST_ARG + 2]), &bytes_max, &error) < 0)
        return -1;
    runner->disk_bytes = (int64_t)(IMPORT_DISK_TIMES * bytes_max);
    runner->cpu_ms = IMPORT_CPU_MS;
    runner->wall_ms = IMPORT_WALL_MS;
    const char **inside = arena_alloc(runner->arena, 4 * sizeof(*inside));
    inside[0] = "/souk";
    inside[1] = "import-mount";
    inside[2] = argv[FIRST_ARG + 1];
    inside[3] = NULL;
    runner->argv = inside;
    return 0;
}

static int set_up_look(struct runner *runner, int argc, char **argv)
{
    if (argc != FIRST_ARG + 3)
        return -1;
    runner->work = NULL;
    runner->disk_bytes = LOOK_SAID_BYTES;
    runner->cpu_ms = runner->wall_ms = IMPORT_LOOK_MS;
    const char **inside = arena_alloc(runner->arena, 5 * sizeof(*inside));
    inside[0] = "/souk";
    inside[1] = "import-look";
    inside[2] = argv[FIRST_ARG + 1];
    inside[3] = argv[FIRST_ARG + 2];
    inside[4] = NULL;
    runner->argv = inside;
    return 0;
}

/* It ends with the market, and the sandbox with it. */
static int stay_with(const char *parent)
{
    uint64_t pid;
    struct error error;
    return text_parse_u64(text_of(parent), &pid, &error) < 0 ||
                   prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || (uint64_t)getppid() != pid
               ? -1
               : 0;
}

static int set_up(struct runner *runner, int argc, char **argv)
{
    static const struct {
        const char *verb;
        int (*set_up)(struct runner *runner, int argc, char **argv);
    } verbs[] = {{"read", set_up_read}, {"mount", set_up_mount}, {"look", set_up_look}};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        if (!strcmp(argv[FIRST_ARG], verbs[i].verb))
            return verbs[i].set_up(runner, argc, argv);
    return -1;
}

int import_runner_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct runner runner = {.arena = arena, .words_fd = -1};
    if (argc < FIRST_ARG + 2 || stay_with(argv[1]) < 0)
        return misused();
    runner.state = argv[2];
    runner.data = arena_format(arena, "%s/data", argv[3]);
    runner.work = arena_format(arena, "%s/work", argv[3]);
    if (set_up(&runner, argc, argv) < 0)
        return misused();
    struct error error;
    setpriority(PRIO_PROCESS, 0, PRIORITY); /* it may fail: the market goes first */
    const int result = run(&runner, &error);
    if (runner.words_fd >= 0)
        close(runner.words_fd);
    if (result == 0)
        return IMPORT_RUNNER_DONE;
    if (!runner.work && (ftruncate(STDOUT_FILENO, 0) < 0 || lseek(STDOUT_FILENO, 0, SEEK_SET) < 0))
        return IMPORT_RUNNER_UNAVAILABLE;
    puts(error.message);
    return error.code == ERROR_UNAVAILABLE ? IMPORT_RUNNER_UNAVAILABLE : IMPORT_RUNNER_REFUSED;
}
