#include "base/options.h"

#include "base/assert.h"
#include "base/nearest.h"
#include "base/options_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct parse {
    struct arena *arena;
    const struct program *program;
    const struct command *command;
    char *const *environment;
    char *common; /* the two structs filled */
    char *options;
    /* Which entries a stronger source has set, by position in the tables: common first. */
    bool *is_set;
    size_t positional_index; /* of the next argument without a flag */
    struct error *error;
};

static size_t entry_count(const struct parse *parse)
{
    return parse->program->common_count + parse->command->option_count;
}

static const struct option *entry(const struct parse *parse, size_t index)
{
    const size_t common = parse->program->common_count;
    return index < common ? &parse->program->common[index]
                          : &parse->command->options[index - common];
}

static void *entry_target(const struct parse *parse, size_t index)
{
    char *base = index < parse->program->common_count ? parse->common : parse->options;
    return base + entry(parse, index)->offset;
}

const char *option_flag(struct arena *arena, const struct option *option)
{
    char *flag = arena_format(arena, "--%s", option->name);
    for (char *at = flag; *at; at++)
        if (*at == '_')
            *at = '-';
    return flag;
}

const char *option_variable(struct arena *arena, const struct program *program,
                            const struct command *command, const struct option *option)
{
    if (option->environment)
        return option->environment;
    char *variable = arena_format(arena, "%s%s%s_%s", program->name, command ? "_" : "",
                                  command ? command->name : "", option->name);
    for (char *at = variable; *at; at++)
        *at = (char)(*at == ' ' ? '_' : toupper((unsigned char)*at));
    return variable;
}

static int set_entry(struct parse *parse, size_t index, struct text value, const char *origin)
{
    const struct option *option = entry(parse, index);
    if (option_set_value(parse->arena, option, value, parse->environment,
                         entry_target(parse, index), parse->error) < 0)
        return error_wrap(parse->error, "%s", origin);
    parse->is_set[index] = true;
    return 0;
}

/* True when `flag` (without dashes, in kebab-case) is the option's name. */
static bool is_flag_of(const struct option *option, struct text flag)
{
    if (strlen(option->name) != flag.size || option->is_positional)
        return false;
    for (size_t i = 0; i < flag.size; i++)
        if ((option->name[i] == '_' ? '-' : option->name[i]) != flag.data[i])
            return false;
    return true;
}

static int refuse_flag(struct parse *parse, struct text flag)
{
    struct nearest nearest;
    nearest_init(&nearest, flag);
    for (size_t i = 0; i < entry_count(parse); i++)
        if (!entry(parse, i)->is_positional && !entry(parse, i)->is_hidden)
            nearest_offer(&nearest, option_flag(parse->arena, entry(parse, i)));
    nearest_offer(&nearest, "--help");
    char hint[NEAREST_HINT_SIZE];
    return error_set(parse->error, ERROR_INVALID, "unknown flag \"%.*s\"%s",
                     (int)(flag.size < 60 ? flag.size : 60), flag.data,
                     nearest_hint(&nearest, hint));
}

/* The entry a long flag names; -1 for none. `*out_is_negated`: it was --no-NAME of a flag. */
static long find_long(const struct parse *parse, struct text name, bool *out_is_negated)
{
    *out_is_negated = false;
    for (size_t i = 0; i < entry_count(parse); i++)
        if (is_flag_of(entry(parse, i), name))
            return (long)i;
    if (!text_starts_with(name, TEXT("no-")))
        return -1;
    const struct text rest = {name.data + 3, name.size - 3};
    for (size_t i = 0; i < entry_count(parse); i++) {
        if (entry(parse, i)->kind == OPTION_FLAG && is_flag_of(entry(parse, i), rest)) {
            *out_is_negated = true;
            return (long)i;
        }
    }
    return -1;
}

/* Others see a process's arguments; they are its own memory (execve(2)). `value` is of `argument`.
 */
static void hide_value(char *argument, struct text value)
{
    char *at = argument + (value.data - argument);
    for (at = strchr(at, '='); at && *++at;)
        *at = '*';
}

