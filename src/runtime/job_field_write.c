/* Writing by the field table: canonical JSON, and the JSON Schema. */
#include "base/assert.h"
#include "runtime/job_field_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void write_bytes(struct json_writer *writer, int64_t bytes, const char *suffix)
{
    char text[48];
    const bool is_mib = bytes % (1 << 20) == 0;
    snprintf(text, sizeof(text), "%" PRId64 "%s%s", is_mib ? bytes >> 20 : bytes,
             is_mib ? "MiB" : "B", suffix);
    json_string(writer, text);
}

/* Millionths as a decimal without trailing zeroes: 1500000 is "1.5". */
static void format_decimal(int64_t micro, const char *suffix, char *out, size_t size)
{
    char digits[48];
    int length = snprintf(digits, sizeof(digits), "%" PRId64 ".%06" PRId64, micro / 1000000,
                          micro % 1000000);
    while (digits[length - 1] == '0')
        length--;
    if (digits[length - 1] == '.')
        length--;
    snprintf(out, size, "%.*s%s", length, digits, suffix);
}

static void write_duration(struct json_writer *writer, int64_t ms)
{
    char text[32];
    if (ms % 1000 == 0)
        snprintf(text, sizeof(text), "%" PRId64 "s", ms / 1000);
    else
        snprintf(text, sizeof(text), "%" PRId64 "ms", ms);
    json_string(writer, text);
}

static bool is_given(const struct job_field *field, const char *base);

static bool has_given(const struct job_table *table, const char *base)
{
    for (size_t i = 0; i < table->field_count; i++)
        if (table->fields[i].kind != JOB_FIELD_OBJECT && !table->fields[i].default_text &&
            is_given(&table->fields[i], base))
            return true;
    return is_given(&table->fields[0], base);
}

static bool is_given(const struct job_field *field, const char *base)
{
    const char *value = base + field->offset;
    switch (field->kind) {
    case JOB_FIELD_NAME:
    case JOB_FIELD_WORD:
    case JOB_FIELD_DATA:
    case JOB_FIELD_WORDS:
    case JOB_FIELD_SCRIPT:
        return ((const struct text *)(const void *)value)->size > 0;
    case JOB_FIELD_DURATION:
    case JOB_FIELD_CREDITS:
    case JOB_FIELD_SIZE:
    case JOB_FIELD_MILLI:
    case JOB_FIELD_BANDWIDTH:
        return field->default_text || *(const int64_t *)(const void *)value != 0;
    case JOB_FIELD_DOUBLE:
        return field->default_text || *(const double *)(const void *)value != 0.0;
    case JOB_FIELD_LIST:
    case JOB_FIELD_ENVS:
    case JOB_FIELD_MOUNTS:
        return *(const size_t *)(const void *)(base + field->count_offset) > 0;
    case JOB_FIELD_U64:
        return field->default_text || *(const uint64_t *)(const void *)value != 0;
    case JOB_FIELD_ACCELERATORS:
        return ((const struct job_accelerators *)(const void *)value)->count_milli > 0;
    case JOB_FIELD_LATER:
        return false;
    case JOB_FIELD_BOOL:
        return field->default_text || *(const bool *)value;
    case JOB_FIELD_NODES:
    case JOB_FIELD_START:
    case JOB_FIELD_INDEX:
    case JOB_FIELD_CPUS:
    case JOB_FIELD_MEMORY:
    case JOB_FIELD_HASH:
        return true;
    case JOB_FIELD_OBJECT:
        return !field->is_left_out || has_given(field->table, value);
    }
    return false;
}

static void write_list(struct json_writer *writer, const struct job_field *field, const char *base)
{
    const char *items = *(const char *const *)(const void *)(base + field->offset);
    const size_t count = *(const size_t *)(const void *)(base + field->count_offset);
    json_array_begin(writer);
    for (size_t i = 0; i < count; i++)
        job_table_write(writer, field->table, items + i * field->table->struct_size);
    json_array_end(writer);
}

static void write_envs(struct json_writer *writer, const struct job_field *field, const char *base)
{
    const struct job_env *envs =
        *(const struct job_env *const *)(const void *)(base + field->offset);
    const size_t count = *(const size_t *)(const void *)(base + field->count_offset);
    json_object_begin(writer);
    for (size_t i = 0; i < count; i++) {
        char name[JOB_ENV_NAME_SIZE_MAX + 1];
        snprintf(name, sizeof(name), "%.*s", TEXT_ARGS(envs[i].name));
        json_key(writer, name);
        json_text(writer, envs[i].value);
    }
    json_object_end(writer);
}

