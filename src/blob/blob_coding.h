/*
 * Blob coding: a blob's bytes as they travel and lie on a disk: plain, or one zstd frame.
 *
 * A blob is named by its plain bytes whatever the coding. A frame says how many bytes it holds, is
 * alone, and is smaller than what it holds; anything else is refused before it is unpacked.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>

enum blob_coding { BLOB_CODING_PLAIN, BLOB_CODING_ZSTD, BLOB_CODING_COUNT };

/* As in Content-Encoding: "identity", "zstd". */
const char *blob_coding_name(enum blob_coding coding);
/* Empty is plain; INVALID for one that is not known. */
MUST_CHECK int blob_coding_parse(struct text name, enum blob_coding *out_coding,
                                 struct error *error);

/* Appends the frame when it is smaller by a sixteenth at least; else false and nothing. Of a long
 * blob a few places are tried first, and it is left plain if they do not save an eighth. */
bool blob_encode(struct text bytes, struct buffer *out);
/* Appends the plain bytes, BLOB_BYTES_MAX at most. INVALID: it is no such frame. */
MUST_CHECK int blob_decode(struct text frame, struct buffer *out, struct error *error);
