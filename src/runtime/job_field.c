#include "base/assert.h"
#include "base/nearest.h"
#include "runtime/job_reader_internal.h"

#include <inttypes.h>
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
    return job_read_scalar(reader, field, &scalar, place, out);
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
    if (field->kind == JOB_FIELD_MOUNTS)
        return job_read_mounts(reader, field, node, place, base);
    if (field->kind == JOB_FIELD_WORDS)
        return read_words(reader, field, node, place,
                          (struct text *)(void *)(base + field->offset));
    if (field->kind == JOB_FIELD_ACCELERATORS && node->kind != JOB_NODE_SCALAR)
        return read_accelerators(reader, field, node, place, base + field->offset);
    if (node->kind != JOB_NODE_SCALAR)
        return REFUSE(reader, node, place, "must be a single value");
    return job_read_scalar(reader, field, node, place, base + field->offset);
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
            const int result = job_read_scalar(&reader, field, &node, NULL, target);
            ASSERT(result == 0);
        }
    }
}
