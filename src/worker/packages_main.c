/*
 * Inside a sandbox of its own: installs a borrower's wheels, and those that were fetched for it,
 * into a virtual environment, by the machine's own Python and pip, without a network.
 *
 * The environment sees the machine's packages, too: what the machine's labels promise stays there,
 * and what is installed goes before it. What was fetched is installed if each file that the list
 * names is there by its hash, and nothing else.
 */
#include "base/scope.h"
#include "base/text.h"
#include "worker/packages_internal.h"
#include "worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKAGES        "/packages"
#define PACKAGES_PYTHON "/packages/bin/python"

/* Of the folder, "" or one that ends with a slash. */
static int add_wheels(struct packages_command *command, const char *folder, int count_max,
                      struct error *error)
{
    struct dirent **items = NULL;
    char path[PATH_MAX];
    const int count = scandir(folder[0] ? folder : ".", &items, packages_is_wheel, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s%s", folder, items[i]->d_name);
        if (count <= count_max)
            packages_command_add(command, path);
        free(items[i]);
    }
    free(items);
    if (count > count_max)
        return error_set(error, ERROR_EXHAUSTED, "%d wheels, and %d at most", count, count_max);
    return count < 0 ? error_set_errno(error, errno, "read the wheels") : 0;
}

/* ---- What was fetched ------------------------------------------------------------------------ */

static int add_fetched(struct packages_command *command, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct package_lock lock;
    char path[PATH_MAX];
    if (packages_read_lock(arena, &lock, error) < 0)
        return error_wrap(error, "their list");
    if (lock.packages.count == 0)
        return 0;
    if (access(PACKAGES_FETCHED_MOUNT, F_OK) < 0)
        return error_set(error, ERROR_INVALID,
                         "they are to be fetched from an index, and the job does not say so "
                         "(resources.install: index)");
    const struct locked_package *packages = lock.packages.items;
    for (size_t i = 0; i < lock.packages.count; i++) {
        if (!packages_find_wheel(PACKAGES_FETCHED_MOUNT, packages[i].sha256, path) &&
            !packages_find_wheel(PACKAGES_CACHED_MOUNT, packages[i].sha256, path))
            return error_set(error, ERROR_CORRUPT, "%s==%s: no file of its sha256 was fetched",
                             packages[i].name, packages[i].version);
        packages_command_add(command, path);
    }
    return 0;
}

/* ---- Installing ------------------------------------------------------------------------------ */

static int run(const struct packages_command *command, const char *what)
{
    struct packages_words words;
    int status;
    if (packages_run(command, /* is_echoed= */ true, &words, &status))
        return 0;
    packages_print_failure(what, command, &words, status);
    return -1;
}

static int make_environment(void)
{
    static const char *const words[] = {"/usr/bin/python3",       "-m",    "venv", "--without-pip",
                                        "--system-site-packages", PACKAGES};
    AUTO_PACKAGES_COMMAND struct packages_command command = {.count = 0};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        packages_command_add(&command, words[i]);
    return run(&command, "python3 -m venv");
}

int packages_install_main(int argc, char **argv)
{
    static const char *const words[] = {
        PACKAGES_PYTHON,     "-m", "pip", "install", "-q", "--no-index", "--no-deps",
        "--ignore-installed"};
    enum { WORD_COUNT = sizeof(words) / sizeof(*words) };
    AUTO_PACKAGES_COMMAND struct packages_command command = {.count = 0};
    struct error error;
    uint64_t bytes_max;
    if (argc != 3 || text_parse_u64(text_of(argv[2]), &bytes_max, &error) < 0 ||
        sodium_init() < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    for (size_t i = 0; i < WORD_COUNT; i++)
        packages_command_add(&command, words[i]);
    if (packages_unpack(argv[1], bytes_max, &error) < 0 ||
        add_wheels(&command, "", PACKAGES_WHEELS_MAX, &error) < 0 ||
        add_fetched(&command, &error) < 0) {
        puts(error.message);
        return 1;
    }
    const size_t count = command.count - WORD_COUNT;
    if (count == 0) {
        puts("their archive holds no wheel");
        return 1;
    }
    fprintf(stderr, "souk: installing %zu package%s\n", count, count == 1 ? "" : "s");
    return make_environment() < 0 || run(&command, "pip") < 0 ? 1 : 0;
}
