/*
 * The program sandbox_test runs inside a sandbox: each verb tries one thing and prints what came
 * of it. Built without sanitizers, which need calls that the sandbox refuses.
 */
#include "sandbox/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void show(const char *what, long result)
{
    printf("%s=%s\n", what, result < 0 ? strerrorname_np(errno) : "ok");
}

static void probe_network(void)
{
    show("socket", socket(AF_INET, SOCK_STREAM, 0));
    show("unix", socket(AF_UNIX, SOCK_STREAM, 0));
    /* Descriptor 3 is a connected TCP socket: let go of its peer and dial another. */
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    show("disconnect", connect(3, &nobody, sizeof(nobody)));
    show("listen", listen(3, 1));
    show("send", send(3, "x", 1, MSG_NOSIGNAL));
    /* It was made in the host's network namespace: ask it for what is there. */
    struct ifreq device = {.ifr_ifindex = 1};
    show("device", ioctl(3, SIOCGIFNAME, &device));
    show("address", ioctl(3, SIOCGIFHWADDR, &device));
    int waiting = 0;
    show("waiting", ioctl(3, FIONREAD, &waiting));
    show("uring", syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){0}));
}

/* In a network namespace of its own, with sockets. */
static void probe_sockets(void)
{
    show("tcp", socket(AF_INET, SOCK_STREAM, 0));
    show("udp", socket(AF_INET6, SOCK_DGRAM, 0));
    show("unix", socket(AF_UNIX, SOCK_STREAM, 0));
    show("route", socket(AF_NETLINK, SOCK_RAW, 0));
    show("audit", socket(AF_NETLINK, SOCK_RAW, 9));
    show("raw", socket(AF_INET, SOCK_RAW, IPPROTO_TCP));
    show("ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
    show("sctp", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    show("packet", socket(AF_PACKET, SOCK_RAW, 0));
    show("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    show("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
    show("high", syscall(SYS_socket, (1L << 32) | AF_INET, SOCK_STREAM, 0));
    struct ifreq device = {.ifr_ifindex = 1};
    show("device", ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCGIFNAME, &device));
    show("uring", syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){0}));
    const struct sockaddr_in metadata = {
        .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xa9fea9fe)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    show("metadata", connect(fd, (const struct sockaddr *)&metadata, sizeof(metadata)));
}

static void probe_write(void)
{
    const char *const paths[] = {"/x",      "/usr/x", "/etc/x",  "/souk",
                                 "/data/x", "/tmp/x", "/lease/x"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        show(paths[i], open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    show("sysctl", open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC));
}

static void probe_processes(const char *outsider)
{
    DIR *folder = opendir("/proc");
    int count = 0;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) // NOLINT(concurrency-mt-unsafe): one thread
        count += strspn(entry->d_name, "0123456789") == strlen(entry->d_name);
    printf("processes=%d\n", count);
    show("kill", kill((pid_t)strtol(outsider, NULL, 10), 0));
    printf("uid=%d\n", (int)getuid());
}

static void probe_calls(void)
{
    show("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    show("unshare", unshare(CLONE_NEWUSER));
    show("clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
    show("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    show("bpf", syscall(SYS_bpf, 0, NULL, 0));
    show("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    show("userfaultfd", syscall(SYS_userfaultfd, 0));
    show("perf", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    show("chroot", chroot("/tmp"));
}

/* Memory that belongs to no process. */
static void probe_uncounted(void)
{
    show("memfd", syscall(SYS_memfd_create, "x", 0));
    show("shmget", syscall(SYS_shmget, 0, 4096, 0600));
}

static void *thread_main(void *context)
{
    return context;
}

static void probe_thread(void)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, thread_main, NULL);
    show("thread", errno ? -1 : 0);
    if (!errno)
        pthread_join(thread, NULL);
}

static void probe_surroundings(void)
{
    for (char **name = environ; *name; name++)
        printf("env %s\n", *name);
    for (int fd = 0; fd < 1024; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            printf("fd %d\n", fd);
}

/* Children that stay, until the limit says no. */
static void probe_forks(void)
{
    int count = 0;
    for (; count < 10000; count++) {
        const pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        if (pid < 0)
            break;
    }
    printf("forks=%d\n", count);
}

static void probe_forks_when_told(void)
{
    char word;
    if (read(3, &word, 1) == 1)
        probe_forks();
}

static void probe_memory(void)
{
    for (size_t total = 0; total < (size_t)4 << 30; total += 1 << 20) {
        volatile char *block = malloc(1 << 20);
        if (!block) {
            printf("memory=refused\n");
            return;
        }
        for (size_t i = 0; i < 1 << 20; i += 4096)
            block[i] = 1;
    }
    printf("memory=taken\n");
}

static void probe_spin(void)
{
    for (;;)
        __asm__ volatile("");
}

/* A child that ignores the wish to end. */
static void probe_stubborn(void)
{
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0)
        setsid();
    else
        show("ready", 0);
    fflush(stdout);
    for (;;)
        pause();
}

static void probe_obedient(void)
{
    show("ready", 0);
    fflush(stdout);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    const int skipped = stage_enter(argc, argv);
    argc -= skipped;
    argv += skipped;
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "network") == 0)
        probe_network();
    else if (strcmp(verb, "sockets") == 0)
        probe_sockets();
    else if (strcmp(verb, "write") == 0)
        probe_write();
    else if (strcmp(verb, "processes") == 0)
        probe_processes(argc > 2 ? argv[2] : "1");
    else if (strcmp(verb, "calls") == 0)
        probe_calls();
    else if (strcmp(verb, "uncounted") == 0)
        probe_uncounted();
    else if (strcmp(verb, "thread") == 0)
        probe_thread();
    else if (strcmp(verb, "surroundings") == 0)
        probe_surroundings();
    else if (strcmp(verb, "forks-when-told") == 0)
        probe_forks_when_told();
    else if (strcmp(verb, "forks") == 0)
        probe_forks();
    else if (strcmp(verb, "memory") == 0)
        probe_memory();
    else if (strcmp(verb, "spin") == 0)
        probe_spin();
    else if (strcmp(verb, "stubborn") == 0)
        probe_stubborn();
    else if (strcmp(verb, "obedient") == 0)
        probe_obedient();
    else
        return 64;
    fflush(stdout);
    return 0;
}
