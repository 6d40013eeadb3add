#include "function/object_store.h"

#include "function/object_store_internal.h"

#include <ctype.h>
#include <string.h>

bool object_store_is_market(struct text place)
{
    return text_equal(place, TEXT(OBJECT_STORE_MARKET));
}

bool object_store_is_remote(struct text place)
{
    return text_starts_with(place, TEXT("s3://")) || object_store_is_market(place);
}

int object_store_open(const struct object_store_options *options, struct object_store **out_store,
                      struct error *error)
{
    if (object_store_is_market(text_of(options->place)))
        return object_store_open_market(options, out_store, error);
    if (strstr(options->place, "://") && !object_store_is_remote(text_of(options->place)))
        return error_set(error, ERROR_INVALID,
                         "the store \"%.160s\": is a folder, s3://bucket/prefix, or market",
                         options->place);
    return object_store_is_remote(text_of(options->place))
               ? object_store_open_s3(options, out_store, error)
               : object_store_open_folder(options, out_store, error);
}

void object_store_free(struct object_store *store)
{
    if (store)
        store->ops->free(store);
}

static int check_key(const char *key, struct error *error)
{
    const size_t size = strlen(key);
    bool is_start = true; /* of a name */
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)key[i];
        const bool is_letter = c < 0x80 && (isalnum(c) || c == '-' || c == '_');
        if (!is_letter && (is_start || (c != '/' && c != '.')))
            return error_set(error, ERROR_INVALID, "\"%.160s\" is no key of an object", key);
        is_start = c == '/';
    }
    if (is_start || size >= OBJECT_KEY_SIZE)
        return error_set(error, ERROR_INVALID, "\"%.160s\" is no key of an object", key);
    return 0;
}

int object_store_read(struct object_store *store, const char *key, struct buffer *out,
                      struct error *error)
{
    return check_key(key, error) < 0 ? -1 : store->ops->read(store, key, out, error);
}

int object_store_read_part(struct object_store *store, const char *key, uint64_t offset, void *out,
                           size_t size, struct error *error)
{
    return check_key(key, error) < 0 ? -1
                                     : store->ops->read_part(store, key, offset, out, size, error);
}

int object_store_put(struct object_store *store, const char *key, struct text bytes, bool is_once,
                     struct error *error)
{
    return check_key(key, error) < 0 ? -1 : store->ops->put(store, key, bytes, is_once, error);
}

int object_store_fetch(struct object_store *store, const char *key, int fd, size_t bytes_max,
                       struct error *error)
{
    return check_key(key, error) < 0 ? -1 : store->ops->fetch(store, key, fd, bytes_max, error);
}

int object_store_put_file(struct object_store *store, const char *key, int fd, struct error *error)
{
    return check_key(key, error) < 0 ? -1 : store->ops->put_file(store, key, fd, error);
}

int object_store_delete(struct object_store *store, const char *key, struct error *error)
{
    return check_key(key, error) < 0 ? -1 : store->ops->delete (store, key, error);
}
