/*
 * One import: what was sent is laid into a file, or it is fetched from where it lies, read by a
 * confined process, put into the store and made the account's; then its folder goes. What takes
 * long is a step on a thread of its own.
 */
#include "base/assert.h"
#include "base/file.h"
#include "base/log.h"
#include "sandbox/folder.h"
#include "sandbox/sandbox.h"
#include "server/import_fetch.h"
#include "server/import_runner.h"
#include "server/imports_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIFTED_FD_MIN = 10 };

static void step_done(void *context);
static void clean_up(struct import_order *order);

static void *run_step(void *context)
{
    struct import_order *order = context;
    pthread_setname_np(pthread_self(), "souk-import");
    order->has_failed = order->step(order, &order->step_error) < 0;
    loop_post(order->imports->server->loop, step_done, order);
    return NULL;
}

/* ---- How it ends ----------------------------------------------------------------------------- */

static void end_with(struct import_order *order, const struct error *error)
{
    struct server *server = order->imports->server;
    order->state = error ? IMPORT_FAILED : IMPORT_READY;
    order->ended_ms = clock_utc_ms(server->clock);
    if (error)
        order->problem = *error;
    import_product_close(&order->product);
    if (!order->is_gone)
        log_event(error && error->code == ERROR_UNAVAILABLE ? LOG_WARN : LOG_INFO, "import_ended",
                  "import=%" PRIu64 " account=%" PRIu64 " bytes=%" PRIu64 " error=\"%s\"",
                  order->id, order->wish.account, order->total_bytes, error ? error->message : "");
    clean_up(order);
}

static void start_step(struct import_order *order,
                       int (*step)(struct import_order *order, struct error *error),
                       void (*then)(struct import_order *order))
{
    struct error error;
    if (order->imports->is_stopping)
        return;
    order->step = step;
    order->then = then;
    order->has_failed = order->is_joined = false;
    const int result = pthread_create(&order->thread, NULL, run_step, order);
    order->has_thread = result == 0;
    if (result == 0)
        return;
    error_fill_errno(&error, result, "start a thread");
    if (order->ended_ms)
        imports_ended(order); /* what it leaves goes when the market starts next */
    else
        end_with(order, &error);
}

static void step_done(void *context)
{
    struct import_order *order = context;
    if (order->is_joined)
        return; /* the market is stopping */
    pthread_join(order->thread, NULL);
    order->has_thread = false;
    const bool is_stopped = atomic_load(&order->progress.is_stopped);
    if (is_stopped && !order->has_failed)
        error_fill(&order->step_error, ERROR_CONFLICT, "it was stopped");
    /* What goes at the end goes whatever happened. */
    if (order->ended_ms || (!order->has_failed && !is_stopped))
        order->then(order);
    else
        end_with(order, &order->step_error);
}

static int remove_folder(struct import_order *order, struct error *error)
{
    if (folder_remove(order->folder, error) == 0)
        return 0;
    log_event(LOG_WARN, "import_folder_stays", "import=%" PRIu64 " error=\"%s\"", order->id,
              error->message);
    return -1;
}

static void clean_up(struct import_order *order)
{
    start_step(order, remove_folder, imports_ended);
}

/* ---- Its steps ------------------------------------------------------------------------------- */

static void fetch_it(struct import_order *order);
static void read_it(struct import_order *order);
static int look_at_product(struct import_order *order, struct error *error);
static void check_room(struct import_order *order);

static const char *path_in(struct import_order *order, const char *name)
{
    return arena_format(order->arena, "%s/%s", order->folder, name);
}

static int make_folders(struct import_order *order, struct error *error)
{
    const struct text spec = order->wish.spec;
    return folder_make(order->folder, 0700, error) < 0 ||
                   folder_make(path_in(order, "data"), 0755, error) < 0 ||
                   folder_make(path_in(order, "work"), 0755, error) < 0 ||
                   file_replace(path_in(order, "work/job.json"), &spec, 1, 0644, error) < 0
               ? -1
               : 0;
}

static const char *data_path(struct import_order *order)
{
    return arena_format(order->arena, "%s/data/" TEXT_FORMAT, order->folder,
                        TEXT_ARGS(order->wish.name));
}

static int lay_out(struct import_order *order, struct error *error)
{
    if (make_folders(order, error) < 0)
        return -1;
    return import_lay_out(order->imports->server->blobs, &order->manifest, data_path(order),
                          &order->progress, error);
}

void import_order_begin(struct import_order *order, size_t slot)
{
    order->is_at_work = true;
    order->slot = slot;
    order->state = order->request.size ? IMPORT_FETCHING : IMPORT_READING;
    snprintf(order->folder, sizeof(order->folder), "%.*s/%" PRIu64, SERVER_PATH_SIZE - 32,
             order->imports->folder, order->id);
    if (order->request.size)
        start_step(order, make_folders, fetch_it);
    else
        start_step(order, lay_out, read_it);
}

/* ---- Fetching -------------------------------------------------------------------------------- */

