#include "base/assert.h"
#include "base/date.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cloud/catalogue_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOURCE_MAX = 1000, USD_MICRO_MAX = 1000000000 /* a thousand dollars an hour */ };
#define COUNT_MAX  INT64_C(1000000000)
#define DAY_MS     INT64_C(86400000)
#define TYPES_SIZE ((size_t)CATALOGUE_TYPES_MAX * sizeof(struct catalogue_type))

const char *cloud_architecture_name(enum cloud_architecture architecture)
{
    static const char *const names[CLOUD_ARCHITECTURE_COUNT] = {"x86_64", "arm64"};
    return names[architecture];
}

struct catalogue *catalogue_new(void)
{
    struct catalogue *catalogue = calloc(1, sizeof(*catalogue));
    ASSERT(catalogue);
    atomic_init(&catalogue->users, 1);
    catalogue->arena = arena_new(0);
    catalogue->source = "";
    buffer_init(&catalogue->types, TYPES_SIZE);
    buffer_init(&catalogue->functions, CATALOGUE_FUNCTIONS_MAX * sizeof(struct catalogue_function));
    map_init(&catalogue->by_name);
    return catalogue;
}

struct catalogue *catalogue_share(struct catalogue *catalogue)
{
    atomic_fetch_add(&catalogue->users, 1);
    return catalogue;
}

void catalogue_free(struct catalogue *catalogue)
{
    if (!catalogue || atomic_fetch_sub(&catalogue->users, 1) > 1)
        return;
    map_done(&catalogue->by_name);
    buffer_done(&catalogue->functions);
    buffer_done(&catalogue->types);
    arena_free(catalogue->arena);
    free(catalogue);
}

/* ---- Filling --------------------------------------------------------------------------------- */

int catalogue_set_date(struct catalogue *catalogue, struct text date, struct error *error)
{
    struct text year, rest, month, day;
    uint64_t numbers[3];
    const bool is_shaped = date.size == 10 && text_cut(date, '-', &year, &rest) && year.size == 4 &&
                           text_cut(rest, '-', &month, &day) && month.size == 2 && day.size == 2;
    if (!is_shaped || text_parse_u64(year, &numbers[0], error) < 0 ||
        text_parse_u64(month, &numbers[1], error) < 0 ||
        text_parse_u64(day, &numbers[2], error) < 0)
        return error_set(error, ERROR_INVALID, "the date is not like 2026-08-22");
    const struct date parsed = {
        .year = (int)numbers[0], .month = (int)numbers[1], .day = (int)numbers[2]};
    if (!date_is_valid(parsed))
        return error_set(error, ERROR_INVALID, "the calendar has no such day as the date");
    catalogue->date_days = date_to_days(parsed);
    return text_copy(date, catalogue->date, sizeof(catalogue->date), error);
}

/* Written and read again it is the same: no blanks around it, nothing a spreadsheet computes. */
static bool is_word(struct text text, size_t size_max)
{
    return text.size && text.size <= size_max && isalnum((unsigned char)text.data[0]) &&
           text_trim(text).size == text.size && text_is_plain(text);
}

int catalogue_set_source(struct catalogue *catalogue, struct text source, struct error *error)
{
    if (!is_word(source, SOURCE_MAX))
        return error_set(error, ERROR_INVALID, "the source is not 1 to %d bytes of plain text",
                         SOURCE_MAX);
    catalogue->source = arena_copy_string(catalogue->arena, source);
    return 0;
}

static struct text key_of(struct arena *arena, struct text name, const char *region)
{
    return text_of(arena_format(arena, "%s/" TEXT_FORMAT, region, TEXT_ARGS(name)));
}

int catalogue_add_type(struct catalogue *catalogue, const struct catalogue_type *type,
                       struct error *error)
{
    struct catalogue_type copy = *type;
    if (!strchr(type->name, '.'))
        return error_set(error, ERROR_INVALID, "\"%s\" is no type like m5.large", type->name);
    const struct text key = key_of(catalogue->arena, text_of(type->name), type->region);
    if (map_get_text(&catalogue->by_name, key))
        return error_set(error, ERROR_CONFLICT, "type \"%s\" is there twice", type->name);
    copy.name = arena_copy_string(catalogue->arena, text_of(type->name));
    copy.region = arena_copy_string(catalogue->arena, text_of(type->region));
    copy.gpu = arena_copy_string(catalogue->arena, text_of(type->gpu));
    const size_t index = catalogue_type_count(catalogue);
    buffer_append(&catalogue->types, &copy, sizeof(copy));
    if (catalogue->types.is_overflowed)
        return error_set(error, ERROR_EXHAUSTED, "more than %d types", CATALOGUE_TYPES_MAX);
    size_t *place = arena_alloc(catalogue->arena, sizeof(*place));
    *place = index;
    map_put_text(&catalogue->by_name, key, place);
    return 0;
}

int catalogue_add_function(struct catalogue *catalogue, const struct catalogue_function *function,
                           struct error *error)
{
    struct catalogue_function copy = *function;
    copy.name = arena_copy_string(catalogue->arena, text_of(function->name));
    copy.region = arena_copy_string(catalogue->arena, text_of(function->region));
    buffer_append(&catalogue->functions, &copy, sizeof(copy));
    if (catalogue->functions.is_overflowed)
        return error_set(error, ERROR_EXHAUSTED, "more than %d functions", CATALOGUE_FUNCTIONS_MAX);
    return 0;
}

/* ---- Fields ---------------------------------------------------------------------------------- */

