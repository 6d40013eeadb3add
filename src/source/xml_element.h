/*
 * XML element: one found in the plain XML that AWS's services answer with: elements within
 * elements, without attributes but on the outermost.
 *
 * Strangers wrote it: nothing is read outside the text, and what is not closed is not found.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* What stands between the first <name> and its </name>, those of the same name within it included,
 * and what follows. `xml` may be *out_rest. */
bool xml_element_cut(struct text xml, const char *name, struct text *out_content,
                     struct text *out_rest);
/* Without what follows. */
bool xml_element_find(struct text xml, const char *name, struct text *out_content);
/* The same, without blanks around it and with its five entities as they are meant; cut short where
 * it is longer, and what is not plain is '?'. "" when there is none. Returns `out`. */
const char *xml_element_copy(struct text xml, const char *name, char *out, size_t out_size);
