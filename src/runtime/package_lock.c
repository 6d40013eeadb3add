#include "runtime/package_lock.h"

#include <stdlib.h>
#include <string.h>

static const struct json_field package_fields[] = {
    {"name", JSON_CHARS, offsetof(struct locked_package, name), .is_required = true,
     .size_max = PACKAGE_NAME_SIZE},
    {"version", JSON_CHARS, offsetof(struct locked_package, version), .is_required = true,
     .size_max = PACKAGE_VERSION_SIZE},
    {"sha256", JSON_HEX, offsetof(struct locked_package, sha256), .is_required = true,
     .size_max = PACKAGE_HASH_SIZE},
};
static const struct json_schema package_schema =
    JSON_SCHEMA("package", package_fields, struct locked_package);

static const struct json_field lock_fields[] = {
    {"packages", JSON_ARRAY, offsetof(struct package_lock, packages), .is_required = true,
     .size_max = PACKAGE_LOCK_MAX, .schema = &package_schema},
};
static const struct json_schema lock_schema = JSON_SCHEMA("lock", lock_fields, struct package_lock);

/* A letter or digit first, then those and `others`: no option of pip, no path, no address. */
static bool is_word(const char *word, const char *others)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (!word[0] || !strchr(plain, word[0]))
        return false;
    for (const char *letter = word; *letter; letter++)
        if (!strchr(plain, *letter) && !strchr(others, *letter))
            return false;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct locked_package *one = left, *other = right;
    return strcmp(one->name, other->name);
}

static int check(const struct package_lock *lock, struct error *error)
{
    const struct locked_package *packages = lock->packages.items;
    for (size_t i = 0; i < lock->packages.count; i++) {
        if (!is_word(packages[i].name, "._-"))
            return error_set(error, ERROR_INVALID, "packages[%zu].name: is no package's", i);
        if (!is_word(packages[i].version, "._-+!"))
            return error_set(error, ERROR_INVALID, "packages[%zu].version: is no version of \"%s\"",
                             i, packages[i].name);
        if (i > 0 && compare(&packages[i - 1], &packages[i]) >= 0)
            return error_set(error, ERROR_INVALID,
                             "packages[%zu].name: \"%s\" is there twice, or not in order", i,
                             packages[i].name);
    }
    return 0;
}

int package_lock_sort(struct package_lock *lock, struct error *error)
{
    if (lock->packages.count > PACKAGE_LOCK_MAX)
        return error_set(error, ERROR_EXHAUSTED, "%zu packages, and %d at most",
                         lock->packages.count, PACKAGE_LOCK_MAX);
    if (lock->packages.count > 0)
        qsort(lock->packages.items, lock->packages.count, sizeof(struct locked_package), compare);
    return check(lock, error);
}

int package_lock_read(struct arena *arena, struct text json, struct package_lock *out_lock,
                      struct error *error)
{
    struct package_lock lock = {0};
    if (json.size > PACKAGE_LOCK_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "a list of packages of %zu bytes is too long",
                         json.size);
    if (json_read(arena, json, &lock_schema, &lock, error) < 0 || check(&lock, error) < 0)
        return -1;
    *out_lock = lock;
    return 0;
}

void package_lock_write(const struct package_lock *lock, struct buffer *json)
{
    struct json_writer writer;
    json_writer_init(&writer, json);
    json_write(&writer, &lock_schema, lock);
}

void package_lock_write_requirements(const struct package_lock *lock, struct buffer *out)
{
    const struct locked_package *packages = lock->packages.items;
    for (size_t i = 0; i < lock->packages.count; i++) {
        buffer_append_format(out, "%s==%s --hash=sha256:", packages[i].name, packages[i].version);
        for (size_t k = 0; k < PACKAGE_HASH_SIZE; k++)
            buffer_append_format(out, "%02x", packages[i].sha256[k]);
        buffer_append_text(out, TEXT("\n"));
    }
}

const struct locked_package *package_lock_find(const struct package_lock *lock,
                                               const uint8_t sha256[PACKAGE_HASH_SIZE])
{
    const struct locked_package *packages = lock->packages.items;
    for (size_t i = 0; i < lock->packages.count; i++)
        if (memcmp(packages[i].sha256, sha256, PACKAGE_HASH_SIZE) == 0)
            return &packages[i];
    return NULL;
}
