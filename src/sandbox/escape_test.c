/*
 * Tries to get out of real sandboxes, and to take the machine down from inside.
 *
 * covers escape.c, escape_bombs.c, escape_files.c, escape_kernel.c, escape_processes.c
 * covers escape_sockets.c, launch_root.c, loader.c, uncounted.c
 *
 * The attempts and what refuses each are in escape_*.c; here is what they aim at.
 */
#include "base/file.h"
#include "base/text.h"
#include "sandbox/disk.h"
#include "sandbox/sandbox_testing.h"
#include "testing/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ATTEMPTS_MIN = 300 };

/* What the owner has on this machine while the attempts are made. */
struct owner {
    pid_t pid; /* a process that only waits */
    int port;
    int tcp_fd;
    int abstract_fd;
    char socket[64];
    char secret[96];
    char words[512];
};

static void owner_listen(struct owner *owner)
{
    owner->tcp_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    socklen_t size = sizeof(any);
    assert_int_equal(bind(owner->tcp_fd, (struct sockaddr *)&any, size), 0);
    assert_int_equal(listen(owner->tcp_fd, 4), 0);
    assert_int_equal(getsockname(owner->tcp_fd, (struct sockaddr *)&any, &size), 0);
    owner->port = ntohs(any.sin6_port);

    struct sockaddr_un abstract = {.sun_family = AF_UNIX};
    snprintf(owner->socket, sizeof(owner->socket), "souk-escape-%d", (int)getpid());
    memcpy(abstract.sun_path + 1, owner->socket, strlen(owner->socket));
    owner->abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(owner->socket));
    assert_int_equal(bind(owner->abstract_fd, (struct sockaddr *)&abstract, length), 0);
    assert_int_equal(listen(owner->abstract_fd, 4), 0);
}

static void owner_open(struct owner *owner, const struct trial *trial)
{
    struct error error = {0};
    owner_listen(owner);
    snprintf(owner->secret, sizeof(owner->secret), "%s/secret", trial->folder);
    const struct text words = TEXT("nobody's business\n");
    ASSERT_OK(file_replace(owner->secret, &words, 1, 0644, &error));
    owner->pid = fork();
    if (owner->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(owner->pid > 0);
    snprintf(owner->words, sizeof(owner->words), "%d %d %s %s", (int)owner->pid, owner->port,
             owner->socket, owner->secret);
}

/* It must still be there, and nobody may have called. */
static void owner_close(struct owner *owner)
{
    assert_int_equal(waitpid(owner->pid, NULL, WNOHANG), 0);
    kill(owner->pid, SIGKILL);
    waitpid(owner->pid, NULL, 0);
    const int listeners[] = {owner->tcp_fd, owner->abstract_fd};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fcntl(listeners[i], F_SETFL, O_NONBLOCK), 0);
        assert_int_equal(accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC), -1);
        close(listeners[i]);
    }
}

static int attempt_count;

static void assert_all_refused(const char *output)
{
    int refused_count = 0, other_count = 0;
    char line[256];
    for (const char *at = output; *at; at += strcspn(at, "\n") + 1) {
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        const bool is_refused = text_ends_with(text_of(line), TEXT(", refused"));
        if (!is_refused)
            print_error("%s\n", line);
        *(is_refused ? &refused_count : &other_count) += 1;
    }
    attempt_count += refused_count;
    assert_true(refused_count > 0);
    assert_int_equal(other_count, 0);
}

/* What an image that means harm may have: links where others mount, and nothing that /souk needs.
 */
static void make_image(const char *root)
{
    char path[128];
    assert_int_equal(mkdir(root, 0755), 0);
    static const char *const links[][2] = {
        {"/proc/1/root", "out"}, {"/oldroot/etc", "var"}, {"/", "tmp"},
        {"/oldroot", "lease"},   {"/oldroot", ".souk"},   {"/oldroot", "dev"}};
    static const char *const folders[] = {"etc", "usr", "usr/bin", "usr/lib"};
    static const char *const files[] = {"etc/passwd", "etc/hostname", "usr/lib/os-release",
                                        "usr/bin/env"};
    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, links[i][1]);
        assert_int_equal(symlink(links[i][0], path), 0);
    }
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, files[i]);
        AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
        assert_true(fd >= 0);
    }
}

static void try_in(struct trial *trial, struct run run)
{
    char output[TRIAL_OUTPUT_MAX];
    struct owner owner;
    owner_open(&owner, trial);
    run.argument = owner.words;
    const struct sandbox_exit result = trial_run(trial, run, output);
    owner_close(&owner);
    assert_all_refused(output);
    assert_int_equal(result.code, 0);
}

/* In this machine's system, then in an image: it is the same sandbox. */
static void try_all(struct trial *trial, struct run run)
{
    char root[96];
    try_in(trial, run);
    snprintf(root, sizeof(root), "%s/image", trial->folder);
    make_image(root);
    run.root = root;
    try_in(trial, run);
}

static void files_outside_stay_out_of_reach(void **state)
{
    try_all(*state, RUN(.verb = "files"));
}

static void other_processes_and_users_stay_out_of_reach(void **state)
{
    try_all(*state, RUN(.verb = "processes"));
}

