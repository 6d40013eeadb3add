#include "base/assert.h"
#include "base/options_internal.h"
#include "base/units.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LIST_ITEMS_MAX = 256, VALUE_SIZE_MAX = 4096 };

bool option_takes_value(const struct option *option)
{
    return option->kind != OPTION_FLAG;
}

const char *option_environment_get(char *const *environment, const char *name)
{
    const size_t size = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, size) && (*environment)[size] == '=')
            return *environment + size + 1;
    return NULL;
}

static const char *home_directory(struct arena *arena, char *const *environment)
{
    const char *home = option_environment_get(environment, "HOME");
    if (home && home[0] == '/')
        return home;
    struct passwd entry, *found = NULL;
    char *memory = arena_alloc(arena, VALUE_SIZE_MAX);
    if (getpwuid_r(getuid(), &entry, memory, VALUE_SIZE_MAX, &found) || !found)
        return NULL;
    return entry.pw_dir;
}

static const struct {
    const char *variable;
    const char *below_home;
} directory_places[] = {
    [OPTION_DIRECTORY_CONFIG] = {"XDG_CONFIG_HOME", ".config"},
    [OPTION_DIRECTORY_DATA] = {"XDG_DATA_HOME", ".local/share"},
    [OPTION_DIRECTORY_STATE] = {"XDG_STATE_HOME", ".local/state"},
};

int options_directory(struct arena *arena, enum option_directory directory,
                      char *const *environment, const char **out_path, struct error *error)
{
    if (!environment)
        environment = environ;
    const char *base = option_environment_get(environment, directory_places[directory].variable);
    /* The XDG specification: a relative path is to be ignored. */
    if (base && base[0] == '/') {
        *out_path = arena_format(arena, "%s/souk", base);
        return 0;
    }
    const char *home = home_directory(arena, environment);
    if (!home)
        return error_set(error, ERROR_INVALID, "no home folder is known; set HOME or %s",
                         directory_places[directory].variable);
    *out_path = arena_format(arena, "%s/%s/souk", home, directory_places[directory].below_home);
    return 0;
}

static const char *const path_prefixes[] = {
    [OPTION_DIRECTORY_CONFIG] = "{config}",
    [OPTION_DIRECTORY_DATA] = "{data}",
    [OPTION_DIRECTORY_STATE] = "{state}",
};
enum { PATH_PREFIX_COUNT = sizeof(path_prefixes) / sizeof(*path_prefixes) };

const char *option_default(struct arena *arena, const struct option *option)
{
    for (size_t i = 0; option->kind == OPTION_PATH && i < PATH_PREFIX_COUNT; i++)
        if (text_starts_with(text_of(option->default_text), text_of(path_prefixes[i])))
            return arena_format(arena, "~/%s/souk%s", directory_places[i].below_home,
                                option->default_text + strlen(path_prefixes[i]));
    return option->default_text;
}

static int set_path(struct arena *arena, struct text text, char *const *environment,
                    const char **target, struct error *error)
{
    for (size_t i = 0; i < PATH_PREFIX_COUNT; i++) {
        const struct text prefix = text_of(path_prefixes[i]);
        const char *base;
        if (!text_starts_with(text, prefix))
            continue;
        if (options_directory(arena, (enum option_directory)i, environment, &base, error) < 0)
            return -1;
        *target = arena_format(arena, "%s%.*s", base, (int)(text.size - prefix.size),
                               text.data + prefix.size);
        return 0;
    }
    if (text.size == 0)
        return error_set(error, ERROR_INVALID, "a path may not be empty");
    *target = arena_copy_string(arena, text);
    return 0;
}

static int set_choice(const struct option *option, struct text text, int *target,
                      struct error *error)
{
    char allowed[128] = "";
    size_t used = 0;
    for (int i = 0; option->choices[i]; i++) {
        if (text_equal(text, text_of(option->choices[i]))) {
            *target = i;
            return 0;
        }
        const int added = snprintf(allowed + used, sizeof(allowed) - used, "%s%s", i ? ", " : "",
                                   option->choices[i]);
        if (added > 0 && used + (size_t)added < sizeof(allowed))
            used += (size_t)added;
    }
    return error_set(error, ERROR_INVALID, "\"%.*s\" is not one of %s",
                     (int)(text.size < 40 ? text.size : 40), text.data, allowed);
}

