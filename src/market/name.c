#include "market/name.h"

static bool is_name_character(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
           character == '-';
}

int name_check(struct text name, const char *noun, struct error *error)
{
    bool is_good = name.size > 0 && name.size < MARKET_NAME_SIZE;
    for (size_t i = 0; i < name.size && is_good; i++)
        is_good = is_name_character(name.data[i]);
    if (is_good)
        return 0;
    const struct text shown = {name.data, name.size > 60 ? 60 : name.size};
    return error_set(error, ERROR_INVALID,
                     "%s name \"" TEXT_FORMAT "\" is not 1 to %d characters of a-z, 0-9 and -",
                     noun, TEXT_ARGS(shown), MARKET_NAME_SIZE - 1);
}

bool name_is_reserved(struct text name)
{
    return text_equal(name, TEXT("mint")) || text_equal(name, TEXT("operator")) ||
           text_equal(name, TEXT("market")) || text_starts_with(name, TEXT("deleted-"));
}

int name_check_line(struct text text, const char *noun, size_t size_max, struct error *error)
{
    if (name_check_text(text, noun, size_max, error) < 0)
        return -1;
    if (!text_is_plain(text))
        return error_set(error, ERROR_INVALID,
                         "%s has a line break or a character in it that is not shown", noun);
    return 0;
}

int name_check_text(struct text text, const char *noun, size_t size_max, struct error *error)
{
    if (text.size > size_max)
        return error_set(error, ERROR_INVALID, "%s is longer than %zu bytes", noun, size_max);
    if (!text_is_utf8(text))
        return error_set(error, ERROR_INVALID, "%s is not UTF-8 text", noun);
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char byte = (unsigned char)text.data[i];
        if ((byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7f)
            return error_set(error, ERROR_INVALID, "%s has a control character in it", noun);
    }
    return 0;
}