static void look_at_progress(struct import_order *order)
{
    struct import_fetch_progress progress;
    if (order->progress_fd < 0 ||
        pread(order->progress_fd, &progress, sizeof(progress), 0) != sizeof(progress))
        return;
    atomic_store(&order->progress.done_bytes, progress.done_bytes);
    order->total_bytes = progress.total_bytes;
}

static void has_fetched(void *context, const struct error *error)
{
    struct import_order *order = context;
    struct stat status;
    struct error problem;
    look_at_progress(order);
    close(TAKE_FD(order->progress_fd));
    import_run_free(TAKE(order->run));
    if (!error && (stat(data_path(order), &status) < 0 || status.st_size == 0)) {
        error_fill(&problem, ERROR_INVALID, "what was fetched is empty");
        error = &problem;
    }
    if (error) {
        end_with(order, error);
        return;
    }
    if (!order->wish.is_folder_fetched)
        order->total_bytes = (uint64_t)status.st_size;
    atomic_store(&order->progress.done_bytes, order->total_bytes);
    order->state = IMPORT_READING;
    read_it(order);
}

/* Above the descriptors that the process gets by their numbers. */
static int lift_fd(int fd)
{
    const int lifted = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, LIFTED_FD_MIN);
    const int failure = errno;
    if (fd >= 0)
        close(fd);
    errno = failure;
    return lifted;
}

/* The secrets in it go with the process that gets it. */
static int open_request(struct import_order *order)
{
    AUTO_FD int fd = lift_fd(memfd_create("request", MFD_CLOEXEC));
    const bool is_written = fd >= 0 && pwrite(fd, order->request.data, order->request.size, 0) ==
                                           (ssize_t)order->request.size;
    sodium_memzero(order->request.data, order->request.size);
    buffer_clear(&order->request);
    return is_written ? TAKE_FD(fd) : -1;
}