static int append_item(struct arena *arena, struct text item, struct option_list *list,
                       struct error *error)
{
    if (list->count >= LIST_ITEMS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d values", LIST_ITEMS_MAX);
    const char **items = arena_alloc(arena, (list->count + 1) * sizeof(*items));
    if (list->count)
        memcpy(items, list->items, list->count * sizeof(*items));
    items[list->count] = arena_copy_string(arena, item);
    *list = (struct option_list){items, list->count + 1};
    return 0;
}

static int set_list(struct arena *arena, const struct option *option, struct text text,
                    struct option_list *list, struct error *error)
{
    if (option->is_positional || option->keeps_commas)
        return append_item(arena, text, list, error);
    bool has_more = true;
    while (has_more) {
        struct text item, rest = {0};
        has_more = text_cut(text, ',', &item, &rest);
        item = text_trim(item);
        if (item.size && append_item(arena, item, list, error) < 0)
            return -1;
        text = rest;
    }
    return 0;
}

static int set_flag(struct text text, bool *target, struct error *error)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        if (text_equal(text, text_of(yes[i])) || text_equal(text, text_of(no[i]))) {
            *target = text_equal(text, text_of(yes[i]));
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID, "write true or false");
}

static int set_integer(const struct option *option, struct text text, void *target,
                       struct error *error)
{
    const bool has_range = option->minimum != option->maximum;
    int64_t value = 0;
    bool is_bad;
    if (option->kind == OPTION_U64) {
        uint64_t natural;
        is_bad = text_parse_u64(text, &natural, error) < 0;
        if (!is_bad && !has_range) {
            *(uint64_t *)target = natural;
            return 0;
        }
        is_bad = is_bad || natural > INT64_MAX;
        value = is_bad ? 0 : (int64_t)natural;
    } else {
        is_bad = text_parse_i64(text, &value, error) < 0;
    }
    if (has_range && (is_bad || value < option->minimum || value > option->maximum))
        return error_set(
            error, ERROR_INVALID, "\"%.*s\" is not a whole number from %" PRId64 " to %" PRId64,
            (int)(text.size < 40 ? text.size : 40), text.data, option->minimum, option->maximum);
    if (is_bad)
        return error_set(error, ERROR_INVALID, "\"%.*s\" is not a whole number",
                         (int)(text.size < 40 ? text.size : 40), text.data);
    if (option->kind == OPTION_U64)
        *(uint64_t *)target = (uint64_t)value;
    else
        *(int64_t *)target = value;
    return 0;
}

static int set_duration(const struct option *option, struct text text, int64_t *target,
                        struct error *error)
{
    char least[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
    int64_t ms;
    if (units_parse_duration(text, &ms, error) < 0)
        return -1;
    if (option->minimum != option->maximum && (ms < option->minimum || ms > option->maximum))
        return error_set(error, ERROR_INVALID, "must be from %s to %s",
                         units_format_duration(option->minimum, least),
                         units_format_duration(option->maximum, most));
    *target = ms;
    return 0;
}

static int set_credits(const struct option *option, struct text text, int64_t *target,
                       struct error *error)
{
    char least[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
    int64_t micro;
    if (units_parse_credits(text, &micro, error) < 0)
        return -1;
    if (option->minimum != option->maximum && (micro < option->minimum || micro > option->maximum))
        return error_set(error, ERROR_INVALID, "must be from %s to %s",
                         units_format_credits(option->minimum, least),
                         units_format_credits(option->maximum, most));
    *target = micro;
    return 0;
}

static int set_share(const struct option *option, struct text text, int64_t *target,
                     struct error *error)
{
    int64_t milli;
    if (units_parse_share(text, &milli, error) < 0)
        return -1;
    if (option->minimum != option->maximum && (milli < option->minimum || milli > option->maximum))
        return error_set(error, ERROR_INVALID, "must be from %g %% to %g %%",
                         (double)option->minimum / 10, (double)option->maximum / 10);
    *target = milli;
    return 0;
}

int option_set_value(struct arena *arena, const struct option *option, struct text text,
                     char *const *environment, void *target, struct error *error)
{
    if (text.size > VALUE_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "longer than %d bytes", VALUE_SIZE_MAX);
    switch (option->kind) {
    case OPTION_FLAG:
        return set_flag(text, target, error);
    case OPTION_TEXT:
        *(const char **)target = arena_copy_string(arena, text);
        return 0;
    case OPTION_PATH:
        return set_path(arena, text, environment, target, error);
    case OPTION_U64:
    case OPTION_I64:
        return set_integer(option, text, target, error);
    case OPTION_DURATION:
        return set_duration(option, text, target, error);
    case OPTION_BYTES:
        return units_parse_bytes(text, target, error);
    case OPTION_SHARE:
        return set_share(option, text, target, error);
    case OPTION_CORES:
        return units_parse_cores(text, target, error);
    case OPTION_CREDITS:
        return set_credits(option, text, target, error);
    case OPTION_CHOICE:
        return set_choice(option, text, target, error);
    case OPTION_LIST:
        return set_list(arena, option, text, target, error);
    }
    UNREACHABLE("a kind of option without a reader");
    return -1;
}
