#include "base/assert.h"
#include "base/nearest.h"
#include "base/units.h"
#include "runtime/job_reader_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 96 };

static size_t format_place(const struct job_place *place, char *out, size_t size)
{
    if (!place)
        return 0;
    const size_t used = format_place(place->outer, out, size);
    int added;
    if (place->name)
        added = snprintf(out + used, size - used, "%s%.40s", used ? "." : "", place->name);
    else
        added = snprintf(out + used, size - used, "[%zu]", place->index);
    if (added < 0 || used + (size_t)added >= size)
        return used; /* cut rather than overrun */
    return used + (size_t)added;
}

void job_note_refusal(struct job_reader *reader, const struct error *refusal)
{
    if (!reader->has_failed)
        *reader->error = *refusal;
    else if (reader->more)
        buffer_append_format(reader->more, "%s\n", refusal->message);
    reader->has_failed = true;
}

int job_refuse(struct job_reader *reader, unsigned line, unsigned column,
               const struct job_place *place, const char *format, ...)
{
    char path[PATH_SIZE] = "", what[192];
    format_place(place, path, sizeof(path));
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    const char *colon = path[0] ? ": " : "";
    struct error refusal;
    if (reader->file_name && line)
        error_set(&refusal, ERROR_INVALID, "%s:%u:%u: %s%s%s", reader->file_name, line, column,
                  path, colon, what);
    else
        error_set(&refusal, ERROR_INVALID, "%s%s%s", path, colon, what);
    job_note_refusal(reader, &refusal);
    return -1;
}

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

static int read_scalar(struct job_reader *reader, const struct job_field *field,
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
    case JOB_FIELD_WORDS:
    case JOB_FIELD_LATER:
        break;
    }
    UNREACHABLE("a scalar field without a reader");
}

/* A list of words, or one word. */
static int read_words(struct job_reader *reader, const struct job_field *field,
                      const struct job_node *node, const struct job_place *place, struct text *out)
{
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, (size_t)field->maximum + 1);
    if (node->kind == JOB_NODE_MAPPING)
        return REFUSE(reader, node, place, "must be a list of words like [python3-torch, cuda-12]");
    size_t index = 0;
    const bool is_list = node->kind == JOB_NODE_SEQUENCE;
    for (const struct job_node *word = is_list ? node->first_child : node; word;
         word = is_list ? word->next : NULL, index++) {
        const struct job_place inner = {place, NULL, index};
        const struct job_place *at = is_list ? &inner : place;
        if (word->kind != JOB_NODE_SCALAR || !word->value.size || !offer_are_labels(word->value) ||
            memchr(word->value.data, ',', word->value.size))
            return REFUSE(reader, word, at, "must be one word, without spaces and commas");
        if (index > 0)
            buffer_append(&words, ",", 1);
        buffer_append(&words, word->value.data, word->value.size);
    }
    if (words.is_overflowed || words.size > (size_t)field->maximum)
        return REFUSE(reader, node, place, "is longer than %" PRId64 " characters", field->maximum);
    *out = arena_copy_text(reader->arena, buffer_text(&words));
    return 0;
}

/* SkyPilot's other form: {T4: 1}. */
static int read_accelerators(struct job_reader *reader, const struct job_field *field,
                             const struct job_node *node, const struct job_place *place, char *out)
{
    const struct job_node *only = node->first_child;
    if (node->kind == JOB_NODE_SEQUENCE || !only || only->next || only->kind != JOB_NODE_SCALAR)
        return REFUSE(reader, node, place, "must name one model, like T4:1 or {T4: 1}");
    char joined[JOB_WISH_TEXT_SIZE];
    const int length = snprintf(
        joined, sizeof(joined), "%.*s:%.*s", (int)(only->key.size < 60 ? only->key.size : 60),
        only->key.data, (int)(only->value.size < 20 ? only->value.size : 20), only->value.data);
    const struct job_node scalar = {
        .line = only->line, .column = only->column, .value = {joined, (size_t)length}};
    return read_scalar(reader, field, &scalar, place, out);
}

static int read_mapping(struct job_reader *reader, const struct job_table *table,
                        const struct job_node *node, const struct job_place *place, char *out);

static int read_list(struct job_reader *reader, const struct job_field *field,
                     const struct job_node *node, const struct job_place *place, char *base)
{
    if (node->kind != JOB_NODE_SEQUENCE)
        return REFUSE(reader, node, place, "must be a list");
    size_t count = 0, index = 0;
    for (const struct job_node *child = node->first_child; child; child = child->next)
        count++;
    if (count > (size_t)field->maximum)
        return REFUSE(reader, node, place, "has more than %" PRId64 " items", field->maximum);
    char *items = arena_alloc(reader->arena, count * field->table->struct_size + 1);
    for (const struct job_node *child = node->first_child; child; child = child->next, index++) {
        const struct job_place inner = {place, NULL, index};
        char *item = items + index * field->table->struct_size;
        job_table_set_defaults(reader->arena, field->table, item);
        if (read_mapping(reader, field->table, child, &inner, item) < 0 && !reader->more)
            return -1;
    }
    *(void **)(void *)(base + field->offset) = items;
    *(size_t *)(void *)(base + field->count_offset) = count;
    return reader->has_failed ? -1 : 0;
}

