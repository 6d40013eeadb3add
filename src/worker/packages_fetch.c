/*
 * Packages from an index, in two sandboxes. The first has no network: it takes their list out of
 * the borrower's archive. The second shares the machine's network and has nothing of the borrower's
 * but that list: it fetches what is listed from the index that the machine's owner chose
 * (PIP_INDEX_URL), by the machine's own pip: wheels alone, nothing that they ask for besides, each
 * by its hash.
 *
 * Nothing of it runs here. What pip says names the owner's index: it goes to the owner, as a second
 * line; the borrower is told one of a few sentences.
 */
#include "base/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "worker/packages_internal.h"
#include "worker/worker.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUIREMENTS "requirements.txt"

enum { REQUIREMENTS_SIZE_MAX = 1 << 20 };

static int write_requirements(const struct package_lock *lock, struct error *error)
{
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, REQUIREMENTS_SIZE_MAX);
    package_lock_write_requirements(lock, &text);
    if (buffer_check(&text, error) < 0)
        return -1;
    const struct text part = buffer_text(&text);
    return file_replace(REQUIREMENTS, &part, 1, 0644, error);
}

/* Reads it as well, so that what is wrong with it is told where no network is. */
static int take_list(const char *archive, uint64_t bytes_max, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct package_lock lock;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PACKAGE_LOCK_SIZE_MAX);
    if (packages_unpack(archive, bytes_max, error) < 0)
        return -1;
    if (packages_read_lock(arena, &lock, error) < 0)
        return error_wrap(error, "their list");
    if (lock.packages.count == 0)
        return 0;
    package_lock_write(&lock, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    return file_replace(PACKAGES_LIST_MOUNT "/" PACKAGE_LOCK_FILE, &part, 1, 0644, error);
}

