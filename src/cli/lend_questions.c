#include "cli/lend_questions.h"

#include "base/json.h"
#include "base/schedule.h"
#include "base/units.h"
#include "cli/output.h"
#include "client/api.h"
#include "client/client.h"
#include "peer/enlist.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LINE_SIZE = 2048 };

#define NIGHTS    "Mon-Sun 22:00-07:00"
#define OFF_HOURS "Mon-Fri 18:00-08:00; Sat-Sun 0-24"

/* ---- Answers ----------------------------------------------------------------------------------
 */

static bool is_word(struct text line, const char *word)
{
    return line.size == strlen(word) && strncasecmp(line.data, word, line.size) == 0;
}

/* "market.example:7600" as people type it: encrypted, but on this very machine. */
static const char *whole_url(struct arena *arena, struct text address)
{
    if (address.size > 0 && memmem(address.data, address.size, "://", 3))
        return arena_copy_string(arena, address);
    const bool is_here = text_starts_with(address, TEXT("localhost")) ||
                         text_starts_with(address, TEXT("127.")) ||
                         text_starts_with(address, TEXT("[::1]"));
    return arena_format(arena, "%s://" TEXT_FORMAT, is_here ? "http" : "https", TEXT_ARGS(address));
}

static bool next_word(struct text *line, struct text *out_word)
{
    *line = text_trim(*line);
    if (line->size == 0)
        return false;
    struct text rest = {0};
    text_cut(*line, ' ', out_word, &rest);
    *line = rest;
    return true;
}

/* The value of --name VALUE or --name=VALUE, taken from the line's front; false: another word. */
static bool take_flag(struct text word, const char *name, struct text *line, struct text *out_value)
{
    struct text flag, value;
    const bool has_value = text_cut(word, '=', &flag, &value);
    if (!text_equal(has_value ? flag : word, text_of(name)))
        return false;
    if (!has_value && !next_word(line, &value))
        value = (struct text){0};
    *out_value = value;
    return true;
}

static int take_command(struct arena *arena, struct text line, struct lend_answers *answers,
                        struct error *error)
{
    struct text word, value;
    struct lend_answers found = *answers;
    found.server = NULL;
    while (next_word(&line, &word)) {
        if (take_flag(word, "--server", &line, &value))
            found.server = whole_url(arena, value);
        else if (take_flag(word, "--fingerprint", &line, &value))
            found.fingerprint = arena_copy_string(arena, value);
        else if (take_flag(word, "--code", &line, &value))
            found.code = arena_copy_string(arena, value);
    }
    if (!found.server)
        return error_set(error, ERROR_INVALID, "that command names no market (--server)");
    *answers = found;
    return 0;
}

int lend_answer_market(struct arena *arena, struct text line, struct lend_answers *answers,
                       struct error *error)
{
    struct lend_answers found = *answers;
    line = text_trim(line);
    if (line.size == 0)
        return error_set(error, ERROR_INVALID,
                         "a market's address looks like "
                         "https://market.example:7600");
    if (memmem(line.data, line.size, "--server", 8)) {
        if (take_command(arena, line, &found, error) < 0)
            return -1;
    } else if (memchr(line.data, ' ', line.size)) {
        return error_set(error, ERROR_INVALID,
                         "an address has no spaces; or paste the whole "
                         "command, which has --server in it");
    } else {
        found.server = whole_url(arena, line);
    }
    if (enlist_check_url(found.server, error) < 0)
        return -1;
    *answers = found;
    return 0;
}

/* "3 cores", "1.5 cores", "1 core". */
static bool take_cores(struct text line, int64_t *out_milli)
{
    struct text count, unit;
    struct error ignored;
    if (!text_cut(line, ' ', &count, &unit))
        return false;
    unit = text_trim(unit);
    return (is_word(unit, "cores") || is_word(unit, "core")) &&
           units_parse_cores(count, out_milli, &ignored) == 0;
}

