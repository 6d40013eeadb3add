/* souk completion, souk man: generated from the command tables. */
#include "base/json.h"
#include "cli/output.h"

enum { DOCS_SIZE_MAX = 1 << 20 };

struct completion_options {
    int shell;
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct option completion_options[] = {
    {"shell", OPTION_CHOICE, offsetof(struct completion_options, shell), "SHELL",
     .help = "Which shell to complete in.", .choices = shells, .is_positional = true,
     .is_required = true},
};

/* With --json one string. */
static int print(const struct cli *cli, struct text text, struct error *error)
{
    if (!cli->common.json) {
        fwrite(text.data, 1, text.size, stdout);
        return 0;
    }
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)2 * DOCS_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_text(&writer, text);
    if (buffer_check(&json, error) < 0)
        return -1;
    output_json(buffer_text(&json));
    return 0;
}

static int run_completion(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct completion_options *wanted = options;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, DOCS_SIZE_MAX);
    options_write_completion(cli->program, (enum option_shell)wanted->shell, &out);
    if (buffer_check(&out, error) < 0)
        return -1;
    return print(cli, buffer_text(&out), error);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "Prints a shell's completion script.",
    .example = "source <(souk completion bash)",
    COMMAND_OPTIONS(completion_options, completion_options),
    .run = run_completion,
};

static int run_man(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, DOCS_SIZE_MAX);
    options_write_manual(cli->program, &out);
    if (buffer_check(&out, error) < 0)
        return -1;
    return print(cli, buffer_text(&out), error);
}

const struct command command_man = {
    .name = "man",
    .summary = "Prints the manual page as roff.",
    .example = "souk man | man -l -",
    .run = run_man,
};
