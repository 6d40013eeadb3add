/*
 * Job file: a job spec as people write it, in YAML (JSON is YAML too).
 *
 * Every refusal is one sentence that starts with the place: "job.yaml:7:12: train.batch: must be
 * from 1 to 65536". Anchors, aliases, tags, a second document, a key given twice, nesting deeper
 * than 16 and files over JOB_SPEC_SIZE_MAX are refused.
 */
#pragma once

#include "runtime/job_spec.h"

/* `file_name` is for messages only. `more` takes what is wrong besides the first, a line each;
 * NULL: the first mistake ends the reading. */
MUST_CHECK int job_file_parse(struct arena *arena, struct text yaml, const char *file_name,
                              struct job_spec *out_spec, struct buffer *more, struct error *error);

/* Reads the file; "-" is standard input. */
MUST_CHECK int job_file_read(struct arena *arena, const char *path, struct job_spec *out_spec,
                             struct buffer *more, struct error *error);

/* The spec as YAML that job_file_parse reads as the same spec; every field in table order. */
MUST_CHECK int job_file_write(struct arena *arena, const struct job_spec *spec, struct buffer *yaml,
                              struct error *error);

/* Likewise, with only what differs from what a field is when nobody says; a long one has all. */
MUST_CHECK int job_file_write_short(struct arena *arena, const struct job_spec *spec,
                                    struct buffer *yaml, struct error *error);

/* One of the lines that job_file_parse refuses with, taken apart. */
struct job_mistake {
    uint32_t line, column; /* from 1; 0: it has no place */
    struct text field;     /* "train.batch"; empty: it is about none, or about several */
    struct text text;      /* the sentence without them */
};
struct job_mistake job_mistake_read(struct text line, const char *file_name);
void job_mistake_write(struct json_writer *writer, const struct job_mistake *mistake);
