#include "server/download.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/manifest.h"

#include <inttypes.h>
#include <stdlib.h>

struct download {
    struct downloads *downloads;
    struct list_node node;
    struct blob_store *blobs;
    uint64_t account;
    uint64_t size_bytes;
    struct buffer chunk; /* the one being sent */
    size_t sent;         /* of it */
    size_t next_index;
    size_t chunk_count;
    struct manifest_chunk chunks[];
};

void downloads_init(struct downloads *downloads)
{
    list_init(&downloads->open);
    downloads->count = 0;
}

static size_t count_of(const struct downloads *downloads, uint64_t account)
{
    size_t count = 0;
    LIST_EACH(&downloads->open, node)
    count += LIST_ITEM(node, struct download, node)->account == account;
    return count;
}

static int next_chunk(struct download *download, struct error *error)
{
    ASSERT(download->next_index < download->chunk_count);
    const struct manifest_chunk *described = &download->chunks[download->next_index++];
    buffer_clear(&download->chunk);
    download->sent = 0;
    if (blob_store_read(download->blobs, &described->hash, &download->chunk, error) < 0)
        return -1;
    if (download->chunk.size != described->size_bytes)
        return error_set(error, ERROR_CORRUPT, "a chunk is not as large as its manifest says");
    return 0;
}

static ssize_t download_read(void *context, char *out, size_t size)
{
    struct download *download = context;
    struct error error;
    if (download->sent == download->chunk.size && next_chunk(download, &error) < 0) {
        log_event(LOG_WARN, "download_cut_off", "account=%" PRIu64 " error=\"%s\"",
                  download->account, error.message);
        return -1;
    }
    const size_t left = download->chunk.size - download->sent;
    const size_t taken = left < size ? left : size;
    memcpy(out, download->chunk.data + download->sent, taken);
    download->sent += taken;
    return (ssize_t)taken;
}

static void download_free(void *context)
{
    struct download *download = context;
    list_remove(&download->node);
    download->downloads->count--;
    buffer_done(&download->chunk);
    free(download);
}

static int find_chunks(const struct download_options *options, struct download **out_download,
                       struct error *error)
{
    /* Not the request's: that one lives as long as the reply. */
    AUTO(arena) struct arena *arena = arena_new(0);
    struct manifest manifest;
    if (manifest_get(arena, options->blobs, &options->manifest, &manifest, error) < 0)
        return -1;
    if (manifest.size_bytes != options->size_bytes)
        return error_set(error, ERROR_CORRUPT, "the file is not as large as it was");
    const size_t count = manifest.chunks.count;
    for (size_t i = 0; i < count; i++)
        if (options->check(options->context, &manifest_chunk(&manifest, i)->hash, error) < 0)
            return -1;
    struct download *download =
        calloc(1, sizeof(*download) + count * sizeof(struct manifest_chunk));
    if (!download)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a download");
    download->blobs = options->blobs;
    download->account = options->account;
    download->size_bytes = manifest.size_bytes;
    download->chunk_count = count;
    if (count)
        memcpy(download->chunks, manifest.chunks.items, count * sizeof(struct manifest_chunk));
    buffer_init(&download->chunk, BLOB_BYTES_MAX);
    *out_download = download;
    return 0;
}

/* True: the request was answered so. */
static bool refuse_too_many(const struct downloads *downloads, struct http_request *request,
                            uint64_t account)
{
    struct error error;
    struct arena *arena = http_request_arena(request);
    const bool has_many = count_of(downloads, account) >= DOWNLOAD_ACCOUNT_MAX;
    if (!has_many && downloads->count < DOWNLOAD_MAX)
        return false;
    if (http_reply_header(request, "Retry-After", arena_format(arena, "%d", DOWNLOAD_RETRY_S),
                          &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
    if (has_many)
        http_reply_problem(request, 429, "rate_limited",
                           arena_format(arena,
                                        "this account has %d downloads open already: let one "
                                        "end, or try again in %d s",
                                        DOWNLOAD_ACCOUNT_MAX, DOWNLOAD_RETRY_S));
    else
        http_reply_problem(request, 503, "unavailable",
                           arena_format(arena, "%d downloads are open already: try again in %d s",
                                        DOWNLOAD_MAX, DOWNLOAD_RETRY_S));
    return true;
}

int download_start(struct downloads *downloads, struct http_request *request,
                   const struct download_options *options, struct error *error)
{
    struct download *download = NULL;
    if (refuse_too_many(downloads, request, options->account))
        return 0;
    if (find_chunks(options, &download, error) < 0)
        return -1;
    download->downloads = downloads;
    list_append(&downloads->open, &download->node);
    downloads->count++;
    const struct http_source source = {
        .read = download_read, .free = download_free, .context = download};
    http_reply_source_take(request, 200, "application/octet-stream", download->size_bytes, &source);
    return 0;
}
