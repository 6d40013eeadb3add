/* Packages, inside: what fetching (packages_fetch.c) and installing them (packages_main.c) share.
 * What went wrong is printed as one line, which is the job's reason. */
#pragma once

#include "base/arena.h"
#include "runtime/package_lock.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PACKAGES_WHEELS_MAX = 512, /* files in the archive */
    PACKAGES_WORDS_SIZE = 200, /* of what went wrong */
    PACKAGES_ARGUMENTS_MAX = 24,
};

/* Where what takes the list out of the archive leaves it, and what fetches them finds it. */
#define PACKAGES_LIST_MOUNT "/list"
/* What fetches them leaves each in FETCHED_FOLDER of its working folder, as SHA256/root/NAME.whl;
 * what installs them has that as FETCHED_MOUNT. Both find those that the machine had already, in
 * the same form, in CACHED_MOUNT. */
#define PACKAGES_FETCHED_FOLDER "fetched"
#define PACKAGES_FETCHED_MOUNT  "/fetched"
#define PACKAGES_CACHED_MOUNT   "/cached"

struct packages_command {
    char *words[PACKAGES_ARGUMENTS_MAX + PACKAGES_WHEELS_MAX + PACKAGE_LOCK_MAX + 1];
    size_t count;
};
void packages_command_add(struct packages_command *command, const char *word);
void packages_command_done(struct packages_command *command);
#define AUTO_PACKAGES_COMMAND __attribute__((cleanup(packages_command_done)))

/* The last words of a program: the last line that calls itself an error, or the last at all. */
struct packages_words {
    char line[PACKAGES_WORDS_SIZE];
    size_t size;
    char kept[PACKAGES_WORDS_SIZE];
    bool is_error;
    char mismatched[PACKAGES_WORDS_SIZE]; /* the package whose file has another hash, says pip */
    bool has_mismatch;
    bool has_given_up; /* the last of its attempts to reach a server failed */
};

/* Runs it to its end; what it says goes to standard error if it is echoed. False when it failed;
 * its status is 128 and more for a signal, 127 when it is not there. */
bool packages_run(const struct packages_command *command, bool is_echoed,
                  struct packages_words *out_words, int *out_status);
/* Says why it failed. */
void packages_print_failure(const char *what, const struct packages_command *command,
                            const struct packages_words *words, int status);

/* Of scandir. */
int packages_is_wheel(const struct dirent *item);
MUST_CHECK int packages_hash(const char *path, uint8_t out_hash[PACKAGE_HASH_SIZE],
                             struct error *error);
/* The wheel of that hash in such a folder; false when it is not there, or has other bytes. */
bool packages_find_wheel(const char *folder, const uint8_t sha256[PACKAGE_HASH_SIZE],
                         char out_path[PATH_MAX]);

/* The archive into the working folder. */
MUST_CHECK int packages_unpack(const char *path, uint64_t bytes_max, struct error *error);
/* The list; empty when there is none. */
MUST_CHECK int packages_read_lock_at(struct arena *arena, const char *path,
                                     struct package_lock *out_lock, struct error *error);
/* That in the working folder. */
MUST_CHECK int packages_read_lock(struct arena *arena, struct package_lock *out_lock,
                                  struct error *error);
