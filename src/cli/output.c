#include "cli/output.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void output_json(struct text json)
{
    fwrite(json.data, 1, json.size, stdout);
    fputc('\n', stdout);
}

/* The length of the colour the text begins with ("\033[1;31m"), or 0. */
static size_t color_length(struct text text)
{
    size_t size = 2;
    if (!text_starts_with(text, TEXT("\033[")))
        return 0;
    while (size < text.size && (isdigit((unsigned char)text.data[size]) || text.data[size] == ';'))
        size++;
    return size < text.size && text.data[size] == 'm' ? size + 1 : 0;
}

void output_foreign(FILE *file, struct text text)
{
    bool has_color = false;
    while (text.size > 0) {
        const size_t color = color_length(text);
        const size_t plain =
            strchr("\n\r\t", text.data[0]) && text.data[0] ? 1 : text_plain_length(text);
        const size_t utf8 = text_utf8_length(text);
        const size_t kept = color ? color : plain;
        const size_t taken = kept ? kept : utf8 ? utf8 : 1;
        has_color = has_color || color;
        if (kept)
            fwrite(text.data, 1, kept, file);
        else
            fputc('?', file);
        text = (struct text){text.data + taken, text.size - taken};
    }
    if (has_color)
        fputs("\033[0m", file);
}

__attribute__((format(printf, 2, 0))) static void print_line(const struct cli *cli,
                                                             const char *format, va_list args)
{
    char *text = NULL;
    const int size = vasprintf(&text, format, args);
    ASSERT(size >= 0);
    output_words(stderr, text, output_columns(cli, stderr));
    free(text);
}

void output_note(const struct cli *cli, const char *format, ...)
{
    if (cli->common.quiet)
        return;
    va_list args;
    va_start(args, format);
    print_line(cli, format, args);
    va_end(args);
}

void output_problem(const struct cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line(cli, format, args);
    va_end(args);
}

/* A pipe whose reader has gone away shows it to poll, also when the failed write is long past. */
static bool has_reader_left(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLERR);
}

int output_finish(struct error *error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    const int reason = errno ? errno : EIO;
    if (reason == EPIPE || has_reader_left(STDOUT_FILENO))
        return 0;
    return error_set_errno(error, reason, "write to standard output");
}

bool output_has_color(const struct cli *cli, FILE *file)
{
    return !cli->common.no_color && options_terminal_has_color(fileno(file));
}

