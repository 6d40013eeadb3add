#include "peer/sdk.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "sandbox/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SDK_PATH_MAX = PATH_MAX - 256 }; /* leaves room for a file's name */

/* The sandbox's user is another than a daemon of root's, whose umask may keep others out. */
static int make_open_folder(const char *path, struct error *error)
{
    if (folder_make(path, 0755, error) < 0)
        return -1;
    return chmod(path, 0755) < 0 ? error_set_errno(error, errno, "open \"%s\" to all", path) : 0;
}

static int write_file(const struct sdk_file *file, const char *folder, struct error *error)
{
    char path[PATH_MAX];
    const char *slash = strchr(file->name, '/');
    ASSERT(slash && !strchr(slash + 1, '/') && strlen(file->name) < 200);
    snprintf(path, sizeof(path), "%.3800s/%.*s", folder, (int)(slash - file->name), file->name);
    if (make_open_folder(path, error) < 0)
        return -1;
    snprintf(path, sizeof(path), "%.3800s/%s", folder, file->name);
    struct buffer plain AUTO_BUFFER;
    buffer_init(&plain, file->size + 1);
    uLongf size = file->size + 1;
    if (uncompress(buffer_reserve(&plain, size), &size, (const Bytef *)file->packed.data,
                   file->packed.size) != Z_OK ||
        size != file->size)
        return error_set(error, ERROR_CORRUPT, "this program's own \"%s\" is damaged", file->name);
    buffer_advance(&plain, size);
    const struct text whole = buffer_text(&plain);
    return file_replace(path, &whole, 1, 0444, error);
}

/* The folder gets its name once all is in it. */
static int write_all(const struct sdk *sdk, const char *folder, struct error *error)
{
    char made[PATH_MAX];
    snprintf(made, sizeof(made), "%.3800s.new", folder);
    if (folder_remove(made, error) < 0 || make_open_folder(made, error) < 0)
        return -1;
    for (size_t i = 0; i < sdk->file_count; i++)
        if (write_file(&sdk->files[i], made, error) < 0)
            return -1;
    if (rename(made, folder) < 0)
        return error_set_errno(error, errno, "name \"%s\"", folder);
    return 0;
}

/* Calls for each that is neither "." nor ".."; stops at what is not 0 and returns that. A folder
 * that is not there has none. */
static int each_entry(const char *path, int (*take)(void *context, const char *name), void *context,
                      struct error *error)
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? 0 : error_set_errno(error, errno, "open \"%s\"", path);
    int result = 0;
    struct dirent *entry;
    while (result == 0 && (entry = readdir(folder))) // NOLINT(concurrency-mt-unsafe): not shared
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = take(context, entry->d_name);
    closedir(folder);
    return result;
}

static int is_any(void *context, const char *name)
{
    (void)context;
    (void)name;
    return 1;
}

struct removal {
    const char *folder;
    const char *kept;
    struct error *error;
};

static int remove_other(void *context, const char *name)
{
    const struct removal *removal = context;
    char path[PATH_MAX];
    if (strcmp(name, removal->kept) == 0)
        return 0;
    snprintf(path, sizeof(path), "%.3800s/%.255s", removal->folder, name);
    return folder_remove(path, removal->error);
}

static int remove_others(const struct sdk *sdk, const char *state_dir, const char *folder,
                         struct error *error)
{
    char leases[PATH_MAX];
    snprintf(leases, sizeof(leases), "%.3800s/leases", state_dir);
    const int found = each_entry(leases, is_any, NULL, error);
    if (found != 0)
        return found < 0 ? -1 : 0;
    struct removal removal = {folder, sdk->key, error};
    return each_entry(folder, remove_other, &removal, error);
}

int sdk_lay_out(const struct sdk *sdk, const char *state_dir, char out_folder[PATH_MAX],
                struct error *error)
{
    char folder[PATH_MAX], real[PATH_MAX];
    if (!realpath(state_dir, real))
        return error_set_errno(error, errno, "find \"%s\"", state_dir);
    if (strlen(real) + strlen(sdk->key) + sizeof("/sdk/.new") > SDK_PATH_MAX)
        return error_set(error, ERROR_INVALID, "the state folder's name is too long");
    snprintf(folder, sizeof(folder), "%.3800s/sdk", real);
    snprintf(out_folder, PATH_MAX, "%.3800s/%.100s", folder, sdk->key);
    if (make_open_folder(folder, error) < 0 ||
        (access(out_folder, F_OK) < 0 && write_all(sdk, out_folder, error) < 0))
        return error_wrap(error, "lay out the SDK");
    return remove_others(sdk, real, folder, error) < 0 ? error_wrap(error, "lay out the SDK") : 0;
}
