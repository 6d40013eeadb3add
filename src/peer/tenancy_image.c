/*
 * What a tenancy brings to run in, an image or packages: found in the cache, or unpacked in a
 * sandbox of its own before the lease's starts. What unpacks it is our program and the machine's
 * pip, but what they read is a stranger's.
 *
 * An image unpacks itself within its bounds; packages are tenancy_packages.c's.
 */
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PYTHON "/usr/bin/python3"

void tenancy_cache_folder(const struct tenancy *tenancy, char out[PATH_MAX])
{
    /* STATE/leases/LEASE-FENCE */
    snprintf(out, PATH_MAX, "%.4000s/../../images", tenancy->host->folder);
}

void tenancy_unpack_folder(const struct tenancy *tenancy, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.4000s/image", tenancy->host->folder);
}

static bool has_wheels(const struct tenancy *tenancy)
{
    return tenancy->document.has_wheels;
}

const struct lease_data *tenancy_brought_data(const struct tenancy *tenancy)
{
    return has_wheels(tenancy) ? lease_document_wheels(&tenancy->document)
                               : lease_document_image(&tenancy->document);
}

static const char *brought_name(const struct tenancy *tenancy)
{
    return has_wheels(tenancy) ? "the packages" : "the image";
}

/* An image is its archive. Packages are theirs, and the Python that they were installed for. */
static int find_key(struct tenancy *tenancy, struct error *error)
{
    const struct lease_data *data = tenancy_brought_data(tenancy);
    memcpy(tenancy->image_key, data->manifest, sizeof(tenancy->image_key));
    if (!has_wheels(tenancy))
        return 0;
    char python[PATH_MAX];
    struct stat status;
    if (!realpath(PYTHON, python) || stat(python, &status) < 0)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the packages: this machine has no " PYTHON
                         " (Debian: apt install python3 python3-pip)");
    char words[PATH_MAX + 128];
    const int size = snprintf(words, sizeof(words), "packages %s %jd %jd", python,
                              (intmax_t)status.st_size, (intmax_t)status.st_mtim.tv_sec);
    crypto_generichash_state hash;
    crypto_generichash_init(&hash, NULL, 0, sizeof(tenancy->image_key));
    crypto_generichash_update(&hash, data->manifest, sizeof(data->manifest));
    crypto_generichash_update(&hash, (const unsigned char *)words, (unsigned long long)size);
    crypto_generichash_final(&hash, tenancy->image_key, sizeof(tenancy->image_key));
    return 0;
}

int tenancy_find_image(struct tenancy *tenancy, struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    const struct lease_data *brought = tenancy_brought_data(tenancy);
    char cache[PATH_MAX];
    bool is_there = false;
    tenancy->image.fd = -1;
    tenancy->wanted_data = document->data;
    tenancy->wanted_count = document->data_count;
    if (!brought)
        return 0;
    tenancy_cache_folder(tenancy, cache);
    if (find_key(tenancy, error) < 0 ||
        image_cache_take(cache, tenancy->image_key, &tenancy->image, &is_there, error) < 0)
        return -1;
    tenancy->needs_image = !is_there;
    if (!is_there)
        return 0;
    struct lease_data *others = arena_alloc(tenancy->arena, document->data_count * sizeof(*others));
    size_t count = 0;
    for (size_t i = 0; i < document->data_count; i++)
        if (&document->data[i] != brought)
            others[count++] = document->data[i];
    tenancy->wanted_data = others;
    tenancy->wanted_count = count;
    return 0;
}

/* ---- Unpacking ------------------------------------------------------------------------------- */

/* What it said, if it failed: a line for the borrower; behind it, of what fetches, one for the
 * owner alone. */
static void read_words(struct tenancy *tenancy, struct error *error)
{
    char words[512];
    const ssize_t size = read(tenancy->unpack_fd, words, sizeof(words) - 1);
    words[size > 0 ? size : 0] = '\0';
    char *rest = words + strcspn(words, "\n");
    if (tenancy->step == TENANCY_STEP_FETCH && rest[0] && rest[1]) {
        rest[1 + strcspn(rest + 1, "\n")] = '\0';
        log_event(LOG_WARN, "packages_not_fetched", "lease=%" PRIu64 " reason=\"%s\"",
                  tenancy->document.lease, rest + 1);
    }
    rest[0] = '\0';
    error_set(error, ERROR_REFUSED, "%s: %.219s", brought_name(tenancy),
              words[0]                         ? words
              : tenancy->exit.is_out_of_memory ? "unpacking them took more memory than was leased"
                                               : "unpacking was cut off");
}

int tenancy_remove_archive(struct tenancy *tenancy, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/%s", tenancy->data_folder,
             tenancy_brought_data(tenancy)->name);
    if (unlink(path) < 0)
        return error_set_errno(error, errno, "remove \"%s\"", path);
    tenancy->needs_image = false;
    return 0;
}