static int take_share(struct text line, int64_t cores_milli, int64_t *out_milli,
                      struct error *error)
{
    uint64_t number = 0;
    struct error ignored;
    if (text_parse_u64(line, &number, &ignored) == 0 && number <= 100) {
        if (number > 0 && (int64_t)number * 1000 <= cores_milli)
            return error_set(error, ERROR_INVALID,
                             "%" PRIu64 " core%s or %" PRIu64 "%%? write the one you mean", number,
                             number == 1 ? "" : "s", number);
        *out_milli = (int64_t)number * 10; /* "50" is half: nobody means 5000 % */
        return 0;
    }
    if (!text_ends_with(line, TEXT("%")) || units_parse_share(line, out_milli, &ignored) < 0)
        return error_set(error, ERROR_INVALID, "say a part of it, like 50%% or 2 cores, or all");
    return 0;
}

int lend_answer_share(struct arena *arena, struct text line, int64_t cores_milli,
                      struct lend_answers *answers, struct error *error)
{
    line = text_trim(line);
    if (is_word(line, "half"))
        line = TEXT("50%");
    if (is_word(line, "all") || is_word(line, "everything"))
        line = TEXT("100%");
    int64_t milli = 0, wanted_milli = 0;
    const bool is_count = take_cores(line, &wanted_milli);
    if (is_count && (wanted_milli <= 0 || wanted_milli > cores_milli))
        return error_set(error, ERROR_INVALID, "this machine has %g cores",
                         (double)cores_milli / 1000);
    if (is_count)
        milli = wanted_milli * 1000 / cores_milli;
    else if (take_share(line, cores_milli, &milli, error) < 0)
        return -1;
    if (milli < 10 || milli > 1000)
        return error_set(error, ERROR_INVALID, "from 1%% to 100%%");
    answers->share = arena_format(arena, "%g%%", (double)milli / 10);
    answers->cores =
        is_count ? arena_format(arena, "%g", (double)wanted_milli / 1000) : answers->share;
    return 0;
}

int lend_answer_when(struct arena *arena, struct text line, struct lend_answers *answers,
                     struct error *error)
{
    struct schedule schedule;
    line = text_trim(line);
    if (is_word(line, "nights"))
        line = TEXT(NIGHTS);
    if (is_word(line, "off-hours"))
        line = TEXT(OFF_HOURS);
    if (schedule_parse(line, &schedule, error) < 0)
        return -1;
    answers->when = arena_copy_string(arena, line);
    return 0;
}

/* ---- Asking -----------------------------------------------------------------------------------
 */

/* 1: a line was typed; 0: the end of the input. Without `otherwise` Enter alone is an empty answer.
 */
static int ask(const char *question, const char *otherwise, char line[LINE_SIZE],
               struct text *out_answer, struct error *error)
{
    if (otherwise)
        fprintf(stderr, "%s\n   [%s] > ", question, otherwise);
    else
        fprintf(stderr, "%s\n   > ", question);
    fflush(stderr);
    errno = 0;
    if (!fgets(line, LINE_SIZE, stdin)) {
        if (errno)
            return error_set_errno(error, errno, "read the answer");
        fputc('\n', stderr);
        return 0;
    }
    if (!strchr(line, '\n'))
        return error_set(error, ERROR_INVALID, "the answer is longer than %d bytes", LINE_SIZE);
    line[strcspn(line, "\r\n")] = '\0';
    text_make_plain(line);
    *out_answer = text_trim(text_of(line));
    if (out_answer->size == 0 && otherwise)
        *out_answer = text_of(otherwise);
    return 1;
}

struct question {
    const char *words;
    const char *otherwise; /* what Enter means; NULL: nothing */
    int (*take)(struct arena *arena, struct text line, struct lend_answers *answers,
                struct error *error);
};

/* What was wrong with an answer, before the question comes again. */
static void say_again(const struct cli *cli, const struct error *error)
{
    output_plan(cli, arena_format(cli->arena, "   %s\n", error->message));
}