static void write_words(struct json_writer *writer, struct text words)
{
    json_array_begin(writer);
    while (words.size) {
        const char *comma = memchr(words.data, ',', words.size);
        const size_t size = comma ? (size_t)(comma - words.data) : words.size;
        json_text(writer, (struct text){words.data, size});
        words = (struct text){words.data + size + !!comma, words.size - size - !!comma};
    }
    json_array_end(writer);
}

static void write_kbit(struct json_writer *writer, int64_t kbit)
{
    char text[32];
    const bool is_mbit = kbit % 1000 == 0;
    snprintf(text, sizeof(text), "%" PRId64 "%s", is_mbit ? kbit / 1000 : kbit,
             is_mbit ? "Mbit" : "kbit");
    json_string(writer, text);
}

static void write_field(struct json_writer *writer, const struct job_field *field, const char *base)
{
    const void *value = base + field->offset;
    char text[JOB_WISH_TEXT_SIZE];
    switch (field->kind) {
    case JOB_FIELD_NAME:
    case JOB_FIELD_WORD:
    case JOB_FIELD_DATA:
    case JOB_FIELD_SCRIPT:
        json_text(writer, *(const struct text *)value);
        return;
    case JOB_FIELD_INDEX:
        json_string(writer, field->choices[*(const int *)value]);
        return;
    case JOB_FIELD_U64:
    case JOB_FIELD_NODES:
        if (field->choices && *(const uint64_t *)value == UINT64_MAX)
            json_string(writer, field->choices[0]);
        else
            json_u64(writer, *(const uint64_t *)value);
        return;
    case JOB_FIELD_BOOL:
        json_raw(writer, *(const bool *)value ? TEXT("true") : TEXT("false"));
        return;
    case JOB_FIELD_MILLI:
        json_raw(writer, text_of(job_milli_format(*(const int64_t *)value, text)));
        return;
    case JOB_FIELD_BANDWIDTH:
        write_kbit(writer, *(const int64_t *)value);
        return;
    case JOB_FIELD_WORDS:
        write_words(writer, *(const struct text *)value);
        return;
    case JOB_FIELD_ACCELERATORS:
        json_string(writer, job_accelerators_format(value, text));
        return;
    case JOB_FIELD_START:
        json_string(writer, job_start_format(value, text));
        return;
    case JOB_FIELD_DOUBLE:
        json_double(writer, *(const double *)value);
        return;
    case JOB_FIELD_DURATION:
        write_duration(writer, *(const int64_t *)value);
        return;
    case JOB_FIELD_CREDITS:
        format_decimal(*(const int64_t *)value, "", text, sizeof(text));
        json_string(writer, text);
        return;
    case JOB_FIELD_CPUS: {
        const struct job_amount *amount = value;
        format_decimal(amount->value * 1000, amount->is_at_least ? "+" : "", text, sizeof(text));
        json_string(writer, text);
        return;
    }
    case JOB_FIELD_MEMORY: {
        const struct job_amount *amount = value;
        write_bytes(writer, amount->value, amount->is_at_least ? "+" : "");
        return;
    }
    case JOB_FIELD_SIZE:
        write_bytes(writer, *(const int64_t *)value, "");
        return;
    case JOB_FIELD_HASH: {
        char hex[2 * JOB_HASH_SIZE + 1];
        text_hex_encode(value, JOB_HASH_SIZE, hex);
        json_string(writer, hex);
        return;
    }
    case JOB_FIELD_OBJECT:
        job_table_write(writer, field->table, value);
        return;
    case JOB_FIELD_LIST:
        write_list(writer, field, base);
        return;
    case JOB_FIELD_ENVS:
        write_envs(writer, field, base);
        return;
    case JOB_FIELD_MOUNTS:
        job_write_mounts(writer, *(const struct job_mount *const *)value,
                         *(const size_t *)(const void *)(base + field->count_offset));
        return;
    case JOB_FIELD_LATER:
        break;
    }
    UNREACHABLE("a field that is never written");
}

void job_table_write(struct json_writer *writer, const struct job_table *table, const void *value)
{
    json_object_begin(writer);
    for (size_t i = 0; i < table->field_count; i++) {
        const struct job_field *field = &table->fields[i];
        if (field->is_kept_back || !is_given(field, value))
            continue;
        json_key(writer, field->name);
        write_field(writer, field, value);
    }
    json_object_end(writer);
}

/* ---- JSON Schema ------------------------------------------------------------------------------
 */

