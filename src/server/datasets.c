#include "server/datasets.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/pack.h"
#include "server/holdings.h"
#include "server/server_internal.h"
#include "train/idx_reader.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 16 };

#define FILE_SIZE_MAX ((size_t)4 << 30)

struct waiter {
    struct waiter *next;
    uint64_t account;
    datasets_done *done;
    void *context;
};

/* One of the catalogue, as chunks of the market's store. */
struct copy {
    struct datasets *datasets;
    const struct dataset_entry *entry;
    char folder[PATH_MAX]; /* empty: where its package puts it */
    pthread_t thread;
    bool is_reading; /* the thread alone has what follows, but for the waiters */
    bool is_joined;
    bool is_read;
    struct error error;
    struct arena *arena;
    struct job_input inputs[DATASET_PART_COUNT];
    struct holdings_chunk *chunks; /* with the manifests */
    size_t chunk_count, chunk_capacity;
    struct waiter *waiters; /* while it is read */
};

struct datasets {
    struct server *server;
    struct copy copies[ENTRIES_MAX]; /* by the catalogue's order */
};

struct datasets *datasets_new(struct server *server)
{
    struct datasets *datasets = calloc(1, sizeof(*datasets));
    ASSERT(datasets && dataset_entry_count() <= ENTRIES_MAX);
    datasets->server = server;
    for (size_t i = 0; i < dataset_entry_count(); i++) {
        struct copy *copy = &datasets->copies[i];
        const char *folder = server->options.datasets_dir;
        copy->datasets = datasets;
        copy->entry = dataset_entry_at(i);
        if (folder && !copy->entry->folder &&
            snprintf(copy->folder, sizeof(copy->folder), "%s/%s", folder, copy->entry->name) >=
                (int)sizeof(copy->folder))
            copy->folder[0] = '\0';
    }
    return datasets;
}

static void forget_waiters(struct copy *copy)
{
    while (copy->waiters) {
        struct waiter *waiter = copy->waiters;
        copy->waiters = waiter->next;
        free(waiter);
    }
}

static void clear_copy(struct copy *copy)
{
    arena_free(copy->arena);
    free(copy->chunks);
    copy->arena = NULL;
    copy->chunks = NULL;
    copy->chunk_count = copy->chunk_capacity = 0;
    copy->is_read = false;
}

void datasets_stop(struct datasets *datasets)
{
    for (size_t i = 0; datasets && i < dataset_entry_count(); i++) {
        struct copy *copy = &datasets->copies[i];
        if (copy->is_reading && !copy->is_joined)
            pthread_join(copy->thread, NULL);
        copy->is_joined = copy->is_reading;
    }
}

void datasets_free(struct datasets *datasets)
{
    if (!datasets)
        return;
    for (size_t i = 0; i < dataset_entry_count(); i++) {
        forget_waiters(&datasets->copies[i]);
        clear_copy(&datasets->copies[i]);
    }
    free(datasets);
}

static const char *folder_of(const struct copy *copy)
{
    return copy->folder[0] ? copy->folder : NULL;
}

static struct copy *copy_of(struct datasets *datasets, const struct dataset_entry *entry)
{
    for (size_t i = 0; i < dataset_entry_count(); i++)
        if (datasets->copies[i].entry == entry)
            return &datasets->copies[i];
    UNREACHABLE("an entry that the catalogue does not have");
}

/* ---- Reading, on its own thread -------------------------------------------------------------- */

static void note_chunk(struct copy *copy, const struct blob_hash *hash, uint64_t size_bytes)
{
    if (copy->chunk_count == copy->chunk_capacity) {
        copy->chunk_capacity = copy->chunk_capacity ? 2 * copy->chunk_capacity : 32;
        copy->chunks = realloc(copy->chunks, copy->chunk_capacity * sizeof(*copy->chunks));
        ASSERT(copy->chunks);
    }
    copy->chunks[copy->chunk_count++] = (struct holdings_chunk){*hash, size_bytes};
}

static int store_chunks(struct copy *copy, struct text bytes, struct blob_hash *hashes,
                        struct error *error)
{
    struct blob_store *blobs = copy->datasets->server->blobs;
    for (size_t i = 0; i < pack_chunk_count(bytes.size); i++) {
        const struct text chunk = pack_chunk(bytes, i);
        if (blob_store_put(blobs, NULL, chunk, &hashes[i], error) < 0)
            return -1;
        note_chunk(copy, &hashes[i], chunk.size);
    }
    return 0;
}

/* Everybody who trains on a name trains on the same bytes. */
static int check_hash(const struct copy *copy, enum dataset_part part, const struct blob_hash *hash,
                      struct error *error)
{
    char hex[BLOB_HASH_TEXT_SIZE];
    const char *known = copy->entry->hashes[part];
    if (!known || strcmp(blob_hash_format(hash, hex), known) == 0)
        return 0;
    return error_set(error, ERROR_CORRUPT,
                     "the market's copy of %s is not that data set: its %s "
                     "are others",
                     copy->entry->name, dataset_part_name(part));
}

