/* Packages: their archive, the list in it, and the programs that fetch and install them. */
#include "base/assert.h"
#include "base/file.h"
#include "base/scope.h"
#include "blob/archive.h"
#include "worker/packages_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Programs -------------------------------------------------------------------------------- */

void packages_command_add(struct packages_command *command, const char *word)
{
    ASSERT(command->count + 1 < sizeof(command->words) / sizeof(*command->words));
    command->words[command->count] = strdup(word);
    ASSERT(command->words[command->count]);
    command->words[++command->count] = NULL;
}

void packages_command_done(struct packages_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        free(command->words[i]);
}

/* pip names the packages whose hashes differ below this line: "    name==1.0 from ...". */
static void note_mismatch(struct packages_words *words)
{
    if (strstr(words->line, "DO NOT MATCH THE HASHES")) {
        words->has_mismatch = true;
        return;
    }
    const char *first = words->line + strspn(words->line, " ");
    if (words->has_mismatch && !words->mismatched[0] && strstr(first, "=="))
        snprintf(words->mismatched, sizeof(words->mismatched), "%.*s", (int)strcspn(first, " "),
                 first);
}

/* One that calls itself an error goes before, unless it only announces what the last line tells. */
static void end_line(struct packages_words *words)
{
    words->line[words->size] = '\0';
    note_mismatch(words);
    words->has_given_up |= strstr(words->line, "Retrying (Retry(total=0") != NULL;
    const bool is_error =
        strncmp(words->line, "ERROR:", 6) == 0 && strcmp(words->line, "ERROR: Exception:") != 0;
    if (words->size > 0 && (is_error || !words->is_error)) {
        snprintf(words->kept, sizeof(words->kept), "%s", words->line);
        words->is_error = is_error;
    }
    words->size = 0;
}

static void hear(struct packages_words *words, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n')
            end_line(words);
        else if (words->size + 1 < sizeof(words->line) && (unsigned char)bytes[i] >= ' ')
            words->line[words->size++] = bytes[i];
    }
}

static int attend(pid_t pid, int fd, bool is_echoed, struct packages_words *words)
{
    char bytes[4096];
    int status = 0;
    for (ssize_t size; (size = read(fd, bytes, sizeof(bytes))) != 0;) {
        if (size < 0 && errno != EINTR)
            break;
        if (size < 0)
            continue;
        hear(words, bytes, (size_t)size);
        if (is_echoed)
            fwrite(bytes, 1, (size_t)size, stderr);
    }
    end_line(words);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool packages_run(const struct packages_command *command, bool is_echoed,
                  struct packages_words *out_words, int *out_status)
{
    int fds[2];
    *out_words = (struct packages_words){.size = 0};
    *out_status = 126;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        execv(command->words[0], command->words);
        _exit(127);
    }
    close(fds[1]);
    if (pid > 0)
        *out_status = attend(pid, fds[0], is_echoed, out_words);
    close(fds[0]);
    return *out_status == 0;
}

void packages_print_failure(const char *what, const struct packages_command *command,
                            const struct packages_words *words, int status)
{
    if (status == 127 && !words->kept[0])
        printf("%s: this machine has no %s\n", what, command->words[0]);
    else if (strstr(words->kept, "No module named pip"))
        printf("%s: this machine has no pip (Debian: apt install python3-pip)\n", what);
    else if (words->kept[0])
        printf("%s: %s\n", what, words->kept);
    else
        printf("%s: ended with status %d\n", what, status);
}

/* ---- Wheels ---------------------------------------------------------------------------------- */

int packages_is_wheel(const struct dirent *item)
{
    return text_ends_with(text_of(item->d_name), TEXT(".whl")) && item->d_name[0] != '-';
}

int packages_hash(const char *path, uint8_t out_hash[PACKAGE_HASH_SIZE], struct error *error)
{
    static uint8_t bytes[1 << 16];
    crypto_hash_sha256_state state;
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set_errno(error, errno, "%s", path);
    crypto_hash_sha256_init(&state);
    for (ssize_t size; (size = read(fd, bytes, sizeof(bytes))) != 0;) {
        if (size < 0 && errno != EINTR)
            return error_set_errno(error, errno, "%s", path);
        if (size > 0)
            crypto_hash_sha256_update(&state, bytes, (unsigned long long)size);
    }
    crypto_hash_sha256_final(&state, out_hash);
    return 0;
}

bool packages_find_wheel(const char *folder, const uint8_t sha256[PACKAGE_HASH_SIZE],
                         char out_path[PATH_MAX])
{
    char hex[2 * PACKAGE_HASH_SIZE + 1], root[PATH_MAX];
    uint8_t hash[PACKAGE_HASH_SIZE];
    struct dirent **items = NULL;
    struct error ignored; /* it is not there */
    text_hex_encode(sha256, PACKAGE_HASH_SIZE, hex);
    snprintf(root, sizeof(root), "%s/%s/root", folder, hex);
    const int count = scandir(root, &items, packages_is_wheel, NULL);
    const bool is_there =
        count == 1 && snprintf(out_path, PATH_MAX, "%.2000s/%s", root, items[0]->d_name) > 0;
    for (int i = 0; i < count; i++)
        free(items[i]);
    free(items);
    return is_there && packages_hash(out_path, hash, &ignored) == 0 &&
           memcmp(hash, sha256, sizeof(hash)) == 0;
}

/* ---- The archive ----------------------------------------------------------------------------- */

int packages_unpack(const char *path, uint64_t bytes_max, struct error *error)
{
    struct archive_summary summary;
    const struct archive_limits limits = {.bytes_max = bytes_max,
                                          .files_max = PACKAGES_WHEELS_MAX + 1, /* and their list */
                                          .refuses_links = true};
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "%s", path);
    return archive_unpack(fd, &limits, &summary, error);
}

int packages_read_lock_at(struct arena *arena, const char *path, struct package_lock *out_lock,
                          struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, PACKAGE_LOCK_SIZE_MAX);
    *out_lock = (struct package_lock){0};
    if (file_read(path, &json, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    return package_lock_read(arena, buffer_text(&json), out_lock, error);
}

int packages_read_lock(struct arena *arena, struct package_lock *out_lock, struct error *error)
{
    return packages_read_lock_at(arena, PACKAGE_LOCK_FILE, out_lock, error);
}
