#include "market/price_explain.h"

#include "base/assert.h"
#include "market/fixed.h"

#include <inttypes.h>

/* value / one, rounded to the nearest at that many digits; halves away from zero. */
static void append_decimal(struct buffer *out, __int128 value, int64_t one, int digits)
{
    int64_t power = 1;
    for (int i = 0; i < digits; i++)
        power *= 10;
    const __int128 size = value < 0 ? -value : value;
    const __int128 scaled = (size * power * 2 + one) / ((__int128)one * 2);
    buffer_append_format(out, "%s%" PRId64 ".%0*" PRId64, value < 0 && scaled ? "-" : "",
                         (int64_t)(scaled / power), digits, (int64_t)(scaled % power));
}

static void append_credits(struct buffer *out, int64_t micro)
{
    append_decimal(out, micro, 1000000, 6);
}

/* With as many digits as it takes to redo the sums to the microcredit. */
static void append_hours(struct buffer *out, __int128 milli_s)
{
    append_decimal(out, milli_s, 3600000, milli_s < INT64_C(100) * 3600000 ? 6 : 3);
}

static void append_q32(struct buffer *out, int64_t value_q32)
{
    append_decimal(out, value_q32, FIXED_Q32_ONE, 6);
}

static void append_q16(struct buffer *out, int64_t value_q16)
{
    append_decimal(out, value_q16, FIXED_Q16_ONE, 5);
}

/* The factor itself, from its logarithm. */
static void append_factor(struct buffer *out, int64_t log2_q32)
{
    append_q16(out, fixed_exp2_q16(log2_q32));
}

void price_explain_price(const struct price_board *board, enum price_resource resource, int of_day,
                         int64_t price_micro, struct buffer *out)
{
    const int64_t level = board->curves[resource].level_q32;
    const int64_t factor = board->curves[resource].factor_q32[of_day];
    const int64_t product = fixed_exp2(level + factor);
    buffer_append_format(out, "%s %s: ", price_resource_name(resource), slot_hours_name(of_day));
    append_credits(out, price_micro);
    buffer_append_string(out, product == price_micro ? " = level " : "; level ");
    append_credits(out, fixed_exp2(level));
    buffer_append_format(out, " x %s ", slot_word(of_day));
    append_factor(out, factor);
    if (product == price_micro)
        return;
    buffer_append_string(out, " is ");
    append_credits(out, product);
    const struct price_vector no_floor = {0};
    const struct price_vector bounded = price_board_price(board, of_day, &no_floor);
    buffer_append_string(out, price_vector_get(&bounded, resource) == price_micro
                                  ? ", and no price goes further than 64 times from its first"
                                  : ", but no lender asks for less");
}

static void append_percent_change(struct buffer *out, int64_t log2_q32)
{
    const int64_t ratio_q16 = fixed_exp2_q16(log2_q32);
    if (ratio_q16 >= FIXED_Q16_ONE)
        buffer_append_byte(out, '+');
    append_decimal(out, (__int128)(ratio_q16 - FIXED_Q16_ONE) * 100, FIXED_Q16_ONE, 1);
    buffer_append_string(out, " %");
}

void price_explain_update(const struct price_working *working, struct buffer *out)
{
    const struct price_inputs *inputs = &working->inputs;
    if (working->is_still) {
        buffer_append_string(out, "nothing was wanted and nothing lent: the price stays");
        return;
    }
    append_hours(out, inputs->wanted_milli_s);
    buffer_append_format(out, " %s wanted", price_resource_unit_hours(working->resource));
    if (inputs->borrower_count > 0)
        buffer_append_format(out, " by %" PRId64 " borrower%s", inputs->borrower_count,
                             inputs->borrower_count == 1 ? "" : "s");
    if (inputs->borrower_count > 1) {
        buffer_append_string(out, " (worth ");
        append_q16(out, inputs->effective_q16);
        buffer_append_string(out, " equal ones)");
    }
    buffer_append_string(out, ", ");
    append_hours(out, inputs->offered_milli_s);
    buffer_append_string(out, " lent");
    if (inputs->offered_milli_s > 0) {
        buffer_append_string(out, "; 90 % of that is ");
        append_hours(out, (__int128)inputs->offered_milli_s * 9 / 10);
        buffer_append_string(out, "; wanted/target ");
        append_decimal(out, (__int128)inputs->wanted_milli_s * 1000 * 10 / inputs->offered_milli_s,
                       9000, 3);
    }
    buffer_append_string(out, " -> level ");
    append_percent_change(out, working->after.level_q32 - working->before.level_q32);
}

