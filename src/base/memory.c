#include "base/memory.h"

#include "base/assert.h"
#include "base/scope.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_SIZE = 4608 }; /* a path at its longest and what stands before it */

void *memory_zeroed(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    ASSERT(memory);
    return memory;
}

/* "start-end r-xp offset device inode path": code that is mapped from a file. */
static void trim_mapping(const char *line)
{
    uintptr_t start;
    uintptr_t end;
    char rights[5];
    int path_at = 0;
    /* Only code: read-only data may be relocated pages, which the file does not hold.
     * NOLINTNEXTLINE(cert-err34-c): the kernel writes it. */
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &start, &end, rights,
               &path_at) == 3 &&
        strcmp(rights, "r-xp") == 0 && line[path_at] == '/')
        (void)madvise((void *)start, /* NOLINT(performance-no-int-to-ptr) */
                      end - start, MADV_DONTNEED);
}

void memory_trim(void)
{
    (void)malloc_trim(0);
    AUTO_FILE FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return;
    char line[LINE_SIZE];
    while (fgets(line, sizeof(line), maps))
        trim_mapping(line);
}

void memory_want_huge(void *start, size_t size)
{
    const uintptr_t page = 4096;
    const uintptr_t first = ((uintptr_t)start + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)start + size) & ~(page - 1);
    if (end > first)
        (void)madvise((void *)first, /* NOLINT(performance-no-int-to-ptr) */
                      end - first, MADV_HUGEPAGE);
}

long long memory_resident_bytes(void)
{
    AUTO_FILE FILE *status = fopen("/proc/self/status", "re");
    if (!status)
        return 0;
    char line[256];
    long long kilobytes;
    while (fgets(line, sizeof(line), status))
        if (sscanf(line, "VmRSS: %lld kB", &kilobytes) == 1) /* NOLINT(cert-err34-c) */
            return kilobytes * 1024;
    return 0;
}
