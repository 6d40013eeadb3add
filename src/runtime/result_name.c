#include "runtime/result_name.h"

static const char *part_trouble(struct text part, size_t size_max)
{
    if (part.size == 0)
        return "its name is empty";
    if (part.data[0] == '.')
        return "its name begins with a dot";
    if (part.size > size_max)
        return "its name is longer than 240 bytes";
    return text_is_plain(part) ? NULL : "its name has a character that no terminal shows";
}

static const char *path_trouble(struct text name, size_t prefix_size)
{
    if (name.size > RESULT_NAME_SIZE_MAX + prefix_size)
        return "its path is longer than 512 bytes";
    if (!text_is_utf8(name))
        return "its name is not UTF-8";
    struct text part, rest = name;
    for (bool has_more = true; has_more;) {
        has_more = text_cut(rest, '/', &part, &rest);
        const char *trouble = part_trouble(part, RESULT_PART_SIZE_MAX + prefix_size);
        if (trouble)
            return trouble;
    }
    return NULL;
}

const char *result_name_trouble(struct text name)
{
    return path_trouble(name, 0);
}

bool result_name_is_good(struct text name)
{
    return !result_name_trouble(name);
}

bool result_name_is_fetchable(struct text name)
{
    return !path_trouble(name, RESULT_PREFIX_SIZE_MAX);
}

bool result_name_is_left_out(struct text name)
{
    return text_equal(name, TEXT(RESULT_LEFT_OUT_NAME)) ||
           text_ends_with(name, TEXT("-" RESULT_LEFT_OUT_NAME));
}
