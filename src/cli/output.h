/*
 * Output: how commands print: data, notes, and questions before credits are spent (table.h has
 * tables).
 */
#pragma once

#include "base/json_schema.h"
#include "cli/cli.h"

#include <stdio.h>

/* One JSON value and a line break to standard output. */
void output_json(struct text json);

/* What a program on somebody else's machine wrote: for a terminal; text, line breaks and colours
 * stay and every other control character becomes '?', and the colours end with it. */
void output_foreign(FILE *file, struct text text);

/* A note on standard error, unless --quiet. */
void output_note(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes what is buffered for standard output; EXHAUSTED, UNAVAILABLE ... when that fails (a full
 * disk). A reader that has gone away is no failure. */
MUST_CHECK int output_finish(struct error *error);

/* Lines on standard error, broken between words where its terminal is narrower; what follows stands
 * below the text after a line's label ("  start     now"). */
void output_plan(const struct cli *cli, const char *plan);

/*
 * Shows what is about to happen on standard error and asks. 0: go ahead. CLI_EXIT_DECLINED: the
 * answer was no, and it was said that nothing was done. INVALID (exit code 2): there is no terminal
 * to ask on; the message says to add -y.
 */
MUST_CHECK int output_confirm(const struct cli *cli, bool is_yes, const char *plan,
                              const char *question, struct error *error);

/* A line, broken between words where it is wider than `width_max`; 0: nowhere. */
void output_words(FILE *file, const char *text, size_t width_max);

/* A line on standard error about what went wrong; --quiet does not hide it. */
void output_problem(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool output_has_color(const struct cli *cli, FILE *file);

/* How wide the terminal behind `file` is; 0: it is none, or --wide says not to mind. `cli` may be
 * NULL, for --wide not given. */
size_t output_columns(const struct cli *cli, FILE *file);

/* A line of text on standard output, after `label` ("State:    "); on a terminal it is broken
 * between words, and what follows stands below the text. */
void output_field(const struct cli *cli, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Terminal columns a UTF-8 text takes, counting each code point as one. */
size_t output_width(const char *text);

/* ---- Words, in the command's arena ------------------------------------------------------------
 */

/* What a market counts in: within a line, at its start, above a column. */
struct output_unit {
    const char *name, *title, *column;
};
extern const struct output_unit output_unit_credits, output_unit_karma;
const struct output_unit *output_unit(const struct cli *cli); /* credits as long as none is known */
/* "0.001234 credits", or karma */
const char *output_amount(const struct cli *cli, int64_t micro);
const char *output_credits(struct arena *arena, int64_t micro);    /* "0.001234" */
const char *output_cores(struct arena *arena, int64_t milli);      /* "0.25" */
const char *output_core_count(struct arena *arena, int64_t milli); /* "0.25 cores", "1 core" */
const char *output_bytes(struct arena *arena, int64_t bytes);      /* "1.5 GiB" */
const char *output_duration(struct arena *arena, int64_t ms);      /* "1m 5s" */
const char *output_instant(struct arena *arena, int64_t utc_ms);   /* "-" for 0 */
const char *output_number(struct arena *arena, uint64_t value);
/* "3", or "2–8" of an elastic job; most 0: not given. */
const char *output_workers(struct arena *arena, uint64_t least, uint64_t most);
/* A list of struct text, joined. */
const char *output_texts(struct arena *arena, const struct json_array *texts,
                         const char *separator);
const char *output_text(struct arena *arena, struct text text); /* made plain */