static int parse_long(struct parse *parse, const struct option_sources *sources, int *at)
{
    const struct text argument = text_of(sources->argv[*at]);
    struct text name, value = {0};
    const bool has_value = text_cut(argument, '=', &name, &value);
    bool is_negated;
    const long index = find_long(parse, (struct text){name.data + 2, name.size - 2}, &is_negated);
    if (index < 0)
        return refuse_flag(parse, name);
    const struct option *option = entry(parse, (size_t)index);
    const char *origin = option_flag(parse->arena, option);
    if (!option_takes_value(option)) {
        if (is_negated && has_value)
            return error_set(parse->error, ERROR_INVALID, "\"%.*s\" takes no value",
                             TEXT_ARGS(name));
        return set_entry(parse, (size_t)index,
                         has_value ? value : (is_negated ? TEXT("false") : TEXT("true")), origin);
    }
    if (!has_value) {
        if (*at + 1 >= sources->argc)
            return error_set(parse->error, ERROR_INVALID, "%s needs a value (%s)", origin,
                             option->value_name ? option->value_name : "VALUE");
        value = text_of(sources->argv[++*at]);
    }
    if (set_entry(parse, (size_t)index, value, origin) < 0)
        return -1;
    if (option->hides_value)
        hide_value(sources->argv[*at], value);
    return 0;
}

/* -y, -yq, -n4, -n 4 */
static int parse_letters(struct parse *parse, const struct option_sources *sources, int *at)
{
    const char *argument = sources->argv[*at];
    for (const char *letter = argument + 1; *letter; letter++) {
        size_t index = 0;
        while (index < entry_count(parse) && entry(parse, index)->letter != *letter)
            index++;
        if (index == entry_count(parse))
            return argument[2] == '\0'
                       ? error_set(parse->error, ERROR_INVALID, "unknown flag \"%s\"", argument)
                       : error_set(parse->error, ERROR_INVALID, "unknown flag \"-%c\" in \"%.40s\"",
                                   *letter, argument);
        const struct option *option = entry(parse, index);
        const char *origin = arena_format(parse->arena, "-%c", *letter);
        if (!option_takes_value(option)) {
            if (set_entry(parse, index, TEXT("true"), origin) < 0)
                return -1;
            continue;
        }
        if (letter[1])
            return set_entry(parse, index, text_of(letter + 1), origin);
        if (*at + 1 >= sources->argc)
            return error_set(parse->error, ERROR_INVALID, "%s needs a value (%s)", origin,
                             option->value_name ? option->value_name : "VALUE");
        return set_entry(parse, index, text_of(sources->argv[++*at]), origin);
    }
    return 0;
}

static int parse_positional(struct parse *parse, const char *argument)
{
    while (parse->positional_index < entry_count(parse)) {
        const size_t index = parse->positional_index;
        const struct option *option = entry(parse, index);
        if (!option->is_positional) {
            parse->positional_index++;
            continue;
        }
        if (option->kind != OPTION_LIST)
            parse->positional_index++;
        return set_entry(parse, index, text_of(argument),
                         option->value_name ? option->value_name : option->name);
    }
    return error_set(parse->error, ERROR_INVALID, "unexpected argument \"%.60s\"", argument);
}

/* "-5h" is a value, unless a letter of that name exists. */
static bool is_negative_number(const struct parse *parse, const char *argument)
{
    if (argument[0] != '-' || !(isdigit((unsigned char)argument[1]) || argument[1] == '.'))
        return false;
    for (size_t i = 0; i < entry_count(parse); i++)
        if (entry(parse, i)->letter == argument[1])
            return false;
    return true;
}