static void append_error_sum(const struct price_working *working, struct buffer *out)
{
    const struct price_inputs *inputs = &working->inputs;
    buffer_append_string(out, "e = ");
    if (inputs->wanted_milli_s == 0)
        buffer_append_string(out, "-2, because nothing was wanted");
    else if (inputs->offered_milli_s == 0)
        buffer_append_string(out, "+2, because nothing was lent");
    else {
        buffer_append_string(out, "log2(");
        append_hours(out, inputs->wanted_milli_s);
        buffer_append_string(out, " / (0.9 x ");
        append_hours(out, inputs->offered_milli_s);
        buffer_append_string(out, ")) = ");
        append_q32(out, working->error_q32);
        if (working->error_q32 == 2 * FIXED_Q32_ONE || working->error_q32 == -2 * FIXED_Q32_ONE)
            buffer_append_string(out, ", which is as far as it goes");
    }
    buffer_append_byte(out, '\n');
}

static void append_level_sum(const struct price_working *working, const char *indent,
                             struct buffer *out)
{
    buffer_append_string(out, "level: 0.6 x c x e, at most 0.584963 either way, = ");
    append_q32(out, working->level_step_q32);
    buffer_append_format(out, "\n%s  ", indent);
    append_credits(out, fixed_exp2(working->before.level_q32));
    buffer_append_string(out, " x 2^");
    append_q32(out, working->level_step_q32);
    buffer_append_string(out, " = ");
    append_credits(out, fixed_exp2(working->after.level_q32));
    if (working->after.level_q32 != working->before.level_q32 + working->level_step_q32)
        buffer_append_string(out, ", which is as far as it goes");
    buffer_append_byte(out, '\n');
}

static void append_factor_sum(const struct price_working *working, const char *indent,
                              struct buffer *out)
{
    buffer_append_format(out, "%s: 0.1 x c x e = ", slot_word(working->of_day));
    append_q32(out, working->factor_step_q32);
    buffer_append_string(out, ", then a quarter of that off all four:\n");
    for (int s = 0; s < SLOT_PER_DAY; s++) {
        buffer_append_format(out, "%s  %-9s log2 ", indent, slot_word(s));
        append_q32(out, working->before.factor_q32[s]);
        buffer_append_string(out, " -> ");
        append_q32(out, working->after.factor_q32[s]);
        buffer_append_string(out, ", factor ");
        append_factor(out, working->before.factor_q32[s]);
        buffer_append_string(out, " -> ");
        append_factor(out, working->after.factor_q32[s]);
        buffer_append_byte(out, '\n');
    }
}

void price_explain_sums(const struct price_working *working, const char *indent, struct buffer *out)
{
    if (working->is_still)
        return;
    buffer_append_format(out, "%sn = ", indent);
    append_q16(out, working->inputs.effective_q16);
    buffer_append_format(out, "\n%sc = n / (n + 10) = ", indent);
    append_q16(out, working->credibility_q16);
    buffer_append_format(out, "\n%s", indent);
    append_error_sum(working, out);
    buffer_append_string(out, indent);
    append_level_sum(working, indent, out);
    buffer_append_string(out, indent);
    append_factor_sum(working, indent, out);
}
