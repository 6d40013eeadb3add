/*
 * Inside a sandbox of its own: installs a borrower's wheels into a virtual environment, by the
 * machine's own Python and pip, without a network.
 *
 * The environment sees the machine's packages, too: what the machine's labels promise stays there,
 * and what is installed goes before it.
 */
#include "base/assert.h"
#include "base/scope.h"
#include "base/text.h"
#include "blob/archive.h"
#include "worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKAGES        "/packages"
#define PACKAGES_PYTHON "/packages/bin/python"

enum {
    WHEELS_MAX = 512, /* files in the archive */
    WORDS_SIZE = 200, /* of what went wrong */
    ARGUMENTS_MAX = 16,
};

/* The last line that says something; of pip's, one that calls itself an error goes before, unless
 * it only announces what its last line tells. */
struct last_words {
    char line[WORDS_SIZE];
    size_t size;
    char kept[WORDS_SIZE];
    bool is_error;
};

static void end_line(struct last_words *words)
{
    words->line[words->size] = '\0';
    const bool is_error =
        strncmp(words->line, "ERROR:", 6) == 0 && strcmp(words->line, "ERROR: Exception:") != 0;
    if (words->size > 0 && (is_error || !words->is_error)) {
        snprintf(words->kept, sizeof(words->kept), "%s", words->line);
        words->is_error = is_error;
    }
    words->size = 0;
}

static void hear(struct last_words *words, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n')
            end_line(words);
        else if (words->size + 1 < sizeof(words->line) && (unsigned char)bytes[i] >= ' ')
            words->line[words->size++] = bytes[i];
    }
}

/* Passes on what the process says until it ends; its exit status, 128 and more for a signal. */
static int attend(pid_t pid, int fd, struct last_words *words)
{
    char bytes[4096];
    int status = 0;
    for (ssize_t size; (size = read(fd, bytes, sizeof(bytes))) != 0;) {
        if (size < 0 && errno != EINTR)
            break;
        if (size < 0)
            continue;
        hear(words, bytes, (size_t)size);
        fwrite(bytes, 1, (size_t)size, stderr);
    }
    end_line(words);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* -1 after telling why. */
static int run(char *const *arguments, const char *what)
{
    struct last_words words = {.size = 0};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0) {
        printf("%s: %s\n", what, strerrordesc_np(errno));
        return -1;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(fds[1]);
    const int status = pid < 0 ? 126 : attend(pid, fds[0], &words);
    close(fds[0]);
    if (status == 0)
        return 0;
    if (status == 127 && !words.kept[0])
        printf("%s: this machine has no %s\n", what, arguments[0]);
    else if (strstr(words.kept, "No module named pip"))
        printf("%s: this machine has no pip (Debian: apt install python3-pip)\n", what);
    else if (words.kept[0])
        printf("%s: %s\n", what, words.kept);
    else
        printf("%s: ended with status %d\n", what, status);
    return -1;
}

static int unpack(const char *path, uint64_t bytes_max)
{
    struct error error;
    struct archive_summary summary;
    const struct archive_limits limits = {
        .bytes_max = bytes_max, .files_max = WHEELS_MAX, .refuses_links = true};
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        printf("%s: %s\n", path, strerrordesc_np(errno));
        return -1;
    }
    if (archive_unpack(fd, &limits, &summary, &error) < 0) {
        printf("%s\n", error.message);
        return -1;
    }
    return 0;
}

static int is_wheel(const struct dirent *item)
{
    return text_ends_with(text_of(item->d_name), TEXT(".whl")) && item->d_name[0] != '-';
}

struct command {
    char *words[ARGUMENTS_MAX + WHEELS_MAX];
    size_t count;
};

static void command_add(struct command *command, const char *word)
{
    command->words[command->count] = strdup(word);
    ASSERT(command->words[command->count]);
    command->words[++command->count] = NULL;
}

static void command_done(struct command *command)
{
    for (size_t i = 0; i < command->count; i++)
        free(command->words[i]);
}

static int make_environment(void)
{
    static const char *const words[] = {"/usr/bin/python3",       "-m",    "venv", "--without-pip",
                                        "--system-site-packages", PACKAGES};
    __attribute__((cleanup(command_done))) struct command command = {.count = 0};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        command_add(&command, words[i]);
    return run(command.words, "python3 -m venv");
}

static int install(struct dirent *const *wheels, int count)
{
    static const char *const words[] = {
        PACKAGES_PYTHON,     "-m", "pip", "install", "-q", "--no-index", "--no-deps",
        "--ignore-installed"};
    __attribute__((cleanup(command_done))) struct command command = {.count = 0};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        command_add(&command, words[i]);
    for (int i = 0; i < count; i++)
        command_add(&command, wheels[i]->d_name);
    fprintf(stderr, "souk: installing %d package%s\n", count, count == 1 ? "" : "s");
    return make_environment() < 0 ? -1 : run(command.words, "pip");
}

int packages_install_main(int argc, char **argv)
{
    struct error error;
    uint64_t bytes_max;
    struct dirent **wheels = NULL;
    if (argc != 3 || text_parse_u64(text_of(argv[2]), &bytes_max, &error) < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    if (unpack(argv[1], bytes_max) < 0)
        return 1;
    const int count = scandir(".", &wheels, is_wheel, alphasort);
    if (count <= 0 || count > WHEELS_MAX) {
        puts("their archive holds no wheel");
        return 1;
    }
    const int result = install(wheels, count);
    for (int i = 0; i < count; i++)
        free(wheels[i]);
    free(wheels);
    return result < 0 ? 1 : 0;
}
