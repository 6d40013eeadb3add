/*
 * Options: one table per command gives its flags, environment variables, file keys, help, manual
 * page and shell completion.
 *
 *     static const struct option lend_options[] = {
 *         {"cpus", OPTION_CORES, offsetof(struct lend_options, cpus_milli), "CORES", "100%",
 *          "How much of the machine to lend."},
 *     };
 *
 * An option `data_dir` of the command `serve` is the flag --data-dir, the variable
 * SOUK_SERVE_DATA_DIR and the file key data_dir; one of every command is SOUK_DATA_DIR. Flag wins
 * over environment, environment over file, file over default. Anything unknown
 * is refused in one sentence with the nearest name that exists. This is the only place that reads
 * the environment.
 *
 * Files are `key = value` lines; `#` starts a comment; keys before the first `[command]` line are
 * for every command. Secrets are taken from `secrets` only, which must be private (mode 0600).
 *
 * To add a kind: extend enum option_kind, option_value.c, and the tests.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,     /* bool: --name or --no-name; in files true or false */
    OPTION_TEXT,     /* const char * */
    OPTION_PATH,     /* const char *; {config}, {data} and {state} at the start are XDG folders */
    OPTION_U64,      /* uint64_t; minimum and maximum hold when they differ */
    OPTION_I64,      /* int64_t, likewise */
    OPTION_DURATION, /* int64_t milliseconds, likewise */
    OPTION_BYTES,    /* int64_t */
    OPTION_SHARE,    /* int64_t thousandths, likewise */
    OPTION_CORES,    /* int64_t thousandths of a core */
    OPTION_CREDITS,  /* int64_t microcredits, likewise */
    OPTION_CHOICE,   /* int, an index into `choices`, which ends with NULL */
    OPTION_LIST,     /* struct option_list: a flag given several times, or a,b,c */
};

struct option_list {
    const char **items;
    size_t count;
};

struct option {
    const char *name; /* snake_case */
    enum option_kind kind;
    size_t offset;            /* into the command's struct */
    const char *value_name;   /* in help: "PATH" */
    const char *default_text; /* NULL: the field stays zero */
    const char *help;
    const char *const *choices;
    const char *environment; /* when not SOUK_COMMAND_NAME */
    const char *fields;      /* what the API calls it, when not the same; several by spaces */
    int64_t minimum, maximum;
    char letter;        /* -y */
    bool is_secret;     /* never in the general file, never shown */
    bool hides_value;   /* what follows NAME= is wiped from the process's arguments */
    bool is_positional; /* in table order; never from environment or file */
    bool is_required;
    bool is_hidden;
    bool keeps_commas; /* of a list: one item each time, whatever is in it */
};

/* A command and the struct its table fills. */
struct command {
    const char *name; /* "job submit" */
    const char *summary;
    const char *details; /* more paragraphs for --help; may be NULL */
    const char *example;
    const struct option *options;
    size_t option_count;
    size_t struct_size;
    bool is_hidden;
    /* `options` is the filled struct; `context` is the program's own. Returns the exit code, or -1
     * with *error. */
    int (*run)(void *context, const void *options, struct error *error);
};

#define COMMAND_OPTIONS(table, type)                                                               \
    .options = (table), .option_count = sizeof(table) / sizeof(*(table)),                          \
    .struct_size = sizeof(struct type)

struct program {
    const char *name;    /* "souk"; also the prefix of variables, in capitals */
    const char *version; /* "0.1.0" */
    const char *summary;
    const struct option *common; /* for every command; fills a struct of its own */
    size_t common_count;
    const struct command *const *commands; /* ends with NULL */
    bool has_others; /* the files may have sections of commands that are not among them */
};

struct option_sources {
    int argc; /* arguments after the command's name */
    char *const *argv;
    char *const *environment; /* NULL: this process's */
    const char *config_dir;   /* NULL: the option config_dir, or XDG's */
};

/* The command named by the first words, and how many words that took; NULL when they name none.
 * "job" alone names none while "job submit" is one. */
const struct command *options_find_command(const struct program *program, int argc,
                                           char *const *argv, int *out_words);
/* Why options_find_command found none, with the nearest name. Always returns -1. */
int options_refuse_command(const struct program *program, int argc, char *const *argv,
                           struct error *error);

/* Fills `common` and `options` from all sources. `*out_wants_help`: --help or -h was there, and
 * nothing else was checked. INVALID otherwise for anything wrong. Text lives in the arena. */
MUST_CHECK int options_parse(struct arena *arena, const struct program *program,
                             const struct command *command, const struct option_sources *sources,
                             void *common, void *options, bool *out_wants_help,
                             struct error *error);

/* "--data-dir" for messages. */
const char *option_flag(struct arena *arena, const struct option *option);

/* options_field.c: says a refusal by the API in the words of the command line: "max_lease_ms: must
 * be from 1000 to 86400000" becomes "--max-lease: must be from 1.0 s to 24h". Messages about no
 * option of the command stay. */
void options_name_fields(const struct command *command, struct error *error);
/* What the market advises in the words of a job file, in those of the command: "num_nodes: 2" is
 * "--nodes 2", "spare: true" under market is "--spare", and max_run_time is --max-run-time. Words
 * about no option of the command stay. */
void options_name_advice(const struct command *command, struct text words, struct buffer *out);
/* The same for one field and the name it has. */
void options_name_field(struct error *error, const char *field, const char *name);

/* Where this user's files lie: an XDG folder with /souk below it. */
enum option_directory { OPTION_DIRECTORY_CONFIG, OPTION_DIRECTORY_DATA, OPTION_DIRECTORY_STATE };
MUST_CHECK int options_directory(struct arena *arena, enum option_directory directory,
                                 char *const *environment, const char **out_path,
                                 struct error *error);

/* options_zone.c: the name of this user's time zone: TZ, else the one in `etc`/timezone, else where
 * `etc`/localtime points to, else "UTC". `environment` NULL: this process's. */
const char *options_time_zone(struct arena *arena, char *const *environment, const char *etc);

/* True when the terminal behind `fd` shows colours: it is one, and neither NO_COLOR nor TERM=dumb
 * speaks against it. */
bool options_terminal_has_color(int fd);

/* options_file.c: sets keys in <config_dir>/config, or in <config_dir>/secrets when is_secret (made
 * with mode 0600), keeping every other line. The file is replaced whole or not at all. */
struct option_setting {
    const char *key;
    const char *value;
};
MUST_CHECK int options_file_store(const char *config_dir, bool is_secret,
                                  const struct option_setting *settings, size_t count,
                                  struct error *error);

/* The same in the section [command] of <config_dir>/config. A value of NULL takes the key away. */
MUST_CHECK int options_file_store_command(const char *config_dir, const char *command,
                                          const struct option_setting *settings, size_t count,
                                          struct error *error);

/* options_help.c: --help of the program, of a group of commands ("job"), of one command. */
void options_write_help(const struct program *program, struct buffer *out);
bool options_write_group_help(const struct program *program, const char *group, struct buffer *out);
void options_write_command_help(const struct program *program, const struct command *command,
                                struct buffer *out);
/* options_docs.c: the manual page in roff, and completion scripts. */
void options_write_manual(const struct program *program, struct buffer *out);
enum option_shell { OPTION_SHELL_BASH, OPTION_SHELL_ZSH, OPTION_SHELL_FISH, OPTION_SHELL_COUNT };
void options_write_completion(const struct program *program, enum option_shell shell,
                              struct buffer *out);
