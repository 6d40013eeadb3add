/* souk: finds the command, reads its options, runs it, and turns failures into one sentence and an
 * exit code. Nothing else is done before the command is known: `souk --version` must be quick. */
#include "base/buffer.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/sign_in.h"
#include "exchange/message.h"
#include "function/instance.h"
#include "peer/gateway.h"
#include "peer/keeper.h"
#include "runtime/lease_message.h"
#include "sandbox/stage.h"
#include "server/import_fetch.h"
#include "server/import_runner.h"
#include "worker/worker.h"

#include <commit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { HELP_SIZE_MAX = 1 << 20, EXIT_USAGE = 2 };

#if defined(__SANITIZE_ADDRESS__)
/* Freed memory that the sanitizer keeps back counts against a lease: the default 256 MiB would have
 * a worker of a small lease killed. */
const char *__asan_default_options(void); // NOLINT: the sanitizer's name
const char *__asan_default_options(void)  // NOLINT
{
    return "quarantine_size_mb=16";
}
#endif

static int print_buffer(struct buffer *text)
{
    struct error error;
    fwrite(text->data, 1, text->size, stdout);
    if (output_finish(&error) == 0)
        return 0;
    fprintf(stderr, "souk: %s\n", error.message);
    return error_exit_code(error.code);
}

static int print_help(const struct command *command)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, HELP_SIZE_MAX);
    if (command)
        options_write_command_help(&souk_program, command, &out);
    else
        options_write_help(&souk_program, &out);
    return print_buffer(&out);
}

/* `souk job --help`, `souk help job submit` */
static int print_group_help(const char *group)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, HELP_SIZE_MAX);
    if (!options_write_group_help(&souk_program, group, &out))
        return EXIT_USAGE;
    return print_buffer(&out);
}

static int report(const struct command *command, const struct error *error)
{
    const int exit_code = error_exit_code(error->code);
    struct error shown = *error; /* the market's words may be anyone's */
    text_make_plain(shown.message);
    char line[sizeof(shown.message) + sizeof("souk: ")];
    snprintf(line, sizeof(line), "souk: %s", shown.message);
    output_words(stderr, line, output_columns(NULL, stderr));
    if (exit_code == EXIT_USAGE && command)
        fprintf(stderr, "See \"souk %s --help\".\n", command->name);
    return exit_code;
}

static int run_command(const struct command *command, int argc, char *const *argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct cli cli = {.program = &souk_program, .arena = arena};
    void *options = arena_alloc(arena, command->struct_size + 1);
    const struct option_sources sources = {.argc = argc, .argv = argv};
    bool wants_help;
    struct error error;
    if (options_parse(arena, &souk_program, command, &sources, &cli.common, options, &wants_help,
                      &error) < 0)
        return report(command, &error);
    if (wants_help)
        return print_help(command);
    cli.common.server = cli.common.servers.count ? cli.common.servers.items[0] : NULL;
    if (sign_in_find(&cli, &error) < 0)
        return report(NULL, &error);
    int exit_code = command->run(&cli, options, &error);
    if (exit_code < 0) {
        options_name_fields(command, &error);
        exit_code = report(error.code == ERROR_INVALID ? command : NULL, &error);
    }
    if (output_finish(&error) < 0)
        return report(NULL, &error);
    return exit_code;
}

static bool is_help(const char *word)
{
    return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

int main(int argc, char **argv)
{
    const int skipped = stage_enter(argc, argv);
    argc -= skipped;
    argv += skipped;
    if (argc > 1 && (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
        printf("souk %s (link %d, exchange %d%s%s)\n", souk_program.version, LEASE_MESSAGE_VERSION,
               EXCHANGE_VERSION, SOUK_COMMIT[0] ? ", commit " : "", SOUK_COMMIT);
        return fflush(stdout) ? 1 : 0;
    }
    /* Started by the lender's daemon for each lease; nothing but the daemon tells it anything. */
    if (argc > 1 && !strcmp(argv[1], "keeper"))
        return keeper_main(argc - 1, argv + 1);
    /* Started by a keeper, for a lease with the Internet. */
    if (argc > 1 && !strcmp(argv[1], "gateway"))
        return gateway_main(argc - 1, argv + 1);
    /* Started by the market, for data that it reads for somebody. */
    if (argc > 1 && !strcmp(argv[1], "import-run"))
        return import_runner_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "import-fetch"))
        return import_fetch_main(argc - 1, argv + 1);
    /* Inside a sandbox there is no home, no file and no variable to read options from. */
    if (argc > 1 && !strcmp(argv[1], "worker"))
        return worker_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], INSTANCE_COMMAND))
        return instance_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "rank-launch"))
        return rank_launch_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "image-unpack"))
        return image_unpack_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "packages-install"))
        return packages_install_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "packages-list"))
        return packages_list_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "packages-fetch"))
        return packages_fetch_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "import-read"))
        return import_read_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "import-mount"))
        return import_mount_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "import-look"))
        return import_look_main(argc - 1, argv + 1);
    if (argc > 1 && is_help(argv[1]) && argc == 2)
        return print_help(NULL);
    /* `souk help job submit` reads as `souk job submit --help`. */
    const bool is_helping = argc > 2 && !strcmp(argv[1], "help");
    char *const *words = argv + 1 + is_helping;
    const int count = argc - 1 - is_helping;

    signal(SIGPIPE, SIG_IGN);
    int taken = 0;
    const struct command *command = options_find_command(&souk_program, count, words, &taken);
    if (command && is_helping)
        return print_help(command);
    if (command)
        return run_command(command, count - taken, words + taken);
    if ((is_helping || (count == 2 && is_help(words[1]))) && print_group_help(words[0]) == 0)
        return 0;
    struct error error;
    options_refuse_command(&souk_program, count, words, &error);
    return report(NULL, &error);
}