size_t output_columns(const struct cli *cli, FILE *file)
{
    enum { COLUMNS_USUAL = 80 };
    struct winsize size = {0};
    if ((cli && cli->common.is_wide) || !isatty(fileno(file)))
        return 0;
    if (ioctl(fileno(file), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return COLUMNS_USUAL;
    return size.ws_col;
}

/* Breaks `text` between words at `width_max` (0: nowhere), indenting what follows. It begins where
 * `indent` columns are printed. */
static void print_words(FILE *file, const char *text, size_t indent, size_t width_max)
{
    size_t column = indent;
    for (const char *word = text; *word;) {
        size_t size = strcspn(word, " ");
        if (strncmp(word + size, " %", 2) == 0) /* "9 %" is one word */
            size += 1 + strcspn(word + size + 1, " ");
        const char *next = word + size + strspn(word + size, " ");
        const size_t width = output_width(word) - output_width(word + size);
        if (word != text && width_max && column + 1 + width > width_max) {
            fprintf(file, "\n%*s", (int)indent, "");
            column = indent;
        } else if (word != text) {
            fputc(' ', file);
            column++;
        }
        fwrite(word, 1, size, file);
        column += width;
        word = next;
    }
    fputc('\n', file);
}

void output_words(FILE *file, const char *text, size_t width_max)
{
    if (width_max && output_width(text) > width_max && !strchr(text, '\n'))
        print_words(file, text, 0, width_max);
    else
        fprintf(file, "%s\n", text);
}

/* Where the text of "  start     now, ..." begins: after its label; else after its indent. */
static size_t text_begin(const char *line)
{
    const size_t indent = strspn(line, " ");
    const char *gap = strstr(line + indent, "  ");
    const size_t label = gap ? (size_t)(gap - line) : 0;
    enum { LABEL_MAX = 16 };
    return gap && label <= LABEL_MAX ? label + strspn(gap, " ") : indent;
}

void output_plan(const struct cli *cli, const char *plan)
{
    const size_t width_max = output_columns(cli, stderr);
    struct text rest = text_of(plan), line;
    for (bool has_more = rest.size > 0; has_more;) {
        has_more = text_cut(rest, '\n', &line, &rest);
        const char *words = arena_copy_string(cli->arena, line);
        const size_t begin = width_max && output_width(words) > width_max ? text_begin(words) : 0;
        fwrite(words, 1, begin, stderr);
        if (width_max && output_width(words) > width_max)
            print_words(stderr, words + begin, begin, width_max);
        else if (has_more || line.size > 0)
            fprintf(stderr, "%s\n", words);
    }
}

void output_field(const struct cli *cli, const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    const int size = vasprintf(&text, format, args);
    va_end(args);
    ASSERT(size >= 0);
    fputs(label, stdout);
    print_words(stdout, text, output_width(label), output_columns(cli, stdout));
    free(text);
}

int output_confirm(const struct cli *cli, bool is_yes, const char *plan, const char *question,
                   struct error *error)
{
    if (!is_yes || !cli->common.quiet)
        output_plan(cli, plan);
    if (is_yes)
        return 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return error_set(error, ERROR_INVALID,
                         "nothing was done: there is no terminal to ask on; add -y to go ahead");
    fprintf(stderr, "%s [y/N] ", question);
    fflush(stderr);
    char answer[16] = "";
    if (!fgets(answer, sizeof(answer), stdin))
        answer[0] = '\0';
    const struct text word = text_trim(text_of(answer));
    if (text_equal(word, TEXT("y")) || text_equal(word, TEXT("Y")) || text_equal(word, TEXT("yes")))
        return 0;
    fputs("Nothing was done.\n", stderr);
    return CLI_EXIT_DECLINED;
}

size_t output_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* ---- Words ------------------------------------------------------------------------------------
 */

const char *output_credits(struct arena *arena, int64_t micro)
{
    const uint64_t magnitude = micro < 0 ? 0 - (uint64_t)micro : (uint64_t)micro;
    return arena_format(arena, "%s%" PRIu64 ".%06" PRIu64, micro < 0 ? "-" : "",
                        magnitude / 1000000, magnitude % 1000000);
}

const struct output_unit output_unit_credits = {"credits", "Credits", ">CREDITS"};
const struct output_unit output_unit_karma = {"karma", "Karma", ">KARMA"};

const struct output_unit *output_unit(const struct cli *cli)
{
    return cli->unit ? cli->unit : &output_unit_credits;
}

const char *output_amount(const struct cli *cli, int64_t micro)
{
    return arena_format(cli->arena, "%s %s", output_credits(cli->arena, micro),
                        output_unit(cli)->name);
}

const char *output_cores(struct arena *arena, int64_t milli)
{
    return arena_format(arena, "%.15g", (double)milli / 1000.0);
}

const char *output_core_count(struct arena *arena, int64_t milli)
{
    return arena_format(arena, "%s core%s", output_cores(arena, milli), milli == 1000 ? "" : "s");
}

const char *output_bytes(struct arena *arena, int64_t bytes)
{
    char text[UNITS_TEXT_SIZE];
    return arena_format(arena, "%s", units_format_bytes(bytes, text));
}

const char *output_duration(struct arena *arena, int64_t ms)
{
    char text[UNITS_TEXT_SIZE];
    return arena_format(arena, "%s", units_format_duration(ms, text));
}

const char *output_instant(struct arena *arena, int64_t utc_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (utc_ms == 0)
        return "-";
    clock_format_utc(utc_ms, text);
    /* People need no milliseconds: "2026-11-15 08:44:55Z". */
    return arena_format(arena, "%.10s %.8sZ", text, text + 11);
}

const char *output_number(struct arena *arena, uint64_t value)
{
    return arena_format(arena, "%" PRIu64, value);
}

const char *output_workers(struct arena *arena, uint64_t least, uint64_t most)
{
    return most > least ? arena_format(arena, "%" PRIu64 "–%" PRIu64, least, most)
                        : output_number(arena, least);
}

const char *output_text(struct arena *arena, struct text text)
{
    char *copy = arena_copy_string(arena, text);
    text_make_plain(copy);
    return copy;
}

const char *output_texts(struct arena *arena, const struct json_array *texts, const char *separator)
{
    const char *joined = "";
    const struct text *items = texts->items;
    for (size_t i = 0; i < texts->count; i++)
        joined =
            arena_format(arena, "%s%s%s", joined, i ? separator : "", output_text(arena, items[i]));
    return joined;
}
