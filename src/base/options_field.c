/* Refusals by the API, said in the words of the command line. */
#include "base/options.h"
#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum field_unit { UNIT_NONE, UNIT_MS, UNIT_BYTES, UNIT_MICRO, UNIT_MILLI, UNIT_KBIT };

/* Longest first where one ends like another. */
static const struct {
    const char *suffix;
    enum field_unit unit;
} suffixes[] = {{"_share_milli", UNIT_MILLI},
                {"_microcredits", UNIT_MICRO},
                {"_micro", UNIT_MICRO},
                {"_milli", UNIT_MILLI},
                {"_bytes", UNIT_BYTES},
                {"_kbit", UNIT_KBIT},
                {"_ms", UNIT_MS}};

/* "max_lease_ms" is "max_lease" in milliseconds. */
static struct text cut_unit(struct text field, enum field_unit *out_unit)
{
    *out_unit = UNIT_NONE;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        const struct text suffix = text_of(suffixes[i].suffix);
        if (text_ends_with(field, suffix)) {
            *out_unit = suffixes[i].unit;
            return (struct text){field.data, field.size - suffix.size};
        }
    }
    return field;
}

static const char *format_value(enum field_unit unit, int64_t value, char out[UNITS_TEXT_SIZE])
{
    switch (unit) {
    case UNIT_MS:
        return units_format_duration(value, out);
    case UNIT_BYTES:
        return units_format_bytes(value, out);
    case UNIT_MICRO:
        return units_format_credits(value, out);
    case UNIT_MILLI:
        snprintf(out, UNITS_TEXT_SIZE, "%.15g", (double)value / 1000.0);
        return out;
    case UNIT_KBIT:
        snprintf(out, UNITS_TEXT_SIZE, "%.15g Mbit", (double)value / 1000.0);
        return out;
    case UNIT_NONE:
        break;
    }
    snprintf(out, UNITS_TEXT_SIZE, "%" PRId64, value);
    return out;
}

/* The whole numbers of `text` in the field's unit; others as they are. */
static void append_values(struct buffer *out, struct text text, enum field_unit unit)
{
    for (size_t i = 0; i < text.size;) {
        const bool is_start =
            isdigit((unsigned char)text.data[i]) && (i == 0 || text.data[i - 1] == ' ');
        size_t size = 0;
        while (is_start && i + size < text.size && isdigit((unsigned char)text.data[i + size]))
            size++;
        int64_t value;
        struct error ignored;
        char shown[UNITS_TEXT_SIZE];
        if (size > 0 && unit != UNIT_NONE &&
            text_parse_i64((struct text){text.data + i, size}, &value, &ignored) == 0)
            buffer_append_string(out, format_value(unit, value, shown));
        else
            buffer_append_text(out, (struct text){text.data + i, size ? size : 1});
        i += size ? size : 1;
    }
}

/* "offer.minimum.core_micro: must be ..." is about core_micro, within minimum, within offer. */
static struct text field_of(struct text message)
{
    size_t size = 0;
    while (size < message.size &&
           (isalnum((unsigned char)message.data[size]) || strchr("_.[]", message.data[size])))
        size++;
    const bool is_field =
        size < message.size && (message.data[size] == ':' || message.data[size] == ' ');
    return (struct text){message.data, is_field ? size : 0};
}

static void rename_field(struct error *error, struct text field, enum field_unit unit,
                         const char *name)
{
    const struct text message = text_of(error->message);
    struct text rest = {message.data + field.size, message.size - field.size};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, sizeof(error->message) - 1);
    buffer_append_string(&out, name);
    append_values(&out, rest, unit);
    struct error too_long;
    if (buffer_check(&out, &too_long) == 0)
        snprintf(error->message, sizeof(error->message), "%s", buffer_string(&out));
}

void options_name_field(struct error *error, const char *field, const char *name)
{
    enum field_unit unit;
    const struct text found = field_of(text_of(error->message));
    if (!text_equal(found, text_of(field)))
        return;
    cut_unit(found, &unit);
    rename_field(error, found, unit, name);
}

