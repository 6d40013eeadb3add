#include "sandbox/uncounted.h"

#include "base/scope.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

enum {
    FILE_BYTES = 4096,              /* each file in a tmpfs */
    LOCAL_SOCKET_BYTES = 416 << 10, /* what it begins with and cannot raise, as the kernel counts */
    TCP_SOCKET_BYTES = 4 << 20,     /* it grows by itself */
    LINE_SIZE = 256,
};

/* While bubblewrap prepares, what it has is still the host's. */
static bool has_own(pid_t inner, const char *name)
{
    char path[64], own_path[64];
    struct stat own, inside;
    snprintf(own_path, sizeof(own_path), "/proc/self/%s", name);
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)inner, name);
    return stat(own_path, &own) == 0 && stat(path, &inside) == 0 &&
           (own.st_dev != inside.st_dev || own.st_ino != inside.st_ino);
}

static int64_t file_bytes(pid_t inner)
{
    static const char *const folders[] = {"tmp", "dev/shm"};
    int64_t count = 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char path[64];
        struct statfs status;
        snprintf(path, sizeof(path), "/proc/%d/root/%s", (int)inner, folders[i]);
        if (statfs(path, &status) == 0)
            count += (int64_t)(status.f_files - status.f_ffree);
    }
    return count * FILE_BYTES;
}

static int64_t bytes_of_protocol(const char *name)
{
    if (strncmp(name, "TCP", 3) == 0)
        return TCP_SOCKET_BYTES;
    return strncmp(name, "UNIX", 4) == 0 || strncmp(name, "UDP", 3) == 0 ? LOCAL_SOCKET_BYTES : 0;
}

/* A table of the namespace's own: the sockets of each protocol, in whose hands they may be. */
static int64_t socket_bytes(pid_t inner)
{
    char path[64], line[LINE_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/net/protocols", (int)inner);
    AUTO_FILE FILE *file = fopen(path, "re");
    int64_t bytes = 0;
    while (file && fgets(line, sizeof(line), file)) {
        char name[32];
        long long count = 0;
        // NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers; a heading has none
        if (sscanf(line, "%31s %*s %lld", name, &count) == 2)
            bytes += count * bytes_of_protocol(name);
    }
    return bytes;
}

int64_t uncounted_bytes(pid_t inner)
{
    if (inner <= 0)
        return 0;
    return (has_own(inner, "root/.") ? file_bytes(inner) : 0) +
           (has_own(inner, "ns/net") ? socket_bytes(inner) : 0);
}
