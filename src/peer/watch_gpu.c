/* Load on the GPUs, where the kernel's driver says it (amdgpu). */
#include "peer/watch.h"

#include <stdio.h>
#include <string.h>

struct cards {
    const char *root;
    int64_t load_milli;
};

static void see_card(void *context, const char *folder, const char *name)
{
    struct cards *cards = context;
    char path[PATH_MAX];
    if (strncmp(name, "card", 4) != 0 || strchr(name, '-'))
        return;
    snprintf(path, sizeof(path), "%s/%s/device/gpu_busy_percent", folder, name);
    const int64_t percent = watch_read_number(cards->root, path);
    if (percent >= 0 && percent * 10 > cards->load_milli)
        cards->load_milli = percent * 10;
}

int64_t watch_gpu_read(const char *root)
{
    struct cards cards = {root, GUARD_UNKNOWN};
    watch_each(root, "/sys/class/drm", see_card, &cards);
    return cards.load_milli;
}
