#include "net/http.h"

#include "base/json.h"

#include <string.h>

const char *http_status_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Unknown";
}

void http_problem_write(struct buffer *buffer, int status, const char *code, const char *detail)
{
    struct json_writer writer;
    json_writer_init(&writer, buffer);
    json_object_begin(&writer);
    json_field_string(&writer, "type", "about:blank");
    json_field_string(&writer, "title", http_status_title(status));
    json_field_i64(&writer, "status", status);
    json_field_string(&writer, "detail", detail);
    json_field_string(&writer, "code", code);
    json_object_end(&writer);
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

int http_percent_decode(struct text text, char *out, size_t *out_size, struct error *error)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            const int high = i + 2 < text.size ? hex_value(text.data[i + 1]) : -1;
            const int low = i + 2 < text.size ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return error_set(error, ERROR_INVALID,
                                 "a percent sign is not followed by two hex "
                                 "digits");
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (byte == '\0')
            return error_set(error, ERROR_INVALID, "a zero byte is not allowed here");
        out[size++] = byte;
    }
    out[size] = '\0';
    *out_size = size;
    return 0;
}

void http_percent_encode(struct text text, struct buffer *buffer)
{
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char byte = (unsigned char)text.data[i];
        const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        if (is_letter || (byte >= '0' && byte <= '9') || (byte && strchr("-._~", byte)))
            buffer_append(buffer, &text.data[i], 1);
        else
            buffer_append_format(buffer, "%%%02X", byte);
    }
}

bool http_accepts_coding(struct text header, struct text coding)
{
    struct text rest = header;
    while (rest.size > 0) {
        struct text item;
        struct text name;
        struct text weight;
        struct error error;
        double quality = 1;
        if (!text_cut(rest, ',', &item, &rest))
            rest = (struct text){0};
        const bool has_weight = text_cut(item, ';', &name, &weight);
        if (!text_equal(text_trim(name), coding))
            continue;
        weight = text_trim(weight);
        if (has_weight && text_starts_with(weight, TEXT("q=")) &&
            text_parse_double((struct text){weight.data + 2, weight.size - 2}, &quality, &error) <
                0)
            return false;
        return quality > 0;
    }
    return false;
}

enum http_range_kind http_range_read(struct text header, uint64_t size,
                                     struct http_range *out_range)
{
    const struct text unit = TEXT("bytes=");
    struct text first;
    struct text last;
    struct error error;
    uint64_t from;
    uint64_t to = UINT64_MAX;
    if (!text_starts_with(header, unit) ||
        !text_cut((struct text){header.data + unit.size, header.size - unit.size}, '-', &first,
                  &last) ||
        text_parse_u64(first, &from, &error) < 0 ||
        (last.size > 0 && text_parse_u64(last, &to, &error) < 0) || to < from)
        return HTTP_RANGE_WHOLE;
    if (from >= size)
        return HTTP_RANGE_OUTSIDE;
    *out_range = (struct http_range){from, (to < size ? to + 1 : size) - from};
    return HTTP_RANGE_PART;
}

int64_t http_content_range_first(struct text header)
{
    const struct text unit = TEXT("bytes ");
    struct text first;
    struct text rest;
    struct error error;
    uint64_t from;
    if (!text_starts_with(header, unit) ||
        !text_cut((struct text){header.data + unit.size, header.size - unit.size}, '-', &first,
                  &rest) ||
        text_parse_u64(first, &from, &error) < 0 || from > INT64_MAX)
        return -1;
    return (int64_t)from;
}
