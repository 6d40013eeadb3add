/* Options: what the files of this part share. */
#pragma once

#include "base/options.h"

/* option_value.c: parses `text` into the field. Lists are appended to. */
MUST_CHECK int option_set_value(struct arena *arena, const struct option *option, struct text text,
                                char *const *environment, void *target, struct error *error);

/* The value of a variable in `environment` ("NAME=value" entries), or NULL. */
const char *option_environment_get(char *const *environment, const char *name);

/* "SOUK_SERVE_DATA_DIR"; with `command` NULL, of an option of every command, "SOUK_DATA_DIR". */
const char *option_variable(struct arena *arena, const struct program *program,
                            const struct command *command, const struct option *option);

/* The default as people read it: {config} becomes ~/.config/souk. */
const char *option_default(struct arena *arena, const struct option *option);

bool option_takes_value(const struct option *option);

/* options_file.c: reads <config_dir>/config or /secrets; an absent file is empty. Each line that is
 * for `command` is given to `set`. */
struct option_line {
    const char *path;
    unsigned number;
    struct text key;
    struct text value;
    bool is_in_section; /* of a command, and so more than what is for every command */
};
typedef int option_line_handler(void *context, const struct option_line *line, bool is_for_command,
                                struct error *error);
MUST_CHECK int options_file_each(const char *config_dir, bool is_secret, const char *command,
                                 option_line_handler *handle, void *context, struct error *error);
