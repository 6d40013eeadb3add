/* Job fields, one value: numbers, words, amounts, spans and hashes by their field. */
#include "base/assert.h"
#include "base/nearest.h"
#include "base/units.h"
#include "runtime/job_reader_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void format_choices(const char *const *choices, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; choices[i]; i++) {
        const int added = snprintf(out + used, size - used, "%s%s", i ? ", " : "", choices[i]);
        if (added < 0 || used + (size_t)added >= size) {
            out[used] = '\0'; /* whole names only */
            return;
        }
        used += (size_t)added;
    }
}

static int read_choice(struct job_reader *reader, const struct job_field *field,
                       const struct job_node *node, const struct job_place *place, int *out_index)
{
    for (int i = 0; field->choices[i]; i++) {
        if (text_equal(node->value, text_of(field->choices[i]))) {
            *out_index = i;
            return 0;
        }
    }
    char allowed[144];
    format_choices(field->choices, allowed, sizeof(allowed));
    for (size_t i = 0; field->later && field->later[i]; i++)
        if (text_equal(node->value, text_of(field->later[i])))
            return REFUSE(reader, node, place, "\"%s\" is not supported yet; use %s",
                          field->later[i], allowed);
    struct nearest nearest;
    nearest_init(&nearest, node->value);
    for (size_t i = 0; field->choices[i]; i++)
        nearest_offer(&nearest, field->choices[i]);
    if (nearest.name)
        return REFUSE(reader, node, place, "\"%.*s\" is unknown; did you mean \"%s\"?",
                      (int)(node->value.size < 40 ? node->value.size : 40), node->value.data,
                      nearest.name);
    return REFUSE(reader, node, place, "must be %sone of %s",
                  field->kind == JOB_FIELD_DATA ? "a file like rows.csv, a folder like ./images or "
                                                : "",
                  allowed);
}

bool job_data_is_path(struct text data)
{
    return data.size && (memchr(data.data, '.', data.size) || memchr(data.data, '/', data.size));
}

static int read_data(struct job_reader *reader, const struct job_field *field,
                     const struct job_node *node, const struct job_place *place, struct text *out)
{
    const struct text value = node->value;
    int index = 0;
    if (job_data_is_path(value)) {
        if (value.size > (size_t)field->maximum || !text_is_plain(value))
            return REFUSE(reader, node, place, "must be a path of at most %" PRId64 " characters",
                          field->maximum);
        *out = arena_copy_text(reader->arena, value);
        return 0;
    }
    if (read_choice(reader, field, node, place, &index) < 0)
        return -1;
    *out = text_of(field->choices[index]);
    return 0;
}

static int read_name(struct job_reader *reader, const struct job_field *field,
                     const struct job_node *node, const struct job_place *place, struct text *out)
{
    const struct text value = node->value;
    bool is_good = value.size > 0 && value.size <= (size_t)field->maximum;
    for (size_t i = 0; is_good && i < value.size; i++) {
        const unsigned char c = (unsigned char)value.data[i];
        is_good = c < 0x80 && (isalnum(c) || (i > 0 && (c == '-' || c == '_' || c == '.')));
    }
    if (!is_good)
        return REFUSE(reader, node, place,
                      "must be 1 to %" PRId64
                      " letters, digits, '-', '_' or '.', beginning with a letter or digit",
                      field->maximum);
    *out = arena_copy_text(reader->arena, value);
    return 0;
}

static int read_number(struct job_reader *reader, const struct job_field *field,
                       const struct job_node *node, const struct job_place *place, void *out)
{
    struct error ignored;
    if (field->kind == JOB_FIELD_U64) {
        uint64_t value;
        if (field->choices && text_is(node->value, field->choices[0])) {
            *(uint64_t *)out = UINT64_MAX;
            return 0;
        }
        if (node->is_quoted || text_parse_u64(node->value, &value, &ignored) < 0)
            return REFUSE(reader, node, place,
                          "must be a whole number from %" PRId64 " to %" PRId64, field->minimum,
                          field->maximum);
        if (value < (uint64_t)field->minimum || value > (uint64_t)field->maximum)
            return REFUSE(reader, node, place, "must be from %" PRId64 " to %" PRId64,
                          field->minimum, field->maximum);
        *(uint64_t *)out = value;
        return 0;
    }
    double value;
    if (node->is_quoted || text_parse_double(node->value, &value, &ignored) < 0 || !isfinite(value))
        return REFUSE(reader, node, place, "must be a number from %" PRId64 " to %" PRId64,
                      field->minimum, field->maximum);
    if (value < (double)field->minimum || value > (double)field->maximum)
        return REFUSE(reader, node, place, "must be from %" PRId64 " to %" PRId64, field->minimum,
                      field->maximum);
    *(double *)out = value;
    return 0;
}