/* Again until the answer is one. */
static int ask_until(const struct cli *cli, const struct question *question,
                     struct lend_answers *answers, struct error *error)
{
    char line[LINE_SIZE];
    struct text answer;
    for (;;) {
        const int result = ask(question->words, question->otherwise, line, &answer, error);
        if (result <= 0)
            return result;
        if (question->take(cli->arena, answer, answers, error) == 0)
            return 1;
        say_again(cli, error);
    }
}

/* ---- The market -------------------------------------------------------------------------------
 */

static int meet(const struct cli *cli, const struct lend_answers *answers, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const struct client_options options = {.server = answers->server,
                                           .fingerprint = answers->fingerprint};
    struct api_server server = {0};
    struct client_answer met = {.schema = &api_server_schema, .value = &server};
    if (client_open(&options, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/server", &met, error) < 0)
        return -1;
    fprintf(stderr, "   That is the market \"%s\".\n", output_text(cli->arena, server.name));
    return 0;
}

/* Signed in there already: the code need not be fetched by hand. */
static int make_code(const struct cli *cli, struct lend_answers *answers)
{
    AUTO(client) struct client *client = NULL;
    const struct client_options options = {
        .server = answers->server, .token = cli->common.token, .fingerprint = answers->fingerprint};
    struct api_machine_code code = {0};
    struct client_answer made = {.schema = &api_machine_code_schema, .value = &code};
    struct error ignored; /* then it is asked for */
    if (!cli->common.token || !cli->common.server ||
        strcmp(cli->common.server, answers->server) != 0 ||
        client_open(&options, &client, &ignored) < 0 ||
        client_post(client, cli->arena, "/v1/machines/codes", (struct text){0}, &made, &ignored) <
            0)
        return -1;
    answers->code = arena_copy_string(cli->arena, code.code);
    return 0;
}

static int take_code(struct arena *arena, struct text line, struct lend_answers *answers,
                     struct error *error)
{
    if (line.size < 8 || memchr(line.data, ' ', line.size))
        return error_set(error, ERROR_INVALID, "a code is one long word, like souk_enrol_4f2c...");
    answers->code = arena_copy_string(arena, line);
    return 0;
}

/* Before the other questions: a wrong code would be refused after them. */
static int check_code(const struct cli *cli, const struct lend_answers *answers,
                      struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const struct client_options options = {.server = answers->server,
                                           .fingerprint = answers->fingerprint};
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 1024);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "code", answers->code);
    json_object_end(&writer);
    struct client_answer answer = {0};
    if (buffer_check(&body, error) < 0 || client_open(&options, &client, error) < 0)
        return -1;
    if (client_post(client, cli->arena, "/v1/machines/codes/check", buffer_text(&body), &answer,
                    error) == 0 ||
        error->code == ERROR_NOT_FOUND) /* a market that cannot tell: enlisting will */
        return 0;
    return -1;
}

static int ask_code(const struct cli *cli, struct lend_answers *answers, struct error *error)
{
    const struct question code = {
        .words = "   The one-time code that \"souk machines add\" or its page shows:",
        .take = take_code,
    };
    for (bool is_given = answers->code != NULL;; is_given = false) {
        const int result = is_given ? 1 : ask_until(cli, &code, answers, error);
        if (result <= 0 || check_code(cli, answers, error) == 0)
            return result;
        say_again(cli, error);
    }
}

static int ask_market(const struct cli *cli, struct lend_answers *answers, struct error *error)
{
    const struct question market = {
        .words = "1. Which market? Its address; or paste what \"souk machines add\" or its page\n"
                 "   shows.",
        .otherwise = cli->common.server ? cli->common.server : "http://127.0.0.1:7600",
        .take = lend_answer_market,
    };
    for (;;) {
        answers->fingerprint = cli->common.fingerprint;
        const int result = ask_until(cli, &market, answers, error);
        if (result <= 0)
            return result;
        if (meet(cli, answers, error) == 0)
            break;
        say_again(cli, error);
    }
    if (!answers->code && make_code(cli, answers) == 0)
        return 1;
    return ask_code(cli, answers, error);
}

