#include "base/buffer.h"
#include "base/file.h"
#include "base/options_internal.h"
#include "base/zone.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static const char *take_name(struct arena *arena, struct text name)
{
    struct error ignored; /* what is no name is passed over */
    return zone_check_name(name, &ignored) == 0 ? arena_copy_string(arena, name) : NULL;
}

static const char *of_variable(struct arena *arena, char *const *environment)
{
    const char *value = option_environment_get(environment, "TZ");
    if (value && value[0] == ':')
        value++;
    return value ? take_name(arena, text_of(value)) : NULL;
}

static const char *of_file(struct arena *arena, const char *etc)
{
    struct error ignored;
    struct buffer file AUTO_BUFFER;
    buffer_init(&file, 4096);
    if (file_read(arena_format(arena, "%s/timezone", etc), &file, &ignored) < 0)
        return NULL;
    return take_name(arena, text_trim(buffer_text(&file)));
}

static const char *of_link(struct arena *arena, const char *etc)
{
    char target[PATH_MAX];
    const ssize_t size =
        readlink(arena_format(arena, "%s/localtime", etc), target, sizeof(target) - 1);
    if (size < 0)
        return NULL;
    target[size] = '\0';
    const char *folder = strstr(target, "/zoneinfo/");
    return folder ? take_name(arena, text_of(folder + strlen("/zoneinfo/"))) : NULL;
}

const char *options_time_zone(struct arena *arena, char *const *environment, const char *etc)
{
    const char *name = of_variable(arena, environment ? environment : environ);
    if (!name)
        name = of_file(arena, etc);
    if (!name)
        name = of_link(arena, etc);
    return name ? name : "UTC";
}
