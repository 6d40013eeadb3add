#include "peer/upload.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/blob_pins.h"
#include "blob/manifest.h"
#include "blob/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct upload {
    struct upload_options options;
    int fd;               /* of the file; -1 once it is read */
    struct arena *arena;  /* of one chunk */
    struct buffer chunks; /* of struct manifest_chunk */
    struct manifest manifest;
    struct upload_result result;
    size_t next_index;      /* of the chunk to send; the last is the manifest itself */
    struct blob_pins *pins; /* its chunks, until they are sent */
    struct chunk_patience patience;
    struct error trouble; /* of the last try that failed; code NONE: none */
    struct http_transfer *transfer;
    struct loop_timer *step;
};

/* The process in the sandbox owns the folder: what lies there may be a link or a pipe. */
static int upload_open_file(const struct upload_options *options, int *out_fd, struct error *error)
{
    AUTO_FD int folder = open(options->folder, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder < 0)
        return error_set_errno(error, errno, "open \"%s\"", options->folder);
    const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    AUTO_FD int fd = (int)syscall(SYS_openat2, folder, options->name, &how, sizeof(how));
    if (fd < 0)
        return error_set_errno(error, errno, "open the result \"%s\"", options->name);
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(error, errno, "look at the result \"%s\"", options->name);
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_REFUSED, "the result \"%s\" is not a file", options->name);
    *out_fd = TAKE_FD(fd);
    return 0;
}

/* Chunks of results make room for themselves as fetched ones do. */
static int upload_put(void *context, const struct blob_hash *hash, struct text bytes,
                      struct error *error)
{
    struct upload *upload = context;
    struct blob_store *store = upload->options.access.store;
    struct blob_hash stored;
    if (blob_pins_add(upload->pins, hash, 1, error) == 0 &&
        blob_store_put(store, hash, bytes, &stored, error) == 0)
        return 0;
    if (error->code != ERROR_EXHAUSTED || chunk_make_room(store, error) < 0 ||
        blob_pins_add(upload->pins, hash, 1, error) < 0)
        return -1;
    return blob_store_put(store, hash, bytes, &stored, error);
}

/* A part of the file, one chunk long. */
struct upload_part {
    int fd;
    size_t left;
};

static int part_read(void *context, void *data, size_t size, size_t *out_size, struct error *error)
{
    struct upload_part *part = context;
    ssize_t got;
    do
        got = read(part->fd, data, size < part->left ? size : part->left);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set_errno(error, errno, "read");
    part->left -= (size_t)got;
    *out_size = (size_t)got;
    return 0;
}

static int upload_finish_manifest(struct upload *upload, struct error *error)
{
    upload->manifest.header = TEXT("");
    upload->manifest.record_bytes =
        upload->manifest.size_bytes > 0; /* so it can be a lease's data */
    upload->manifest.record_count = upload->manifest.size_bytes;
    upload->manifest.chunks.items = upload->chunks.data;
    upload->manifest.chunks.count = upload->chunks.size / sizeof(struct manifest_chunk);
    struct buffer encoded AUTO_BUFFER;
    buffer_init(&encoded, BLOB_BYTES_MAX);
    if (manifest_check(&upload->manifest, error) < 0 ||
        manifest_encode(&upload->manifest, &encoded, error) < 0)
        return -1;
    blob_hash_of(encoded.data, encoded.size, &upload->result.manifest);
    if (upload_put(upload, &upload->result.manifest, buffer_text(&encoded), error) < 0)
        return -1;
    upload->result.size_bytes = upload->manifest.size_bytes;
    close(TAKE_FD(upload->fd));
    return 0;
}

/* One chunk a turn: the loop goes on while a large file is read. */
static int upload_pack(struct upload *upload, struct error *error)
{
    struct upload_part part = {upload->fd, BLOB_BYTES_MAX};
    const struct pack_options options = {0};
    const struct pack_source source = {part_read, &part};
    const struct pack_sink sink = {.put = upload_put, .context = upload};
    struct manifest packed;
    arena_clear(upload->arena);
    if (pack_stream(upload->arena, &options, &source, &sink, &packed, error) < 0)
        return -1;
    if (packed.size_bytes > upload->options.bytes_max - upload->manifest.size_bytes)
        return error_set(error, ERROR_EXHAUSTED, "it holds more than %" PRIu64 " bytes",
                         upload->options.bytes_max);
    upload->manifest.size_bytes += packed.size_bytes;
    if (packed.chunks.count > 0)
        buffer_append(&upload->chunks, packed.chunks.items,
                      packed.chunks.count * sizeof(struct manifest_chunk));
    if (buffer_check(&upload->chunks, error) < 0)
        return -1;
    return part.left > 0 ? upload_finish_manifest(upload, error) : 0;
}