int packages_list_main(int argc, char **argv)
{
    struct error error;
    uint64_t bytes_max;
    if (argc != 3 || text_parse_u64(text_of(argv[2]), &bytes_max, &error) < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    if (take_list(argv[1], bytes_max, &error) == 0)
        return 0;
    puts(error.message);
    return 1;
}

/* Which of the listed packages pip speaks of. */
static void name_package(const struct package_lock *lock, const char *words,
                         char out[PACKAGES_WORDS_SIZE])
{
    const struct locked_package *packages = lock->packages.items;
    snprintf(out, PACKAGES_WORDS_SIZE, "a package");
    for (size_t i = 0; i < lock->packages.count; i++) {
        char name[PACKAGE_NAME_SIZE + PACKAGE_VERSION_SIZE + 2];
        const int size =
            snprintf(name, sizeof(name), "%s==%s", packages[i].name, packages[i].version);
        const char *found = strstr(words, name);
        if (found && (found == words || found[-1] == ' ') && strchr(" :", found[size]))
            memcpy(out, name, (size_t)size + 1);
    }
}

static void print_failure(const struct package_lock *lock, const struct packages_command *command,
                          const struct packages_words *words, int status)
{
    char name[PACKAGES_WORDS_SIZE];
    if (words->has_mismatch) {
        name_package(lock, words->mismatched, name);
        printf("%s: this machine's index has another file than the job names: its sha256 does not "
               "match\n",
               name);
    } else if (strstr(words->kept, "No matching distribution found") && !words->has_given_up) {
        name_package(lock, words->kept, name);
        printf("%s: this machine's index has no wheel of it that fits this machine\n", name);
    } else if (!words->kept[0] || strstr(words->kept, "No module named pip")) {
        packages_print_failure("this machine's index: pip", command, words, status);
    } else {
        puts("this machine's index could not be read; its owner is told why");
    }
    if (words->kept[0])
        puts(words->kept);
}

static int fetch(const struct package_lock *lock)
{
    static const char *const arguments[] = {"/usr/bin/python3",
                                            "-m",
                                            "pip",
                                            "download",
                                            "-q",
                                            "--no-deps",
                                            "--only-binary=:all:",
                                            "--require-hashes",
                                            "--dest",
                                            PACKAGES_FETCHED_FOLDER,
                                            "-r",
                                            REQUIREMENTS};
    AUTO_PACKAGES_COMMAND struct packages_command command = {.count = 0};
    struct packages_words words;
    int status;
    const size_t count = lock->packages.count;
    for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
        packages_command_add(&command, arguments[i]);
    fprintf(stderr, "souk: fetching %zu package%s from this machine's index\n", count,
            count == 1 ? "" : "s");
    if (packages_run(&command, /* is_echoed= */ false, &words, &status))
        return 0;
    print_failure(lock, &command, &words, status);
    return -1;
}

/* Leaves those in the list that this machine has not. */
static void leave_out_cached(struct package_lock *lock)
{
    struct locked_package *packages = lock->packages.items;
    const size_t count = lock->packages.count;
    char path[PATH_MAX];
    lock->packages.count = 0;
    for (size_t i = 0; i < count; i++)
        if (!packages_find_wheel(PACKAGES_CACHED_MOUNT, packages[i].sha256, path))
            packages[lock->packages.count++] = packages[i];
    const size_t found = count - lock->packages.count;
    if (found > 0)
        fprintf(stderr, "souk: %zu package%s on this machine already\n", found,
                found == 1 ? " is" : "s are");
}

static int sort_one(const char *name, const struct package_lock *lock, struct error *error)
{
    char from[PATH_MAX], folder[PATH_MAX], to[PATH_MAX], hex[2 * PACKAGE_HASH_SIZE + 1];
    uint8_t hash[PACKAGE_HASH_SIZE];
    snprintf(from, sizeof(from), PACKAGES_FETCHED_FOLDER "/%.1000s", name);
    if (packages_hash(from, hash, error) < 0)
        return -1;
    if (!package_lock_find(lock, hash))
        return error_set(error, ERROR_CORRUPT,
                         "\"%.120s\" was fetched, and its sha256 is none that the job names", name);
    text_hex_encode(hash, sizeof(hash), hex);
    snprintf(folder, sizeof(folder), PACKAGES_FETCHED_FOLDER "/%s", hex);
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", folder);
    snprintf(folder, sizeof(folder), PACKAGES_FETCHED_FOLDER "/%s/root", hex);
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", folder);
    snprintf(to, sizeof(to), "%.200s/%.1000s", folder, name);
    return rename(from, to) < 0 ? error_set_errno(error, errno, "move \"%.120s\"", name) : 0;
}

/* Each by its hash. */
static int sort_fetched(const struct package_lock *lock, struct error *error)
{
    struct dirent **items = NULL;
    const int count = scandir(PACKAGES_FETCHED_FOLDER, &items, packages_is_wheel, alphasort);
    int result = count < 0 ? error_set_errno(error, errno, "read what was fetched") : 0;
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = sort_one(items[i]->d_name, lock, error);
        free(items[i]);
    }
    free(items);
    return result;
}

int packages_fetch_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct package_lock lock;
    (void)argv;
    if (argc != 1 || sodium_init() < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    if (mkdir(PACKAGES_FETCHED_FOLDER, 0755) < 0) {
        puts("no folder can be made for what is fetched");
        return 1;
    }
    int result =
        packages_read_lock_at(arena, PACKAGES_LIST_MOUNT "/" PACKAGE_LOCK_FILE, &lock, &error);
    if (result == 0)
        leave_out_cached(&lock);
    if (result == 0 && lock.packages.count == 0)
        return 0;
    if (result == 0)
        result = write_requirements(&lock, &error);
    if (result == 0 && fetch(&lock) < 0)
        return 1;
    if (result == 0)
        result = sort_fetched(&lock, &error);
    if (result < 0)
        puts(error.message);
    return result < 0 ? 1 : 0;
}