static int read_field(struct job_reader *reader, const struct job_field *field,
                      const struct job_node *node, const struct job_place *place, char *base)
{
    if (field->kind == JOB_FIELD_LATER)
        return job_refuse(reader, node->key_line, node->key_column, place, "%s",
                          field->help ? field->help : "is not supported yet; leave it out");
    if (field->kind == JOB_FIELD_OBJECT)
        return read_mapping(reader, field->table, node, place, base + field->offset);
    if (field->kind == JOB_FIELD_LIST)
        return read_list(reader, field, node, place, base);
    if (field->kind == JOB_FIELD_ENVS)
        return job_read_envs(reader, field, node, place, base);
    if (field->kind == JOB_FIELD_WORDS)
        return read_words(reader, field, node, place,
                          (struct text *)(void *)(base + field->offset));
    if (field->kind == JOB_FIELD_ACCELERATORS && node->kind != JOB_NODE_SCALAR)
        return read_accelerators(reader, field, node, place, base + field->offset);
    if (node->kind != JOB_NODE_SCALAR)
        return REFUSE(reader, node, place, "must be a single value");
    return read_scalar(reader, field, node, place, base + field->offset);
}

static int refuse_unknown(struct job_reader *reader, const struct job_table *table,
                          const struct job_node *node, const struct job_place *place)
{
    struct nearest nearest;
    nearest_init(&nearest, node->key);
    for (size_t i = 0; i < table->field_count; i++)
        nearest_offer(&nearest, table->fields[i].name);
    char hint[NEAREST_HINT_SIZE];
    return job_refuse(reader, node->key_line, node->key_column, place, "unknown field \"%.*s\"%s",
                      (int)(node->key.size < 40 ? node->key.size : 40), node->key.data,
                      nearest_hint(&nearest, hint));
}

static int read_mapping(struct job_reader *reader, const struct job_table *table,
                        const struct job_node *node, const struct job_place *place, char *out)
{
    if (node->kind != JOB_NODE_MAPPING)
        return REFUSE(reader, node, place, "must be a mapping of fields to values");
    for (const struct job_node *child = node->first_child; child; child = child->next) {
        const struct job_field *field = NULL;
        for (size_t i = 0; i < table->field_count && !field; i++)
            if (text_equal(child->key, text_of(table->fields[i].name)))
                field = &table->fields[i];
        const struct job_place inner = {place, field ? field->name : NULL, 0};
        const int result = field ? read_field(reader, field, child, &inner, out)
                                 : refuse_unknown(reader, table, child, place);
        if (result < 0 && !reader->more)
            return -1;
    }
    for (size_t i = 0; i < table->field_count; i++) {
        const struct job_field *field = &table->fields[i];
        const struct job_place inner = {place, field->name, 0};
        if (field->is_required && !job_node_find(node, text_of(field->name)) &&
            REFUSE(reader, node, &inner, "is missing") < 0 && !reader->more)
            return -1;
    }
    return reader->has_failed ? -1 : 0;
}

int job_table_read(struct arena *arena, const struct job_table *table, const struct job_node *root,
                   const char *file_name, void *out, struct buffer *more, struct error *error)
{
    struct job_reader reader = {
        .arena = arena, .file_name = file_name, .error = error, .more = more};
    return read_mapping(&reader, table, root, NULL, out);
}

void job_refuse_path(struct job_reader *reader, const struct job_node *root, const char *path,
                     const char *what)
{
    const struct job_node *node = root; /* what is missing is missed in what is around it */
    const struct job_place place = {.name = path};
    for (struct text rest = text_of(path); rest.size;) {
        size_t size = 0;
        while (size < rest.size && rest.data[size] != '.')
            size++;
        const struct job_node *inner = job_node_find(node, (struct text){rest.data, size});
        if (!inner)
            break;
        node = inner;
        size += size < rest.size;
        rest = (struct text){rest.data + size, rest.size - size};
    }
    job_refuse(reader, node->line, node->column, &place, "%s", what);
}

int job_table_refuse(const struct job_node *root, const char *file_name, const char *path,
                     const char *what, struct error *error)
{
    struct job_reader reader = {.file_name = file_name, .error = error};
    job_refuse_path(&reader, root, path, what);
    return -1;
}

void job_table_set_defaults(struct arena *arena, const struct job_table *table, void *out)
{
    struct error error;
    struct job_reader reader = {.arena = arena, .error = &error};
    for (size_t i = 0; i < table->field_count; i++) {
        const struct job_field *field = &table->fields[i];
        char *target = (char *)out + field->offset;
        if (field->kind == JOB_FIELD_OBJECT) {
            job_table_set_defaults(arena, field->table, target);
        } else if (field->default_text) {
            const struct job_node node = {.value = text_of(field->default_text)};
            const int result = read_scalar(&reader, field, &node, NULL, target);
            ASSERT(result == 0);
        }
    }
}
