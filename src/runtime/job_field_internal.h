/*
 * Job fields: the engine behind job_spec.c's table: reads a tree of values by it, writes a struct
 * by it, and prints its JSON Schema.
 *
 * The tree has the same shape whether it came from YAML (job_file.c) or JSON (job_node.c).
 */
#pragma once

#include "base/json.h"
#include "runtime/job_spec.h"

enum { JOB_DEPTH_MAX = 16, JOB_NODES_IN_TREE_MAX = 4096 };

enum job_node_kind { JOB_NODE_SCALAR, JOB_NODE_MAPPING, JOB_NODE_SEQUENCE };

struct job_node {
    enum job_node_kind kind;
    unsigned line, column; /* from 1; 0: unknown */
    struct text value;     /* of a scalar */
    bool is_quoted;        /* a scalar that is text whatever it looks like */
    struct text key;       /* within a mapping */
    unsigned key_line, key_column;
    struct job_node *first_child, *last_child, *next;
};

struct job_node *job_node_append(struct arena *arena, struct job_node *parent,
                                 enum job_node_kind kind);
/* NULL when there is none. */
const struct job_node *job_node_find(const struct job_node *mapping, struct text key);

/* Builds the tree from JSON; INVALID when it is not JSON, too deep or too large. */
MUST_CHECK int job_node_read_json(struct arena *arena, struct text json, struct job_node **out_root,
                                  struct error *error);

enum job_field_kind {
    JOB_FIELD_NAME,         /* struct text of letters, digits, '-', '_', '.'; at most `maximum` */
    JOB_FIELD_WORD,         /* struct text, one of `choices` */
    JOB_FIELD_DATA,         /* struct text, one of `choices` or a path: job_data_is_path */
    JOB_FIELD_INDEX,        /* int, an index into `choices` */
    JOB_FIELD_U64,          /* uint64_t from minimum to maximum; UINT64_MAX: the word choices[0] */
    JOB_FIELD_DOUBLE,       /* double from minimum to maximum */
    JOB_FIELD_DURATION,     /* int64_t ms; minimum and maximum too */
    JOB_FIELD_CREDITS,      /* int64_t microcredits, more than 0 */
    JOB_FIELD_CPUS,         /* struct job_amount, thousandths of a core */
    JOB_FIELD_MEMORY,       /* struct job_amount, bytes; a bare number is GiB */
    JOB_FIELD_SIZE,         /* int64_t bytes; a bare number is GiB */
    JOB_FIELD_HASH,         /* uint8_t[32], 64 hex digits */
    JOB_FIELD_BOOL,         /* bool */
    JOB_FIELD_MILLI,        /* int64_t thousandths; minimum and maximum too */
    JOB_FIELD_BANDWIDTH,    /* int64_t kbit per second; a bare number is Mbit */
    JOB_FIELD_WORDS,        /* struct text: a list of words, joined by commas; at most `maximum` */
    JOB_FIELD_NODES,        /* uint64_t, or a range whose end goes to count_offset */
    JOB_FIELD_ACCELERATORS, /* struct job_accelerators */
    JOB_FIELD_START,        /* struct job_start_wish */
    JOB_FIELD_SCRIPT,       /* struct text of any characters but NUL; at most `maximum` bytes */
    JOB_FIELD_ENVS,         /* pointer to struct job_env, their number at count_offset */
    JOB_FIELD_MOUNTS,       /* pointer to struct job_mount, likewise */
    JOB_FIELD_OBJECT,       /* a struct in place, by `table` */
    JOB_FIELD_LIST,         /* pointer to structs by `table`, their number at count_offset */
    JOB_FIELD_LATER,        /* of the format, but not supported yet: refused, with `help` */
};

struct job_field {
    const char *name;
    enum job_field_kind kind;
    size_t offset;
    const char *default_text; /* NULL: stays zero, which means "not given" */
    const char *help;
    int64_t minimum, maximum;
    bool is_required;
    const char *const *choices; /* ends with NULL */
    const char *const *later;   /* values of the format that are not supported yet */
    const struct job_table *table;
    size_t count_offset; /* of a list or envs: its length; of nodes: the end of the range */
    bool is_left_out;    /* of an object: not written while its fields are empty */
    bool is_kept_back;   /* read from a job file, never written */
};

struct job_table {
    const struct job_field *fields;
    size_t field_count;
    size_t struct_size;
};

#define JOB_TABLE(fields_, struct_)                                                                \
    {                                                                                              \
        .fields = (fields_), .field_count = sizeof(fields_) / sizeof(*(fields_)),                  \
        .struct_size = sizeof(struct_)                                                             \
    }

/* Sets every field to its default. */
void job_table_set_defaults(struct arena *arena, const struct job_table *table, void *out);

/* `file_name` NULL: messages name the field only. *out has its defaults already. With `more` all
 * that is wrong is found: the first in *error, the others a line each. */
MUST_CHECK int job_table_read(struct arena *arena, const struct job_table *table,
                              const struct job_node *root, const char *file_name, void *out,
                              struct buffer *more, struct error *error);
/* INVALID about one field, with its place in the file when the tree has it: "market.start". */
MUST_CHECK int job_table_refuse(const struct job_node *root, const char *file_name,
                                const char *path, const char *what, struct error *error);
void job_table_write(struct json_writer *writer, const struct job_table *table, const void *value);
void job_table_write_schema(struct json_writer *writer, const struct job_table *table);

/* job_field_mounts.c */
void job_write_mounts(struct json_writer *writer, const struct job_mount *mounts, size_t count);
void job_write_mounts_kind(struct json_writer *writer, const struct job_field *field);

/* job_spec.c: the whole spec, with what no single field can check. */
MUST_CHECK int job_spec_read_tree(struct arena *arena, const struct job_node *root,
                                  const char *file_name, struct job_spec *out_spec,
                                  struct buffer *more, struct error *error);
/* The same of a new job: job_spec_read_new. */
MUST_CHECK int job_spec_read_new_tree(struct arena *arena, const struct job_node *root,
                                      const char *file_name, struct job_spec *out_spec,
                                      struct buffer *more, struct error *error);

/* Whether a value of JOB_FIELD_DATA is a path: it has a dot or a slash. */
bool job_data_is_path(struct text data);
