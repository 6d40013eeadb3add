/* covers option_value.c, options_field.c, options_file.c, options_help.c, options_docs.c, nearest.c
 */
#include "base/nearest.h"
#include "base/options.h"
#include "testing/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct common {
    bool json;
    bool no_color;
    const char *config_dir;
    const char *token;
};

struct lend {
    int64_t cpus_milli;
    int64_t memory_bytes;
    int64_t heartbeat_ms;
    int64_t minimum_micro;
    uint64_t port;
    int mode;
    bool is_quiet;
    bool has_page;
    const char *data_dir;
    struct option_list labels;
    const char *server;
    struct option_list rest;
};

static const char *const modes[] = {"gentle", "all", NULL};

static const struct option common_options[] = {
    {"json", OPTION_FLAG, offsetof(struct common, json), .help = "Print JSON."},
    {"no_color", OPTION_FLAG, offsetof(struct common, no_color), .help = "No colours.",
     .environment = "NO_COLOR"},
    {"config_dir", OPTION_PATH, offsetof(struct common, config_dir), .help = "Where files lie."},
    {"token", OPTION_TEXT, offsetof(struct common, token), .help = "Who you are.",
     .is_secret = true},
};

static const struct option lend_options[] = {
    {"cpus", OPTION_CORES, offsetof(struct lend, cpus_milli), "CORES", "100%", "How much to lend."},
    {"memory", OPTION_BYTES, offsetof(struct lend, memory_bytes), "SIZE", "1GiB", "How much RAM."},
    {"heartbeat", OPTION_DURATION, offsetof(struct lend, heartbeat_ms), NULL, "1s", "Pulse.",
     .minimum = 1000, .maximum = 86400000},
    {"minimum", OPTION_CREDITS, offsetof(struct lend, minimum_micro), NULL, NULL, "Lowest price.",
     .minimum = 1, .maximum = 1000000},
    {"port", OPTION_U64, offsetof(struct lend, port), NULL, "7600", "The port.", .minimum = 1,
     .maximum = 65535},
    {"mode", OPTION_CHOICE, offsetof(struct lend, mode), NULL, "gentle", "How hard.",
     .choices = modes},
    {"quiet", OPTION_FLAG, offsetof(struct lend, is_quiet), .help = "Say less.", .letter = 'q'},
    {"page", OPTION_FLAG, offsetof(struct lend, has_page), NULL, "true", "Serve the page."},
    {"data_dir", OPTION_PATH, offsetof(struct lend, data_dir), "DIR", "{data}/lend", "Folder."},
    {"label", OPTION_LIST, offsetof(struct lend, labels), "LABEL", .help = "Label.", .letter = 'l'},
    {"server", OPTION_TEXT, offsetof(struct lend, server), "URL", .help = "The market.",
     .is_positional = true, .is_required = true},
    {"rest", OPTION_LIST, offsetof(struct lend, rest), "WORD", .help = "More.",
     .is_positional = true},
};

static const struct option other_options[] = {
    {"listen", OPTION_TEXT, 0, .help = "Where to listen."},
};

static const struct command lend_command = {
    .name = "lend",
    .summary = "Lends this machine.",
    .example = "souk lend https://market --cpus 50%",
    COMMAND_OPTIONS(lend_options, lend),
};
static const struct command serve_command = {
    .name = "serve", .summary = "Runs a market.", COMMAND_OPTIONS(other_options, option_list)};
static const struct command submit_command = {.name = "job submit", .summary = "Submits a job."};
static const struct command show_command = {.name = "job show", .summary = "Shows a job."};
static const struct command hidden_command = {
    .name = "worker", .summary = "Inside.", .is_hidden = true};

static const struct command *const commands[] = {&lend_command, &serve_command,  &submit_command,
                                                 &show_command, &hidden_command, NULL};

static const struct program program = {
    .name = "souk",
    .version = "1.2.3",
    .summary = "A market for training.",
    .common = common_options,
    .common_count = sizeof(common_options) / sizeof(*common_options),
    .commands = commands,
};

struct fixture {
    struct arena *arena;
    char directory[64];
    struct common common;
    struct lend lend;
    bool wants_help;
    struct error error;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->arena = arena_new(0);
    snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/souk-options-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    *state = fixture;
    return 0;
}

