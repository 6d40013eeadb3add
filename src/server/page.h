/*
 * Page: the files that are part of the program: the web page and openapi.json.
 *
 * The table is written by tools/embed.py when the program is built, from web/dist, or from
 * placeholder/ when the page was not built.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct page_file {
    const char *path; /* "/index.html" */
    const char *content_type;
    const char *etag; /* with its quotes */
    struct text data;
    const char *packed_etag;
    struct text packed; /* by gzip; empty where that saves nothing */
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

/*
 * The file for a request's path; "/" is "/index.html", and so is a path below no folder and without
 * a dot, which the page resolves itself. NULL: there is none.
 */
const struct page_file *page_find(struct text path);

struct page_form {
    const char *etag;
    const char *coding; /* as in Content-Encoding; NULL: as it is */
    struct text data;
};

/* The form of a file for whoever sent this Accept-Encoding. */
struct page_form page_form(const struct page_file *file, struct text accept_encoding);

/* Built files carry a hash in their names (/assets/x-HASH.js): browsers may keep them for ever. */
bool page_is_immutable(const struct page_file *file);

/* Whether an If-None-Match header names this ETag, weak or among others (RFC 9110, 13.1.2). */
bool page_etag_matches(const char *etag, struct text if_none_match);
