#include "train/csv_record.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void csv_record_init(struct csv_record *record, struct data_stream *stream, uint32_t count_max)
{
    *record = (struct csv_record){.stream = stream, .count_max = count_max};
    buffer_init(&record->bytes, DATA_LINE_MAX + (size_t)1);
}

void csv_record_done(struct csv_record *record)
{
    buffer_done(&record->bytes);
    free(record->fields);
}

static char find_separator(struct text line)
{
    static const char separators[] = {',', ';', '\t'};
    for (size_t i = 0; i < sizeof(separators); i++)
        if (memchr(line.data, separators[i], line.size))
            return separators[i];
    return memchr(line.data, ' ', line.size) ? ' ' : ',';
}

static int add_field(struct csv_record *record, struct text field, struct error *error)
{
    if (record->count == record->count_max)
        return error_set(error, ERROR_INVALID, "line %" PRIu64 ": more than %u fields",
                         record->line, record->count_max);
    if (record->count == record->room) {
        record->room = record->room ? 2 * record->room : 64;
        record->fields = realloc(record->fields, record->room * sizeof(*record->fields));
        ASSERT(record->fields);
    }
    record->fields[record->count++] = field;
    return 0;
}

struct quoting {
    bool is_quoted;
    bool is_start; /* of a field: only there a quote opens */
};

/* Goes on over one line, or the break behind it. */
static void follow(struct quoting *quoting, struct text bytes, char separator)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const char c = bytes.data[i];
        if (quoting->is_quoted) {
            if (c == '"' && i + 1 < bytes.size && bytes.data[i + 1] == '"')
                i++;
            else if (c == '"')
                quoting->is_quoted = false;
        } else if (c == '"' && quoting->is_start) {
            quoting->is_quoted = true;
        }
        quoting->is_start = c == separator && !quoting->is_quoted;
    }
}

/* Takes the quotes off in place; `at` stands behind the first. Returns where the field ends. */
static char *unquote(char *at, const char *end, struct text *out_field)
{
    char *start = at, *to = at;
    while (at < end && (*at != '"' || (at + 1 < end && at[1] == '"'))) {
        at += *at == '"';
        *to++ = *at++;
    }
    *out_field = (struct text){start, (size_t)(to - start)};
    return at < end ? at + 1 : NULL;
}

static int split(struct csv_record *record, struct error *error)
{
    char *at = (char *)record->bytes.data, *end = at + record->bytes.size;
    const char separator = record->separator;
    const bool is_blank = separator == ' ';
    while (is_blank && at < end && (*at == ' ' || *at == '\t'))
        at++;
    for (;;) {
        struct text field;
        if (at < end && *at == '"') {
            char *const opened = at;
            at = unquote(at + 1, end, &field);
            if (!at)
                return error_set(error, ERROR_INVALID,
                                 "line %" PRIu64 ", column %u: a quote is not closed (byte %zu of "
                                 "the line)",
                                 record->line, record->count + 1,
                                 (size_t)(opened - (char *)record->bytes.data));
            while (at < end && *at == ' ')
                at++;
            if (at < end && *at != separator && !is_blank)
                return error_set(error, ERROR_INVALID,
                                 "line %" PRIu64 ", column %u: something follows a quoted field",
                                 record->line, record->count + 1);
        } else {
            char *start = at;
            while (at < end && *at != separator && !(is_blank && *at == '\t'))
                at++;
            field = text_trim((struct text){start, (size_t)(at - start)});
        }
        if (add_field(record, field, error) < 0)
            return -1;
        while (is_blank && at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at >= end)
            return 0;
        at += !is_blank;
    }
}

static int next_line(struct csv_record *record, struct text *out_line, bool *out_has_line,
                     struct error *error)
{
    const struct text mark = TEXT("\xef\xbb\xbf");
    do {
        if (data_stream_line(record->stream, out_line, out_has_line, error) < 0)
            return -1;
        if (*out_has_line && data_stream_line_number(record->stream) == 1 &&
            text_starts_with(*out_line, mark))
            *out_line = (struct text){out_line->data + mark.size, out_line->size - mark.size};
    } while (*out_has_line && text_trim(*out_line).size == 0);
    return 0;
}

int csv_record_next(struct csv_record *record, bool *out_has_record, struct error *error)
{
    struct text line;
    if (next_line(record, &line, out_has_record, error) < 0)
        return -1;
    if (!*out_has_record)
        return 0;
    if (!record->separator)
        record->separator = find_separator(line);
    record->line = data_stream_line_number(record->stream);
    record->count = 0;
    buffer_clear(&record->bytes);
    buffer_append_text(&record->bytes, line);
    struct quoting quoting = {.is_start = true};
    if (memchr(line.data, '"', line.size))
        follow(&quoting, line, record->separator);
    while (quoting.is_quoted) {
        bool has_more;
        if (data_stream_line(record->stream, &line, &has_more, error) < 0)
            return -1;
        if (!has_more)
            break; /* which split refuses */
        buffer_append_byte(&record->bytes, '\n');
        buffer_append_text(&record->bytes, line);
        if (record->bytes.is_overflowed)
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ": a record is longer than %d bytes: a quote may not "
                             "be closed",
                             record->line, DATA_LINE_MAX);
        follow(&quoting, line, record->separator);
    }
    return split(record, error);
}

bool csv_is_missing(struct text text)
{
    static const char *const words[] = {"NA", "N/A", "nan", "null", "none", "?"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (text.size == strlen(words[i]) && !strncasecmp(text.data, words[i], text.size))
            return true;
    return text.size == 0;
}

/* The digits as an integer, and where the point stands: exact as long as both are small, which is
 * what files hold. Anything else is the library's. */
bool csv_number_parse(struct text text, double *out_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = text.data, *end = text.data + text.size;
    const bool is_negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    uint64_t digits = 0;
    int count = 0, places = 0;
    bool has_point = false;
    for (; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !has_point)); at++) {
        if (*at == '.') {
            has_point = true;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*at - '0');
        count++;
        places += has_point;
    }
    if (count == 0)
        return false;
    if (at == end && count <= 15) {
        const double value = (double)digits / powers[places];
        *out_value = is_negative ? -value : value;
        return true;
    }
    char copy[64];
    struct error ignored;
    if (text_copy(text, copy, sizeof(copy), &ignored) < 0 || strpbrk(copy, "xXnNiIpP"))
        return false;
    char *rest = NULL;
    *out_value = strtod(copy, &rest);
    return *rest == '\0' && isfinite(*out_value);
}
