/* The program: escape try TARGETS..., or escape bomb WHAT. */
#include "sandbox/escape.h"

#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_refusal(const char *refusals, const char *answer)
{
    const size_t size = strlen(answer);
    for (const char *at = refusals; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, answer, size) == 0 && (at[size] == '|' || at[size] == '\0'))
            return true;
    }
    return false;
}

/* In a process of its own, which it may be killed in, or change. */
static void attempt(const struct escape_attempt *attempt, const struct escape_targets *targets)
{
    int ends[2];
    int failure = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        _exit(2);
    const pid_t child = fork();
    if (child == 0) {
        close(STDOUT_FILENO); /* a program that it starts has nothing to say */
        close(STDERR_FILENO);
        const long result = attempt->run(targets);
        failure = result < 0 ? errno : 0;
        _exit(write(ends[1], &failure, sizeof(failure)) == (ssize_t)sizeof(failure) ? 0 : 1);
    }
    close(ends[1]);
    const bool has_answered = read(ends[0], &failure, sizeof(failure)) == (ssize_t)sizeof(failure);
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    char answer[32] = "nothing";
    if (child > 0 && WIFSIGNALED(status))
        snprintf(answer, sizeof(answer), "SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (child > 0 && has_answered)
        snprintf(answer, sizeof(answer), "%s", failure ? strerrorname_np(failure) : "worked");
    printf("%s: %s, %s\n", attempt->name, answer,
           is_refusal(attempt->refusals, answer) ? "refused" : "NOT REFUSED");
    fflush(stdout);
}

static int find_leaked_descriptor(void)
{
    for (int fd = 4; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return fd;
    return -1;
}

static int try_all(const char *which, const struct escape_targets *targets)
{
    static const struct {
        const char *name;
        const struct escape_attempt *attempts;
    } tables[] = {
        {"files", escape_files},     {"processes", escape_processes}, {"kernel", escape_kernel},
        {"sockets", escape_sockets}, {"local", escape_local},         {"network", escape_network},
        {"open", escape_open},       {"lease", escape_lease},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        if (strcmp(tables[i].name, which) != 0)
            continue;
        for (const struct escape_attempt *row = tables[i].attempts; row->name; row++)
            attempt(row, targets);
        return 0;
    }
    return 64;
}

int main(int argc, char **argv)
{
    const int skipped = stage_enter(argc, argv);
    argc -= skipped;
    argv += skipped;
    if (argc == 3 && strcmp(argv[1], "bomb") == 0)
        return escape_bomb(argv[2]);
    if (argc != 3)
        return 64;
    /* PID PORT SOCKET SECRET [STATE_DIR] */
    char socket[64], secret[256], state_dir[256] = "";
    struct escape_targets targets = {.leaked_fd = find_leaked_descriptor(),
                                     .secret = secret,
                                     .socket = socket,
                                     .state_dir = state_dir};
    char *at = argv[2];
    targets.pid = (int)strtol(at, &at, 10);
    targets.port = (int)strtol(at, &at, 10);
    if (targets.pid <= 0 || targets.port <= 0 ||
        sscanf(at, "%63s %255s %255s", socket, secret, state_dir) < 2)
        return 64;
    const int own = open("/lease/own", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (own < 0)
        return 2;
    close(own);
    return try_all(argv[1], &targets);
}
