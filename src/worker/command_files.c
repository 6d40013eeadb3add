#include "worker/command_files.h"

#include "blob/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNPACKED_FILES_MAX = 30000 };

int command_unpack_files(const struct work *work, struct error *error)
{
    const struct lease_document *lease = &work->lease;
    const struct archive_limits limits = {
        .bytes_max = lease->disk_bytes > 0 ? (uint64_t)lease->disk_bytes : UINT64_C(1) << 40,
        .files_max = UNPACKED_FILES_MAX,
    };
    for (size_t i = 0; i < lease->data_count; i++) {
        char path[PATH_MAX];
        if (&lease->data[i] == lease_document_image(lease) ||
            &lease->data[i] == lease_document_wheels(lease) ||
            strcmp(lease->data[i].name, LEASE_CHECKPOINT_NAME) == 0 || lease->data[i].mount)
            continue; /* we run in it, they are installed, it has a folder of its own, as has it */
        snprintf(path, sizeof path, "%s/%s", work->data_folder, lease->data[i].name);
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return error_set_errno(error, errno, "open \"%s\"", path);
        struct archive_summary summary;
        if (archive_unpack(fd, &limits, &summary, error) < 0)
            return error_wrap(error, "files of the job");
    }
    return 0;
}

/* A link to where the files are, which nobody in here can change. */
static int link_mount(const struct work *work, struct text target, struct error *error)
{
    char path[JOB_MOUNT_TARGET_SIZE_MAX + 1], source[PATH_MAX];
    if (text_copy(target, path, sizeof path, error) < 0)
        return error_wrap(error, "file_mounts");
    if (snprintf(source, sizeof source, "%s/" LEASE_MOUNTS_NAME "/%s", work->data_folder, path) >=
        (int)sizeof source)
        return error_set(error, ERROR_INVALID, "file_mounts: \"%s\" is too long", path);
    for (char *at = path; (at = strchr(at, '/')); at++) {
        *at = '\0';
        const int made = mkdir(path, 0755);
        if (made < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "file_mounts: make \"%s\"", path);
        *at = '/';
    }
    if (symlink(source, path) == 0)
        return 0;
    return errno == EEXIST
               ? error_set(error, ERROR_CONFLICT, "file_mounts: \"%s\" is in workdir already", path)
               : error_set_errno(error, errno, "file_mounts: make \"%s\"", path);
}

int command_link_mounts(const struct work *work, struct error *error)
{
    for (size_t i = 0; i < work->lease.mount_count; i++)
        if (link_mount(work, work->lease.mounts[i].target, error) < 0)
            return -1;
    return 0;
}
