#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

/* A decimal number with a fixed number of places, as an integer: "1.5" with 3 places is 1500. */
struct decimal {
    int64_t scaled;
    struct text rest; /* what follows the number, without the spaces between */
    enum { FLAW_NONE, FLAW_FINE, FLAW_LARGE } flaw; /* why a number cannot be kept */
};

static int refuse(struct text text, const char *what, const char *example, struct error *error)
{
    return error_set(error, ERROR_INVALID, "\"%.*s\" is not %s; write it like %s",
                     (int)(text.size < 40 ? text.size : 40), text.data, what, example);
}

static bool parse_decimal(struct text text, int places, struct decimal *out)
{
    text = text_trim(text);
    bool is_negative = text.size && text.data[0] == '-';
    size_t at = is_negative;
    int64_t value = 0;
    int digits = 0, fraction = -1;
    out->flaw = FLAW_NONE;
    for (; at < text.size; at++) {
        const char c = text.data[at];
        if (c == '.' && fraction < 0) {
            fraction = 0;
            continue;
        }
        if (!isdigit((unsigned char)c))
            break;
        digits++;
        if (fraction >= 0 && ++fraction > places) {
            if (c != '0') {
                out->flaw = FLAW_FINE;
                return false;
            }
            fraction--;
            continue;
        }
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, c - '0', &value)) {
            out->flaw = FLAW_LARGE;
            return false;
        }
    }
    if (digits == 0)
        return false;
    for (int i = fraction < 0 ? 0 : fraction; i < places; i++)
        if (__builtin_mul_overflow(value, 10, &value)) {
            out->flaw = FLAW_LARGE;
            return false;
        }
    out->scaled = is_negative ? -value : value;
    out->rest = text_trim((struct text){text.data + at, text.size - at});
    return true;
}

int units_parse_share(struct text text, int64_t *out_milli, struct error *error)
{
    struct decimal decimal;
    const bool is_read =
        (parse_decimal(text, 1, &decimal) && text_equal(decimal.rest, TEXT("%"))) ||
        (parse_decimal(text, 3, &decimal) && decimal.rest.size == 0);
    if (!is_read || decimal.scaled < 0 || decimal.scaled > 1000)
        return refuse(text, "a share from 0 to 100 %", "50% or 0.5", error);
    *out_milli = decimal.scaled;
    return 0;
}

int units_parse_bytes(struct text text, int64_t *out_bytes, struct error *error)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KiB", 1 << 10},
        {"MiB", 1 << 20},
        {"GiB", 1 << 30},
        {"TiB", 1LL << 40},
        {"kB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
    };
    struct decimal decimal;
    if (!parse_decimal(text, 3, &decimal) || decimal.scaled < 0)
        return refuse(text, "a size", "512MiB or 2GiB", error);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        int64_t scaled;
        if (!text_equal(decimal.rest, text_of(units[i].name)))
            continue;
        if (__builtin_mul_overflow(decimal.scaled, units[i].factor, &scaled))
            break;
        *out_bytes = scaled / 1000;
        return 0;
    }
    return refuse(text, "a size", "512MiB or 2GiB", error);
}

int units_parse_duration(struct text text, int64_t *out_ms, struct error *error)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const char *example = "30s, 250ms or 1h30m";
    struct decimal part;
    int64_t total = 0;
    struct text rest = text_trim(text);
    if (parse_decimal(rest, 3, &part) && part.rest.size == 0 && part.scaled >= 0) {
        *out_ms = part.scaled;
        return 0;
    }
    while (rest.size) {
        if (!parse_decimal(rest, 3, &part) || part.scaled < 0)
            return refuse(text, "a span of time", example, error);
        size_t letters = 0;
        while (letters < part.rest.size && isalpha((unsigned char)part.rest.data[letters]))
            letters++;
        const struct text unit = {part.rest.data, letters};
        int64_t factor = 0, product;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
            if (text_equal(unit, text_of(units[i].name)))
                factor = units[i].ms;
        if (factor == 0 || __builtin_mul_overflow(part.scaled, factor, &product) ||
            __builtin_add_overflow(total, product / 1000, &total))
            return refuse(text, "a span of time", example, error);
        rest = text_trim((struct text){part.rest.data + letters, part.rest.size - letters});
    }
    if (text_trim(text).size == 0)
        return refuse(text, "a span of time", example, error);
    *out_ms = total;
    return 0;
}

int units_parse_signed_duration(struct text text, int64_t *out_ms, struct error *error)
{
    struct text span = text_trim(text);
    const bool is_negative = text_starts_with(span, TEXT("-"));
    if (is_negative || text_starts_with(span, TEXT("+")))
        span = (struct text){span.data + 1, span.size - 1};
    int64_t ms;
    if (units_parse_duration(span, &ms, error) < 0)
        return -1;
    *out_ms = is_negative ? -ms : ms;
    return 0;
}