static void kernel_keeps_its_doors_shut(void **state)
{
    try_all(*state, RUN(.verb = "kernel"));
}

static void no_socket_can_be_opened_and_one_handed_in_goes_nowhere_else(void **state)
{
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
    try_all(*state, RUN(.verb = "sockets", .control_fd = client));
    close(client);
    close(listener);
}

static void local_sockets_reach_only_its_own_processes(void **state)
{
    try_all(*state, RUN(.verb = "local", .has_local_sockets = true));
}

static int no_devices(void *context, pid_t inside, struct error *error)
{
    (void)context, (void)inside, (void)error;
    return 0;
}

static void network_of_its_own_reaches_nothing_of_the_host(void **state)
{
    try_all(*state, RUN(.verb = "network", .set_up_network = no_devices));
}

/* While a bomb goes off the owner can start a process, which ends. */
static void start_one(void *context)
{
    int *failed_count = context;
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    *failed_count += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

enum outcome { OUTCOME_REFUSED = 1, OUTCOME_KILLED = 2 };

/* Refused a piece, or killed for lack of memory, and nothing is short for the owner. */
static void set_off(struct trial *trial, const char *bomb, int outcomes)
{
    char output[TRIAL_OUTPUT_MAX];
    int failed_count = 0;
    const struct run run =
        RUN(.verb = "bomb", .argument = bomb, .memory_bytes = 64 * TRIAL_MIB,
            .disk_bytes = strstr(bomb, "disk") || strstr(bomb, "sparse") ? 16 * TRIAL_MIB : 0,
            .has_local_sockets = strcmp(bomb, "sockets") == 0, .on_turn = start_one,
            .turn_context = &failed_count);
    const struct sandbox_exit result = trial_run(trial, run, output);
    if (strstr(output, "NOT REFUSED"))
        fail_msg("a bomb was not stopped: %s", output);
    const bool is_refused = result.code == 0 && strstr(output, ": ");
    const bool is_killed = result.code > 128;
    if (!((is_refused && (outcomes & OUTCOME_REFUSED)) ||
          (is_killed && (outcomes & OUTCOME_KILLED))))
        fail_msg("%s: code %d, said \"%s\"", bomb, result.code, output);
    if (failed_count > 0)
        fail_msg("%s: the owner failed to start %d processes", bomb, failed_count);
    attempt_count++;
}

static void bombs_of_processes_are_contained(void **state)
{
    set_off(*state, "forks", OUTCOME_REFUSED);
    set_off(*state, "threads", OUTCOME_REFUSED);
    set_off(*state, "fork-storm", OUTCOME_KILLED);
}

static void bombs_of_memory_are_contained(void **state)
{
    static const char *const bombs[] = {"memory", "shared-memory", "tmp",
                                        "shm",    "tmp-inodes",    "pipes"};
    for (size_t i = 0; i < sizeof(bombs) / sizeof(*bombs); i++)
        set_off(*state, bombs[i], OUTCOME_REFUSED | OUTCOME_KILLED);
}

static void bomb_of_sockets_is_contained(void **state)
{
    set_off(*state, "sockets", OUTCOME_KILLED);
}

/* A plain user's disk is bounded file by file only; the daemon measures the rest. */
static void bombs_of_disk_are_contained(void **state)
{
    struct trial *trial = *state;
    struct error error = {0};
    char reason[128];
    static const char *const bombs[] = {"disk", "sparse", "disk-inodes"};
    const size_t count = disk_can_bound(reason, sizeof(reason)) ? 3 : 2;
    for (size_t i = 0; i < count; i++) {
        set_off(trial, bombs[i], OUTCOME_REFUSED);
        ASSERT_OK(disk_close(trial->lease, &error));
    }
}

static void bomb_of_descriptors_is_contained(void **state)
{
    set_off(*state, "descriptors", OUTCOME_REFUSED);
}

static void many_attempts_were_made(void **state)
{
    (void)state;
    print_message("%d attempts, each refused\n", attempt_count);
    assert_true(attempt_count >= ATTEMPTS_MIN);
}

static int run_all(const char *name)
{
    const struct CMUnitTest tests[] = {
        TRIAL_TEST(files_outside_stay_out_of_reach),
        TRIAL_TEST(other_processes_and_users_stay_out_of_reach),
        TRIAL_TEST(kernel_keeps_its_doors_shut),
        TRIAL_TEST(no_socket_can_be_opened_and_one_handed_in_goes_nowhere_else),
        TRIAL_TEST(local_sockets_reach_only_its_own_processes),
        TRIAL_TEST(network_of_its_own_reaches_nothing_of_the_host),
        TRIAL_TEST(bombs_of_processes_are_contained),
        TRIAL_TEST(bombs_of_memory_are_contained),
        TRIAL_TEST(bomb_of_sockets_is_contained),
        TRIAL_TEST(bombs_of_disk_are_contained),
        TRIAL_TEST(bomb_of_descriptors_is_contained),
        cmocka_unit_test(many_attempts_were_made),
    };
    attempt_count = 0;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void)
{
    return trial_main("escape", run_all);
}
