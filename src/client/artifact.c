#include "client/artifact.h"

#include "base/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The market's names become file names here: nothing may leave the folder. */
static bool is_file_name(struct text name)
{
    if (name.size == 0 || name.size > 160 || name.data[0] == '.')
        return false;
    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c >= 0x80 || !(isalnum(c) || c == '-' || c == '_' || c == '.'))
            return false;
    }
    return true;
}

/* Beside its name first, so that a file is there whole or not at all. */
int artifact_fetch(struct arena *arena, struct client *client, uint64_t job,
                   const struct api_artifact *artifact, const char *folder, const char **out_path,
                   struct error *error)
{
    if (!is_file_name(artifact->name))
        return error_set(error, ERROR_CORRUPT,
                         "the market names a file by what is no file's name; it is not fetched");
    const char *name = arena_copy_string(arena, artifact->name);
    struct text place = text_of(folder);
    while (place.size > 1 && text_ends_with(place, TEXT("/")))
        place.size--;
    const char *path = arena_format(arena, "%.*s/%s", TEXT_ARGS(place), name);
    const char *part = arena_format(arena, "%s.part", path);
    AUTO_FD int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "write \"%.150s\"", part);
    const char *from = arena_format(arena, "/v1/jobs/%" PRIu64 "/artifacts/%s", job, name);
    int result = client_download(client, from, fd, error);
    struct stat info;
    if (result == 0 && fstat(fd, &info) == 0 && (uint64_t)info.st_size != artifact->size)
        result =
            error_set(error, ERROR_CORRUPT, "\"%s\" came with %" PRIu64 " of %" PRIu64 " bytes",
                      name, (uint64_t)info.st_size, artifact->size);
    if (result == 0 && (fsync(fd) < 0 || rename(part, path) < 0))
        result = error_set_errno(error, errno, "write \"%.150s\"", path);
    if (result < 0) {
        unlink(part);
        return -1;
    }
    *out_path = path;
    return 0;
}
