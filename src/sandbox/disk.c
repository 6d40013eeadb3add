#include "sandbox/disk.h"

#include "base/arena.h"
#include "base/scope.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/loop.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* What ext4 keeps for itself comes on top of what was asked for. */
enum { SPARE_PART = 24, SPARE_BYTES = 4 << 20, LOOP_TRIES = 32, BYTES_MIN = 1 << 20 };

static const char *const make_programs[] = {"/usr/sbin/mke2fs", "/sbin/mke2fs"};

static const char *find_make_program(void)
{
    for (size_t i = 0; i < sizeof(make_programs) / sizeof(*make_programs); i++)
        if (access(make_programs[i], X_OK) == 0)
            return make_programs[i];
    return NULL;
}

bool disk_can_bound(char *reason, size_t reason_size)
{
    const char *missing = NULL;
    if (geteuid() != 0)
        missing = "only root can mount a file system for each job";
    else if (access("/dev/loop-control", R_OK | W_OK) < 0)
        missing = "this machine has no loop devices";
    else if (!find_make_program())
        missing = "mke2fs is missing; install the package e2fsprogs";
    if (missing)
        snprintf(reason, reason_size, "%s", missing);
    return !missing;
}

static int image_path(const char *folder, char out[PATH_MAX], struct error *error)
{
    if (snprintf(out, PATH_MAX, "%s.disk", folder) >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's name is too long");
    return 0;
}

/* Before anything is taken: what is asked for in vain fills the owner's disk for a moment. */
static int check_room(int fd, int64_t bytes, struct error *error)
{
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
        return error_set_errno(error, errno, "ask for the free disk");
    const int64_t room = (int64_t)status.f_bavail * (int64_t)status.f_bsize;
    if (bytes > room)
        return error_set(error, ERROR_EXHAUSTED,
                         "the job's disk takes %" PRId64 " bytes, and %" PRId64 " are free", bytes,
                         room);
    return 0;
}

static int image_create(const char *path, int64_t bytes, int *out_fd, struct error *error)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make \"%s\"", path);
    if (check_room(fd, bytes, error) < 0)
        return -1;
    int result;
    do
        result = fallocate(fd, 0, 0, bytes);
    while (result < 0 && errno == EINTR);
    /* Not every file system can take the space at once. */
    if (result < 0 && errno == EOPNOTSUPP)
        result = ftruncate(fd, bytes);
    if (result < 0)
        return error_set_errno(error, errno, "take %" PRId64 " bytes of disk for the job", bytes);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* No journal: nothing is left to be repaired after a power cut. */
static int image_format(const char *path, uint32_t owner, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char extended[96];
    snprintf(extended, sizeof(extended),
             "root_owner=%" PRIu32 ":%" PRIu32 ",lazy_itable_init=1,nodiscard", owner, owner);
    const char *program = find_make_program();
    const char *const words[] = {"mke2fs",       "-q", "-F", "-t", "ext4",   "-O",
                                 "^has_journal", "-m", "0",  "-E", extended, path};
    enum { WORD_COUNT = sizeof(words) / sizeof(*words) };
    char *argv[WORD_COUNT + 1] = {NULL};
    for (size_t i = 0; i < WORD_COUNT; i++)
        argv[i] = arena_copy_string(arena, text_of(words[i]));
    char *const environment[] = {NULL};
    pid_t pid;
    const int result = posix_spawn(&pid, program, NULL, NULL, argv, environment);
    if (result != 0)
        return error_set_errno(error, result, "start \"%s\"", program);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(error, ERROR_UNAVAILABLE, "\"%s\" could not make a file system", program);
    return 0;
}

/* A free loop device may be taken by another meanwhile: then the next. */
static int loop_attach(int image_fd, char out_device[64], int *out_fd, struct error *error)
{
    AUTO_FD int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (control < 0)
        return error_set_errno(error, errno, "open \"/dev/loop-control\"");
    for (int i = 0; i < LOOP_TRIES; i++) {
        const int number = ioctl(control, LOOP_CTL_GET_FREE);
        if (number < 0)
            return error_set_errno(error, errno, "find a loop device");
        snprintf(out_device, 64, "/dev/loop%d", number);
        AUTO_FD int fd = open(out_device, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            return error_set_errno(error, errno, "open \"%s\"", out_device);
        const struct loop_config config = {.fd = (uint32_t)image_fd,
                                           .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            *out_fd = TAKE_FD(fd);
            return 0;
        }
        if (errno != EBUSY)
            return error_set_errno(error, errno, "set up \"%s\"", out_device);
    }
    return error_set(error, ERROR_UNAVAILABLE, "no loop device is free");
}

static int image_mount(int image_fd, const char *folder, struct error *error)
{
    char device[64];
    AUTO_FD int loop_fd = -1; /* the mount keeps the device from then on */
    if (loop_attach(image_fd, device, &loop_fd, error) < 0)
        return -1;
    if (mount(device, folder, "ext4", MS_NOSUID | MS_NODEV | MS_NOATIME, "errors=continue") < 0)
        return error_set_errno(error, errno, "mount the job's disk");
    return 0;
}

int disk_open(const char *folder, int64_t bytes, uint32_t owner, struct error *error)
{
    char path[PATH_MAX], reason[128];
    if (!disk_can_bound(reason, sizeof(reason)))
        return error_set(error, ERROR_UNAVAILABLE, "%s", reason);
    if (image_path(folder, path, error) < 0)
        return -1;
    if (bytes < BYTES_MIN)
        bytes = BYTES_MIN;
    AUTO_FD int fd = -1;
    if (image_create(path, bytes + bytes / SPARE_PART + SPARE_BYTES, &fd, error) < 0 ||
        image_format(path, owner, error) < 0 || image_mount(fd, folder, error) < 0) {
        unlink(path);
        return -1;
    }
    char lost[PATH_MAX];
    snprintf(lost, sizeof(lost), "%s/lost+found", folder);
    rmdir(lost);
    return 0;
}

int disk_close(const char *folder, struct error *error)
{
    char path[PATH_MAX];
    if (image_path(folder, path, error) < 0)
        return -1;
    struct stat status;
    if (lstat(path, &status) < 0)
        return errno == ENOENT ? 0 : error_set_errno(error, errno, "look at \"%s\"", path);
    /* Detached: whoever still looks into it keeps what they see, and nobody waits for them. */
    if (umount2(folder, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
        return error_set_errno(error, errno, "unmount \"%s\"", folder);
    if (unlink(path) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    return 0;
}
