#include "cli/progress.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { BAR_WIDTH = 30, SHARE_WIDTH = 10, WIDTH_MIN = 40, WIDTH_MAX = 400, BLOCK_SIZE_MAX = 65536 };
enum { AWAY_SHOWN_MS = 3000 }; /* a stream that breaks is soon made again */

#define GREEN "\033[32m"
#define RED   "\033[31m"
#define DIM   "\033[2m"
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

struct progress {
    struct progress_options options;
    uint32_t line_count; /* of the block on the screen */
    int64_t drawn_ns;    /* when the last plain line was printed; 0: never */
    char state[16];      /* as last printed */
    struct buffer block;
};

struct progress *progress_new(const struct progress_options *options)
{
    struct progress *progress = calloc(1, sizeof(*progress));
    ASSERT(progress);
    progress->options = *options;
    if (!progress->options.clock)
        progress->options.clock = &clock_system;
    if (!progress->options.unit)
        progress->options.unit = "credits";
    if (progress->options.line_ms == 0)
        progress->options.line_ms = 5000;
    buffer_init(&progress->block, BLOCK_SIZE_MAX);
    return progress;
}

void progress_free(struct progress *progress)
{
    if (!progress)
        return;
    buffer_done(&progress->block);
    free(progress);
}

double progress_share(const struct progress_view *view, const struct progress_lender *lender)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < view->lender_count; i++)
        if (!view->lenders[i].is_server)
            total += view->lenders[i].samples;
    return total && !lender->is_server ? (double)lender->samples / (double)total : 0.0;
}

