/*
 * CSV record: the rows of a file of fields, as somebody else's program wrote it, one at a time.
 *
 * The separator is the first of comma, semicolon and tab that the first line has, or else runs of
 * blanks. A field may stand in quotes, "" inside them is one, and line breaks inside them belong to
 * it. Blanks around a field without quotes are left out, as are empty lines and a byte order mark.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"
#include "train/data_stream.h"

#include <stdbool.h>
#include <stdint.h>

struct csv_record {
    struct data_stream *stream;
    struct buffer bytes; /* of the record; the fields point into it */
    struct text *fields; /* [count], until the next record */
    uint32_t count;
    uint32_t count_max;
    uint32_t room;
    uint64_t line; /* where the record begins, from 1 */
    char separator;
};

/* `stream` must stay. INVALID when a record has more than `count_max` fields. */
void csv_record_init(struct csv_record *record, struct data_stream *stream, uint32_t count_max);
void csv_record_done(struct csv_record *record);
#define AUTO_CSV_RECORD __attribute__((cleanup(csv_record_done)))

/* The next record; false at the end. INVALID, with line and column, when a quote is not closed or
 * something follows it. */
MUST_CHECK int csv_record_next(struct csv_record *record, bool *out_has_record,
                               struct error *error);

/* A decimal number with nothing around it; false for anything else, also "nan" and "inf". */
bool csv_number_parse(struct text text, double *out_value);
/* Nothing, or one of the words for it: NA, N/A, nan, null, none, ?. */
bool csv_is_missing(struct text text);
