#include "peer/watch.h"

#include "base/scope.h"
#include "base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES_MAX = 4096 };

bool watch_read(const char *root, const char *path, char *out, size_t out_size)
{
    char whole[PATH_MAX];
    if (snprintf(whole, sizeof(whole), "%s%s", root, path) >= (int)sizeof(whole))
        return false;
    AUTO_FD int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    size_t size = 0;
    ssize_t got = 0;
    while (size < out_size - 1 && (got = read(fd, out + size, out_size - 1 - size)) > 0)
        size += (size_t)got;
    out[size] = '\0';
    return got >= 0;
}

int64_t watch_read_number(const char *root, const char *path)
{
    char text[32];
    int64_t number;
    struct error ignored; /* a file that holds something else says nothing */
    if (!watch_read(root, path, text, sizeof(text)) ||
        text_parse_i64(text_trim(text_of(text)), &number, &ignored) < 0)
        return GUARD_UNKNOWN;
    return number;
}

void watch_each(const char *root, const char *folder, watch_entry_function *callback, void *context)
{
    char whole[PATH_MAX];
    if (snprintf(whole, sizeof(whole), "%s%s", root, folder) >= (int)sizeof(whole))
        return;
    DIR *entries = opendir(whole);
    if (!entries)
        return;
    const struct dirent *entry;
    int count = 0;
    while (count++ < ENTRIES_MAX &&
           (entry = readdir(entries))) // NOLINT(concurrency-mt-unsafe): the stream is not shared
        if (entry->d_name[0] != '.')
            callback(context, folder, entry->d_name);
    closedir(entries);
}

int64_t watch_shortest_ms(int64_t left_ms, int64_t right_ms)
{
    if (left_ms < 0 || right_ms < 0)
        return left_ms < 0 ? right_ms : left_ms;
    return left_ms < right_ms ? left_ms : right_ms;
}
