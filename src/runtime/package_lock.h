/*
 * Package lock: what a job has its lenders fetch from their own index: packages by name, version
 * and the hash of one file each.
 *
 * It travels as PACKAGE_LOCK_FILE in the archive of the job's wheels, sorted by name:
 *
 *     {"packages":[{"name":"numpy","version":"1.26.4","sha256":"..."}]}
 */
#pragma once

#include "base/json_schema.h"

#include <stdint.h>

#define PACKAGE_LOCK_FILE "souk-packages.json"

enum {
    PACKAGE_LOCK_MAX = 512,
    PACKAGE_LOCK_SIZE_MAX = 256 << 10,
    PACKAGE_NAME_SIZE = 129,
    PACKAGE_VERSION_SIZE = 65,
    PACKAGE_HASH_SIZE = 32,
};

struct locked_package {
    char name[PACKAGE_NAME_SIZE];
    char version[PACKAGE_VERSION_SIZE];
    uint8_t sha256[PACKAGE_HASH_SIZE];
};

struct package_lock {
    struct json_array packages; /* struct locked_package */
};

/* Sorts the packages. INVALID for a name or version that pip could take for something else, and for
 * a package that is there twice. */
MUST_CHECK int package_lock_sort(struct package_lock *lock, struct error *error);

/* INVALID also for packages that are not sorted. */
MUST_CHECK int package_lock_read(struct arena *arena, struct text json,
                                 struct package_lock *out_lock, struct error *error);
void package_lock_write(const struct package_lock *lock, struct buffer *json);

/* As a requirements file of pip, for --require-hashes. */
void package_lock_write_requirements(const struct package_lock *lock, struct buffer *out);

/* The package whose file has that hash; NULL: none has. */
const struct locked_package *package_lock_find(const struct package_lock *lock,
                                               const uint8_t sha256[PACKAGE_HASH_SIZE]);
