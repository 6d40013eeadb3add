/* Inside of the object store: one kind of it. Tests put stores that fail around others. */
#pragma once

#include "function/object_store.h"

struct object_store_ops {
    int (*read)(struct object_store *store, const char *key, struct buffer *out,
                struct error *error);
    int (*read_part)(struct object_store *store, const char *key, uint64_t offset, void *out,
                     size_t size, struct error *error);
    int (*put)(struct object_store *store, const char *key, struct text bytes, bool is_once,
               struct error *error);
    int (*fetch)(struct object_store *store, const char *key, int fd, size_t bytes_max,
                 struct error *error);
    int (*put_file)(struct object_store *store, const char *key, int fd, struct error *error);
    int (*delete)(struct object_store *store, const char *key, struct error *error);
    void (*free)(struct object_store *store);
};

struct object_store {
    const struct object_store_ops *ops; /* of what begins with this struct */
};

MUST_CHECK int object_store_open_folder(const struct object_store_options *options,
                                        struct object_store **out_store, struct error *error);
MUST_CHECK int object_store_open_s3(const struct object_store_options *options,
                                    struct object_store **out_store, struct error *error);
MUST_CHECK int object_store_open_market(const struct object_store_options *options,
                                        struct object_store **out_store, struct error *error);
