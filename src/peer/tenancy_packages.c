/*
 * The packages that a tenancy brings: one process takes their list out of their archive; what it
 * lists is fetched from the owner's index by one that has the machine's network and sees nothing
 * but the list; then all are installed by a third. All are confined, with the lease's share, and
 * only the second has a network.
 *
 * pip knows no bounds: what it has written is measured while it runs. Leases that come together
 * with the same packages have them installed once: one does, the others wait for it.
 */
#include "base/file.h"
#include "peer/tenancy_internal.h"
#include "peer/wheel_cache.h"

#include <inttypes.h>
#include <string.h>

enum { LOOK_MS = 500, ENVIRONMENT_MAX = 16 };

/* What is common to them: folders below the one that is unpacked into, made anew. */
struct packages_start {
    char fetch[PATH_MAX], brought[PATH_MAX], list[PATH_MAX], pip[PATH_MAX], fetched[PATH_MAX];
    char cached[PATH_MAX], wheels[PATH_MAX], root[PATH_MAX];
    char archive[96], bytes[24];
};

static void find_start(const struct tenancy *tenancy, struct packages_start *out)
{
    char folder[PATH_MAX];
    tenancy_unpack_folder(tenancy, folder);
    snprintf(out->fetch, sizeof(out->fetch), "%.4000s/fetch", folder);
    snprintf(out->brought, sizeof(out->brought), "%.4000s/fetch/brought", folder);
    snprintf(out->list, sizeof(out->list), "%.4000s/fetch/list", folder);
    snprintf(out->pip, sizeof(out->pip), "%.4000s/fetch/pip", folder);
    snprintf(out->fetched, sizeof(out->fetched), "%.4000s/fetch/pip/fetched", folder);
    snprintf(out->cached, sizeof(out->cached), "%.4000s/fetch/cached", folder);
    snprintf(out->wheels, sizeof(out->wheels), "%.4000s/wheels", folder);
    snprintf(out->root, sizeof(out->root), "%.4000s/root", folder);
    snprintf(out->archive, sizeof(out->archive), "/data/%s", tenancy_brought_data(tenancy)->name);
    snprintf(out->bytes, sizeof(out->bytes), "%" PRIu64, tenancy->host->image_bytes);
}

/* What pip finds in its environment; the last may be one more. */
static void fill_environment(const char *out[ENVIRONMENT_MAX], const char *more)
{
    static const char *const words[] = {"HOME=/wheels",
                                        "TMPDIR=/wheels",
                                        "LANG=C.UTF-8",
                                        "PATH=/usr/bin:/bin",
                                        "PIP_CONFIG_FILE=/dev/null",
                                        "PIP_DISABLE_PIP_VERSION_CHECK=1",
                                        "PIP_NO_CACHE_DIR=1",
                                        "PIP_NO_INPUT=1"};
    memcpy(out, words, sizeof(words));
    out[sizeof(words) / sizeof(*words)] = more;
    out[sizeof(words) / sizeof(*words) + (more != NULL)] = NULL;
}

/* Its words go to the lease's log. */
static int start_step(struct tenancy *tenancy, struct sandbox_options *options, struct error *error)
{
    AUTO_FD int log_fd = -1;
    if (tenancy_open_log(tenancy, TENANCY_STDERR, &log_fd, error) < 0)
        return -1;
    options->working_dir = "/wheels";
    options->stderr_fd = log_fd;
    if (tenancy_start_unpacking(tenancy, options, error) < 0)
        return -1;
    tenancy->has_printed = true;
    loop_timer_start(tenancy->look_timer, LOOK_MS);
    return 0;
}

static int list(struct tenancy *tenancy, struct error *error)
{
    struct packages_start start;
    const char *environment[ENVIRONMENT_MAX];
    find_start(tenancy, &start);
    fill_environment(environment, NULL);
    if (folder_make(start.fetch, 0755, error) < 0 || folder_make(start.brought, 0755, error) < 0 ||
        folder_make(start.list, 0755, error) < 0)
        return -1;
    const char *const argv[] = {"/souk", "packages-list", start.archive, start.bytes, NULL};
    const struct sandbox_mount mounts[] = {{start.brought, "/wheels", .is_writable = true},
                                           {start.list, "/list", .is_writable = true},
                                           {tenancy->data_folder, "/data", .is_writable = false}};
    struct sandbox_options options = {
        .argv = argv, .environment = environment, .mounts = mounts, .mount_count = 3};
    tenancy->step = TENANCY_STEP_LIST;
    return start_step(tenancy, &options, error);
}

/* What of the list is here already is shown to those that fetch and install. */
static int give_cached(struct tenancy *tenancy, const struct packages_start *start,
                       struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char path[PATH_MAX], cache[PATH_MAX];
    struct package_lock lock = {0};
    size_t count = 0;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PACKAGE_LOCK_SIZE_MAX);
    tenancy_cache_folder(tenancy, cache);
    snprintf(path, sizeof(path), "%.4000s/" PACKAGE_LOCK_FILE, start->list);
    const bool has_list = file_read(path, &json, error) == 0;
    if (!has_list && error->code != ERROR_NOT_FOUND)
        return -1;
    if ((has_list && package_lock_read(arena, buffer_text(&json), &lock, error) < 0) ||
        wheel_cache_give(cache, &lock, start->cached, &count, error) < 0)
        return error_wrap(error, "the packages");
    return 0;
}

