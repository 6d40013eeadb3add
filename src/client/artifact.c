#include "client/artifact.h"

#include "base/scope.h"
#include "net/http.h"
#include "runtime/result_name.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int artifact_download(struct arena *arena, struct client *client, uint64_t job,
                      const struct api_artifact *artifact, int fd, struct error *error)
{
    struct buffer name AUTO_BUFFER;
    struct stat info;
    if (!result_name_is_fetchable(artifact->name))
        return error_set(error, ERROR_CORRUPT,
                         "the market names a file by what is no file's name; it is not fetched");
    buffer_init(&name, 3 * artifact->name.size + 1);
    http_percent_encode(artifact->name, &name);
    const char *from =
        arena_format(arena, "/v1/jobs/%" PRIu64 "/artifacts/%s", job, buffer_string(&name));
    if (client_download(client, from, fd, error) < 0)
        return -1;
    if (fstat(fd, &info) == 0 && (uint64_t)info.st_size != artifact->size)
        return error_set(
            error, ERROR_CORRUPT, "\"%.100s\" came with %" PRIu64 " of %" PRIu64 " bytes",
            arena_copy_string(arena, artifact->name), (uint64_t)info.st_size, artifact->size);
    return 0;
}

/* The last folder of the path below `folder`, made where it is missing; out_name: the rest. */
static int open_folders(const char *folder, char *path, int *out_fd, const char **out_name,
                        struct error *error)
{
    AUTO_FD int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%.150s\"", folder);
    for (char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        if (mkdirat(fd, path, 0755) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make folder \"%.150s\"", path);
        const int below = openat(fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0 && (errno == ENOTDIR || errno == ELOOP))
            return error_set(error, ERROR_CONFLICT, "\"%.150s\" is here already, and no folder",
                             path);
        if (below < 0)
            return error_set_errno(error, errno, "open folder \"%.150s\"", path);
        close(fd);
        fd = below;
    }
    *out_fd = TAKE_FD(fd);
    *out_name = path;
    return 0;
}

/* Beside its name first, so that a file is there whole or not at all. */
int artifact_fetch(struct arena *arena, struct client *client, uint64_t job,
                   const struct api_artifact *artifact, const char *folder, const char **out_path,
                   struct error *error)
{
    AUTO_FD int folder_fd = -1;
    const char *name;
    if (!result_name_is_fetchable(artifact->name))
        return error_set(error, ERROR_CORRUPT,
                         "the market names a file by what is no file's name; it is not fetched");
    struct text place = text_of(folder);
    while (place.size > 1 && text_ends_with(place, TEXT("/")))
        place.size--;
    const char *path =
        arena_format(arena, "%.*s/" TEXT_FORMAT, TEXT_ARGS(place), TEXT_ARGS(artifact->name));
    if (open_folders(folder, arena_copy_string(arena, artifact->name), &folder_fd, &name, error) <
        0)
        return -1;
    const char *part = arena_format(arena, "%s.part", name);
    AUTO_FD int fd =
        openat(folder_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "write \"%.150s.part\"", path);
    int result = artifact_download(arena, client, job, artifact, fd, error);
    if (result == 0 && (fsync(fd) < 0 || renameat(folder_fd, part, folder_fd, name) < 0))
        result = error_set_errno(error, errno, "write \"%.150s\"", path);
    if (result < 0) {
        unlinkat(folder_fd, part, 0);
        return -1;
    }
    *out_path = path;
    return 0;
}
