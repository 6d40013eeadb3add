/*
 * Inside a sandbox of its own that shares the machine's network: fetches the packages that a
 * borrower's archive lists from the index that the machine's owner chose (PIP_INDEX_URL), by the
 * machine's own pip: wheels alone, nothing that they ask for besides, each by its hash.
 *
 * Nothing of it runs here. What pip says stays here, too, as it names the owner's index; the
 * borrower is told the last of it without addresses.
 */
#include "base/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "worker/packages_internal.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BROUGHT      "brought"
#define REQUIREMENTS "requirements.txt"

enum { REQUIREMENTS_SIZE_MAX = 1 << 20 };

static int enter_new(const char *folder, struct error *error)
{
    return mkdir(folder, 0755) < 0 || chdir(folder) < 0
               ? error_set_errno(error, errno, "make \"%s\"", folder)
               : 0;
}

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

/* The list is what is wanted of the archive; the wheels beside it are unpacked again, without a
 * network, by what installs them. */
static int read_archive(struct arena *arena, const char *path, uint64_t bytes_max,
                        struct package_lock *lock, struct error *error)
{
    if (enter_new(BROUGHT, error) < 0 || packages_unpack(path, bytes_max, error) < 0)
        return -1;
    if (packages_read_lock(arena, lock, error) < 0)
        return error_wrap(error, "their list");
    if (chdir("..") < 0 || mkdir(PACKAGES_FETCHED_FOLDER, 0755) < 0)
        return error_set_errno(error, errno, "make \"" PACKAGES_FETCHED_FOLDER "\"");
    return write_requirements(lock, error);
}

static void hide_addresses(char *words)
{
    for (char *found; (found = strstr(words, "http"));) {
        const size_t size = strcspn(found, " ");
        char *rest = found + size;
        if (size < 3) {
            found[0] = '.';
            continue;
        }
        memcpy(found, "...", 3);
        memmove(found + 3, rest, strlen(rest) + 1);
    }
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
    if (words.has_mismatch) {
        printf("%s: this machine's index has another file than the job names: its sha256 does not "
               "match\n",
               words.mismatched[0] ? words.mismatched : "a package");
        return -1;
    }
    hide_addresses(words.kept);
    packages_print_failure("this machine's index: pip", &command, &words, status);
    return -1;
}

int packages_fetch_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct package_lock lock;
    uint64_t bytes_max;
    if (argc != 3 || text_parse_u64(text_of(argv[2]), &bytes_max, &error) < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    if (read_archive(arena, argv[1], bytes_max, &lock, &error) < 0) {
        puts(error.message);
        return 1;
    }
    return lock.packages.count > 0 && fetch(&lock) < 0 ? 1 : 0;
}