static int fetch(struct tenancy *tenancy, struct error *error)
{
    struct packages_start start;
    char index[KEEPER_ADDRESS_MAX + 16];
    const char *environment[ENVIRONMENT_MAX];
    find_start(tenancy, &start);
    snprintf(index, sizeof(index), "PIP_INDEX_URL=%s", tenancy->host->index_url);
    fill_environment(environment, tenancy->host->index_url[0] ? index : NULL);
    if (folder_make(start.pip, 0755, error) < 0 || give_cached(tenancy, &start, error) < 0)
        return -1;
    const char *const argv[] = {"/souk", "packages-fetch", NULL};
    const struct sandbox_mount mounts[] = {{start.pip, "/wheels", .is_writable = true},
                                           {start.list, "/list", .is_writable = false},
                                           {start.cached, "/cached", .is_writable = false}};
    struct sandbox_options options = {.argv = argv,
                                      .environment = environment,
                                      .mounts = mounts,
                                      .mount_count = 3,
                                      .shares_network = true};
    tenancy->step = TENANCY_STEP_FETCH;
    return start_step(tenancy, &options, error);
}

static int install(struct tenancy *tenancy, struct error *error)
{
    struct packages_start start;
    const char *environment[ENVIRONMENT_MAX];
    find_start(tenancy, &start);
    fill_environment(environment, NULL);
    if (folder_make(start.root, 0755, error) < 0 || folder_make(start.wheels, 0755, error) < 0)
        return -1;
    const char *const argv[] = {"/souk", "packages-install", start.archive, start.bytes, NULL};
    const struct sandbox_mount mounts[] = {{start.wheels, "/wheels", .is_writable = true},
                                           {start.root, "/packages", .is_writable = true},
                                           {tenancy->data_folder, "/data", .is_writable = false},
                                           {start.fetched, "/fetched", .is_writable = false},
                                           {start.cached, "/cached", .is_writable = false}};
    struct sandbox_options options = {.argv = argv,
                                      .environment = environment,
                                      .mounts = mounts,
                                      .mount_count = tenancy->document.fetches_packages ? 5 : 3};
    tenancy->step = TENANCY_STEP_LAST;
    return start_step(tenancy, &options, error);
}

void tenancy_continue_packages(struct tenancy *tenancy)
{
    struct error error;
    tenancy_pause_logs(tenancy);
    if ((tenancy->step == TENANCY_STEP_LIST ? fetch : install)(tenancy, &error) < 0)
        tenancy_fail(tenancy, &error);
    tenancy_check_end(tenancy);
}

void tenancy_keep_wheels(const struct tenancy *tenancy)
{
    struct packages_start start;
    char cache[PATH_MAX];
    if (!tenancy->document.fetches_packages)
        return;
    find_start(tenancy, &start);
    tenancy_cache_folder(tenancy, cache);
    wheel_cache_keep(cache, start.fetched, tenancy->host->image_bytes);
}

static int begin(struct tenancy *tenancy, struct error *error)
{
    char folder[PATH_MAX];
    tenancy_unpack_folder(tenancy, folder);
    if (folder_make(folder, 0755, error) < 0)
        return -1;
    return tenancy->document.fetches_packages ? list(tenancy, error) : install(tenancy, error);
}

static int check_size(struct tenancy *tenancy, struct error *error)
{
    char folder[PATH_MAX];
    int64_t bytes = 0;
    tenancy_unpack_folder(tenancy, folder);
    if (folder_measure(folder, TENANCY_IMAGE_FILES_MAX, &bytes, error) < 0)
        return error->code == ERROR_EXHAUSTED ? error_wrap(error, "the packages") : 0;
    if ((uint64_t)bytes > tenancy->host->image_bytes)
        return error_set(error, ERROR_EXHAUSTED,
                         "the packages take more than the %" PRIu64
                         " MiB that are kept for images and packages here",
                         tenancy->host->image_bytes >> 20);
    return 0;
}

/* One installs, the others wait and look. */
int tenancy_install_packages(struct tenancy *tenancy, struct error *error)
{
    char cache[PATH_MAX];
    bool is_there = false;
    tenancy_cache_folder(tenancy, cache);
    if (image_cache_reserve(cache, tenancy->image_key, &tenancy->reserve_fd, error) < 0 ||
        image_cache_take(cache, tenancy->image_key, &tenancy->image, &is_there, error) < 0)
        return -1;
    if (is_there) {
        if (tenancy->reserve_fd >= 0)
            close(TAKE_FD(tenancy->reserve_fd));
        if (tenancy_remove_archive(tenancy, error) < 0)
            return -1;
        tenancy_begin_in_image(tenancy);
        return 0;
    }
    if (tenancy->reserve_fd >= 0)
        return begin(tenancy, error);
    loop_timer_start(tenancy->look_timer, LOOK_MS);
    return 0;
}

void tenancy_on_look(void *context)
{
    struct tenancy *tenancy = context;
    struct error error;
    if (tenancy->has_ended || tenancy->has_failed || tenancy->is_stop_wanted)
        return;
    if (!tenancy->sandbox) {
        if (tenancy_install_packages(tenancy, &error) < 0)
            tenancy_fail(tenancy, &error);
    } else if (check_size(tenancy, &error) < 0) {
        tenancy_fail(tenancy, &error);
    } else {
        loop_timer_start(tenancy->look_timer, LOOK_MS);
    }
}
