#include "client/mounts.h"

#include "client/bring.h"
#include "runtime/mount_pack.h"
#include "source/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Before anything is read ------------------------------------------------------------------
 */

static struct bring_options bringing_of(const struct job_spec *spec,
                                        const struct upload_options *options, const char *address)
{
    struct bring_options bringing = {.address = address, .spec = spec};
    if (options) {
        bringing.on_note = options->on_reading;
        bringing.context = options->context;
        bringing.leaves_signals = options->leaves_signals;
        bringing.stop = options->stop;
    }
    return bringing;
}

static int check_source(const struct job_spec *spec, size_t index, struct error *error)
{
    const struct job_mount *mount = &spec->file_mounts[index];
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *source = arena_copy_string(arena, mount->source);
    struct stat status;
    if (!mount->source.size)
        return job_spec_mount(spec, index)
                   ? 0
                   : error_set(error, ERROR_INVALID, "it needs a source: a path or an address");
    if (place_is_address(mount->source)) {
        const struct bring_options bringing = bringing_of(spec, NULL, source);
        return bring_check(&bringing, error);
    }
    if (stat(source, &status) < 0)
        return error_set_errno(error, errno, "\"%.100s\"", source);
    return S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)
               ? 0
               : error_set(error, ERROR_INVALID, "\"%.100s\" is neither file nor folder", source);
}

int mounts_check(const struct job_spec *spec, struct error *error)
{
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (check_source(spec, i, error) < 0)
            return error_wrap(error, "file_mounts: \"" TEXT_FORMAT "\"",
                              TEXT_ARGS(spec->file_mounts[i].target));
    return 0;
}

/* ---- Into the bundle --------------------------------------------------------------------------
 */

static int share(struct arena *arena, const char *path, struct mount_index *index, uint64_t ranks,
                 struct error *error)
{
    if (index->is_single && mount_pack_cut(arena, path, index, error) < 0)
        return -1;
    const uint64_t parts = mount_index_part_count(index);
    if (parts < ranks)
        return error_set(error, ERROR_INVALID,
                         "it has %" PRIu64 " %s, too few for %" PRIu64 " ranks to share", parts,
                         index->is_single ? "lines" : "files", ranks);
    return 0;
}

static int upload_one(struct arena *arena, const struct upload_options *options,
                      struct job_spec *spec, size_t index, struct error *error)
{
    const struct job_mount *mount = &spec->file_mounts[index];
    AUTO(arena) struct arena *own = arena_new(0);
    AUTO(bring) struct bring *bring = NULL;
    struct mount_index packed;
    const char *source = arena_copy_string(own, mount->source);
    const struct bring_options bringing = bringing_of(spec, options, source);
    if (place_is_address(mount->source)) {
        if (bring_open(&bringing, &bring, error) < 0)
            return -1;
        source = bring_path(bring);
    }
    source = mount_pack_path(own, source);
    AUTO_FD int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in /var/tmp");
    if (mount_pack_gather(own, source, &packed, error) < 0 ||
        (mount->shard && share(own, source, &packed, spec->num_nodes, error) < 0) ||
        mount_pack_write(source, &packed, fd, error) < 0) {
        if (bring)
            bring_rename(bring, error);
        return -1;
    }
    const struct upload_file file = {.fd = fd,
                                     .name = arena_copy_string(arena, mount->target),
                                     .media_type = MOUNT_MEDIA_TYPE,
                                     .header_bytes = MOUNT_HEADER_SIZE};
    const struct text name = text_of(arena_format(arena, JOB_MOUNT_INPUT "%zu", index));
    struct job_input *input = NULL;
    if (upload_add_input(arena, spec, name, JOB_SPLIT_MOUNT, &input, error) < 0)
        return -1;
    return upload_add_file(options, &file, input, error);
}

int mounts_upload(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                  struct error *error)
{
    for (size_t i = 0; i < spec->file_mount_count; i++)
        if (spec->file_mounts[i].source.size && upload_one(arena, options, spec, i, error) < 0)
            return error_wrap(error, "file_mounts: \"" TEXT_FORMAT "\"",
                              TEXT_ARGS(spec->file_mounts[i].target));
    return 0;
}
