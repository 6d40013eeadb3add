/*
 * Inside a sandbox of its own: reads a borrower's file or folder as its job says.
 *
 *     /data/NAME         what was sent, read-only
 *     /import/job.json   the job: runtime/job_spec.h
 *     /import/out        what becomes of it: the parts of a data set by the names of their inputs,
 *                        and job.json, what a lease carries of the job, with the shape filled in
 *
 * Or makes a mount of it (runtime/mount_pack.h), /import/out/mount; or only looks at the beginning
 * of /data/NAME, and says on standard output what it is like.
 */
#include "base/arena.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/scope.h"
#include "blob/archive.h"
#include "runtime/job_import.h"
#include "runtime/mount_pack.h"
#include "train/look.h"
#include "worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_JSON_MAX = 1 << 20 };

static int make_folder(const char *path, struct error *error)
{
    return mkdir(path, 0755) < 0 ? error_set_errno(error, errno, "make \"%s\"", path) : 0;
}

static int write_out(struct arena *arena, const char *name, struct text bytes, struct error *error)
{
    const char *path = arena_format(arena, JOB_IMPORT_FOLDER "/out/%s", name);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "make \"%s\"", path);
    for (size_t done = 0; done < bytes.size;) {
        const ssize_t written = write(fd, bytes.data + done, bytes.size - done);
        if (written < 0 && errno != EINTR)
            return error_set_errno(error, errno, "write the records");
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* ---- Folders --------------------------------------------------------------------------------- */

/* Without the endings of an archive. */
static const char *plain_name(struct arena *arena, const char *name)
{
    struct text rest = text_of(name);
    const char *dot;
    while (look_is_archive(rest) && (dot = memrchr(rest.data, '.', rest.size)) && dot > rest.data)
        rest.size = (size_t)(dot - rest.data);
    return arena_copy_string(arena, rest);
}

/* What people pack lies in one folder, or is one file; then that is meant. */
static const char *only_inside(struct arena *arena, const char *folder)
{
    const char *found = NULL;
    DIR *directory = opendir(folder);
    if (!directory)
        return folder;
    const struct dirent *entry;
    while ((entry = readdir(directory))) { // NOLINT(concurrency-mt-unsafe): a DIR of our own
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "__MACOSX"))
            continue;
        if (found) {
            found = folder;
            break;
        }
        found = arena_format(arena, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    return found ? found : folder;
}

/* The working folder is where it lies then. */
static int unpack(struct arena *arena, const char *name, const struct archive_limits *limits,
                  const char **out_path, struct error *error)
{
    struct archive_summary summary;
    const char *source = arena_format(arena, "/data/%s", name);
    const char *folder = plain_name(arena, name);
    AUTO_FD int fd = open(source, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", name);
    if (make_folder(JOB_IMPORT_FOLDER "/files", error) < 0)
        return -1;
    if (chdir(JOB_IMPORT_FOLDER "/files") < 0 || mkdir(folder, 0755) < 0 || chdir(folder) < 0)
        return error_set_errno(error, errno, "make a folder for \"%s\"", name);
    if (archive_unpack(fd, limits, &summary, error) < 0)
        return error_wrap(error, "\"%s\"", name);
    if (chdir("..") < 0)
        return error_set_errno(error, errno, "leave the folder of \"%s\"", name);
    *out_path = only_inside(arena, folder);
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_job(struct arena *arena, struct job_spec *out_spec, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (file_read(JOB_IMPORT_FOLDER "/job.json", &json, error) < 0 ||
        job_spec_read(arena, buffer_text(&json), out_spec, error) < 0)
        return -1;
    /* How large its workers are is not known yet; the job is checked for that when it comes. */
    out_spec->resources.memory_bytes.value = INT64_MAX;
    return 0;
}

static int write_parts(struct arena *arena, const struct job_spec *spec,
                       const struct import_parts *parts, struct error *error)
{
    struct job_part files[JOB_PARTS_MAX];
    size_t count;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (job_import_parts(&spec->train, parts, files, &count, error) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (write_out(arena, files[i].name, files[i].bytes, error) < 0)
            return -1;
    job_spec_write_work(spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    return write_out(arena, "job.json", buffer_text(&json), error);
}

static int import_file(struct arena *arena, const char *name, bool is_folder,
                       const struct archive_limits *limits, struct error *error)
{
    struct job_spec spec;
    struct import_parts parts;
    const char *path = name;
    if (read_job(arena, &spec, error) < 0 || make_folder(JOB_IMPORT_FOLDER "/out", error) < 0 ||
        make_folder(JOB_IMPORT_FOLDER "/tmp", error) < 0)
        return -1;
    if (chdir("/data") < 0)
        return error_set_errno(error, errno, "open \"/data\"");
    if ((is_folder && unpack(arena, name, limits, &path, error) < 0) ||
        job_import_read(arena, path, &spec, NULL, NULL, &parts, error) < 0)
        return -1;
    const int result = write_parts(arena, &spec, &parts, error);
    import_parts_done(&parts);
    return result;
}

/* What is packed stays so. Of a single file it is also said where its lines begin, for who shares
 * them. */
static int pack_mount(struct arena *arena, const char *name, struct error *error)
{
    struct mount_index index;
    if (make_folder(JOB_IMPORT_FOLDER "/out", error) < 0)
        return -1;
    if (chdir("/data") < 0)
        return error_set_errno(error, errno, "open \"/data\"");
    if (mount_pack_gather(arena, name, &index, error) < 0 ||
        (index.is_single && !mount_pack_is_compressed(name) &&
         mount_pack_cut(arena, name, &index, error) < 0))
        return -1;
    AUTO_FD int fd = open(JOB_IMPORT_FOLDER "/out/" JOB_PART_MOUNT,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file for it");
    return mount_pack_write(name, &index, fd, error);
}

static int look_file(struct arena *arena, const char *name, bool is_whole, struct error *error)
{
    struct look look;
    struct json_writer writer;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, LOOK_JSON_MAX);
    if (chdir("/data") < 0)
        return error_set_errno(error, errno, "open \"/data\"");
    if (look_at(arena, name, is_whole, &look, error) < 0)
        return -1;
    json_writer_init(&writer, &json);
    json_write(&writer, &look_schema, &look);
    if (buffer_check(&json, error) < 0)
        return -1;
    if (fwrite(json.data, 1, json.size, stdout) != json.size || fflush(stdout) != 0)
        return error_set_errno(error, errno, "say what it looks like");
    return 0;
}

/* The borrower named no train.data. */
static int fail(const struct error *error)
{
    static const char prefix[] = "train.data: ";
    const char *message = error->message;
    puts(strncmp(message, prefix, strlen(prefix)) == 0 ? message + strlen(prefix) : message);
    return 1;
}

static int misused(void)
{
    puts("not for people: the market starts it");
    return 2;
}

int import_read_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct archive_limits limits = {.refuses_links = true, .takes_zip = true};
    if (argc != 5 || text_parse_u64(text_of(argv[3]), &limits.bytes_max, &error) < 0 ||
        text_parse_u64(text_of(argv[4]), &limits.files_max, &error) < 0)
        return misused();
    signal(SIGXFSZ, SIG_IGN); /* what may not be written is an error, with words */
    return import_file(arena, argv[1], !strcmp(argv[2], "folder"), &limits, &error) < 0
               ? fail(&error)
               : 0;
}

int import_mount_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    if (argc != 2)
        return misused();
    signal(SIGXFSZ, SIG_IGN);
    return pack_mount(arena, argv[1], &error) < 0 ? fail(&error) : 0;
}

int import_look_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    if (argc != 3)
        return misused();
    return look_file(arena, argv[1], !strcmp(argv[2], "whole"), &error) < 0 ? fail(&error) : 0;
}