/* GiB unless a unit is named, as SkyPilot has it. */
static int parse_gib(struct text text, int64_t *out_bytes, struct error *error)
{
    if (text.size && isalpha((unsigned char)text.data[text.size - 1]))
        return units_parse_bytes(text, out_bytes, error);
    char with_unit[64];
    const int length = snprintf(with_unit, sizeof(with_unit), "%.*sGiB",
                                (int)(text.size < 40 ? text.size : 40), text.data);
    return units_parse_bytes((struct text){with_unit, (size_t)length}, out_bytes, error);
}

static int read_amount(struct job_reader *reader, const struct job_field *field,
                       const struct job_node *node, const struct job_place *place, void *out)
{
    struct text text = text_trim(node->value);
    const bool can_grow = field->kind != JOB_FIELD_SIZE;
    const bool is_at_least = can_grow && text.size && text.data[text.size - 1] == '+';
    if (is_at_least)
        text = text_trim((struct text){text.data, text.size - 1});
    struct error reason;
    int64_t value = 0;
    const int result = field->kind == JOB_FIELD_CPUS ? units_parse_cores(text, &value, &reason)
                                                     : parse_gib(text, &value, &reason);
    if (result < 0)
        return REFUSE(reader, node, place, "%s",
                      field->kind == JOB_FIELD_CPUS
                          ? "must be a number of cores like 0.5, 2 or 2+"
                          : "must be a size in GiB like 0.5 or 2, or with a unit like 512MiB");
    if (value < field->minimum || value > field->maximum)
        return REFUSE(reader, node, place, "is out of range");
    if (can_grow)
        *(struct job_amount *)out = (struct job_amount){value, is_at_least};
    else
        *(int64_t *)out = value;
    return 0;
}

static int read_unit(struct job_reader *reader, const struct job_field *field,
                     const struct job_node *node, const struct job_place *place, int64_t *out)
{
    struct error reason;
    int64_t value;
    const bool is_time = field->kind == JOB_FIELD_DURATION;
    if ((is_time ? units_parse_duration(node->value, &value, &reason)
                 : units_parse_credits(node->value, &value, &reason)) < 0)
        return REFUSE(reader, node, place, "%s", reason.message);
    if (value < field->minimum || value > field->maximum) {
        char least[UNITS_TEXT_SIZE], most[UNITS_TEXT_SIZE];
        return REFUSE(reader, node, place, "must be from %s to %s",
                      is_time ? units_format_duration(field->minimum, least)
                              : units_format_credits(field->minimum, least),
                      is_time ? units_format_duration(field->maximum, most)
                              : units_format_credits(field->maximum, most));
    }
    *out = value;
    return 0;
}

static int read_bool(struct job_reader *reader, const struct job_node *node,
                     const struct job_place *place, bool *out)
{
    *out = text_equal(node->value, TEXT("true"));
    if (node->is_quoted || (!*out && !text_equal(node->value, TEXT("false"))))
        return REFUSE(reader, node, place, "must be true or false");
    return 0;
}

static int read_milli(struct job_reader *reader, const struct job_field *field,
                      const struct job_node *node, const struct job_place *place, int64_t *out)
{
    struct error reason;
    const bool is_bandwidth = field->kind == JOB_FIELD_BANDWIDTH;
    if ((is_bandwidth ? units_parse_bandwidth(node->value, out, &reason)
                      : units_parse_factor(node->value, out, &reason)) < 0)
        return REFUSE(reader, node, place, "%s", reason.message);
    if (*out >= field->minimum && *out <= field->maximum)
        return 0;
    if (is_bandwidth)
        return REFUSE(reader, node, place, "is out of range");
    char least[JOB_WISH_TEXT_SIZE], most[JOB_WISH_TEXT_SIZE];
    return REFUSE(reader, node, place, "must be from %.20s to %.20s",
                  job_milli_format(field->minimum, least), job_milli_format(field->maximum, most));
}

