#include "server/page.h"

#include "net/http.h"

#include <string.h>

static const struct page_file *find_exact(struct text path)
{
    for (size_t i = 0; i < page_file_count; i++)
        if (text_equal(path, text_of(page_files[i].path)))
            return &page_files[i];
    return NULL;
}

const struct page_file *page_find(struct text path)
{
    const struct page_file *file = find_exact(path);
    if (file || path.size == 0 || path.data[0] != '/')
        return file;
    const struct text rest = {path.data + 1, path.size - 1};
    if (memchr(rest.data, '/', rest.size) || memchr(rest.data, '.', rest.size))
        return NULL;
    return find_exact(TEXT("/index.html"));
}

struct page_form page_form(const struct page_file *file, struct text accept_encoding)
{
    if (file->packed.size && http_accepts_coding(accept_encoding, TEXT("gzip")))
        return (struct page_form){file->packed_etag, "gzip", file->packed};
    return (struct page_form){file->etag, NULL, file->data};
}

bool page_is_immutable(const struct page_file *file)
{
    return text_starts_with(text_of(file->path), TEXT("/assets/"));
}

bool page_etag_matches(const char *etag, struct text if_none_match)
{
    struct text rest = if_none_match;
    while (rest.size) {
        struct text tag;
        text_cut(rest, ',', &tag, &rest);
        tag = text_trim(tag);
        if (text_starts_with(tag, TEXT("W/")))
            tag = (struct text){tag.data + 2, tag.size - 2};
        if (text_equal(tag, TEXT("*")) || text_equal(tag, text_of(etag)))
            return true;
    }
    return false;
}
