/* Reading by the field table, inside: shared by job_field*.c, job_sync.c and job_spec.c. */
#pragma once

#include "runtime/job_field_internal.h"

/* Where in the document we are, as a chain on the stack. */
struct job_place {
    const struct job_place *outer;
    const char *name;
    size_t index; /* of a list's item, when name is NULL */
};

struct job_reader {
    struct arena *arena;
    const char *file_name;
    struct error *error; /* the first refusal */
    struct buffer *more; /* the others, a line each; NULL: the first ends the reading */
    bool has_failed;
};

/* INVALID about the place; always -1. With line 0 without a place in the file. */
__attribute__((format(printf, 5, 6))) int job_refuse(struct job_reader *reader, unsigned line,
                                                     unsigned column, const struct job_place *place,
                                                     const char *format, ...);

/* What another check refused, with its place already. */
void job_note_refusal(struct job_reader *reader, const struct error *refusal);
/* About one field, with its place in the file when the tree has it: "market.start". */
void job_refuse_path(struct job_reader *reader, const struct job_node *root, const char *path,
                     const char *what);

#define REFUSE(reader, node, place, ...)                                                           \
    job_refuse((reader), (node)->line, (node)->column, (place), __VA_ARGS__)

/* job_field_scalar.c */
MUST_CHECK int job_read_scalar(struct job_reader *reader, const struct job_field *field,
                               const struct job_node *node, const struct job_place *place,
                               char *out);

/* job_field_script.c */
MUST_CHECK int job_read_script(struct job_reader *reader, const struct job_field *field,
                               const struct job_node *node, const struct job_place *place,
                               struct text *out);
MUST_CHECK int job_read_envs(struct job_reader *reader, const struct job_field *field,
                             const struct job_node *node, const struct job_place *place,
                             char *base);

/* job_field_mounts.c */
MUST_CHECK int job_read_mounts(struct job_reader *reader, const struct job_field *field,
                               const struct job_node *node, const struct job_place *place,
                               char *base);

/* job_sync.c: refuses each setting that its policy does not have, or that others rule out. */
void job_sync_check(struct job_reader *reader, const struct job_node *root,
                    const struct job_spec *spec);