static int parse_arguments(struct parse *parse, const struct option_sources *sources,
                           bool *out_wants_help)
{
    for (int i = 0; i < sources->argc && strcmp(sources->argv[i], "--") != 0; i++) {
        if (!strcmp(sources->argv[i], "--help") || !strcmp(sources->argv[i], "-h")) {
            *out_wants_help = true;
            return 0;
        }
    }
    bool is_literal = false; /* after "--" */
    for (int i = 0; i < sources->argc; i++) {
        const char *argument = sources->argv[i];
        int result;
        if (!is_literal && !strcmp(argument, "--")) {
            is_literal = true;
            continue;
        }
        if (is_literal || argument[0] != '-' || argument[1] == '\0' ||
            is_negative_number(parse, argument))
            result = parse_positional(parse, argument);
        else if (argument[1] == '-')
            result = parse_long(parse, sources, &i);
        else
            result = parse_letters(parse, sources, &i);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int parse_environment(struct parse *parse)
{
    for (size_t i = 0; i < entry_count(parse); i++) {
        const struct option *option = entry(parse, i);
        if (parse->is_set[i] || option->is_positional)
            continue;
        const bool is_common = i < parse->program->common_count;
        const char *variable = option_variable(parse->arena, parse->program,
                                               is_common ? NULL : parse->command, option);
        const char *value = option_environment_get(parse->environment, variable);
        if (!value || !value[0])
            continue;
        /* Variables of others, such as NO_COLOR, count by being there. */
        const bool is_foreign = option->environment && option->kind == OPTION_FLAG;
        if (set_entry(parse, i, is_foreign ? TEXT("true") : text_of(value), variable) < 0)
            return -1;
    }
    return 0;
}

struct file_context {
    struct parse *parse;
    bool *is_set_before; /* by flag or environment */
    bool *is_set_here;   /* by the command's own section */
    bool is_secret;
};

/* A key may belong to another command: known anywhere is known. */
static const struct option *find_known(const struct program *program, struct text key,
                                       struct nearest *nearest)
{
    for (size_t i = 0; i < program->common_count; i++) {
        nearest_offer(nearest, program->common[i].name);
        if (text_equal(key, text_of(program->common[i].name)))
            return &program->common[i];
    }
    for (size_t c = 0; program->commands[c]; c++) {
        const struct command *command = program->commands[c];
        for (size_t i = 0; i < command->option_count; i++) {
            if (command->options[i].is_positional || command->options[i].is_hidden)
                continue;
            nearest_offer(nearest, command->options[i].name);
            if (text_equal(key, text_of(command->options[i].name)))
                return &command->options[i];
        }
    }
    return NULL;
}

static int handle_line(void *context, const struct option_line *line, bool is_for_command,
                       struct error *error)
{
    struct file_context *file = context;
    struct parse *parse = file->parse;
    struct nearest nearest;
    nearest_init(&nearest, line->key);
    const struct option *known = find_known(parse->program, line->key, &nearest);
    char hint[NEAREST_HINT_SIZE];
    if (!known && !is_for_command && parse->program->has_others)
        return 0;
    if (!known)
        return error_set(error, ERROR_INVALID, "%s:%u: unknown key \"%.*s\"%s", line->path,
                         line->number, TEXT_ARGS(line->key), nearest_hint(&nearest, hint));
    if (known->is_secret && !file->is_secret)
        return error_set(error, ERROR_INVALID,
                         "%s:%u: \"%s\" is a secret; move it to the file \"secrets\" beside this "
                         "one (mode 0600)",
                         line->path, line->number, known->name);
    if (!is_for_command)
        return 0;
    for (size_t i = 0; i < entry_count(parse); i++) {
        if (file->is_set_before[i] || entry(parse, i)->is_positional ||
            !text_equal(line->key, text_of(entry(parse, i)->name)))
            continue;
        if (line->is_in_section && !file->is_set_here[i] &&
            entry(parse, i)->kind == OPTION_LIST) /* instead of, not after, what is for all */
            *(struct option_list *)entry_target(parse, i) = (struct option_list){0};
        file->is_set_here[i] = file->is_set_here[i] || line->is_in_section;
        return set_entry(parse, i, line->value,
                         arena_format(parse->arena, "%s:%u: %s", line->path, line->number,
                                      entry(parse, i)->name));
    }
    return 0;
}

static int parse_files(struct parse *parse, const char *config_dir)
{
    for (int is_secret = 0; is_secret < 2; is_secret++) {
        struct file_context file = {.parse = parse, .is_secret = is_secret};
        const size_t size = entry_count(parse) * sizeof(*parse->is_set);
        file.is_set_before = arena_alloc(parse->arena, size + 1);
        memcpy(file.is_set_before, parse->is_set, size);
        file.is_set_here = arena_alloc(parse->arena, size + 1);
        memset(file.is_set_here, 0, size);
        if (options_file_each(config_dir, is_secret, parse->command->name, handle_line, &file,
                              parse->error) < 0)
            return -1;
    }
    return 0;
}

static int parse_defaults(struct parse *parse)
{
    for (size_t i = 0; i < entry_count(parse); i++) {
        const struct option *option = entry(parse, i);
        if (parse->is_set[i])
            continue;
        if (option->is_required && option->is_positional)
            return error_set(parse->error, ERROR_INVALID, "%s is missing",
                             option->value_name ? option->value_name : option->name);
        if (option->is_required)
            return error_set(parse->error, ERROR_INVALID, "%s is missing",
                             option_flag(parse->arena, option));
        if (option->default_text &&
            set_entry(parse, i, text_of(option->default_text), option->name) < 0)
            return -1;
    }
    return 0;
}

/* The option named config_dir, when flag or environment gave it. */
static const char *find_config_dir(const struct parse *parse)
{
    for (size_t i = 0; i < entry_count(parse); i++)
        if (parse->is_set[i] && !strcmp(entry(parse, i)->name, "config_dir"))
            return *(const char *const *)entry_target(parse, i);
    return NULL;
}

int options_parse(struct arena *arena, const struct program *program, const struct command *command,
                  const struct option_sources *sources, void *common, void *options,
                  bool *out_wants_help, struct error *error)
{
    struct parse parse = {
        .arena = arena,
        .program = program,
        .command = command,
        .environment = sources->environment ? sources->environment : environ,
        .common = common,
        .options = options,
        .error = error,
    };
    parse.is_set = arena_alloc(arena, entry_count(&parse) * sizeof(*parse.is_set) + 1);
    *out_wants_help = false;
    if (parse_arguments(&parse, sources, out_wants_help) < 0)
        return -1;
    if (*out_wants_help)
        return 0;
    if (parse_environment(&parse) < 0)
        return -1;
    const char *config_dir = sources->config_dir ? sources->config_dir : find_config_dir(&parse);
    if (!config_dir && options_directory(arena, OPTION_DIRECTORY_CONFIG, parse.environment,
                                         &config_dir, error) < 0)
        config_dir = NULL; /* no home, no files */
    if (config_dir && parse_files(&parse, config_dir) < 0)
        return -1;
    return parse_defaults(&parse);
}

/* "job" of "job submit"; whether `name` starts with `word` followed by a space. */
static bool is_group(const struct program *program, const char *word)
{
    const size_t size = strlen(word);
    for (size_t i = 0; program->commands[i]; i++)
        if (!strncmp(program->commands[i]->name, word, size) &&
            program->commands[i]->name[size] == ' ')
            return true;
    return false;
}

/* "statment" of "wallet statment", where "wallet" alone is a command that takes no argument. */
static bool is_wrong_verb(const struct program *program, const struct command *command, int argc,
                          char *const *argv)
{
    if (argc < 2 || argv[1][0] == '-' || !is_group(program, argv[0]))
        return false;
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].is_positional)
            return false;
    return true;
}