static void write_types(struct json_writer *writer, bool takes_number, const char *pattern)
{
    json_key(writer, "type");
    if (takes_number) {
        json_array_begin(writer);
        json_string(writer, "string");
        json_string(writer, "number");
        json_array_end(writer);
    } else {
        json_string(writer, "string");
    }
    if (pattern)
        json_field_string(writer, "pattern", pattern);
}

static void write_choices(struct json_writer *writer, const struct job_field *field)
{
    json_key(writer, "enum");
    json_array_begin(writer);
    for (size_t i = 0; field->choices[i]; i++)
        json_string(writer, field->choices[i]);
    json_array_end(writer);
}

/* A name or a path. */
static void write_data(struct json_writer *writer, const struct job_field *field)
{
    json_key(writer, "anyOf");
    json_array_begin(writer);
    json_object_begin(writer);
    write_choices(writer, field);
    json_object_end(writer);
    json_object_begin(writer);
    json_field_string(writer, "type", "string");
    json_field_string(writer, "pattern", "[./]");
    json_object_end(writer);
    json_array_end(writer);
}

static void write_range(struct json_writer *writer, const struct job_field *field)
{
    json_field_i64(writer, "minimum", field->minimum);
    json_field_i64(writer, "maximum", field->maximum);
}

static void write_table_schema(struct json_writer *writer, const struct job_table *table);

static void write_default(struct json_writer *writer, const struct job_field *field)
{
    if (!field->default_text)
        return;
    json_key(writer, "default");
    if (field->kind == JOB_FIELD_U64 || field->kind == JOB_FIELD_DOUBLE ||
        field->kind == JOB_FIELD_NODES || field->kind == JOB_FIELD_BOOL)
        json_raw(writer, text_of(field->default_text));
    else
        json_string(writer, field->default_text);
}

static void write_one_of_begin(struct json_writer *writer)
{
    json_key(writer, "anyOf");
    json_array_begin(writer);
    json_object_begin(writer);
}

static void write_one_of_next(struct json_writer *writer)
{
    json_object_end(writer);
    json_object_begin(writer);
}

static void write_one_of_end(struct json_writer *writer)
{
    json_object_end(writer);
    json_array_end(writer);
}

static void write_whole(struct json_writer *writer, const struct job_field *field)
{
    json_field_string(writer, "type", "integer");
    write_range(writer, field);
}

static void write_nodes(struct json_writer *writer, const struct job_field *field)
{
    write_one_of_begin(writer);
    write_whole(writer, field);
    write_one_of_next(writer);
    if (field->choices)
        json_field_string(writer, "const", field->choices[0]);
    else
        write_types(writer, false, "^[0-9]+ *\\.\\. *[0-9]+$");
    write_one_of_end(writer);
}

static void write_words_kind(struct json_writer *writer, const struct job_field *field)
{
    write_one_of_begin(writer);
    json_field_string(writer, "type", "array");
    json_key(writer, "items");
    json_object_begin(writer);
    write_types(writer, false, "^[^\\s,]+$");
    json_object_end(writer);
    write_one_of_next(writer);
    write_types(writer, false, "^[^\\s,]+$");
    json_field_i64(writer, "maxLength", field->maximum);
    write_one_of_end(writer);
}

static void write_accelerators(struct json_writer *writer)
{
    write_one_of_begin(writer);
    write_types(writer, true,
                "^([A-Za-z0-9._-]+|[0-9.]+ *[KMGTk]i?B\\+)(:[0-9.]+ *[KMGTk]i?B\\+)?(:[0-9.]+)?$");
    write_one_of_next(writer);
    json_field_string(writer, "type", "object");
    json_field_i64(writer, "minProperties", 1);
    json_field_i64(writer, "maxProperties", 1);
    write_one_of_end(writer);
}

static void write_envs_kind(struct json_writer *writer, const struct job_field *field)
{
    json_field_string(writer, "type", "object");
    json_field_i64(writer, "maxProperties", field->maximum);
    json_key(writer, "propertyNames");
    json_object_begin(writer);
    write_types(writer, false, "^[A-Za-z_][A-Za-z0-9_]*$");
    json_field_i64(writer, "maxLength", JOB_ENV_NAME_SIZE_MAX);
    json_object_end(writer);
    json_key(writer, "additionalProperties");
    json_object_begin(writer);
    if (field->is_kept_back) { /* without a value: that of the environment */
        write_one_of_begin(writer);
        json_field_string(writer, "type", "null");
        write_one_of_next(writer);
    }
    write_types(writer, true, NULL);
    json_field_i64(writer, "maxLength", JOB_ENV_VALUE_SIZE_MAX);
    if (field->is_kept_back)
        write_one_of_end(writer);
    json_object_end(writer);
}

