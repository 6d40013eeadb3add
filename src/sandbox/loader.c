#include "sandbox/loader.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of the folder the file lies in, which is added where it is new; -1 with errno. */
static int add_folder(struct loader *loader, const char *file, char out_name[LOADER_PATH_SIZE])
{
    char path[PATH_MAX];
    if (!realpath(file, path))
        return -1;
    char *slash = strrchr(path, '/');
    if (!slash || slash == path || strlen(path) >= LOADER_PATH_SIZE) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *slash = '\0';
    memcpy(out_name, slash + 1, strlen(slash + 1) + 1);
    for (size_t i = 0; i < loader->folder_count; i++)
        if (strcmp(loader->folders[i], path) == 0)
            return (int)i;
    if (loader->folder_count == LOADER_FOLDERS_MAX) {
        errno = E2BIG;
        return -1;
    }
    memcpy(loader->folders[loader->folder_count], path, strlen(path) + 1); /* it fits: see above */
    return (int)loader->folder_count++;
}

static int take_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loader *loader = context;
    char name[LOADER_PATH_SIZE];
    (void)size;
    if (info->dlpi_name[0] == '/')
        return add_folder(loader, info->dlpi_name, name) < 0 ? -1 : 0;
    if (info->dlpi_name[0] != '\0')
        return 0; /* the kernel's own */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_INTERP)
            continue;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): where the kernel put it
        const char *own = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const int folder = add_folder(loader, own, name);
        if (folder < 0)
            return -1;
        snprintf(loader->path, sizeof(loader->path), LOADER_INSIDE "%d/%.200s", folder, name);
    }
    return 0;
}

int loader_find(struct loader *out_loader)
{
    struct loader loader = {0};
    if (dl_iterate_phdr(take_object, &loader) != 0)
        return -1;
    size_t size = 0;
    for (size_t i = 0; i < loader.folder_count; i++)
        size += (size_t)snprintf(loader.libraries + size, sizeof(loader.libraries) - size,
                                 "%s" LOADER_INSIDE "%zu", i > 0 ? ":" : "", i);
    *out_loader = loader;
    return 0;
}