static uint32_t terminal_width(const struct progress *progress)
{
    uint32_t width = progress->options.width;
    struct winsize size;
    if (width == 0 && ioctl(fileno(progress->options.file), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width == 0)
        width = 80;
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* A line under construction: escape sequences take no room. Fields go in whole or not at all; only
 * a single word wider than the terminal is cut, so that a line on the screen is always one line. */
struct line {
    struct progress *progress;
    uint32_t width;
    uint32_t left;
};

static void put_color(struct line *line, const char *sequence)
{
    if (line->progress->options.has_color)
        buffer_append_string(&line->progress->block, sequence);
}

static void put(struct line *line, const char *text)
{
    for (; *text; text++) {
        const bool is_start = ((unsigned char)*text & 0xc0) != 0x80;
        if (is_start && line->left == 0)
            return;
        line->left -= is_start;
        buffer_append_byte(&line->progress->block, (uint8_t)*text);
    }
}

__attribute__((format(printf, 2, 3))) static void put_format(struct line *line, const char *format,
                                                             ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put(line, text);
}

static void put_bar(struct line *line, double share, uint32_t width)
{
    const uint32_t full = (uint32_t)lround(fmin(fmax(share, 0.0), 1.0) * width);
    for (uint32_t i = 0; i < width; i++)
        put(line, i < full ? "█" : "░");
}

static struct line begin_line(struct progress *progress)
{
    const uint32_t width = terminal_width(progress) - 1;
    return (struct line){progress, width, width};
}

static void end_line(struct line *line)
{
    put_color(line, PLAIN);
    buffer_append_string(&line->progress->block, "\033[K\n");
    line->progress->line_count++;
    line->left = line->width;
}

static uint32_t text_width(const char *text)
{
    uint32_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Two blanks and the field, on a line of its own when it does not fit behind what is there. */
__attribute__((format(printf, 2, 3))) static void put_field(struct line *line, const char *format,
                                                            ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (line->left < line->width && text_width(text) + 2 > line->left)
        end_line(line);
    put(line, "  ");
    put(line, text);
}

/* Words, on as many lines as they need. */
static void put_words(struct line *line, const char *text)
{
    bool is_first = true;
    while (*text) {
        char word[PROGRESS_REASON_SIZE];
        const size_t size = strcspn(text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)size, text);
        text += size + (text[size] == ' ');
        const uint32_t gap = is_first || line->left == line->width ? 2 : 1;
        if (line->left < line->width && text_width(word) + gap > line->left) {
            end_line(line);
            put_color(line, DIM);
            put(line, "  ");
        } else {
            put(line, gap == 2 ? "  " : " ");
        }
        put(line, word);
        is_first = false;
    }
}

static bool is_success(const struct progress_view *view)
{
    return !strcmp(view->state, "succeeded");
}

static bool is_failure(const struct progress_view *view)
{
    return !strcmp(view->state, "failed") || !strcmp(view->state, "cancelled");
}

/* By time; a job that is not done is never shown as done. With a target accuracy a job ends when it
 * is reached, but not before its least time: that is the better guess then. */
static double fraction(const struct progress_view *view)
{
    if (is_success(view))
        return 1.0;
    if (view->is_local)
        return fmin(view->done, 0.99);
    const bool has_target = view->target_accuracy > 0.0 || view->target_loss > 0.0;
    const bool ends_early = has_target && view->min_ms > 0;
    const int64_t expected_ms = ends_early ? view->min_ms : view->expected_ms;
    if (expected_ms <= 0)
        return 0.0;
    return fmin((double)view->elapsed_ms / (double)expected_ms, 0.99);
}

/* "": the market answers, or was not missed for long. */
static const char *away_words(const struct progress_view *view, char out[64])
{
    out[0] = '\0';
    if (view->away_ms >= AWAY_SHOWN_MS)
        snprintf(out, 64, "the market does not answer for %" PRId64 " s", view->away_ms / 1000);
    return out;
}

static void draw_head(struct progress *progress, const struct progress_view *view)
{
    char elapsed[UNITS_TEXT_SIZE], away[64];
    struct line line = begin_line(progress);
    put_color(&line, BOLD);
    put(&line, view->name);
    put_color(&line, PLAIN);
    put(&line, "  ");
    put_color(&line, is_failure(view) ? RED : GREEN);
    put(&line, view->state);
    put_color(&line, PLAIN);
    if (view->elapsed_ms > 0)
        put_format(&line, "  %s", units_format_duration(view->elapsed_ms, elapsed));
    if (view->reason[0] && strcmp(view->state, "running") != 0) {
        put_color(&line, DIM);
        put_words(&line, view->reason);
    }
    if (away_words(view, away)[0]) {
        put_color(&line, RED);
        put_words(&line, away);
    }
    end_line(&line);
}

static void draw_bar(struct progress *progress, const struct progress_view *view)
{
    char spent[UNITS_TEXT_SIZE];
    struct line line = begin_line(progress);
    put_color(&line, GREEN);
    put_bar(&line, fraction(view), BAR_WIDTH);
    put_color(&line, PLAIN);
    put_format(&line, " %3.0f %%%s", 100.0 * fraction(view),
               is_success(view) || is_failure(view) ? ""
               : view->is_local                     ? " of the epochs"
                                                    : " of the time");
    char accuracy[64] = "", target[32] = "", target_loss[32] = "";
    if (view->target_loss > 0.0)
        snprintf(target_loss, sizeof(target_loss), " of %.4g", view->target_loss);
    if (isfinite(view->test_accuracy) && view->target_accuracy > 0.0)
        snprintf(target, sizeof(target), " of %.1f %%", 100.0 * view->target_accuracy);
    if (isfinite(view->test_accuracy) && view->is_number)
        snprintf(accuracy, sizeof(accuracy), "  R^2 %.4f", view->test_accuracy);
    else if (isfinite(view->test_accuracy))
        snprintf(accuracy, sizeof(accuracy), "  accuracy %.2f %%%s", 100.0 * view->test_accuracy,
                 target);
    if (isfinite(view->loss))
        put_field(&line, "loss %.4f%s%s", view->loss, target_loss, accuracy);
    else if (accuracy[0])
        put_field(&line, "%s", accuracy + 2);
    if (!view->is_local)
        put_field(&line, "spent %s",
                  units_format_amount(view->spent_micro, progress->options.unit, spent));
    end_line(&line);
}

/* A field that does not fit is left out, and so are those behind it. */
__attribute__((format(printf, 2, 3))) static void put_if_fits(struct line *line, const char *format,
                                                              ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (text_width(text) <= line->left)
        put(line, text);
    else
        line->left = 0;
}

static void draw_lender(struct progress *progress, const struct progress_view *view,
                        const struct progress_lender *lender, int name_width)
{
    struct line line = begin_line(progress);
    if (lender->is_gone)
        put_color(&line, DIM);
    put_format(&line, "  %-*.*s  ", name_width, name_width, lender->name);
    if (lender->is_server) {
        put(&line, lender->is_gone     ? "parameter server, gone"
                   : lender->is_silent ? "parameter server, not heard"
                                       : "parameter server");
        end_line(&line);
        return;
    }
    const double share = progress_share(view, lender);
    if (!view->is_local) {
        put_bar(&line, share, SHARE_WIDTH);
        put_format(&line, " %3.0f %% ", 100.0 * share);
    }
    if (lender->is_gone || lender->is_silent)
        put_if_fits(&line, "%16s", lender->is_gone ? "gone" : "not heard");
    else if (lender->steps_per_second > 0.0)
        put_if_fits(&line, "%8.1f steps/s", lender->steps_per_second);
    else
        put_if_fits(&line, "       - steps/s");
    put_if_fits(&line, " %8" PRIu64 " steps", lender->steps);
    if (!view->is_local)
        put_if_fits(&line, " %5" PRIu64 " commits", lender->commits);
    if (lender->after[0])
        put_if_fits(&line, "  for %s", lender->after);
    end_line(&line);
}

static void draw_block(struct progress *progress, const struct progress_view *view)
{
    buffer_clear(&progress->block);
    if (progress->line_count)
        buffer_append_format(&progress->block, "\033[%uA\r", progress->line_count);
    progress->line_count = 0;
    draw_head(progress, view);
    draw_bar(progress, view);
    int name_width = 6;
    for (uint32_t i = 0; i < view->lender_count; i++) {
        const int width = (int)strnlen(view->lenders[i].name, PROGRESS_NAME_SIZE);
        name_width = width > name_width ? width : name_width;
    }
    for (uint32_t i = 0; i < view->lender_count; i++)
        draw_lender(progress, view, &view->lenders[i], name_width < 20 ? name_width : 20);
    buffer_append_string(&progress->block, "\033[J");
    fwrite(progress->block.data, 1, progress->block.size, progress->options.file);
    fflush(progress->options.file);
}

static void print_lender(FILE *file, const struct progress_view *view,
                         const struct progress_lender *lender)
{
    if (lender->is_server || lender->has_successor)
        return;
    if (lender->after[0])
        fprintf(file, " %s=\"for %s\"", lender->name, lender->after);
    if (lender->is_gone)
        fprintf(file, " %s=gone", lender->name);
    else if (lender->is_silent)
        fprintf(file, " %s=\"not heard\"", lender->name);
    else if (lender->steps_per_second > 0.0)
        fprintf(file, " %s=%.1f/s,%.0f%%", lender->name, lender->steps_per_second,
                100.0 * progress_share(view, lender));
}

static void print_line(struct progress *progress, const struct progress_view *view)
{
    FILE *file = progress->options.file;
    char elapsed[UNITS_TEXT_SIZE], spent[UNITS_TEXT_SIZE], away[64];
    fprintf(file, "%s %s", view->name, view->state);
    if (view->elapsed_ms > 0)
        fprintf(file, " %s", units_format_duration(view->elapsed_ms, elapsed));
    if (isfinite(view->loss))
        fprintf(file, " loss=%.4f", view->loss);
    if (isfinite(view->test_accuracy))
        fprintf(file, " %s=%.4f", view->is_number ? "r2" : "accuracy", view->test_accuracy);
    if (view->is_local)
        fprintf(file, " epochs=%.0f%%", 100.0 * fraction(view));
    else
        fprintf(file, " spent=\"%s\"",
                units_format_amount(view->spent_micro, progress->options.unit, spent));
    for (uint32_t i = 0; i < view->lender_count; i++)
        print_lender(file, view, &view->lenders[i]);
    if (view->reason[0] && strcmp(view->state, "running") != 0)
        fprintf(file, " (%s)", view->reason);
    if (away_words(view, away)[0])
        fprintf(file, " (%s)", away);
    fputc('\n', file);
    fflush(file);
    progress->drawn_ns = clock_monotonic_ns(progress->options.clock);
    snprintf(progress->state, sizeof(progress->state), "%s", view->state);
}

void progress_draw(struct progress *progress, const struct progress_view *view)
{
    if (progress->options.is_quiet)
        return;
    if (progress->options.is_terminal) {
        draw_block(progress, view);
        return;
    }
    const int64_t since_ns = clock_monotonic_ns(progress->options.clock) - progress->drawn_ns;
    const bool is_due = progress->drawn_ns == 0 || since_ns >= progress->options.line_ms * 1000000;
    if (is_due || strcmp(progress->state, view->state) != 0)
        print_line(progress, view);
}

void progress_end(struct progress *progress, const struct progress_view *view)
{
    if (progress->options.is_quiet)
        return;
    if (progress->options.is_terminal)
        draw_block(progress, view);
    else
        print_line(progress, view);
    progress->line_count = 0;
    progress->drawn_ns = 0;
}

void progress_take_view(void *context, const struct progress_view *view, bool is_last)
{
    if (is_last)
        progress_end(context, view);
    else
        progress_draw(context, view);
}
