#include "base/options_internal.h"

#include <string.h>

enum { HELP_COLUMN = 30, HELP_WIDTH = 79 };

/* Appends `help` from column `column` on, wrapped; the cursor stands at `at`. */
static void append_wrapped(struct buffer *out, const char *help, size_t at, size_t column)
{
    if (at > 0 && at + 1 > column) {
        buffer_append_byte(out, '\n');
        at = 0;
    }
    buffer_append_format(out, "%*s", (int)(column - at), "");
    size_t used = column;
    while (*help) {
        const size_t word = strcspn(help, " ");
        if (used > column && used + 1 + word > HELP_WIDTH) {
            buffer_append_format(out, "\n%*s", (int)column, "");
            used = column;
        } else if (used > column) {
            buffer_append_byte(out, ' ');
            used++;
        }
        buffer_append(out, help, word);
        used += word;
        help += word;
        while (*help == ' ')
            help++;
    }
    buffer_append_byte(out, '\n');
}

static const char *value_name(const struct option *option)
{
    static const char *const names[] = {
        [OPTION_TEXT] = "TEXT",         [OPTION_PATH] = "PATH",   [OPTION_U64] = "NUMBER",
        [OPTION_I64] = "NUMBER",        [OPTION_BYTES] = "SIZE",  [OPTION_SHARE] = "SHARE",
        [OPTION_DURATION] = "DURATION", [OPTION_CORES] = "CORES", [OPTION_CREDITS] = "CREDITS",
        [OPTION_CHOICE] = "CHOICE",     [OPTION_LIST] = "ITEM",
    };
    return option->value_name ? option->value_name : names[option->kind];
}

static const char *describe(struct arena *arena, const struct program *program,
                            const struct command *command, const struct option *option)
{
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, 4096);
    buffer_append_string(&text, option->help);
    if (option->choices) {
        buffer_append_string(&text, " One of: ");
        for (size_t i = 0; option->choices[i]; i++)
            buffer_append_format(&text, "%s%s", i ? ", " : "", option->choices[i]);
        buffer_append_byte(&text, '.');
    }
    if (option->default_text && !option->is_secret)
        buffer_append_format(&text, " [default: %s]", option_default(arena, option));
    if (!option->is_positional)
        buffer_append_format(&text, " [%s]", option_variable(arena, program, command, option));
    return arena_copy_string(arena, buffer_text(&text));
}

static void append_option(struct arena *arena, const struct program *program,
                          const struct command *command, const struct option *option,
                          struct buffer *out)
{
    struct buffer left AUTO_BUFFER;
    buffer_init(&left, 1024);
    if (option->is_positional) {
        buffer_append_format(&left, "  %s", value_name(option));
    } else {
        if (option->letter)
            buffer_append_format(&left, "  -%c, ", option->letter);
        else
            buffer_append_string(&left, "      ");
        buffer_append_string(&left, option_flag(arena, option));
        if (option_takes_value(option))
            buffer_append_format(&left, " %s", value_name(option));
    }
    buffer_append_text(out, buffer_text(&left));
    append_wrapped(out, describe(arena, program, command, option), left.size, HELP_COLUMN);
}

/* Those of `command`; of every command when it is NULL. */
static void append_options(struct arena *arena, const struct program *program,
                           const struct command *command, const char *title, bool is_positional,
                           struct buffer *out)
{
    const struct option *options = command ? command->options : program->common;
    const size_t count = command ? command->option_count : program->common_count;
    bool has_title = false;
    for (size_t i = 0; i < count; i++) {
        if (options[i].is_hidden || options[i].is_positional != is_positional)
            continue;
        if (!has_title)
            buffer_append_format(out, "\n%s:\n", title);
        has_title = true;
        append_option(arena, program, command, &options[i], out);
    }
}

static void append_usage(const struct program *program, const struct command *command,
                         struct buffer *out)
{
    buffer_append_format(out, "Usage: %s %s [OPTIONS]", program->name, command->name);
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option *option = &command->options[i];
        if (!option->is_positional || option->is_hidden)
            continue;
        const char *dots = option->kind == OPTION_LIST ? "..." : "";
        buffer_append_format(out, option->is_required ? " %s%s" : " [%s%s]", value_name(option),
                             dots);
    }
    buffer_append_byte(out, '\n');
}

void options_write_command_help(const struct program *program, const struct command *command,
                                struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    append_usage(program, command, out);
    buffer_append_format(out, "\n%s\n", command->summary);
    if (command->details) {
        buffer_append_byte(out, '\n');
        append_wrapped(out, command->details, 0, 0);
    }
    append_options(arena, program, command, "Arguments", true, out);
    append_options(arena, program, command, "Options", false, out);
    append_options(arena, program, NULL, "Options of every command", false, out);
    buffer_append_string(out, "  -h, --help");
    append_wrapped(out, "Show this.", strlen("  -h, --help"), HELP_COLUMN);
    if (command->example)
        buffer_append_format(out, "\nExample:\n  %s\n", command->example);
}

static void append_command_line(const struct command *command, struct buffer *out)
{
    buffer_append_format(out, "  %s", command->name);
    append_wrapped(out, command->summary, 2 + strlen(command->name), 20);
}

void options_write_help(const struct program *program, struct buffer *out)
{
    buffer_append_format(out, "Usage: %s COMMAND [OPTIONS]\n\n%s\n\nCommands:\n", program->name,
                         program->summary);
    for (size_t i = 0; program->commands[i]; i++)
        if (!program->commands[i]->is_hidden)
            append_command_line(program->commands[i], out);
    buffer_append_format(out,
                         "\n\"%s COMMAND --help\" shows a command's options and an example;\n"
                         "\"%s --version\" the version. Options come from flags, then the\n"
                         "environment, then files in the configuration folder.\n",
                         program->name, program->name);
}

bool options_write_group_help(const struct program *program, const char *group, struct buffer *out)
{
    const size_t size = strlen(group);
    bool is_found = false;
    for (size_t i = 0; program->commands[i]; i++) {
        const struct command *command = program->commands[i];
        if (command->is_hidden || strncmp(command->name, group, size) != 0 ||
            (command->name[size] != ' ' && command->name[size] != '\0'))
            continue;
        if (!is_found)
            buffer_append_format(out, "Usage: %s %s VERB [OPTIONS]\n\nCommands:\n", program->name,
                                 group);
        is_found = true;
        append_command_line(command, out);
    }
    if (is_found)
        buffer_append_format(out, "\n\"%s %s VERB --help\" shows a command's options.\n",
                             program->name, group);
    return is_found;
}