/* One part of a path such as offer.minimum.core_micro is the option's. */
static bool is_named(const struct option *option, struct text path)
{
    struct text part, word;
    enum field_unit unit;
    for (bool has_part = true; has_part;) {
        has_part = text_cut(path, '.', &part, &path);
        if (text_equal(part, text_of(option->name)) ||
            text_equal(cut_unit(part, &unit), text_of(option->name)))
            return true;
        struct text fields = text_of(option->fields ? option->fields : "");
        for (bool has_more = fields.size > 0; has_more;) {
            has_more = text_cut(fields, ' ', &word, &fields);
            if (text_equal(part, word))
                return true;
        }
    }
    return false;
}

/* A name with an underline or within market: one that is no word of the language. */
static size_t field_size(struct text words)
{
    size_t size = 0;
    while (size < words.size && (islower((unsigned char)words.data[size]) ||
                                 words.data[size] == '_' || words.data[size] == '.'))
        size++;
    while (size > 0 && words.data[size - 1] == '.') /* a sentence's */
        size--;
    return size;
}

static const struct option *find_named(const struct command *command, struct text field)
{
    for (size_t i = 0; field.size && i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        if (!option->is_hidden && !option->is_positional && is_named(option, field))
            return option;
    }
    return NULL;
}

/* "NAME: VALUE" at the front of `words`, its quotes included; how much of them that is, or 0. */
static size_t append_setting(const struct command *command, struct text words, struct arena *arena,
                             struct buffer *out)
{
    static const struct text places[] = {TEXT(" under market in the job file"),
                                         TEXT(" under market")};
    struct text inner = {words.data + 1, words.size - 1}, quoted, name, value, rest;
    if (!text_cut(inner, '"', &quoted, &rest) || !text_cut(quoted, ':', &name, &value))
        return 0;
    const struct option *option = find_named(command, name);
    if (!option)
        return 0;
    buffer_append_string(out, "\"");
    buffer_append_string(out, option_flag(arena, option));
    value = text_trim(value);
    const bool has_space = memchr(value.data, ' ', value.size) != NULL;
    if (option->kind != OPTION_FLAG)
        buffer_append_format(out, has_space ? " '" TEXT_FORMAT "'" : " " TEXT_FORMAT,
                             TEXT_ARGS(value));
    buffer_append_string(out, "\"");
    for (size_t i = 0; i < 2; i++)
        if (text_starts_with(rest, places[i])) {
            rest = (struct text){rest.data + places[i].size, rest.size - places[i].size};
            break;
        }
    return words.size - rest.size;
}

void options_name_advice(const struct command *command, struct text words, struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    bool is_start = true; /* of a word */
    while (words.size > 0) {
        size_t taken = words.data[0] == '"' ? append_setting(command, words, arena, out) : 0;
        const size_t size = is_start && !taken ? field_size(words) : 0;
        const struct text field = {words.data, size};
        const bool is_field =
            size && (memchr(field.data, '_', size) || text_starts_with(field, TEXT("market.")) ||
                     text_starts_with(field, TEXT("resources.")));
        const struct option *option = is_field ? find_named(command, field) : NULL;
        if (option) {
            buffer_append_string(out, option_flag(arena, option));
            taken = size;
        }
        if (!taken) {
            taken = size ? size : 1;
            buffer_append_text(out, (struct text){words.data, taken});
        }
        is_start = !isalnum((unsigned char)words.data[taken - 1]) && words.data[taken - 1] != '-';
        words = (struct text){words.data + taken, words.size - taken};
    }
}

void options_name_fields(const struct command *command, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    enum field_unit unit;
    const struct text field = field_of(text_of(error->message));
    if (field.size == 0)
        return;
    cut_unit(field, &unit);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        if (option->is_hidden || !is_named(option, field))
            continue;
        rename_field(error, field, unit,
                     option->is_positional && option->value_name ? option->value_name
                                                                 : option_flag(arena, option));
        return;
    }
}