int units_parse_credits(struct text text, int64_t *out_micro, struct error *error)
{
    struct decimal decimal;
    const bool is_read = parse_decimal(text, 6, &decimal);
    if (decimal.flaw != FLAW_NONE)
        return error_set(
            error, ERROR_INVALID, "\"%.*s\" %s", (int)(text.size < 40 ? text.size : 40), text.data,
            decimal.flaw == FLAW_FINE ? "is too fine: credits have at most six decimals"
                                      : "is too large for an amount of credits");
    if (!is_read || (decimal.rest.size && !text_equal(decimal.rest, TEXT("credits")) &&
                     !text_equal(decimal.rest, TEXT("credit"))))
        return refuse(text, "an amount of credits", "1.5 credits", error);
    *out_micro = decimal.scaled;
    return 0;
}

int units_parse_cores(struct text text, int64_t *out_milli, struct error *error)
{
    struct decimal decimal;
    if (parse_decimal(text, 1, &decimal) && text_equal(decimal.rest, TEXT("%")) &&
        decimal.scaled > 0) {
        *out_milli = decimal.scaled;
        return 0;
    }
    if (!parse_decimal(text, 3, &decimal) || decimal.rest.size || decimal.scaled <= 0)
        return refuse(text, "a number of cores", "2, 0.5 or 50%", error);
    *out_milli = decimal.scaled;
    return 0;
}

int units_parse_bandwidth(struct text text, int64_t *out_kbit, struct error *error)
{
    static const struct {
        const char *name;
        int64_t kbit;
    } units[] = {
        {"", 1000},       {"kbit", 1},         {"Mbit", 1000}, {"Gbit", 1000000}, {"kbit/s", 1},
        {"Mbit/s", 1000}, {"Gbit/s", 1000000}, {"kbps", 1},    {"Mbps", 1000},    {"Gbps", 1000000},
    };
    struct decimal decimal;
    int64_t product;
    if (parse_decimal(text, 3, &decimal) && decimal.scaled >= 0)
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
            if (text_equal(decimal.rest, text_of(units[i].name)) &&
                !__builtin_mul_overflow(decimal.scaled, units[i].kbit, &product)) {
                *out_kbit = product / 1000;
                return 0;
            }
    return refuse(text, "a bandwidth", "100Mbit or 1Gbit", error);
}

int units_parse_factor(struct text text, int64_t *out_milli, struct error *error)
{
    struct decimal decimal;
    const bool is_read =
        (parse_decimal(text, 1, &decimal) && text_equal(decimal.rest, TEXT("%"))) ||
        (parse_decimal(text, 3, &decimal) && decimal.rest.size == 0);
    if (!is_read || decimal.scaled < 0)
        return refuse(text, "a factor", "0.9 or 90%", error);
    *out_milli = decimal.scaled;
    return 0;
}

const char *units_format_bytes(int64_t bytes, char out[UNITS_TEXT_SIZE])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof(names) / sizeof(*names)) {
        value /= 1024.0;
        unit++;
    }
    snprintf(out, UNITS_TEXT_SIZE, unit && value < 10.0 ? "%.1f %s" : "%.0f %s", value,
             names[unit]);
    return out;
}

/* "1h 30m"; the second part is left out of what is whole to the millisecond: "2h". */
static void format_two(uint64_t ms, uint64_t large_s, const char *large, uint64_t small_s,
                       const char *small, const char *sign, char out[UNITS_TEXT_SIZE])
{
    const uint64_t seconds = ms / 1000;
    if (ms % (large_s * 1000) == 0)
        snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s", sign, seconds / large_s, large);
    else
        snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s %" PRIu64 "%s", sign, seconds / large_s,
                 large, seconds % large_s / small_s, small);
}

const char *units_format_duration(int64_t ms, char out[UNITS_TEXT_SIZE])
{
    enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };
    const uint64_t magnitude = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    const uint64_t seconds = magnitude / 1000;
    const char *sign = ms < 0 ? "-" : "";
    if (magnitude < 1000)
        snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 " ms", sign, magnitude);
    else if (seconds < MINUTE_S)
        snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%" PRIu64 " s", sign, seconds,
                 magnitude % 1000 / 100);
    else if (seconds < HOUR_S)
        format_two(magnitude, MINUTE_S, "m", 1, "s", sign, out);
    else if (seconds < (uint64_t)2 * DAY_S)
        format_two(magnitude, HOUR_S, "h", MINUTE_S, "m", sign, out);
    else
        format_two(magnitude, DAY_S, "d", HOUR_S, "h", sign, out);
    return out;
}

const char *units_format_amount(int64_t micro, const char *unit, char out[UNITS_TEXT_SIZE])
{
    const uint64_t magnitude = micro < 0 ? 0 - (uint64_t)micro : (uint64_t)micro;
    snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 ".%06" PRIu64 " %s", micro < 0 ? "-" : "",
             magnitude / 1000000, magnitude % 1000000, unit);
    return out;
}

const char *units_format_credits(int64_t micro, char out[UNITS_TEXT_SIZE])
{
    return units_format_amount(micro, "credits", out);
}