int catalogue_parse_count(struct text field, const char *name, int64_t *out, struct error *error)
{
    double value = 0;
    if (catalogue_parse_scaled(field, name, 1, out, error) < 0)
        return -1;
    if (field.size && (text_parse_double(field, &value, error) < 0 || value != floor(value)))
        return error_set(error, ERROR_INVALID, "%s: has a fraction", name);
    return 0;
}

int catalogue_parse_usd(struct text field, const char *name, int64_t *out_micro,
                        struct error *error)
{
    int64_t micro = 0;
    if (field.size &&
        (units_parse_credits(field, &micro, error) < 0 || micro < 0 || micro > USD_MICRO_MAX))
        return error_set(error, ERROR_INVALID,
                         "%s: not an amount from 0 to 1000 dollars with six digits at most", name);
    *out_micro = micro;
    return 0;
}

int catalogue_parse_scaled(struct text field, const char *name, int64_t scale, int64_t *out,
                           struct error *error)
{
    double value = 0;
    if (field.size &&
        (text_parse_double(field, &value, error) < 0 || !(value >= 0) || value > (double)COUNT_MAX))
        return error_set(error, ERROR_INVALID, "%s: not a number from 0 to %" PRId64, name,
                         COUNT_MAX);
    *out = llround(value * (double)scale);
    return 0;
}

int catalogue_parse_name(struct arena *arena, struct text field, const char *name,
                         bool may_be_empty, const char **out, struct error *error)
{
    const bool is_fine = field.size ? is_word(field, CATALOGUE_NAME_MAX) : may_be_empty;
    if (!is_fine)
        return error_set(error, ERROR_INVALID, "%s: not a name of 1 to %d bytes", name,
                         CATALOGUE_NAME_MAX);
    *out = arena_copy_string(arena, field);
    return 0;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

size_t catalogue_type_count(const struct catalogue *catalogue)
{
    return catalogue->types.size / sizeof(struct catalogue_type);
}

const struct catalogue_type *catalogue_type_at(const struct catalogue *catalogue, size_t index)
{
    ASSERT(index < catalogue_type_count(catalogue));
    return (const struct catalogue_type *)(const void *)catalogue->types.data + index;
}

size_t catalogue_function_count(const struct catalogue *catalogue)
{
    return catalogue->functions.size / sizeof(struct catalogue_function);
}

const struct catalogue_function *catalogue_function_at(const struct catalogue *catalogue,
                                                       size_t index)
{
    ASSERT(index < catalogue_function_count(catalogue));
    return (const struct catalogue_function *)(const void *)catalogue->functions.data + index;
}

static const struct catalogue_type *find_anywhere(const struct catalogue *catalogue,
                                                  struct text name)
{
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++)
        if (text_is(name, catalogue_type_at(catalogue, i)->name))
            return catalogue_type_at(catalogue, i);
    return NULL;
}

static int refuse_type(const struct catalogue *catalogue, struct text name, const char *region,
                       struct error *error)
{
    struct nearest nearest;
    char hint[NEAREST_HINT_SIZE];
    const struct catalogue_type *elsewhere = find_anywhere(catalogue, name);
    nearest_init(&nearest, name);
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++)
        if (!region || strcmp(catalogue_type_at(catalogue, i)->region, region) == 0)
            nearest_offer(&nearest, catalogue_type_at(catalogue, i)->name);
    if (elsewhere)
        return error_set(error, ERROR_NOT_FOUND, "the catalogue has \"%s\" in %s, and not in %.60s",
                         elsewhere->name, elsewhere->region, region);
    return error_set(error, ERROR_NOT_FOUND, "the catalogue has no type \"%.*s\"%s",
                     name.size > 60 ? 60 : (int)name.size, name.data, nearest_hint(&nearest, hint));
}

int catalogue_find(const struct catalogue *catalogue, struct text name, const char *region,
                   const struct catalogue_type **out_type, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct catalogue_type *found = NULL;
    if (!region) {
        found = find_anywhere(catalogue, name);
    } else {
        const size_t *place = map_get_text(&catalogue->by_name, key_of(arena, name, region));
        if (place)
            found = catalogue_type_at(catalogue, *place);
    }
    if (!found)
        return refuse_type(catalogue, name, region, error);
    *out_type = found;
    return 0;
}

const struct catalogue_function *catalogue_find_function(const struct catalogue *catalogue,
                                                         const char *name, const char *region,
                                                         enum cloud_architecture architecture)
{
    const struct catalogue_function *found = NULL;
    for (size_t i = 0; i < catalogue_function_count(catalogue); i++) {
        const struct catalogue_function *function = catalogue_function_at(catalogue, i);
        if (function->architecture != architecture || strcmp(function->name, name) != 0)
            continue;
        if (strcmp(function->region, region) == 0)
            return function;
        if (!found)
            found = function;
    }
    return found;
}

const char *catalogue_source(const struct catalogue *catalogue)
{
    return catalogue->source;
}

const char *catalogue_date(const struct catalogue *catalogue)
{
    return catalogue->date;
}

int64_t catalogue_age_days(const struct catalogue *catalogue, int64_t now_ms)
{
    return now_ms / DAY_MS - catalogue->date_days;
}

const char *catalogue_notice(const struct catalogue *catalogue, int64_t now_ms,
                             int64_t age_days_max, char out[CATALOGUE_NOTICE_SIZE])
{
    const int64_t age_days = catalogue_age_days(catalogue, now_ms);
    out[0] = '\0';
    if (age_days > age_days_max)
        snprintf(out, CATALOGUE_NOTICE_SIZE,
                 "cloud prices are of %s, %" PRId64
                 " days old, and may have changed: \"souk cloud catalog update\" reads newer ones",
                 catalogue->date, age_days);
    return out;
}
