/* The manual page (man-pages(7), roff) and completion for bash, zsh and fish. */
#include "base/options_internal.h"

#include <ctype.h>
#include <string.h>

/* Roff reads "-" as a hyphen and a leading "." or "'" as a request. */
static void append_roff(struct buffer *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        buffer_append_string(out, "\\&");
    for (; *text; text++) {
        if (*text == '-' || *text == '\\')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*text);
    }
}

static void append_manual_option(struct arena *arena, const struct program *program,
                                 const struct command *command, const struct option *option,
                                 struct buffer *out)
{
    if (option->is_hidden)
        return;
    buffer_append_string(out, ".TP\n.B ");
    if (option->is_positional) {
        append_roff(out, option->value_name ? option->value_name : option->name);
    } else {
        if (option->letter)
            buffer_append_format(out, "\\-%c, ", option->letter);
        append_roff(out, option_flag(arena, option));
    }
    if (!option->is_positional && option_takes_value(option)) {
        buffer_append_string(out, " \\fI");
        append_roff(out, option->value_name ? option->value_name : "VALUE");
        buffer_append_string(out, "\\fR");
    }
    buffer_append_byte(out, '\n');
    append_roff(out, option->help);
    if (option->choices) {
        buffer_append_string(out, " One of");
        for (size_t i = 0; option->choices[i]; i++) {
            buffer_append_string(out, i ? ", " : " ");
            append_roff(out, option->choices[i]);
        }
        buffer_append_byte(out, '.');
    }
    if (option->default_text && !option->is_secret) {
        buffer_append_string(out, " Default: ");
        append_roff(out, option_default(arena, option));
        buffer_append_byte(out, '.');
    }
    if (!option->is_positional)
        buffer_append_format(out, " Environment: %s.",
                             option_variable(arena, program, command, option));
    buffer_append_byte(out, '\n');
}

void options_write_manual(const struct program *program, struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    buffer_append_format(out, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n%s \\- ",
                         program->name, program->name, program->version, program->name);
    append_roff(out, program->summary);
    buffer_append_format(out, "\n.SH SYNOPSIS\n.B %s\n.I COMMAND\n[OPTIONS]\n.SH COMMANDS\n",
                         program->name);
    for (size_t c = 0; program->commands[c]; c++) {
        const struct command *command = program->commands[c];
        if (command->is_hidden)
            continue;
        buffer_append_format(out, ".SS %s %s\n", program->name, command->name);
        append_roff(out, command->summary);
        if (command->details) {
            buffer_append_string(out, "\n.PP\n");
            append_roff(out, command->details);
        }
        buffer_append_byte(out, '\n');
        for (size_t i = 0; i < command->option_count; i++)
            append_manual_option(arena, program, command, &command->options[i], out);
        if (command->example) {
            buffer_append_string(out, ".PP\nExample:\n.PP\n.nf\n");
            append_roff(out, command->example);
            buffer_append_string(out, "\n.fi\n");
        }
    }
    buffer_append_string(out, ".SH OPTIONS OF EVERY COMMAND\n");
    for (size_t i = 0; i < program->common_count; i++)
        append_manual_option(arena, program, NULL, &program->common[i], out);
    buffer_append_string(
        out, ".TP\n.B \\-h, \\-\\-help\nShow help.\n"
             ".SH FILES\nOptions are also read from\n.I config\nand, for secrets (mode 0600),\n"
             ".I secrets\nin $XDG_CONFIG_HOME/souk, as lines of key = value; a line [COMMAND] "
             "limits what follows to that command. The variable of a command's option has "
             "both names: SOUK_OFFER_MAKE_CORES. A flag wins over the environment, the "
             "environment over the files.\n"
             ".SH EXIT STATUS\n0 success; 1 the job or check failed; 2 wrong usage or input; 3 not "
             "found; 4 conflict; 5 refused; 6 a limit or balance is used up; 7 try again later; 8 "
             "data is corrupt; 9 you said no.\n");
}

/* Every flag of a command, apart by `separator`, with a prefix before each. */
static void append_flags(struct arena *arena, const struct program *program,
                         const struct command *command, struct buffer *out)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (!command->options[i].is_positional && !command->options[i].is_hidden)
            buffer_append_format(out, " %s", option_flag(arena, &command->options[i]));
    for (size_t i = 0; i < program->common_count; i++)
        if (!program->common[i].is_hidden)
            buffer_append_format(out, " %s", option_flag(arena, &program->common[i]));
    buffer_append_string(out, " --help");
}