/* Again until the answer is one. */
static int ask_share(const struct cli *cli, const struct lend_machine *machine,
                     struct lend_answers *answers, struct error *error)
{
    char line[LINE_SIZE];
    struct text answer;
    for (;;) {
        const int result = ask("2. How much of this machine, at most? A part of its cores and "
                               "memory, like 30% or\n   2 cores, or all.",
                               "50%", line, &answer, error);
        if (result <= 0)
            return result;
        if (lend_answer_share(cli->arena, answer, machine->cores_milli, answers, error) == 0)
            return 1;
        say_again(cli, error);
    }
}

static int ask_all(const struct cli *cli, const struct lend_machine *machine,
                   struct lend_answers *answers, struct error *error)
{
    const struct question when = {
        .words = "3. When? always, nights (22 to 7), off-hours (weekends, and 18 to 8), or hours\n"
                 "   of your own, like Mon-Fri 18:00-08:00.",
        .otherwise = "always",
        .take = lend_answer_when,
    };
    fprintf(stderr,
            "This machine has %s.\nEnter takes what is in brackets; Ctrl-C leaves "
            "everything as it was.\n\n",
            machine->words);
    int result = ask_market(cli, answers, error);
    if (result > 0)
        result = ask_share(cli, machine, answers, error);
    if (result > 0)
        result = ask_until(cli, &when, answers, error);
    return result;
}

static int say_plan(const struct cli *cli, const struct lend_machine *machine,
                    const struct lend_answers *answers, struct error *error)
{
    int64_t milli = 0, cores_milli = 0;
    if (units_parse_share(text_of(answers->share), &milli, error) < 0)
        return -1;
    if (answers->cores == answers->share)
        cores_milli = machine->cores_milli * milli / 1000;
    else if (units_parse_cores(text_of(answers->cores), &cores_milli, error) < 0)
        return -1;
    fprintf(stderr,
            "\nLending up to %s, %s of memory and half of the free disk (20 GiB at most), %s;\n"
            "over the network a job reaches %s.\n",
            output_core_count(cli->arena, cores_milli),
            output_bytes(cli->arena, machine->ram_bytes * milli / 1000), answers->when,
            machine->reaches);
    return 0;
}

int lend_questions_ask(const struct cli *cli, const struct lend_machine *machine,
                       struct lend_answers *out_answers, struct error *error)
{
    struct lend_answers answers = {0};
    const int result = ask_all(cli, machine, &answers, error);
    if (result < 0)
        return -1;
    if (result == 0) {
        fputs("Nothing was done.\n", stderr);
        return CLI_EXIT_DECLINED;
    }
    if (say_plan(cli, machine, &answers, error) < 0)
        return -1;
    *out_answers = answers;
    return 0;
}

/* ---- A name that is taken ---------------------------------------------------------------------
 */

const char *lend_next_name(struct arena *arena, const char *taken)
{
    const char *dash = strrchr(taken, '-');
    const bool has_number =
        dash && dash > taken && dash[1] && strspn(dash + 1, "0123456789") == strlen(dash + 1);
    const unsigned long number = has_number ? strtoul(dash + 1, NULL, 10) : 1;
    const size_t size = has_number ? (size_t)(dash - taken) : strlen(taken);
    return arena_format(arena, "%.*s-%lu", (int)size, taken, number + 1);
}

const char *lend_questions_ask_name(const struct cli *cli, const char *taken)
{
    char line[LINE_SIZE];
    struct text answer;
    struct error error;
    const char *question = arena_format(
        cli->arena, "   Another machine there is called \"%s\". What is this one?", taken);
    for (;;) {
        const int result = ask(question, lend_next_name(cli->arena, taken), line, &answer, &error);
        if (result == 0)
            return NULL;
        if (result > 0 && enlist_check_name(answer, &error) == 0)
            return arena_copy_string(cli->arena, answer);
        say_again(cli, &error);
    }
}