/* A folder belongs to whoever fetches, who has no other way to it. */
static int open_target(struct import_order *order)
{
    const char *path = data_path(order);
    if (!order->wish.is_folder_fetched)
        return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (mkdir(path, 0755) < 0 || (geteuid() == 0 && chown(path, SANDBOX_USER, SANDBOX_USER) < 0))
        return -1;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int start_fetch(struct import_order *order, struct error *error)
{
    static const char *const no_more[] = {NULL};
    AUTO_FD int request_fd = open_request(order);
    AUTO_FD int file_fd = lift_fd(open_target(order));
    order->progress_fd = lift_fd(memfd_create("progress", MFD_CLOEXEC));
    if (request_fd < 0 || file_fd < 0 || order->progress_fd < 0)
        return error_set_errno(error, errno, "make a file for what is fetched");
    const struct import_run_options options = {
        .command = "import-fetch",
        .argv = no_more,
        .stdin_fd = request_fd,
        .fds = {file_fd, order->progress_fd},
        .on_done = has_fetched,
        .context = order,
    };
    return import_run_start(order->imports->server, &options, &order->run, error);
}

static void fetch_it(struct import_order *order)
{
    struct error error;
    if (start_fetch(order, &error) < 0)
        end_with(order, &error);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void has_read(void *context, const struct error *error)
{
    struct import_order *order = context;
    import_run_free(TAKE(order->run));
    if (error)
        end_with(order, error);
    else
        start_step(order, look_at_product, check_room);
}

static void read_it(struct import_order *order)
{
    const struct imports *imports = order->imports;
    struct error error;
    const char *state = arena_format(order->arena, "%s/state-%zu", imports->folder, order->slot);
    const char *name = arena_copy_string(order->arena, order->wish.name);
    const char *most = arena_format(order->arena, "%" PRIu64, imports_size_max(imports));
    const char *reading[] = {
        state, order->folder, "read", name, order->is_folder ? "folder" : "file", most, NULL,
    };
    const char *packing[] = {state, order->folder, "mount", name, most, NULL};
    const struct import_run_options options = {
        .command = "import-run",
        .argv = order->wish.is_mount ? packing : reading,
        .on_done = has_read,
        .context = order,
    };
    if (import_run_start(imports->server, &options, &order->run, &error) < 0)
        end_with(order, &error);
}

static int look_at_product(struct import_order *order, struct error *error)
{
    const char *folder = path_in(order, "work/out");
    const uint64_t bytes_max = IMPORT_DISK_TIMES * imports_size_max(order->imports);
    return order->wish.is_mount
               ? import_product_read_mount(&order->product, folder, bytes_max, error)
               : import_product_read(&order->product, folder, order->wish.is_peer, bytes_max,
                                     error);
}

static int keep_product(struct import_order *order, struct error *error)
{
    return import_product_keep(&order->product, order->imports->server->blobs, &order->progress,
                               error);
}

static void hold_product(struct import_order *order);

static void product_held(void *context, const struct error *error)
{
    struct import_order *order = context;
    if (error)
        end_with(order, error);
    else
        hold_product(order);
}

/* Some at a time; a job that names them needs them all. */
static void hold_product(struct import_order *order)
{
    const struct import_product *product = &order->product;
    const struct holder holder = {.account = order->wish.account};
    const size_t left = product->chunk_count - order->held_count;
    const size_t count = left < HOLDINGS_ADD_MAX ? left : HOLDINGS_ADD_MAX;
    const struct holdings_chunk *chunks = product->chunks + order->held_count;
    order->held_count += count;
    if (count)
        holdings_add_all(order->imports->server->holdings, holder, chunks, count, product_held,
                         order);
    else
        end_with(order, NULL);
}

static void check_room(struct import_order *order)
{
    const struct import_product *product = &order->product;
    struct error error;
    uint64_t missing_bytes;
    if (holdings_check_room_of(order->imports->server->holdings, order->wish.account,
                               product->chunks, product->chunk_count, &missing_bytes, &error) < 0)
        end_with(order, &error);
    else
        start_step(order, keep_product, hold_product);
}

/* ---- Stopping -------------------------------------------------------------------------------- */

void import_order_stop(struct import_order *order)
{
    struct error error;
    atomic_store(&order->progress.is_stopped, true);
    if (order->ended_ms || !order->run)
        return; /* a step or the store comes to its end first */
    import_run_free(TAKE(order->run));
    error_fill(&error, ERROR_CONFLICT, "it was stopped");
    end_with(order, &error);
}

void import_order_abandon(struct import_order *order)
{
    atomic_store(&order->progress.is_stopped, true);
    import_run_free(TAKE(order->run));
    if (order->has_thread && !order->is_joined)
        pthread_join(order->thread, NULL);
    order->is_joined = order->has_thread;
}

void import_order_free(struct import_order *order)
{
    import_product_done(&order->product);
    if (order->request.size)
        sodium_memzero(order->request.data, order->request.size);
    buffer_done(&order->request);
    auto_close_fd(&order->progress_fd);
    arena_free(order->arena);
    free(order);
}

/* ---- Showing --------------------------------------------------------------------------------- */

uint64_t import_order_id(const struct import_order *order)
{
    return order->id;
}

static void write_input(struct json_writer *writer, const struct job_input *input)
{
    struct blob_hash hash;
    char hex[BLOB_HASH_TEXT_SIZE];
    memcpy(hash.bytes, input->manifest, sizeof(hash.bytes));
    json_object_begin(writer);
    json_field_text(writer, "name", input->name);
    json_field_string(writer, "split", job_split_name(input->split));
    json_field_string(writer, "manifest", blob_hash_format(&hash, hex));
    json_field_u64(writer, "records", input->records);
    json_object_end(writer);
}

static void write_count(struct json_writer *writer, const char *key, uint64_t count)
{
    if (count)
        json_field_u64(writer, key, count);
}

static void write_number(struct json_writer *writer, const char *key, double value)
{
    if (value != 0)
        json_field_double(writer, key, value);
}

/* What the job's train gets of it. */
static void write_train(struct json_writer *writer, const struct job_train *train)
{
    json_object_begin(writer);
    json_field_text(writer, "data", train->data);
    write_count(writer, "channels", train->channels);
    write_count(writer, "height", train->height);
    write_count(writer, "features", train->features);
    write_count(writer, "vocabulary", train->vocabulary);
    write_count(writer, "classes", train->classes);
    write_number(writer, "mean", train->mean);
    write_number(writer, "deviation", train->deviation);
    write_number(writer, "target_deviation", train->target_deviation);
    json_object_end(writer);
}

static void write_inputs(struct json_writer *writer, const struct import_product *product)
{
    json_key(writer, "inputs");
    json_array_begin(writer);
    for (size_t i = product->input_first; i < JOB_PARTS_MAX; i++)
        write_input(writer, &product->inputs[i]);
    json_array_end(writer);
}

static void write_mount(struct json_writer *writer, const struct import_product *product)
{
    write_inputs(writer, product);
    json_key(writer, "mount");
    json_object_begin(writer);
    json_field_u64(writer, "files", product->mount_files);
    json_field_u64(writer, "parts", product->mount_parts);
    json_object_end(writer);
}

static void write_product(struct json_writer *writer, const struct import_product *product)
{
    json_field_u64(writer, "records", product->inputs[DATASET_TRAIN_IMAGES].records);
    json_field_u64(writer, "test_records", product->inputs[DATASET_TEST_IMAGES].records);
    write_inputs(writer, product);
    json_key(writer, "train");
    write_train(writer, &product->train);
    json_key(writer, "classes");
    import_classes_write(writer, &product->classes);
}

void import_order_write(struct import_order *order, struct json_writer *writer)
{
    static const char *const states[IMPORT_STATE_COUNT] = {"waiting", "fetching", "reading",
                                                           "ready", "failed"};
    look_at_progress(order);
    json_object_begin(writer);
    json_field_u64(writer, "id", order->id);
    json_field_text(writer, "name", order->wish.name);
    json_field_string(writer, "state", states[order->state]);
    json_field_u64(writer, "done_bytes", atomic_load(&order->progress.done_bytes));
    json_field_u64(writer, "total_bytes", order->total_bytes);
    if (order->state == IMPORT_FAILED)
        json_field_string(writer, "problem", order->problem.message);
    if (order->state == IMPORT_READY)
        (order->product.is_mount ? write_mount : write_product)(writer, &order->product);
    json_object_end(writer);
}
