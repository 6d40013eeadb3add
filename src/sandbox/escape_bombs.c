/* Attempts to leave the machine nothing: each takes one thing until it is refused, or for ever. */
#include "sandbox/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any limit the tests set, and less than would hurt a machine whose limits failed. */
enum { COUNT_MAX = 20000, BLOCK = 1 << 20, BLOCK_MAX = 4096 };

static void say(const char *what, long count, int errno_value)
{
    printf("%s: %ld, %s\n", what, count,
           errno_value ? strerrorname_np(errno_value) : "NOT REFUSED");
    fflush(stdout);
}

static void bomb_forks(void)
{
    long count = 0;
    while (count < COUNT_MAX) {
        const pid_t pid = fork();
        if (pid < 0)
            break;
        if (pid == 0)
            for (;;)
                pause();
        count++;
    }
    say("forks", count, count < COUNT_MAX ? errno : 0);
}

/* The classic: every process forks as fast as it can. Ends by its caller's patience. */
static void bomb_fork_storm(void)
{
    signal(SIGCHLD, SIG_IGN);
    alarm(2);
    for (;;)
        if (fork() < 0 && errno != EAGAIN)
            return;
}

static void *sleep_for_ever(void *context)
{
    for (;;)
        pause();
    return context;
}

static void bomb_threads(void)
{
    long count = 0;
    int result = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t thread;
    while (count < COUNT_MAX &&
           (result = pthread_create(&thread, &small, sleep_for_ever, NULL)) == 0)
        count++;
    say("threads", count, result);
}

static void bomb_memory(void)
{
    long count = 0;
    for (; count < BLOCK_MAX; count++) {
        char *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            break;
        memset(block, 1, BLOCK);
    }
    say("memory", count, count < BLOCK_MAX ? errno : 0);
}

/* A file in memory that belongs to no process. */
static void fill(int fd, const char *what)
{
    static char block[BLOCK];
    memset(block, 1, sizeof(block));
    long count = 0;
    ssize_t size = -1;
    while (fd >= 0 && count < BLOCK_MAX && (size = write(fd, block, sizeof(block))) > 0)
        count++;
    say(what, count, size > 0 ? 0 : errno);
}

static void bomb_shared_memory(void)
{
    fill(memfd_create("x", 0), "shared-memory");
}

static void bomb_file(const char *path, const char *what)
{
    signal(SIGXFSZ, SIG_IGN);
    fill(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), what);
}

static void bomb_inodes(const char *folder, const char *what)
{
    long count = 0;
    char path[64];
    int fd = 0;
    while (count < 10L * COUNT_MAX && fd >= 0) {
        snprintf(path, sizeof(path), "%s/%ld", folder, count++);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    say(what, count, fd < 0 ? errno : 0);
}

static void bomb_descriptors(void)
{
    long count = 0;
    while (count < COUNT_MAX && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        count++;
    say("descriptors", count, count < COUNT_MAX ? errno : 0);
}

/* Kernel memory: full pipes. */
static void bomb_pipes(void)
{
    static char block[1 << 16];
    long count = 0;
    int ends[2];
    while (count < COUNT_MAX && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        if (write(ends[1], block, sizeof(block)) < 0)
            break;
        count++;
    }
    say("pipes", count, count < COUNT_MAX ? errno : 0);
}

/* The kernel's memory again, in buffers as large as can be had. */
static void fill_sockets(int ends[2], const char *block, size_t size)
{
    const int wanted = 64 << 20;
    for (int i = 0; i < 2; i++) {
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
        while (send(ends[i], block, size, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            ;
    }
}

static void be_patient_no_more(int number)
{
    (void)number;
}

static void bomb_sockets(void)
{
    static char block[1 << 16];
    long count = 0;
    int ends[2];
    errno = 0;
    while (count < COUNT_MAX && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        fill_sockets(ends, block, sizeof(block));
        count++;
    }
    const int failure = errno;
    if (failure == EMFILE) { /* one process has all it may have: it is to be killed for it */
        signal(SIGALRM, be_patient_no_more);
        alarm(2);
        pause();
    }
    say("sockets", count, failure == EMFILE ? 0 : failure);
}

static void bomb_sparse(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const int fd = open("/lease/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int result = fd < 0 ? -1 : ftruncate(fd, (off_t)1 << 40);
    say("sparse", 1 << 20, result < 0 ? errno : 0);
}

int escape_bomb(const char *what)
{
    if (strcmp(what, "forks") == 0)
        bomb_forks();
    else if (strcmp(what, "fork-storm") == 0)
        bomb_fork_storm();
    else if (strcmp(what, "threads") == 0)
        bomb_threads();
    else if (strcmp(what, "memory") == 0)
        bomb_memory();
    else if (strcmp(what, "shared-memory") == 0)
        bomb_shared_memory();
    else if (strcmp(what, "tmp") == 0)
        bomb_file("/tmp/x", "tmp");
    else if (strcmp(what, "shm") == 0)
        bomb_file("/dev/shm/x", "shm");
    else if (strcmp(what, "disk") == 0)
        bomb_file("/lease/x", "disk");
    else if (strcmp(what, "tmp-inodes") == 0)
        bomb_inodes("/tmp", "tmp-inodes");
    else if (strcmp(what, "disk-inodes") == 0)
        bomb_inodes("/lease", "disk-inodes");
    else if (strcmp(what, "descriptors") == 0)
        bomb_descriptors();
    else if (strcmp(what, "pipes") == 0)
        bomb_pipes();
    else if (strcmp(what, "sockets") == 0)
        bomb_sockets();
    else if (strcmp(what, "sparse") == 0)
        bomb_sparse();
    else
        return 64;
    return 0;
}
