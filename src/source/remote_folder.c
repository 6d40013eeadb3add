/*
 * A folder that lies elsewhere, file by file, some at a time.
 */
#include "base/assert.h"
#include "source/remote_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void remote_run_threads(const struct remote *remote, void *(*function)(void *), void *context)
{
    pthread_t threads[REMOTE_CONNECTIONS_MAX];
    uint32_t count = 0;
    sigset_t all, before;
    /* Signals are the program's own. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* Where no more can be had, those there are do it. */
    while (count + 1 < remote->options.connections &&
           pthread_create(&threads[count], NULL, function, context) == 0)
        count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    function(context);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- What is there --------------------------------------------------------------------------- */

static bool is_safe_name(struct text name)
{
    struct text part;
    struct text rest = name;
    for (bool has_more = true; has_more;) {
        has_more = text_cut(rest, '/', &part, &rest);
        if (part.size == 0 || part.size > 255 || text_is(part, ".") || text_is(part, ".."))
            return false;
    }
    return text_is_plain(name);
}

int remote_listing_add(struct remote_listing *listing, struct text name, uint64_t size,
                       struct error *error)
{
    if (!is_safe_name(name))
        return error_set(error, ERROR_INVALID, "it holds a file whose name is none here");
    const size_t count = listing->entries.size / sizeof(struct remote_entry);
    if (count == listing->files_max)
        return error_set(error, ERROR_EXHAUSTED, "it holds more than %" PRIu32 " files",
                         listing->files_max);
    if (size > listing->bytes_max - listing->total_bytes)
        return error_set(error, ERROR_EXHAUSTED, "its files have more than %" PRIu64 " bytes",
                         listing->bytes_max);
    listing->total_bytes += size;
    const struct remote_entry entry = {arena_copy_text(listing->arena, name), size};
    buffer_append(&listing->entries, &entry, sizeof(entry));
    return buffer_check(&listing->entries, error);
}

/* ---- Fetching it ----------------------------------------------------------------------------- */

struct folder {
    struct remote *remote;
    const char *path;
    const struct remote_listing *listing;
    /* Guarded by the remote's mutex: */
    size_t next;
    uint64_t done_bytes;
    bool is_failed;
    struct error error; /* the first */
};

/* One file of it, which is a remote of its own on the connection of its thread. */
struct member {
    struct folder *folder;
    struct remote remote;
    int fd;
};

static int take_of_member(void *context, uint64_t offset, struct text bytes, struct error *error)
{
    const struct member *member = context;
    if (remote_write_at(member->fd, offset, bytes, error) < 0)
        return -1;
    struct folder *folder = member->folder;
    struct remote *remote = folder->remote;
    pthread_mutex_lock(remote->mutex);
    const bool is_failed = folder->is_failed;
    folder->done_bytes += bytes.size;
    if (remote->options.on_progress && !is_failed)
        remote->options.on_progress(remote->options.context, folder->done_bytes,
                                    folder->listing->total_bytes);
    pthread_mutex_unlock(remote->mutex);
    return is_failed ? error_set(error, ERROR_CONFLICT, "another file failed") : 0;
}

static int restart_member(void *context, struct error *error)
{
    const struct member *member = context;
    return ftruncate(member->fd, 0) == 0 ? 0 : error_set_errno(error, errno, "empty the file");
}

/* The folders on its way, and the file itself. */
static int create_file(const char *folder, struct text name, int *out_fd, struct error *error)
{
    char path[4096];
    const int length = snprintf(path, sizeof(path), "%s/" TEXT_FORMAT, folder, TEXT_ARGS(name));
    if (length < 0 || length >= (int)sizeof(path))
        return error_set(error, ERROR_INVALID, "a file's name is too long");
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make the folder \"%.100s\"", path);
        *slash = '/';
    }
    *out_fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *out_fd < 0 ? error_set_errno(error, errno, "make the file \"%.100s\"", path) : 0;
}

static int fetch_member(struct folder *folder, struct http_session *session,
                        const struct remote_entry *entry, struct error *error)
{
    AUTO_FD int fd = -1;
    char address[PLACE_SIZE_MAX + 1];
    struct member member = {.folder = folder, .remote = *folder->remote};
    const struct place *place = &folder->remote->place;
    const size_t head = (size_t)(place->path.data + place->path.size - folder->remote->address);
    const int length = snprintf(address, sizeof(address), "%.*s" TEXT_FORMAT, (int)head,
                                folder->remote->address, TEXT_ARGS(entry->name));
    if (length < 0 || length >= (int)sizeof(address))
        return error_set(error, ERROR_INVALID, "the address of a file in it is too long");
    member.remote.address = address;
    member.remote.identity = (struct remote_identity){0};
    /* What is listed sums up to no more than the maximum; what then comes must not be more. */
    member.remote.options.size_max = entry->size;
    if (place_parse(text_of(address), &member.remote.place, error) < 0 ||
        create_file(folder->path, entry->name, &fd, error) < 0)
        return -1;
    member.fd = fd;
    struct remote_reading reading = remote_whole(&member.remote);
    reading.session = session;
    reading.sink =
        (struct remote_sink){.take = take_of_member, .restart = restart_member, .context = &member};
    const int result = remote_run(&reading, error);
    remote_credentials_wipe(&member.remote.credentials);
    return result;
}

static void *fetch_members(void *context)
{
    struct folder *folder = context;
    struct remote *remote = folder->remote;
    const struct remote_entry *entries =
        (const struct remote_entry *)(const void *)folder->listing->entries.data;
    const size_t count = folder->listing->entries.size / sizeof(*entries);
    AUTO(http_session) struct http_session *session = http_session_new();
    for (;;) {
        struct error error;
        pthread_mutex_lock(remote->mutex);
        const size_t index = folder->is_failed ? count : folder->next++;
        pthread_mutex_unlock(remote->mutex);
        if (index >= count)
            return NULL;
        if (fetch_member(folder, session, &entries[index], &error) == 0)
            continue;
        pthread_mutex_lock(remote->mutex);
        if (!folder->is_failed)
            folder->error = error;
        folder->is_failed = true;
        pthread_mutex_unlock(remote->mutex);
    }
}

int remote_fetch_folder(struct remote *remote, const char *folder, uint32_t files_max,
                        struct error *error)
{
    char name[PLACE_NAME_SIZE];
    AUTO(arena) struct arena *arena = arena_new(0);
    struct remote_reading reading = remote_whole(remote);
    struct remote_listing listing = {
        .arena = arena, .bytes_max = remote->options.size_max, .files_max = files_max};
    place_describe(text_of(remote->address), name);
    if (!remote->scheme->list || !place_is_folder(&remote->place) || remote->place.has_hash)
        return error_set(error, ERROR_INVALID,
                         "%s: only folders of s3:// and hdfs:// can be read, by an address that "
                         "ends in a slash and has no hash",
                         name);
    buffer_init(&listing.entries, (size_t)files_max * sizeof(struct remote_entry));
    int result = remote->scheme->list(&reading, &listing, error);
    if (result == 0 && listing.entries.size == 0)
        result = error_set(error, ERROR_NOT_FOUND, "%s: there are no files below it", name);
    if (result == 0) {
        struct folder fetching = {.remote = remote, .path = folder, .listing = &listing};
        remote_run_threads(remote, fetch_members, &fetching);
        if (fetching.is_failed) {
            *error = fetching.error;
            result = -1;
        }
    }
    buffer_done(&listing.entries);
    return result;
}