static int read_nodes(struct job_reader *reader, const struct job_field *field,
                      const struct job_node *node, const struct job_place *place, char *out)
{
    struct error reason;
    struct job_nodes nodes;
    if (job_nodes_parse(node->value, &nodes, &reason) < 0)
        return REFUSE(reader, node, place, "%s", reason.message);
    if (nodes.least < (uint64_t)field->minimum || nodes.least > (uint64_t)field->maximum ||
        nodes.most > (uint64_t)field->maximum)
        return REFUSE(reader, node, place, "must be from %" PRId64 " to %" PRId64, field->minimum,
                      field->maximum);
    *(uint64_t *)(void *)out = nodes.least;
    if (nodes.most)
        *(uint64_t *)(void *)(out - field->offset + field->count_offset) = nodes.most;
    return 0;
}

static int read_phrase(struct job_reader *reader, const struct job_field *field,
                       const struct job_node *node, const struct job_place *place, void *out)
{
    struct error reason;
    if ((field->kind == JOB_FIELD_START
             ? job_start_parse(node->value, out, &reason)
             : job_accelerators_parse(reader->arena, node->value, out, &reason)) < 0)
        return REFUSE(reader, node, place, "%s", reason.message);
    return 0;
}

int job_read_scalar(struct job_reader *reader, const struct job_field *field,
                    const struct job_node *node, const struct job_place *place, char *out)
{
    const struct text value = node->value;
    if (!node->is_quoted &&
        (value.size == 0 || text_equal(value, TEXT("null")) || text_equal(value, TEXT("~"))))
        return REFUSE(reader, node, place, "has no value");
    switch (field->kind) {
    case JOB_FIELD_NAME:
        return read_name(reader, field, node, place, (struct text *)(void *)out);
    case JOB_FIELD_WORD: {
        int index = 0;
        if (read_choice(reader, field, node, place, &index) < 0)
            return -1;
        *(struct text *)(void *)out = text_of(field->choices[index]);
        return 0;
    }
    case JOB_FIELD_DATA:
        return read_data(reader, field, node, place, (struct text *)(void *)out);
    case JOB_FIELD_INDEX:
        return read_choice(reader, field, node, place, (int *)(void *)out);
    case JOB_FIELD_U64:
    case JOB_FIELD_DOUBLE:
        return read_number(reader, field, node, place, out);
    case JOB_FIELD_DURATION:
    case JOB_FIELD_CREDITS:
        return read_unit(reader, field, node, place, (int64_t *)(void *)out);
    case JOB_FIELD_CPUS:
    case JOB_FIELD_MEMORY:
    case JOB_FIELD_SIZE:
        return read_amount(reader, field, node, place, out);
    case JOB_FIELD_BOOL:
        return read_bool(reader, node, place, (bool *)out);
    case JOB_FIELD_MILLI:
    case JOB_FIELD_BANDWIDTH:
        return read_milli(reader, field, node, place, (int64_t *)(void *)out);
    case JOB_FIELD_NODES:
        return read_nodes(reader, field, node, place, out);
    case JOB_FIELD_ACCELERATORS:
    case JOB_FIELD_START:
        return read_phrase(reader, field, node, place, out);
    case JOB_FIELD_SCRIPT:
        return job_read_script(reader, field, node, place, (struct text *)(void *)out);
    case JOB_FIELD_HASH: {
        struct error ignored;
        if (text_hex_decode(value, out, JOB_HASH_SIZE, &ignored) < 0)
            return REFUSE(reader, node, place, "must be %d lower-case hex digits",
                          2 * JOB_HASH_SIZE);
        return 0;
    }
    case JOB_FIELD_OBJECT:
    case JOB_FIELD_LIST:
    case JOB_FIELD_ENVS:
    case JOB_FIELD_MOUNTS:
    case JOB_FIELD_WORDS:
    case JOB_FIELD_LATER:
        break;
    }
    UNREACHABLE("a scalar field without a reader");
}
