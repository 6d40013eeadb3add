#include "sim/sync_chart.h"

#include <math.h>

enum {
    WIDTH = 900,
    HEIGHT = 520,
    LEFT = 70,
    RIGHT = 690, /* the legend stands beyond */
    TOP = 56,
    BOTTOM = 456,
    TICKS = 6,
    COLOURS = 8,
};

/* Okabe and Ito's, told apart with any kind of colour vision; then the same again, dashed. */
static const char *const colours[COLOURS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a5a5a", "#9a7d0a",
};
static const char *const dashes[] = {"", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""};

struct axes {
    double time_max, loss_min, loss_max;
};

/* 1, 2 or 5 times a power of ten, so that about TICKS fit into the span. */
static double tick_of(double span)
{
    const double raw = span / TICKS;
    const double power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

/* A run that did far worse than the others does not press them together: what is above the first
 * losses or far behind the last to reach the target is cut. */
static struct axes axes_of(const struct sync_chart *chart)
{
    struct axes axes = {.loss_min = (double)INFINITY};
    double reached = 0;
    for (size_t i = 0; i < chart->line_count; i++) {
        const struct sync_run_result *result = chart->lines[i].result;
        for (size_t n = 0; n < result->point_count; n++) {
            const struct sync_point *point = &result->points[n];
            axes.time_max = fmax(axes.time_max, point->at_s);
            axes.loss_min = fmin(axes.loss_min, point->loss);
            if (n == 0)
                axes.loss_max = fmax(axes.loss_max, point->loss);
        }
        if (isfinite(result->target_s))
            reached = fmax(reached, result->target_s);
    }
    if (reached > 0)
        axes.time_max = fmin(axes.time_max, 1.1 * reached);
    if (chart->target_loss > 0)
        axes.loss_min = fmin(axes.loss_min, chart->target_loss);
    if (!(axes.time_max > 0))
        axes.time_max = 1;
    if (!isfinite(axes.loss_min))
        axes.loss_min = 0;
    axes.loss_min = fmax(0, axes.loss_min - 0.05);
    /* The beginning is steep and much the same for all. */
    axes.loss_max = fmin(axes.loss_max, 2.5 * axes.loss_min + 0.2);
    if (!(axes.loss_max > axes.loss_min))
        axes.loss_max = axes.loss_min + 1;
    return axes;
}

static double x_of(const struct axes *axes, double at_s)
{
    return LEFT + (RIGHT - LEFT) * at_s / axes->time_max;
}

static double y_of(const struct axes *axes, double loss)
{
    return BOTTOM - (BOTTOM - TOP) * (loss - axes->loss_min) / (axes->loss_max - axes->loss_min);
}

static void append_escaped(struct buffer *out, const char *words)
{
    for (const char *c = words; *c; c++) {
        if (*c == '&')
            buffer_append_string(out, "&amp;");
        else if (*c == '<')
            buffer_append_string(out, "&lt;");
        else
            buffer_append_byte(out, (uint8_t)*c);
    }
}

static void write_axes(const struct axes *axes, struct buffer *out)
{
    buffer_append_string(out, "<g stroke=\"#e4e4e4\">\n");
    const double step_s = tick_of(axes->time_max);
    const double step_loss = tick_of(axes->loss_max - axes->loss_min);
    const double first_loss = ceil(axes->loss_min / step_loss) * step_loss;
    for (uint32_t i = 0; i * step_s <= axes->time_max; i++) {
        const double x = x_of(axes, i * step_s);
        buffer_append_format(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
                             TOP, BOTTOM);
    }
    for (uint32_t i = 0; first_loss + i * step_loss <= axes->loss_max; i++) {
        const double y = y_of(axes, first_loss + i * step_loss);
        buffer_append_format(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                             RIGHT, y, y);
    }
    buffer_append_string(out, "</g>\n<g fill=\"#444\">\n");
    for (uint32_t i = 0; i * step_s <= axes->time_max; i++)
        buffer_append_format(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                             x_of(axes, i * step_s), BOTTOM + 20, i * step_s);
    for (uint32_t i = 0; first_loss + i * step_loss <= axes->loss_max; i++) {
        const double loss = first_loss + i * step_loss;
        buffer_append_format(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                             LEFT - 8, y_of(axes, loss) + 4, loss);
    }
    buffer_append_format(out,
                         "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">virtual time, s</text>\n"
                         "<text transform=\"translate(20 %d) rotate(-90)\" "
                         "text-anchor=\"middle\">held-out loss, mean of five</text>\n</g>\n"
                         "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#444\"/>\n",
                         (LEFT + RIGHT) / 2, BOTTOM + 44, (TOP + BOTTOM) / 2, LEFT, TOP, BOTTOM,
                         RIGHT);
}

static void write_line(const struct axes *axes, const struct sync_chart_line *line, size_t index,
                       struct buffer *out)
{
    const struct sync_run_result *result = line->result;
    const char *colour = colours[index % COLOURS];
    const char *dash = dashes[index / COLOURS % (sizeof(dashes) / sizeof(*dashes))];
    buffer_append_format(out,
                         "<polyline clip-path=\"url(#plot)\" fill=\"none\" stroke=\"%s\"%s "
                         "stroke-width=\"2\" stroke-linejoin=\"round\" points=\"",
                         colour, dash);
    for (size_t n = 0; n < result->point_count; n++)
        buffer_append_format(out, "%s%.1f,%.1f", n ? " " : "", x_of(axes, result->points[n].at_s),
                             y_of(axes, result->points[n].loss));
    buffer_append_string(out, "\"/>\n");
    const double y = TOP + 12 + 22.0 * (double)index;
    buffer_append_format(out,
                         "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s "
                         "stroke-width=\"2\"/>\n<text x=\"%d\" y=\"%.1f\" fill=\"#222\">",
                         RIGHT + 16, RIGHT + 42, y, y, colour, dash, RIGHT + 50, y + 4);
    append_escaped(out, line->label);
    if (isfinite(result->target_s))
        buffer_append_format(out, "  %.0f s</text>\n", result->target_s);
    else
        buffer_append_format(out, "  %s</text>\n",
                             result->end == SYNC_RUN_DIVERGED ? "diverged" : "not reached");
}

void sync_chart_write(const struct sync_chart *chart, struct buffer *out)
{
    const struct axes axes = axes_of(chart);
    buffer_append_format(out,
                         "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                         "width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
                         "font-size=\"13\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n"
                         "<clipPath id=\"plot\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                         "height=\"%d\"/></clipPath>\n",
                         WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, TOP, RIGHT - LEFT,
                         BOTTOM - TOP);
    buffer_append_format(out, "<text x=\"%d\" y=\"30\" font-size=\"16\" fill=\"#222\">", LEFT);
    append_escaped(out, chart->title);
    buffer_append_string(out, "</text>\n");
    write_axes(&axes, out);
    if (chart->target_loss > 0) {
        const double y = y_of(&axes, chart->target_loss);
        buffer_append_format(out,
                             "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#222\" "
                             "stroke-dasharray=\"4 4\"/>\n<text x=\"%d\" y=\"%.1f\" "
                             "text-anchor=\"end\" fill=\"#222\">target %g</text>\n",
                             LEFT, RIGHT, y, y, RIGHT - 4, y - 6, chart->target_loss);
    }
    for (size_t i = 0; i < chart->line_count; i++)
        write_line(&axes, &chart->lines[i], i, out);
    buffer_append_string(out, "</svg>\n");
}
