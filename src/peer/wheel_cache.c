#include "peer/wheel_cache.h"

#include "peer/image_cache.h"
#include "sandbox/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEX_SIZE = 2 * PACKAGE_HASH_SIZE };

_Static_assert((int)IMAGE_HASH_SIZE == (int)PACKAGE_HASH_SIZE, "a hash makes a key");

/* Nothing that is kept under another kind of hash can be asked for as a wheel. */
static void find_key(const uint8_t sha256[PACKAGE_HASH_SIZE], uint8_t out[IMAGE_HASH_SIZE])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, IMAGE_HASH_SIZE);
    crypto_generichash_update(&state, (const unsigned char *)"wheel ", 6);
    crypto_generichash_update(&state, sha256, PACKAGE_HASH_SIZE);
    crypto_generichash_final(&state, out, IMAGE_HASH_SIZE);
}

static int is_wheel(const struct dirent *item)
{
    return text_ends_with(text_of(item->d_name), TEXT(".whl")) && item->d_name[0] != '-' &&
           item->d_name[0] != '.';
}

/* The folder's only wheel, a plain file. */
static bool find_wheel(const char *folder, char out_name[NAME_MAX + 1])
{
    struct dirent **items = NULL;
    struct stat status;
    char path[PATH_MAX];
    const int count = scandir(folder, &items, is_wheel, NULL);
    if (count == 1)
        snprintf(out_name, NAME_MAX + 1, "%s", items[0]->d_name);
    for (int i = 0; i < count; i++)
        free(items[i]);
    free(items);
    return count == 1 &&
           snprintf(path, sizeof(path), "%s/%s", folder, out_name) < (int)sizeof(path) &&
           lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* False: it cannot be had, and is fetched again. */
static bool give_one(const struct image_hold *hold, const uint8_t sha256[PACKAGE_HASH_SIZE],
                     const char *folder)
{
    char hex[HEX_SIZE + 1], root[PATH_MAX], name[NAME_MAX + 1], from[PATH_MAX], to[PATH_MAX];
    char outer[PATH_MAX], inner[PATH_MAX];
    struct error ignored;
    text_hex_encode(sha256, PACKAGE_HASH_SIZE, hex);
    if (snprintf(root, sizeof(root), "%s/root", hold->folder) >= (int)sizeof(root) ||
        !find_wheel(root, name) ||
        snprintf(from, sizeof(from), "%s/%s", root, name) >= (int)sizeof(from) ||
        snprintf(outer, sizeof(outer), "%s/%s", folder, hex) >= (int)sizeof(outer) ||
        snprintf(inner, sizeof(inner), "%s/root", outer) >= (int)sizeof(inner) ||
        snprintf(to, sizeof(to), "%s/%s", inner, name) >= (int)sizeof(to))
        return false;
    return folder_make(outer, 0755, &ignored) == 0 && folder_make(inner, 0755, &ignored) == 0 &&
           link(from, to) == 0;
}

int wheel_cache_give(const char *cache, const struct package_lock *lock, const char *folder,
                     size_t *out_count, struct error *error)
{
    const struct locked_package *packages = lock->packages.items;
    *out_count = 0;
    if (folder_make(folder, 0755, error) < 0)
        return -1;
    for (size_t i = 0; i < lock->packages.count; i++) {
        uint8_t key[IMAGE_HASH_SIZE];
        struct image_hold hold;
        bool is_there = false;
        find_key(packages[i].sha256, key);
        if (image_cache_take(cache, key, &hold, &is_there, error) < 0)
            return -1;
        if (is_there)
            *out_count += give_one(&hold, packages[i].sha256, folder);
        image_hold_release(&hold);
    }
    return 0;
}

static int is_any(const struct dirent *item)
{
    return item->d_name[0] != '.';
}

static void keep_one(const char *cache, const char *folder, const char *hex, uint64_t bytes_max)
{
    uint8_t sha256[PACKAGE_HASH_SIZE], key[IMAGE_HASH_SIZE];
    char path[PATH_MAX], root[PATH_MAX], name[NAME_MAX + 1];
    struct image_hold hold = {.fd = -1};
    struct error ignored; /* it is fetched again */
    if (text_hex_decode(text_of(hex), sha256, sizeof(sha256), &ignored) < 0 ||
        snprintf(path, sizeof(path), "%s/%s", folder, hex) >= (int)sizeof(path) ||
        snprintf(root, sizeof(root), "%s/root", path) >= (int)sizeof(root) ||
        !find_wheel(root, name))
        return;
    find_key(sha256, key);
    if (image_cache_keep(cache, key, IMAGE_KIND_WHEEL, path, bytes_max, &hold, &ignored) == 0)
        image_hold_release(&hold);
}

void wheel_cache_keep(const char *cache, const char *folder, uint64_t bytes_max)
{
    struct dirent **items = NULL;
    const int count = scandir(folder, &items, is_any, alphasort);
    for (int i = 0; i < count; i++) {
        keep_one(cache, folder, items[i]->d_name, bytes_max);
        free(items[i]);
    }
    free(items);
}