static int store_part(struct copy *copy, enum dataset_part part, const struct idx *idx,
                      struct error *error)
{
    const struct text bytes = {(const char *)idx->bytes, idx->size};
    const struct pack_options packing = {.media_type = "application/x-idx",
                                         .header_bytes = idx->header.header_size,
                                         .record_bytes = idx->header.record_size};
    struct blob_hash *hashes =
        arena_alloc(copy->arena, pack_chunk_count(bytes.size) * sizeof(*hashes));
    struct manifest manifest;
    struct blob_hash hash;
    uint64_t size_bytes;
    struct blob_store *blobs = copy->datasets->server->blobs;
    if (store_chunks(copy, bytes, hashes, error) < 0 ||
        pack_describe(copy->arena, &packing, bytes, hashes, &manifest, error) < 0 ||
        manifest_put(blobs, &manifest, &hash, error) < 0 ||
        blob_store_size(blobs, &hash, &size_bytes, error) < 0 ||
        check_hash(copy, part, &hash, error) < 0)
        return -1;
    note_chunk(copy, &hash, size_bytes);
    const bool is_train = part == DATASET_TRAIN_IMAGES || part == DATASET_TRAIN_LABELS;
    struct job_input *input = &copy->inputs[part];
    *input = (struct job_input){.name = text_of(dataset_part_name(part)),
                                .split = is_train ? JOB_SPLIT_TRAIN : JOB_SPLIT_TEST,
                                .records = manifest.record_count};
    memcpy(input->manifest, hash.bytes, sizeof(input->manifest));
    return 0;
}

static int read_parts(struct copy *copy, struct error *error)
{
    for (int i = 0; i < DATASET_PART_COUNT; i++) {
        const enum dataset_part part = (enum dataset_part)i;
        char path[PATH_MAX];
        AUTO(idx) struct idx *idx = NULL;
        if (dataset_entry_path(copy->entry, folder_of(copy), part, path, sizeof(path), error) < 0 ||
            idx_open(path, FILE_SIZE_MAX, &idx, error) < 0 ||
            store_part(copy, part, idx, error) < 0)
            return -1;
    }
    return 0;
}

static void reading_done(void *context);

static void *read_copy(void *context)
{
    struct copy *copy = context;
    pthread_setname_np(pthread_self(), "souk-dataset");
    copy->arena = arena_new(0);
    copy->is_read = read_parts(copy, &copy->error) == 0;
    loop_post(copy->datasets->server->loop, reading_done, copy);
    return NULL;
}

/* ---- Giving ---------------------------------------------------------------------------------- */

/* What nobody used for long may have gone from the store. */
static bool is_whole(const struct copy *copy)
{
    for (size_t i = 0; i < copy->chunk_count; i++)
        if (!blob_store_use(copy->datasets->server->blobs, &copy->chunks[i].hash))
            return false;
    return true;
}

static int give(const struct copy *copy, uint64_t account, struct error *error)
{
    struct holdings *holdings = copy->datasets->server->holdings;
    uint64_t missing_bytes;
    if (holdings_check_room_of(holdings, account, copy->chunks, copy->chunk_count, &missing_bytes,
                               error) < 0)
        return -1;
    for (size_t i = 0; missing_bytes && i < copy->chunk_count; i++)
        holdings_add(holdings, (struct holder){.account = account}, &copy->chunks[i].hash,
                     copy->chunks[i].size_bytes, NULL, NULL);
    return 0;
}

static void give_to(const struct copy *copy, uint64_t account, datasets_done *done, void *context)
{
    struct error error;
    if (!copy->is_read)
        done(context, NULL, &copy->error);
    else if (give(copy, account, &error) < 0)
        done(context, NULL, &error);
    else
        done(context, copy->inputs, NULL);
}

static void reading_done(void *context)
{
    struct copy *copy = context;
    if (!copy->is_joined)
        pthread_join(copy->thread, NULL);
    copy->is_reading = copy->is_joined = false;
    if (copy->is_read)
        log_event(LOG_INFO, "dataset_read", "name=%s chunks=%zu", copy->entry->name,
                  copy->chunk_count);
    else
        log_event(LOG_WARN, "dataset_not_read", "name=%s error=\"%s\"", copy->entry->name,
                  copy->error.message);
    struct waiter *waiters = copy->waiters;
    copy->waiters = NULL;
    while (waiters) {
        struct waiter *waiter = waiters;
        waiters = waiter->next;
        give_to(copy, waiter->account, waiter->done, waiter->context);
        free(waiter);
    }
}

static int start_reading(struct copy *copy, struct error *error)
{
    clear_copy(copy);
    const int result = pthread_create(&copy->thread, NULL, read_copy, copy);
    if (result)
        return error_set_errno(error, result, "start a thread");
    copy->is_reading = true;
    return 0;
}

bool datasets_has_entry(struct datasets *datasets, const struct dataset_entry *entry)
{
    const struct copy *copy = copy_of(datasets, entry);
    char path[PATH_MAX];
    struct error none;
    for (int part = 0; !entry->is_imported && part < DATASET_PART_COUNT; part++)
        if (dataset_entry_path(entry, folder_of(copy), (enum dataset_part)part, path, sizeof(path),
                               &none) < 0)
            return false;
    return !entry->is_imported;
}

bool datasets_has(struct datasets *datasets, const struct job_train *train)
{
    const struct dataset_entry *entry;
    struct error none;
    return !job_train_is_file(train) && dataset_entry_find(train->data, &entry, &none) == 0 &&
           datasets_has_entry(datasets, entry);
}

void datasets_give(struct datasets *datasets, uint64_t account, const struct job_train *train,
                   datasets_done *done, void *context)
{
    const struct dataset_entry *entry;
    struct error error;
    if (!datasets_has(datasets, train) || dataset_entry_find(train->data, &entry, &error) < 0) {
        error_set(&error, ERROR_INVALID,
                  "inputs: missing: upload the data and name its manifests (souk job submit does "
                  "both)");
        done(context, NULL, &error);
        return;
    }
    struct copy *copy = copy_of(datasets, entry);
    if (!copy->is_reading && copy->is_read && is_whole(copy)) {
        give_to(copy, account, done, context);
        return;
    }
    if (!copy->is_reading && start_reading(copy, &error) < 0) {
        done(context, NULL, &error);
        return;
    }
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    ASSERT(waiter);
    *waiter = (struct waiter){copy->waiters, account, done, context};
    copy->waiters = waiter;
}
