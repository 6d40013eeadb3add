#include "source/xml_element.h"

#include <stdio.h>
#include <string.h>

enum { TAG_SIZE = 64 };

static const char *find(const char *from, const char *end, const char *tag, size_t tag_size)
{
    return from < end ? memmem(from, (size_t)(end - from), tag, tag_size) : NULL;
}

bool xml_element_cut(struct text xml, const char *name, struct text *out_content,
                     struct text *out_rest)
{
    char begin[TAG_SIZE], close[TAG_SIZE];
    const int begin_size = snprintf(begin, sizeof(begin), "<%s>", name);
    const int close_size = snprintf(close, sizeof(close), "</%s>", name);
    if (xml.size == 0 || begin_size >= TAG_SIZE || close_size >= TAG_SIZE)
        return false;
    const char *end = xml.data + xml.size;
    const char *first = find(xml.data, end, begin, (size_t)begin_size);
    if (!first)
        return false;
    const char *content = first + begin_size;
    const char *at = content;
    const char *closing = NULL;
    for (size_t depth = 1;;) {
        if (!closing || closing < at)
            closing = find(at, end, close, (size_t)close_size);
        if (!closing)
            return false;
        const char *inner = find(at, closing, begin, (size_t)begin_size);
        if (inner) {
            depth++;
            at = inner + begin_size;
            continue;
        }
        at = closing + close_size;
        if (--depth > 0)
            continue;
        *out_content = (struct text){content, (size_t)(closing - content)};
        *out_rest = (struct text){at, (size_t)(end - at)};
        return true;
    }
}

bool xml_element_find(struct text xml, const char *name, struct text *out_content)
{
    struct text rest;
    return xml_element_cut(xml, name, out_content, &rest);
}

static const struct entity {
    const char *name;
    char meant;
} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};

static struct text take_character(struct text rest, char *out)
{
    size_t taken = 1;
    *out = rest.data[0];
    for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
        if (text_starts_with(rest, text_of(entities[i].name))) {
            taken = strlen(entities[i].name);
            *out = entities[i].meant;
        }
    return (struct text){rest.data + taken, rest.size - taken};
}

const char *xml_element_copy(struct text xml, const char *name, char *out, size_t out_size)
{
    struct text content;
    size_t size = 0;
    if (xml_element_find(xml, name, &content))
        for (struct text rest = text_trim(content); rest.size && size + 1 < out_size; size++)
            rest = take_character(rest, &out[size]);
    out[size] = '\0';
    text_make_plain(out);
    return out;
}
