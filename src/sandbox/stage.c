#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What the kernel's header, perhaps older than the kernel, does not name yet. */
#define ACCESS_FS_TRUNCATE    (UINT64_C(1) << 14) /* version 3 */
#define ACCESS_FS_IOCTL_DEV   (UINT64_C(1) << 15) /* version 5 */
#define ACCESS_NET_TCP        UINT64_C(3)         /* version 4: bind and connect */
#define SCOPE_SOCKETS_SIGNALS UINT64_C(3)         /* version 6: abstract sockets and signals */

#define ACCESS_READ                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_DEVICE                                                                              \
    (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR |  \
     ACCESS_FS_TRUNCATE | ACCESS_FS_IOCTL_DEV)
#define ACCESS_PROC (ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE)
/* All but making devices and commanding them. */
#define ACCESS_WRITE                                                                               \
    (ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                 \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |  \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |   \
     LANDLOCK_ACCESS_FS_REFER | ACCESS_FS_TRUNCATE)

enum { EXIT_CONFINE = 126, EXIT_START = 127 };

/* struct landlock_ruleset_attr as of version 6; older kernels take its first part. */
struct ruleset {
    uint64_t access_fs;
    uint64_t access_net;
    uint64_t scoped;
};

static size_t ruleset_size(int abi)
{
    if (abi >= 6)
        return sizeof(struct ruleset);
    return abi >= 4 ? offsetof(struct ruleset, scoped) : offsetof(struct ruleset, access_net);
}

/* Bit by bit as the versions came. */
static uint64_t known_access_fs(int abi)
{
    static const int bit_counts[] = {0, 13, 14, 15, 15, 16};
    const int last = sizeof(bit_counts) / sizeof(*bit_counts) - 1;
    return (UINT64_C(1) << bit_counts[abi < last ? abi : last]) - 1;
}

int stage_landlock_abi(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi > 0 ? (int)abi : 0;
}

static int add_path(int ruleset_fd, const char *path, uint64_t access)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    const struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    const long result =
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    const int failure = errno;
    close(fd);
    errno = failure;
    return (int)result;
}

int stage_confine(const struct stage_rules *rules)
{
    const struct rlimit processes = {rules->processes_max, rules->processes_max};
    if (rules->processes_max > 0 && setrlimit(RLIMIT_NPROC, &processes) < 0)
        return -1;
    const int abi = stage_landlock_abi();
    if (abi == 0)
        return 0;
    const uint64_t known = known_access_fs(abi);
    const struct ruleset ruleset = {.access_fs = known,
                                    .access_net = rules->has_network ? 0 : ACCESS_NET_TCP,
                                    .scoped = SCOPE_SOCKETS_SIGNALS};
    const int fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, ruleset_size(abi), 0);
    if (fd < 0)
        return -1;
    int result = 0;
    if (!rules->sees_nothing && !rules->readable_count)
        result = add_path(fd, "/", ACCESS_READ & known);
    for (size_t i = 0; result == 0 && i < rules->readable_count; i++)
        result = add_path(fd, rules->readable[i], ACCESS_READ & known);
    if (result == 0 && !rules->sees_nothing)
        result = add_path(fd, "/dev", ACCESS_DEVICE & known);
    if (result == 0 && rules->writes_proc)
        result = add_path(fd, "/proc", ACCESS_PROC & known);
    for (size_t i = 0; result == 0 && i < rules->writable_count; i++)
        result = add_path(fd, rules->writable[i], ACCESS_WRITE & known);
    if (result == 0)
        result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0)
        result = (int)syscall(SYS_landlock_restrict_self, fd, 0);
    const int failure = errno;
    close(fd);
    errno = failure;
    return result;
}

static int parse(int argc, char **argv, struct stage_rules *rules)
{
    int at = 2;
    while (at < argc && strcmp(argv[at], "--") != 0) {
        if (strcmp(argv[at], "--network") == 0) {
            rules->has_network = 1;
        } else if (strcmp(argv[at], "--proc") == 0) {
            rules->writes_proc = 1;
        } else if (strcmp(argv[at], "--processes") == 0 && at + 1 < argc) {
            rules->processes_max = strtoul(argv[++at], NULL, 10);
        } else if (strcmp(argv[at], "--write") == 0 && at + 1 < argc &&
                   rules->writable_count < STAGE_WRITABLE_MAX) {
            rules->writable[rules->writable_count++] = argv[++at];
        } else {
            return -1;
        }
        at++;
    }
    return at + 1 < argc ? at + 1 : -1;
}

int stage_enter(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], STAGE_WORD) != 0)
        return 0;
    struct stage_rules rules = {0};
    const int skipped = parse(argc, argv, &rules);
    if (skipped < 0) {
        fprintf(stderr, "%s: not for people: a sandbox starts it\n", STAGE_WORD);
        _exit(EXIT_CONFINE);
    }
    if (stage_confine(&rules) < 0) {
        fprintf(stderr, "%s: confine: %s\n", STAGE_WORD, strerrordesc_np(errno));
        _exit(EXIT_CONFINE);
    }
    char **const program = argv + skipped;
    if (strcmp(program[0], argv[0]) == 0)
        return skipped;
    execv(program[0], program);
    fprintf(stderr, "%s: %s\n", program[0], strerrordesc_np(errno));
    _exit(EXIT_START);
}