static void write_kind(struct json_writer *writer, const struct job_field *field)
{
    switch (field->kind) {
    case JOB_FIELD_NAME:
        write_types(writer, false, "^[A-Za-z0-9][A-Za-z0-9._-]*$");
        json_field_i64(writer, "maxLength", field->maximum);
        return;
    case JOB_FIELD_WORD:
    case JOB_FIELD_INDEX:
        write_choices(writer, field);
        return;
    case JOB_FIELD_DATA:
        write_data(writer, field);
        return;
    case JOB_FIELD_U64:
        (field->choices ? write_nodes : write_whole)(writer, field);
        return;
    case JOB_FIELD_DOUBLE:
        json_field_string(writer, "type", "number");
        write_range(writer, field);
        return;
    case JOB_FIELD_DURATION:
        write_types(writer, true, "^[0-9.]+ *(ms|s|m|h|d)?([0-9.]+ *(ms|s|m|h|d))*$");
        return;
    case JOB_FIELD_CREDITS:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *(credits?)?$");
        return;
    case JOB_FIELD_CPUS:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *%?\\+?$");
        return;
    case JOB_FIELD_MEMORY:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *([KMGT]iB|[kMGT]?B)?\\+?$");
        return;
    case JOB_FIELD_SIZE:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *([KMGT]iB|[kMGT]?B)?$");
        return;
    case JOB_FIELD_HASH:
        write_types(writer, false, "^[0-9a-f]{64}$");
        return;
    case JOB_FIELD_BOOL:
        json_field_string(writer, "type", "boolean");
        return;
    case JOB_FIELD_MILLI:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *%?$");
        return;
    case JOB_FIELD_BANDWIDTH:
        write_types(writer, true, "^[0-9]*\\.?[0-9]+ *([kMG]bit(/s)?|[kMG]bps)?$");
        return;
    case JOB_FIELD_WORDS:
        write_words_kind(writer, field);
        return;
    case JOB_FIELD_NODES:
        write_nodes(writer, field);
        return;
    case JOB_FIELD_ACCELERATORS:
        write_accelerators(writer);
        return;
    case JOB_FIELD_START:
        write_types(writer, false, "^(now|(by|cheapest +before) +[0-9].*)$");
        return;
    case JOB_FIELD_SCRIPT:
        write_types(writer, true, NULL);
        json_field_i64(writer, "maxLength", field->maximum);
        return;
    case JOB_FIELD_ENVS:
        write_envs_kind(writer, field);
        return;
    case JOB_FIELD_MOUNTS:
        job_write_mounts_kind(writer, field);
        return;
    case JOB_FIELD_OBJECT:
        write_table_schema(writer, field->table);
        return;
    case JOB_FIELD_LIST:
        json_field_string(writer, "type", "array");
        json_field_i64(writer, "maxItems", field->maximum);
        json_key(writer, "items");
        json_object_begin(writer);
        write_table_schema(writer, field->table);
        json_object_end(writer);
        return;
    case JOB_FIELD_LATER:
        json_key(writer, "not");
        json_object_begin(writer);
        json_object_end(writer);
        return;
    }
}

/* The members of an object schema, without its braces. */
static void write_table_schema(struct json_writer *writer, const struct job_table *table)
{
    json_field_string(writer, "type", "object");
    json_field_bool(writer, "additionalProperties", false);
    json_key(writer, "required");
    json_array_begin(writer);
    for (size_t i = 0; i < table->field_count; i++)
        if (table->fields[i].is_required)
            json_string(writer, table->fields[i].name);
    json_array_end(writer);
    json_key(writer, "properties");
    json_object_begin(writer);
    for (size_t i = 0; i < table->field_count; i++) {
        const struct job_field *field = &table->fields[i];
        json_key(writer, field->name);
        json_object_begin(writer);
        if (field->kind == JOB_FIELD_LATER)
            json_field_string(writer, "description",
                              field->help ? field->help : "Not supported yet.");
        else if (field->help)
            json_field_string(writer, "description", field->help);
        write_kind(writer, field);
        write_default(writer, field);
        json_object_end(writer);
    }
    json_object_end(writer);
}

void job_table_write_schema(struct json_writer *writer, const struct job_table *table)
{
    json_object_begin(writer);
    json_field_string(writer, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_field_string(writer, "title", "Souk job");
    write_table_schema(writer, table);
    json_object_end(writer);
}
