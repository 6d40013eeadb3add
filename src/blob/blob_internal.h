/* Blob store, inside: the index that blob_store.c keeps and blob_writer.c adds to. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "blob/blob_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

struct blob_entry {
    struct list_node node; /* in blob_store.by_use */
    struct blob_hash hash;
    enum blob_coding coding; /* of its file */
    uint64_t size_bytes;     /* of its file */
    int64_t used_ms;
    int64_t touched_ms; /* the use that the file's own time tells */
    bool is_checked;    /* this process has hashed what its file holds */
};

struct blob_store {
    char *folder;
    int folder_fd;
    int temp_fd;
    int lock_fd;
    int partial_fd;
    int pins_fd;  /* of a shared store, else -1 */
    int evict_fd; /* the same; locked only while the mutex is held */
    uint64_t bytes_max;
    const struct clock *clock;
    uint64_t temp_prefix;                 /* names temporary files, apart from other processes' */
    atomic_uint_fast64_t *shared_changes; /* mapped from FOLDER/changes; NULL: not shared */

    pthread_mutex_t mutex; /* guards everything below */
    struct map entries;    /* by the hash's bytes */
    struct list by_use;    /* least recently used first */
    uint64_t stored_bytes;
    uint64_t pending_bytes; /* promised to writers */
    uint64_t writer_count;  /* ever opened: names temporary files */
    uint64_t seen_changes;  /* what *shared_changes was when the index was right */
};

enum { BLOB_PATH_SIZE = BLOB_HASH_TEXT_SIZE + 5 };

/* "ab/cdef...", with ".zst" behind a frame's. Returns `out`. */
const char *blob_path_format(const struct blob_hash *hash, enum blob_coding coding,
                             char out[BLOB_PATH_SIZE]);

/* An errno value in words, with a full disk named as such. Returns -1. */
int blob_fail(const struct blob_store *store, int errno_value, const char *doing,
              struct error *error);

/* When a blob was last used, by its file. */
int64_t blob_used_ms(const struct stat *info);

/* With the mutex held: */
struct blob_entry *blob_entry_find(struct blob_store *store, const struct blob_hash *hash);
void blob_entry_add(struct blob_store *store, const struct blob_entry *added);
/* A blob was added or deleted: tells the other processes. */
void blob_note_change(struct blob_store *store);
/* blob_pins.c: neither pins are made nor blobs evicted by another process between the two. */
MUST_CHECK int blob_evict_lock(struct blob_store *store, struct error *error);
void blob_evict_unlock(struct blob_store *store);
/* What any process needs, as the map's keys. */
MUST_CHECK int blob_pins_read(struct blob_store *store, struct map *pinned, struct error *error);
/* Counts anew what other processes have changed. */
MUST_CHECK int blob_refresh(struct blob_store *store, struct error *error);
/* A use now. */
void blob_entry_touch(struct blob_store *store, struct blob_entry *entry);