/* Whether a command before this one starts with the same word, which is `size` long. */
static bool is_named_before(const struct program *program, size_t index, size_t size)
{
    const char *word = program->commands[index]->name;
    for (size_t i = 0; i < index; i++)
        if (!program->commands[i]->is_hidden && strcspn(program->commands[i]->name, " ") == size &&
            !strncmp(program->commands[i]->name, word, size))
            return true;
    return false;
}

/* First words of all commands, each once; or the second words of those that start with `first`. */
static void append_words(const struct program *program, const char *first, struct buffer *out)
{
    for (size_t i = 0; program->commands[i]; i++) {
        const struct command *command = program->commands[i];
        if (command->is_hidden)
            continue;
        const char *word = command->name;
        size_t size = strcspn(word, " ");
        if (first) {
            if (strlen(first) != size || strncmp(word, first, size) != 0 || !word[size])
                continue;
            word += size + 1;
            size = strlen(word);
        } else if (is_named_before(program, i, size)) {
            continue;
        }
        buffer_append_byte(out, ' ');
        buffer_append(out, word, size);
    }
}

/* Calls `append_case` text for each group ("job") with its verbs. */
static void append_bash_groups(const struct program *program, struct buffer *out)
{
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, 8192);
    append_words(program, NULL, &words);
    struct text rest = text_trim(buffer_text(&words));
    bool has_more = true;
    while (has_more) {
        struct text word;
        has_more = text_cut(rest, ' ', &word, &rest);
        char group[64];
        struct error ignored;
        struct buffer verbs AUTO_BUFFER;
        buffer_init(&verbs, 4096);
        if (text_copy(word, group, sizeof(group), &ignored) < 0)
            continue;
        append_words(program, group, &verbs);
        if (verbs.size)
            buffer_append_format(out, "        %s) verbs='%.*s' ;;\n", group, (int)verbs.size,
                                 (const char *)verbs.data);
    }
}

/* The shared part of bash and zsh: sets `flags`, `verbs` and `words1` from $first and $second. */
static void append_shell_tables(struct arena *arena, const struct program *program,
                                struct buffer *out)
{
    buffer_append_string(out, "    local verbs='' flags='--help --version' commands='");
    append_words(program, NULL, out);
    buffer_append_string(out, "'\n    case \"$first\" in\n");
    append_bash_groups(program, out);
    buffer_append_string(out, "    esac\n    case \"$first $second\" in\n");
    /* Two-word names first: "machines add" must not be taken by "machines *". */
    for (int words = 2; words > 0; words--) {
        for (size_t i = 0; program->commands[i]; i++) {
            const struct command *command = program->commands[i];
            if (command->is_hidden || (strchr(command->name, ' ') ? 2 : 1) != words)
                continue;
            buffer_append_format(out,
                                 words == 2 ? "        '%s') flags='" : "        '%s '*) flags='",
                                 command->name);
            append_flags(arena, program, command, out);
            buffer_append_string(out, "' ;;\n");
        }
    }
    buffer_append_string(out, "    esac\n");
}

static void write_bash(struct arena *arena, const struct program *program, struct buffer *out)
{
    buffer_append_format(out,
                         "# bash completion for %s: source <(%s completion bash)\n"
                         "_%s() {\n"
                         "    local current=\"${COMP_WORDS[COMP_CWORD]}\"\n"
                         "    local first=\"${COMP_WORDS[1]}\" second=\"${COMP_WORDS[2]}\"\n",
                         program->name, program->name, program->name);
    append_shell_tables(arena, program, out);
    buffer_append_format(out,
                         "    if [ \"$COMP_CWORD\" -eq 1 ] && [[ \"$current\" != -* ]]; then\n"
                         "        COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
                         "    elif [[ \"$current\" == -* ]]; then\n"
                         "        COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
                         "    elif [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$verbs\" ]; then\n"
                         "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$current\"))\n"
                         "    else\n"
                         "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
                         "    fi\n"
                         "}\n"
                         "complete -o filenames -F _%s %s\n",
                         program->name, program->name);
}