static const char *file_path(struct fixture *fixture, const char *name)
{
    return arena_format(fixture->arena, "%s/%s", fixture->directory, name);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    unlink(file_path(fixture, "config"));
    unlink(file_path(fixture, "secrets"));
    rmdir(fixture->directory);
    arena_free(fixture->arena);
    free(fixture);
    return 0;
}

static void write_file(struct fixture *fixture, const char *name, mode_t mode, const char *content)
{
    const int fd = open(file_path(fixture, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

/* Both lists end with NULL; `environment` may be NULL for an empty one. */
static int parse(struct fixture *fixture, const char *const *arguments,
                 const char *const *environment)
{
    static const char *const nothing[] = {NULL};
    int count = 0;
    while (arguments[count])
        count++;
    union {
        const char *const *constant;
        char *const *plain;
    } argv = {arguments}, variables = {environment ? environment : nothing};
    const struct option_sources sources = {count, argv.plain, variables.plain, fixture->directory};
    fixture->common = (struct common){0};
    fixture->lend = (struct lend){0};
    return options_parse(fixture->arena, &program, &lend_command, &sources, &fixture->common,
                         &fixture->lend, &fixture->wants_help, &fixture->error);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define PARSE_OK(arguments, environment)                                                           \
    do {                                                                                           \
        if (parse(fixture, (arguments), (environment)) < 0)                                        \
            fail_msg("%s", fixture->error.message);                                                \
    } while (0)
#define PARSE_FAILS(arguments, environment, expected)                                              \
    do {                                                                                           \
        assert_int_equal(parse(fixture, (arguments), (environment)), -1);                          \
        assert_string_equal(fixture->error.message, (expected));                                   \
        assert_int_equal(error_exit_code(fixture->error.code), 2);                                 \
    } while (0)

static void defaults_fill_what_nobody_gave(void **state)
{
    struct fixture *fixture = *state;
    PARSE_OK(WORDS("https://market"), WORDS("XDG_DATA_HOME=/var/data"));
    assert_int_equal(fixture->lend.cpus_milli, 1000);
    assert_int_equal(fixture->lend.memory_bytes, 1 << 30);
    assert_int_equal(fixture->lend.heartbeat_ms, 1000);
    assert_int_equal(fixture->lend.minimum_micro, 0);
    assert_int_equal(fixture->lend.port, 7600);
    assert_int_equal(fixture->lend.mode, 0);
    assert_true(fixture->lend.has_page);
    assert_string_equal(fixture->lend.data_dir, "/var/data/souk/lend");
    assert_string_equal(fixture->lend.server, "https://market");
}

static void flags_are_read_in_all_their_forms(void **state)
{
    struct fixture *fixture = *state;
    PARSE_OK(WORDS("--cpus=50%", "--memory", "2GiB", "-q", "--no-page", "--mode=all", "-lfast",
                   "-l", "home", "--label=a,b", "--minimum", "0.25", "m", "--", "--x", "-y"),
             NULL);
    assert_int_equal(fixture->lend.cpus_milli, 500);
    assert_int_equal(fixture->lend.memory_bytes, 2LL << 30);
    assert_true(fixture->lend.is_quiet);
    assert_false(fixture->lend.has_page);
    assert_int_equal(fixture->lend.mode, 1);
    assert_int_equal(fixture->lend.minimum_micro, 250000);
    assert_int_equal(fixture->lend.labels.count, 4);
    assert_string_equal(fixture->lend.labels.items[0], "fast");
    assert_string_equal(fixture->lend.labels.items[3], "b");
    assert_int_equal(fixture->lend.rest.count, 2);
    assert_string_equal(fixture->lend.rest.items[0], "--x");
}

static void flag_wins_over_environment_over_file_over_default(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "config", 0644, "# mine\nport = 1001  # here\n\nheartbeat = 2s\n");
    PARSE_OK(WORDS("m", "--port", "1003"), WORDS("SOUK_LEND_PORT=1002", "SOUK_LEND_HEARTBEAT=3s"));
    assert_int_equal(fixture->lend.port, 1003);
    assert_int_equal(fixture->lend.heartbeat_ms, 3000);
    PARSE_OK(WORDS("m"), WORDS("SOUK_LEND_PORT=1002"));
    assert_int_equal(fixture->lend.port, 1002);
    assert_int_equal(fixture->lend.heartbeat_ms, 2000);
    PARSE_OK(WORDS("m"), NULL);
    assert_int_equal(fixture->lend.port, 1001);
}

static void sections_of_a_file_are_for_one_command(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "config", 0644,
               "port = 1\n[serve]\nlisten = 1.2.3.4\n[lend]\nport = 2\n[job submit]\nport = 3\n");
    PARSE_OK(WORDS("m"), NULL);
    assert_int_equal(fixture->lend.port, 2);
}

static void unknown_names_are_refused_with_the_nearest(void **state)
{
    struct fixture *fixture = *state;
    PARSE_FAILS(WORDS("m", "--memroy=1GiB"), NULL,
                "unknown flag \"--memroy\"; did you mean \"--memory\"?");
    PARSE_FAILS(WORDS("m", "--xyzzy"), NULL, "unknown flag \"--xyzzy\"");
    PARSE_FAILS(WORDS("m", "-x"), NULL, "unknown flag \"-x\"");
    write_file(fixture, "config", 0644, "\nlistn = 1\n");
    PARSE_FAILS(WORDS("m"), NULL,
                arena_format(fixture->arena,
                             "%s/config:2: unknown key \"listn\"; did you mean \"listen\"?",
                             fixture->directory));
}

static void wrong_values_name_their_place(void **state)
{
    struct fixture *fixture = *state;
    PARSE_FAILS(WORDS("m", "--port=70000"), NULL,
                "--port: \"70000\" is not a whole number from 1 to 65535");
    PARSE_FAILS(WORDS("m"), WORDS("SOUK_LEND_PORT=zero"),
                "SOUK_LEND_PORT: \"zero\" is not a whole number from 1 to 65535");
    PARSE_FAILS(WORDS("m", "--mode=hard"), NULL, "--mode: \"hard\" is not one of gentle, all");
    PARSE_FAILS(WORDS("m", "--quiet=maybe"), NULL, "--quiet: write true or false");
    PARSE_FAILS(WORDS("m", "--memory"), NULL, "--memory needs a value (SIZE)");
    PARSE_FAILS(WORDS("m", "--data-dir="), NULL, "--data-dir: a path may not be empty");
    PARSE_FAILS(WORDS("--quiet"), NULL, "URL is missing");
    write_file(fixture, "config", 0644, "port\n");
    PARSE_FAILS(
        WORDS("m"), NULL,
        arena_format(fixture->arena, "%s/config:1: write it as key = value", fixture->directory));
}

static void secrets_come_from_a_private_file_only(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "config", 0644, "token = abc\n");
    assert_int_equal(parse(fixture, WORDS("m"), NULL), -1);
    assert_non_null(strstr(fixture->error.message, "\"token\" is a secret"));
    write_file(fixture, "config", 0644, "");
    write_file(fixture, "secrets", 0644, "token = abc\n");
    assert_int_equal(parse(fixture, WORDS("m"), NULL), -1);
    assert_int_equal(fixture->error.code, ERROR_REFUSED);
    assert_non_null(strstr(fixture->error.message, "chmod 600"));
    write_file(fixture, "secrets", 0600, "token = abc\n");
    PARSE_OK(WORDS("m"), NULL);
    assert_string_equal(fixture->common.token, "abc");
}

static void storing_keeps_other_lines_and_makes_secrets_private(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "config", 0644, "# mine\nport = 1\nmode = all\n[lend]\nport = 9\n");
    const struct option_setting port = {"port", "4"};
    struct error error;
    ASSERT_OK(options_file_store(fixture->directory, false, &port, 1, &error));
    char content[128] = "";
    const int fd = open(file_path(fixture, "config"), O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, content, sizeof(content) - 1) > 0);
    close(fd);
    assert_string_equal(content, "port = 4\n# mine\nmode = all\n[lend]\nport = 9\n");
    const struct option_setting token = {"token", "s3cret"};
    ASSERT_OK(options_file_store(fixture->directory, true, &token, 1, &error));
    struct stat info;
    assert_int_equal(stat(file_path(fixture, "secrets"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    PARSE_OK(WORDS("m"), NULL);
    assert_string_equal(fixture->common.token, "s3cret");
}

static void assert_file(struct fixture *fixture, const char *wanted)
{
    char content[256] = "";
    const int fd = open(file_path(fixture, "config"), O_RDONLY | O_CLOEXEC);
    assert_true(read(fd, content, sizeof(content) - 1) > 0);
    close(fd);
    assert_string_equal(content, wanted);
}

static void storing_for_a_command_keeps_to_its_section(void **state)
{
    struct fixture *fixture = *state;
    const struct option_setting settings[] = {{"port", "4"}, {"mode", NULL}};
    struct error error;
    write_file(fixture, "config", 0644,
               "port = 1\n[lend]\nmode = all\nport = 9\n[other]\nport = 3\n");
    ASSERT_OK(options_file_store_command(fixture->directory, "lend", settings, 2, &error));
    assert_file(fixture, "port = 1\n[lend]\nport = 4\n[other]\nport = 3\n");
    write_file(fixture, "config", 0644, "port = 1\n");
    ASSERT_OK(options_file_store_command(fixture->directory, "lend", settings, 2, &error));
    assert_file(fixture, "port = 1\n\n[lend]\nport = 4\n");
}

static void list_of_a_section_stands_instead_of_the_one_for_all(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture, "config", 0644, "label = a,b\n[lend]\nlabel = c\nlabel = d\n");
    PARSE_OK(WORDS("m"), NULL);
    assert_int_equal(fixture->lend.labels.count, 2);
    assert_string_equal(fixture->lend.labels.items[0], "c");
    assert_string_equal(fixture->lend.labels.items[1], "d");
}

static void variables_of_others_count_by_being_there(void **state)
{
    struct fixture *fixture = *state;
    PARSE_OK(WORDS("m"), WORDS("NO_COLOR=please"));
    assert_true(fixture->common.no_color);
    PARSE_OK(WORDS("m"), WORDS("NO_COLOR="));
    assert_false(fixture->common.no_color);
}

static void help_wins_over_mistakes_and_stops_at_the_dashes(void **state)
{
    struct fixture *fixture = *state;
    PARSE_OK(WORDS("--port=none", "-h"), NULL);
    assert_true(fixture->wants_help);
    PARSE_OK(WORDS("m", "--", "--help"), NULL);
    assert_false(fixture->wants_help);
}

TEST(commands_are_found_by_one_or_two_words)
{
    struct error error;
    int words;
    char job[] = "job", submit[] = "submit", lend[] = "lend", sbmit[] = "sbmit", led[] = "lned";
    assert_ptr_equal(options_find_command(&program, 2, (char *[]){job, submit}, &words),
                     &submit_command);
    assert_int_equal(words, 2);
    assert_ptr_equal(options_find_command(&program, 2, (char *[]){lend, submit}, &words),
                     &lend_command);
    assert_int_equal(words, 1);
    assert_null(options_find_command(&program, 1, (char *[]){job}, &words));
    options_refuse_command(&program, 1, (char *[]){job}, &error);
    assert_string_equal(error.message, "\"job\" needs a verb; see \"souk job --help\"");
    options_refuse_command(&program, 2, (char *[]){job, sbmit}, &error);
    assert_string_equal(error.message,
                        "unknown command \"job sbmit\"; did you mean \"job submit\"?");
    options_refuse_command(&program, 1, (char *[]){led}, &error);
    assert_string_equal(error.message, "unknown command \"lned\"; did you mean \"lend\"?");
    options_refuse_command(&program, 2, (char *[]){job, lend}, &error);
    assert_string_equal(error.message,
                        "unknown command \"job lend\"; \"job\" goes with submit, show");
}

TEST(a_wrong_verb_after_a_command_without_arguments_is_no_argument)
{
    static const struct command wallet = {.name = "wallet", .summary = "Shows it."};
    static const struct command statement = {.name = "wallet statement", .summary = "Lists it."};
    static const struct command *const both[] = {&wallet, &statement, NULL};
    const struct program small = {.name = "souk", .commands = both};
    char word[] = "wallet", wrong[] = "statment", flag[] = "--json";
    struct error error = {0};
    int words = 0;
    assert_null(options_find_command(&small, 2, (char *[]){word, wrong}, &words));
    options_refuse_command(&small, 2, (char *[]){word, wrong}, &error);
    assert_string_equal(error.message,
                        "unknown command \"wallet statment\"; did you mean \"wallet statement\"?");
    assert_ptr_equal(options_find_command(&small, 2, (char *[]){word, flag}, &words), &wallet);
    assert_ptr_equal(options_find_command(&small, 1, (char *[]){word}, &words), &wallet);
}

TEST(refusals_by_the_api_name_the_flag_in_its_unit)
{
    static const struct option options[] = {
        {"account", OPTION_TEXT, 0, "ACCOUNT", .fields = "to", .is_positional = true},
        {"max_lease", OPTION_DURATION, 0, "SPAN"},
        {"min_price", OPTION_LIST, 0, "PRICE", .fields = "minimum floor"},
        {"ram", OPTION_BYTES, 0, "SIZE"},
        {"ready", OPTION_FLAG, 0, .is_hidden = true},
    };
    static const struct command command = {.name = "offer", COMMAND_OPTIONS(options, option_list)};
    static const struct {
        const char *said, *shown;
    } cases[] = {
        {"max_lease_ms must be from 1000 to 86400000", "--max-lease must be from 1.0 s to 24h"},
        {"offer.minimum.core_micro: must be from 0 to 1500000",
         "--min-price: must be from 0.000000 credits to 1.500000 credits"},
        {"floor: too low", "--min-price: too low"},
        {"to: there is no account \"b\"", "ACCOUNT: there is no account \"b\""},
        {"ram_share_milli: 1500 is too much", "--ram: 1.5 is too much"},
        {"ram_bytes: 1073741824 is more than 536870912", "--ram: 1.0 GiB is more than 512 MiB"},
        {"ready: no", "ready: no"},
        {"the market is away", "the market is away"},
        {"maximum", "maximum"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct error error;
        error_set(&error, ERROR_INVALID, "%s", cases[i].said);
        options_name_fields(&command, &error);
        assert_string_equal(error.message, cases[i].shown);
    }
    struct error error;
    error_set(&error, ERROR_INVALID, "slot_offset_ms must be from 0 to 60000");
    options_name_field(&error, "slot_offset", "offset");
    assert_string_equal(error.message, "slot_offset_ms must be from 0 to 60000");
    options_name_field(&error, "slot_offset_ms", "offset");
    assert_string_equal(error.message, "offset must be from 0 ms to 1m");
}

static void advice_is_given_in_flags(void **state)
{
    (void)state;
    static const struct option options[] = {
        {"nodes", OPTION_U64, 0, .fields = "num_nodes"},
        {"max_run_time", OPTION_DURATION, 0},
        {"spare", OPTION_FLAG, 0},
        {"start", OPTION_TEXT, 0},
    };
    static const struct command command = {.name = "run", COMMAND_OPTIONS(options, option_list)};
    static const struct {
        const char *said, *shown;
    } cases[] = {
        {"3 credits pay for 2 workers: \"num_nodes: 2\"",
         "3 credits pay for 2 workers: \"--nodes 2\""},
        {"credit: \"spare: true\" under market", "credit: \"--spare\""},
        {"\"start: by 2d\" under market in the job file ends it", "\"--start 'by 2d'\" ends it"},
        {"a shorter max_run_time costs less.", "a shorter --max-run-time costs less."},
        {"leave out market.spare", "leave out --spare"},
        {"to start a spare machine \"my.start\": no", "to start a spare machine \"my.start\": no"},
        {"\"policy: tap\" under sync; \"", "\"policy: tap\" under sync; \""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buffer out AUTO_BUFFER;
        buffer_init(&out, 256);
        options_name_advice(&command, text_of(cases[i].said), &out);
        assert_string_equal(buffer_string(&out), cases[i].shown);
    }
}

static void a_negative_number_is_a_value_and_no_flag(void **state)
{
    struct fixture *fixture = *state;
    PARSE_OK(WORDS("-5h", "-.5", "word"), NULL);
    assert_string_equal(fixture->lend.server, "-5h");
    assert_int_equal(fixture->lend.rest.count, 2);
    assert_string_equal(fixture->lend.rest.items[0], "-.5");
}

static void spans_keep_to_their_range(void **state)
{
    struct fixture *fixture = *state;
    PARSE_FAILS(WORDS("m", "--heartbeat=0s"), NULL, "--heartbeat: must be from 1.0 s to 24h");
    PARSE_OK(WORDS("m", "--heartbeat=1s"), NULL);
}

static bool contains(struct buffer *buffer, const char *part)
{
    return strstr(buffer_string(buffer), part) != NULL;
}

TEST(help_shows_flags_defaults_variables_and_an_example)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    options_write_command_help(&program, &lend_command, &out);
    assert_true(contains(&out, "Usage: souk lend [OPTIONS] URL [WORD...]\n"));
    assert_true(contains(&out, "      --cpus CORES            How much to lend. [default: 100%]\n"
                               "                              [SOUK_LEND_CPUS]\n"));
    assert_true(contains(&out, "  -q, --quiet                 Say less. [SOUK_LEND_QUIET]\n"));
    assert_true(contains(&out, "One of: gentle, all."));
    assert_true(contains(&out, "Example:\n  souk lend https://market --cpus 50%\n"));
    buffer_clear(&out);
    options_write_help(&program, &out);
    assert_true(contains(&out, "  job submit        Submits a job.\n"));
    assert_false(contains(&out, "worker"));
    buffer_clear(&out);
    assert_true(options_write_group_help(&program, "job", &out));
    assert_true(contains(&out, "job show"));
    assert_false(contains(&out, "lend"));
    assert_false(options_write_group_help(&program, "jo", &out));
}

TEST(manual_and_completion_name_every_visible_command)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    options_write_manual(&program, &out);
    assert_true(contains(&out, ".SS souk job submit\n"));
    assert_true(contains(&out, "\\-\\-data\\-dir"));
    assert_false(contains(&out, "worker"));
    for (int shell = 0; shell < OPTION_SHELL_COUNT; shell++) {
        buffer_clear(&out);
        options_write_completion(&program, (enum option_shell)shell, &out);
        assert_true(contains(&out, "data-dir"));
        assert_true(contains(&out, "submit"));
        assert_false(contains(&out, "worker"));
    }
}

TEST(nearest_forgives_swaps_and_short_forms_but_not_strangers)
{
    struct nearest nearest;
    nearest_init(&nearest, TEXT("accruacy"));
    nearest_offer(&nearest, "batch");
    nearest_offer(&nearest, "accuracy");
    assert_string_equal(nearest.name, "accuracy");
    nearest_init(&nearest, TEXT("optim"));
    nearest_offer(&nearest, "optimizer");
    assert_string_equal(nearest.name, "optimizer");
    nearest_init(&nearest, TEXT("lr"));
    nearest_offer(&nearest, "momentum");
    assert_null(nearest.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults_fill_what_nobody_gave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flags_are_read_in_all_their_forms, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flag_wins_over_environment_over_file_over_default, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(sections_of_a_file_are_for_one_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_names_are_refused_with_the_nearest, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wrong_values_name_their_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(secrets_come_from_a_private_file_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(storing_for_a_command_keeps_to_its_section, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(list_of_a_section_stands_instead_of_the_one_for_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(storing_keeps_other_lines_and_makes_secrets_private, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(variables_of_others_count_by_being_there, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(help_wins_over_mistakes_and_stops_at_the_dashes, set_up,
                                        tear_down),
        cmocka_unit_test(advice_is_given_in_flags),
        cmocka_unit_test_setup_teardown(a_negative_number_is_a_value_and_no_flag, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(spans_keep_to_their_range, set_up, tear_down),
        cmocka_unit_test(refusals_by_the_api_name_the_flag_in_its_unit),
        cmocka_unit_test(commands_are_found_by_one_or_two_words),
        cmocka_unit_test(a_wrong_verb_after_a_command_without_arguments_is_no_argument),
        cmocka_unit_test(help_shows_flags_defaults_variables_and_an_example),
        cmocka_unit_test(manual_and_completion_name_every_visible_command),
        cmocka_unit_test(nearest_forgives_swaps_and_short_forms_but_not_strangers),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
