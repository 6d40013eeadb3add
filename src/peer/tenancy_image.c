/*
 * The image of a tenancy: found in the cache, or unpacked in a sandbox of its own before the
 * lease's starts. What unpacks it is our program, but what it reads is a stranger's.
 */
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

enum { IMAGE_FILES_MAX = 500000 };

static void images_folder(const struct tenancy *tenancy, char out[PATH_MAX])
{
    /* STATE/leases/LEASE-FENCE */
    snprintf(out, PATH_MAX, "%.4000s/../../images", tenancy->host->folder);
}

static void unpack_folder(const struct tenancy *tenancy, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.4000s/image", tenancy->host->folder);
}

int tenancy_find_image(struct tenancy *tenancy, struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    const struct lease_data *image = lease_document_image(document);
    char cache[PATH_MAX];
    bool is_there = false;
    tenancy->image.fd = -1;
    tenancy->wanted_data = document->data;
    tenancy->wanted_count = document->data_count;
    if (!image)
        return 0;
    images_folder(tenancy, cache);
    if (image_cache_take(cache, image->manifest, &tenancy->image, &is_there, error) < 0)
        return -1;
    tenancy->needs_image = !is_there;
    if (!is_there)
        return 0;
    struct lease_data *others = arena_alloc(tenancy->arena, document->data_count * sizeof(*others));
    size_t count = 0;
    for (size_t i = 0; i < document->data_count; i++)
        if (&document->data[i] != image)
            others[count++] = document->data[i];
    tenancy->wanted_data = others;
    tenancy->wanted_count = count;
    return 0;
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* What it said, if it failed. */
static void read_words(struct tenancy *tenancy, struct error *error)
{
    char words[200];
    const ssize_t size = read(tenancy->unpack_fd, words, sizeof(words) - 1);
    words[size > 0 ? size : 0] = '\0';
    words[strcspn(words, "\n")] = '\0';
    error_set(error, ERROR_REFUSED, "the image: %s",
              words[0]                         ? words
              : tenancy->exit.is_out_of_memory ? "unpacking it took more memory than was leased"
                                               : "unpacking it was cut off");
}

static int keep_image(struct tenancy *tenancy, struct error *error)
{
    const struct lease_data *image = lease_document_image(&tenancy->document);
    char folder[PATH_MAX], cache[PATH_MAX], archive[PATH_MAX];
    unpack_folder(tenancy, folder);
    images_folder(tenancy, cache);
    if (tenancy->exit.code != 0) {
        read_words(tenancy, error);
        tenancy->exit = (struct sandbox_exit){0};
        return -1;
    }
    if (image_cache_keep(cache, image->manifest, folder, tenancy->host->image_bytes,
                         &tenancy->image, error) < 0)
        return error_wrap(error, "the image");
    snprintf(archive, sizeof(archive), "%.4000s/%s", tenancy->data_folder, image->name);
    if (unlink(archive) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", archive);
    tenancy->needs_image = false;
    return 0;
}

static void tenancy_on_unpacked(void *context, uint32_t events)
{
    struct tenancy *tenancy = context;
    struct error error;
    (void)events;
    if (!sandbox_reap(tenancy->sandbox, &tenancy->exit))
        return;
    tenancy->has_exited = true;
    loop_watch_free(TAKE(tenancy->exit_watch));
    sandbox_free(TAKE(tenancy->sandbox));
    int result = 0;
    if (!tenancy->has_failed && !tenancy->is_stop_wanted) {
        result = keep_image(tenancy, &error);
        if (result == 0) {
            log_event(LOG_INFO, "image_unpacked", "lease=%" PRIu64, tenancy->document.lease);
            result = tenancy_begin_child(tenancy, &error);
        }
        if (result == 0)
            tenancy_send_config(tenancy);
        else
            tenancy_fail(tenancy, &error);
    }
    close(TAKE_FD(tenancy->unpack_fd));
    tenancy_check_end(tenancy);
}

int tenancy_unpack_image(struct tenancy *tenancy, struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    char folder[PATH_MAX], name[64], bytes[24], files[24], path[96];
    int fds[2];
    unpack_folder(tenancy, folder);
    snprintf(name, sizeof(name), "lease-%" PRIu64 "-%" PRIu64, document->lease, document->fence);
    snprintf(bytes, sizeof(bytes), "%" PRIu64, tenancy->host->image_bytes);
    snprintf(files, sizeof(files), "%d", IMAGE_FILES_MAX);
    snprintf(path, sizeof(path), "/data/%s", lease_document_image(document)->name);
    if (folder_make(folder, 0755, error) < 0)
        return -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    tenancy->unpack_fd = fds[0];
    AUTO_FD int words_fd = fds[1];
    if (fcntl(tenancy->unpack_fd, F_SETFL, O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "set up a pipe");
    const char *const argv[] = {"/souk", "image-unpack", path, bytes, files, NULL};
    const struct sandbox_mount mounts[] = {{folder, "/image", .is_writable = true},
                                           {tenancy->data_folder, "/data", .is_writable = false}};
    const struct sandbox_options options = {.name = name,
                                            .argv = argv,
                                            .mounts = mounts,
                                            .mount_count = 2,
                                            .working_dir = "/image",
                                            .cpu_milli = document->cores_milli,
                                            .memory_bytes = document->ram_bytes,
                                            .pids_max = TENANCY_PIDS_MAX,
                                            .disk_bytes = (int64_t)tenancy->host->image_bytes,
                                            .control_fd = -1,
                                            .stdout_fd = words_fd,
                                            .stderr_fd = words_fd};
    if (sandbox_start(tenancy->host->sandboxes, &options, &tenancy->sandbox, error) < 0)
        return -1;
    tenancy->has_exited = false;
    tenancy_keep_yield(tenancy);
    return loop_watch_open(tenancy->host->loop, sandbox_pidfd(tenancy->sandbox), LOOP_READ,
                           tenancy_on_unpacked, tenancy, &tenancy->exit_watch, error);
}

void tenancy_free_image(struct tenancy *tenancy)
{
    if (tenancy->unpack_fd >= 0)
        close(TAKE_FD(tenancy->unpack_fd));
    image_hold_release(&tenancy->image);
}