static void write_zsh(struct arena *arena, const struct program *program, struct buffer *out)
{
    buffer_append_format(out,
                         "#compdef %s\n"
                         "# zsh completion for %s: %s completion zsh > \"${fpath[1]}/_%s\"\n"
                         "_%s() {\n"
                         "    local current=\"$words[CURRENT]\" first=\"$words[2]\" "
                         "second=\"$words[3]\"\n",
                         program->name, program->name, program->name, program->name, program->name);
    append_shell_tables(arena, program, out);
    buffer_append_format(out,
                         "    if [[ $CURRENT -eq 2 && \"$current\" != -* ]]; then\n"
                         "        compadd -- ${=commands}\n"
                         "    elif [[ \"$current\" == -* ]]; then\n"
                         "        compadd -- ${=flags}\n"
                         "    elif [[ $CURRENT -eq 3 && -n \"$verbs\" ]]; then\n"
                         "        compadd -- ${=verbs}\n"
                         "    else\n"
                         "        _files\n"
                         "    fi\n"
                         "}\n"
                         "compdef _%s %s\n",
                         program->name, program->name);
}

/* Inside single quotes fish knows \' and \\ only. */
static void append_fish_quoted(struct buffer *out, const char *text)
{
    buffer_append_byte(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, (uint8_t)*text);
    }
    buffer_append_byte(out, '\'');
}

static void append_fish_option(const struct program *program, const struct option *option,
                               const char *condition, struct arena *arena, struct buffer *out)
{
    if (option->is_positional || option->is_hidden)
        return;
    buffer_append_format(out, "complete -c %s -n \"%s\" -l %s", program->name, condition,
                         option_flag(arena, option) + 2);
    if (option->letter)
        buffer_append_format(out, " -s %c", option->letter);
    if (option_takes_value(option))
        buffer_append_string(out, option->kind == OPTION_PATH ? " -r -F" : " -x");
    if (option->choices) {
        buffer_append_string(out, " -a '");
        for (size_t i = 0; option->choices[i]; i++)
            buffer_append_format(out, "%s%s", i ? " " : "", option->choices[i]);
        buffer_append_byte(out, '\'');
    }
    buffer_append_string(out, " -d ");
    append_fish_quoted(out, option->help);
    buffer_append_byte(out, '\n');
}

static void write_fish(struct arena *arena, const struct program *program, struct buffer *out)
{
    buffer_append_format(out, "# fish completion for %s: %s completion fish | source\n",
                         program->name, program->name);
    for (size_t i = 0; i < program->common_count; i++)
        append_fish_option(program, &program->common[i], "true", arena, out);
    for (size_t c = 0; program->commands[c]; c++) {
        const struct command *command = program->commands[c];
        if (command->is_hidden)
            continue;
        const char *verb = strchr(command->name, ' ');
        const int first_size = (int)strcspn(command->name, " ");
        const char *condition = verb ? arena_format(arena,
                                                    "__fish_seen_subcommand_from %.*s; and not "
                                                    "__fish_seen_subcommand_from %s",
                                                    first_size, command->name, verb + 1)
                                     : "__fish_use_subcommand";
        buffer_append_format(out, "complete -c %s -f -n \"%s\" -a %s -d ", program->name, condition,
                             verb ? verb + 1 : command->name);
        append_fish_quoted(out, command->summary);
        buffer_append_byte(out, '\n');
        condition = verb ? arena_format(arena,
                                        "__fish_seen_subcommand_from %.*s; and "
                                        "__fish_seen_subcommand_from %s",
                                        first_size, command->name, verb + 1)
                         : arena_format(arena, "__fish_seen_subcommand_from %s", command->name);
        for (size_t i = 0; i < command->option_count; i++)
            append_fish_option(program, &command->options[i], condition, arena, out);
    }
}

void options_write_completion(const struct program *program, enum option_shell shell,
                              struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    switch (shell) {
    case OPTION_SHELL_BASH:
        write_bash(arena, program, out);
        return;
    case OPTION_SHELL_ZSH:
        write_zsh(arena, program, out);
        return;
    case OPTION_SHELL_FISH:
        write_fish(arena, program, out);
        return;
    case OPTION_SHELL_COUNT:
        return;
    }
}