static int keep_image(struct tenancy *tenancy, struct error *error)
{
    static const char *const passing[] = {"wheels", "fetch"};
    char folder[PATH_MAX], cache[PATH_MAX], path[PATH_MAX];
    tenancy_unpack_folder(tenancy, folder);
    tenancy_cache_folder(tenancy, cache);
    if (tenancy->exit.code != 0) {
        read_words(tenancy, error);
        tenancy->exit = (struct sandbox_exit){0};
        return -1;
    }
    if (has_wheels(tenancy))
        tenancy_keep_wheels(tenancy);
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++) {
        snprintf(path, sizeof(path), "%.4000s/%s", folder, passing[i]);
        if (folder_remove(path, error) < 0)
            return error_wrap(error, "%s", brought_name(tenancy));
    }
    if (image_cache_keep(cache, tenancy->image_key,
                         has_wheels(tenancy) ? IMAGE_KIND_PACKAGES : IMAGE_KIND_IMAGE, folder,
                         tenancy->host->image_bytes, &tenancy->image, error) < 0)
        return error_wrap(error, "%s", brought_name(tenancy));
    return tenancy_remove_archive(tenancy, error);
}

void tenancy_begin_in_image(struct tenancy *tenancy)
{
    struct error error;
    if (tenancy_begin_child(tenancy, &error) < 0)
        tenancy_fail(tenancy, &error);
    else
        tenancy_send_config(tenancy);
}

static void tenancy_on_unpacked(void *context, uint32_t events)
{
    struct tenancy *tenancy = context;
    struct error error;
    (void)events;
    if (!sandbox_reap(tenancy->sandbox, &tenancy->exit))
        return;
    tenancy->has_exited = true;
    loop_timer_stop(tenancy->look_timer);
    loop_watch_free(TAKE(tenancy->exit_watch));
    sandbox_free(TAKE(tenancy->sandbox));
    const bool is_wanted = !tenancy->has_failed && !tenancy->is_stop_wanted;
    if (is_wanted && tenancy->step != TENANCY_STEP_LAST && tenancy->exit.code == 0) {
        close(TAKE_FD(tenancy->unpack_fd));
        tenancy_continue_packages(tenancy);
        return;
    }
    const bool is_kept = is_wanted && keep_image(tenancy, &error) == 0;
    if (tenancy->reserve_fd >= 0)
        close(TAKE_FD(tenancy->reserve_fd));
    if (is_kept) {
        log_event(LOG_INFO, has_wheels(tenancy) ? "packages_installed" : "image_unpacked",
                  "lease=%" PRIu64, tenancy->document.lease);
        tenancy_pause_logs(tenancy);
        tenancy_begin_in_image(tenancy);
    } else {
        if (tenancy->has_printed)
            tenancy_end_logs(tenancy);
        if (is_wanted)
            tenancy_fail(tenancy, &error);
    }
    close(TAKE_FD(tenancy->unpack_fd));
    tenancy_check_end(tenancy);
}

int tenancy_start_unpacking(struct tenancy *tenancy, struct sandbox_options *options,
                            struct error *error)
{
    const struct lease_document *document = &tenancy->document;
    char name[64];
    int fds[2];
    snprintf(name, sizeof(name), "lease-%" PRIu64 "-%" PRIu64, document->lease, document->fence);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    tenancy->unpack_fd = fds[0];
    AUTO_FD int words_fd = fds[1];
    if (fcntl(tenancy->unpack_fd, F_SETFL, O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "set up a pipe");
    options->name = name;
    options->cpu_milli = document->cores_milli;
    options->memory_bytes = document->ram_bytes;
    options->pids_max = TENANCY_PIDS_LEAST;
    options->disk_bytes = (int64_t)tenancy->host->image_bytes;
    options->control_fd = -1;
    options->stdout_fd = words_fd;
    if (options->stderr_fd < 0)
        options->stderr_fd = words_fd;
    if (sandbox_start(tenancy->host->sandboxes, options, &tenancy->sandbox, error) < 0)
        return -1;
    tenancy->has_exited = false;
    tenancy_keep_yield(tenancy);
    return loop_watch_open(tenancy->host->loop, sandbox_pidfd(tenancy->sandbox), LOOP_READ,
                           tenancy_on_unpacked, tenancy, &tenancy->exit_watch, error);
}

static int unpack_image(struct tenancy *tenancy, struct error *error)
{
    char folder[PATH_MAX], bytes[24], files[24], path[96];
    tenancy_unpack_folder(tenancy, folder);
    snprintf(bytes, sizeof(bytes), "%" PRIu64, tenancy->host->image_bytes);
    snprintf(files, sizeof(files), "%d", TENANCY_IMAGE_FILES_MAX);
    snprintf(path, sizeof(path), "/data/%s", tenancy_brought_data(tenancy)->name);
    if (folder_make(folder, 0755, error) < 0)
        return -1;
    const char *const argv[] = {"/souk", "image-unpack", path, bytes, files, NULL};
    const struct sandbox_mount mounts[] = {{folder, "/image", .is_writable = true},
                                           {tenancy->data_folder, "/data", .is_writable = false}};
    struct sandbox_options options = {
        .argv = argv, .mounts = mounts, .mount_count = 2, .working_dir = "/image", .stderr_fd = -1};
    return tenancy_start_unpacking(tenancy, &options, error);
}

int tenancy_unpack_image(struct tenancy *tenancy, struct error *error)
{
    return has_wheels(tenancy) ? tenancy_install_packages(tenancy, error)
                               : unpack_image(tenancy, error);
}

void tenancy_free_image(struct tenancy *tenancy)
{
    if (tenancy->unpack_fd >= 0)
        close(TAKE_FD(tenancy->unpack_fd));
    if (tenancy->reserve_fd >= 0)
        close(TAKE_FD(tenancy->reserve_fd));
    image_hold_release(&tenancy->image);
}
