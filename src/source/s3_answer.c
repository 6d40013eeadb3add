#include "source/s3_answer.h"

#include <stdio.h>
#include <string.h>

enum { TAG_SIZE = 64 };

/* The content of the first <name>, and what follows its end. */
static bool cut_element(struct text xml, const char *name, struct text *out_content,
                        struct text *out_rest)
{
    char begin[TAG_SIZE], end[TAG_SIZE];
    const int begin_size = snprintf(begin, sizeof(begin), "<%s>", name);
    const int end_size = snprintf(end, sizeof(end), "</%s>", name);
    if (xml.size == 0 || begin_size >= TAG_SIZE || end_size >= TAG_SIZE)
        return false;
    const char *found = memmem(xml.data, xml.size, begin, (size_t)begin_size);
    if (!found)
        return false;
    const char *content = found + begin_size;
    const size_t left = xml.size - (size_t)(content - xml.data);
    const char *closing = memmem(content, left, end, (size_t)end_size);
    if (!closing)
        return false;
    const size_t size = (size_t)(closing - content);
    *out_content = (struct text){content, size};
    *out_rest = (struct text){closing + end_size, left - size - (size_t)end_size};
    return true;
}

bool s3_answer_find(struct text xml, const char *name, struct text *out_content)
{
    struct text rest;
    return cut_element(xml, name, out_content, &rest);
}

bool s3_answer_next(struct text *rest, struct s3_object *out_object)
{
    struct text contents;
    struct text size;
    struct error error;
    return cut_element(*rest, "Contents", &contents, rest) &&
           s3_answer_find(contents, "Key", &out_object->key) &&
           s3_answer_find(contents, "Size", &size) &&
           text_parse_u64(text_trim(size), &out_object->size, &error) == 0;
}