const struct command *options_find_command(const struct program *program, int argc,
                                           char *const *argv, int *out_words)
{
    for (int words = argc < 2 ? argc : 2; words > 0; words--) {
        char name[64];
        const int length = words == 2 ? snprintf(name, sizeof(name), "%s %s", argv[0], argv[1])
                                      : snprintf(name, sizeof(name), "%s", argv[0]);
        if (length < 0 || length >= (int)sizeof(name))
            continue;
        for (size_t i = 0; program->commands[i]; i++) {
            if (!strcmp(program->commands[i]->name, name)) {
                if (words == 1 && is_wrong_verb(program, program->commands[i], argc, argv))
                    return NULL;
                *out_words = words;
                return program->commands[i];
            }
        }
    }
    return NULL;
}

static const char *first_word(struct arena *arena, const char *name)
{
    return arena_copy_string(arena, (struct text){name, strcspn(name, " ")});
}

/* "; \"model\" goes with export, inspect, serve". */
static const char *verbs_of(struct arena *arena, const struct program *program, const char *group)
{
    const size_t size = strlen(group);
    const char *verbs = "";
    for (size_t i = 0; program->commands[i]; i++) {
        const char *name = program->commands[i]->name;
        if (!program->commands[i]->is_hidden && strncmp(name, group, size) == 0 &&
            name[size] == ' ')
            verbs = arena_format(arena, "%s%s%s", verbs, verbs[0] ? ", " : "", name + size + 1);
    }
    return arena_format(arena, "; \"%.40s\" goes with %s", group, verbs);
}

int options_refuse_command(const struct program *program, int argc, char *const *argv,
                           struct error *error)
{
    if (argc == 0)
        return error_set(error, ERROR_INVALID, "no command given; see \"%s --help\"",
                         program->name);
    if (argv[0][0] == '-')
        return error_set(error, ERROR_INVALID, "\"%.40s\" goes after the command, not before it",
                         argv[0]);
    const bool is_verb = is_group(program, argv[0]);
    if (is_verb && argc == 1)
        return error_set(error, ERROR_INVALID, "\"%s\" needs a verb; see \"%s %s --help\"", argv[0],
                         program->name, argv[0]);
    char wanted[96];
    snprintf(wanted, sizeof(wanted), "%.40s%s%.40s", argv[0], is_verb ? " " : "",
             is_verb ? argv[1] : "");
    AUTO(arena) struct arena *arena = arena_new(0);
    struct nearest nearest;
    nearest_init(&nearest, text_of(wanted));
    for (size_t i = 0; program->commands[i]; i++) {
        if (program->commands[i]->is_hidden)
            continue;
        nearest_offer(&nearest, program->commands[i]->name);
        if (!is_verb && strchr(program->commands[i]->name, ' '))
            nearest_offer(&nearest, first_word(arena, program->commands[i]->name));
    }
    char hint[NEAREST_HINT_SIZE];
    return error_set(error, ERROR_INVALID, "unknown command \"%s\"%s", wanted,
                     is_verb && !nearest.name ? verbs_of(arena, program, argv[0])
                                              : nearest_hint(&nearest, hint));
}

bool options_terminal_has_color(int fd)
{
    const char *no_color = option_environment_get(environ, "NO_COLOR");
    const char *term = option_environment_get(environ, "TERM");
    return isatty(fd) && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}