static const struct blob_hash *upload_next(const struct upload *upload)
{
    return upload->next_index < upload->manifest.chunks.count
               ? &manifest_chunk(&upload->manifest, upload->next_index)->hash
               : &upload->result.manifest;
}

static void upload_on_reply(void *context, struct http_response *response,
                            const struct error *reason)
{
    struct upload *upload = context;
    struct error error;
    upload->transfer = NULL;
    const struct chunk_access *access = &upload->options.access;
    if (chunk_check_reply(access, response, reason, upload_next(upload), &error) == 0) {
        upload->next_index++;
        upload->patience.try_count = 0;
        upload->trouble = (struct error){0};
        loop_timer_start(upload->step, 0);
        return;
    }
    if (error.code != ERROR_UNAVAILABLE) {
        upload->options.callback(upload->options.context, NULL, &error);
        return;
    }
    upload->trouble = error;
    const int64_t wait_ms = chunk_patience_next_ms(&upload->patience, access, response);
    log_event(LOG_WARN, "result_waits", "wait_ms=%" PRId64 " error=\"%s\"", wait_ms, error.message);
    loop_timer_start(upload->step, wait_ms);
}

/* A chunk that was cut off is sent again from its start. */
static int upload_send(struct upload *upload, struct error *error)
{
    const struct blob_hash *hash = upload_next(upload);
    struct buffer bytes AUTO_BUFFER;
    struct buffer frame AUTO_BUFFER;
    buffer_init(&bytes, BLOB_BYTES_MAX);
    buffer_init(&frame, BLOB_BYTES_MAX);
    if (blob_store_read(upload->options.access.store, hash, &bytes, error) < 0)
        return -1;
    struct chunk_call call;
    chunk_call_init(&call, &upload->options.access, hash);
    chunk_call_add_header(&call, "Content-Type", "application/octet-stream");
    if (upload->options.is_checkpoint)
        chunk_call_add_header(&call, BLOB_CHECKPOINT_HEADER, "1");
    call.options.method = "PUT";
    call.options.body = buffer_text(&bytes);
    if (blob_encode(buffer_text(&bytes), &frame)) {
        chunk_call_add_header(&call, "Content-Encoding", blob_coding_name(BLOB_CODING_ZSTD));
        call.options.body = buffer_text(&frame);
    }
    return http_client_start(upload->options.access.client, &call.options, upload_on_reply, upload,
                             &upload->transfer, error);
}

const char *upload_trouble(const struct upload *upload)
{
    return upload->trouble.code != ERROR_NONE ? upload->trouble.message : NULL;
}

static void upload_on_step(void *context)
{
    struct upload *upload = context;
    struct error error;
    if (upload->fd >= 0) {
        if (upload_pack(upload, &error) == 0) {
            loop_timer_start(upload->step, 0);
            return;
        }
        upload->options.callback(upload->options.context, NULL, &error);
    } else if (upload->next_index > upload->manifest.chunks.count)
        upload->options.callback(upload->options.context, &upload->result, NULL);
    else if (upload_send(upload, &error) < 0)
        upload->options.callback(upload->options.context, NULL, &error);
}

int upload_start(const struct upload_options *options, struct upload **out_upload,
                 struct error *error)
{
    struct upload *new_upload = calloc(1, sizeof(*new_upload));
    ASSERT(new_upload);
    AUTO(upload) struct upload *upload = new_upload;
    upload->options = *options;
    upload->fd = -1;
    upload->arena = arena_new(0);
    buffer_init(&upload->chunks, MANIFEST_CHUNK_MAX * sizeof(struct manifest_chunk));
    upload->step = loop_timer_new(options->access.loop, upload_on_step, upload);
    chunk_patience_init(&upload->patience, &upload->result.manifest);
    if (upload_open_file(options, &upload->fd, error) < 0 ||
        blob_pins_open(options->access.store, &upload->pins, error) < 0)
        return -1;
    loop_timer_start(upload->step, 0);
    *out_upload = TAKE(upload);
    return 0;
}

void upload_free(struct upload *upload)
{
    if (!upload)
        return;
    if (upload->transfer)
        http_transfer_cancel(upload->transfer);
    if (upload->fd >= 0)
        close(upload->fd);
    loop_timer_free(upload->step);
    blob_pins_free(upload->pins);
    buffer_done(&upload->chunks);
    arena_free(upload->arena);
    free(upload);
}
