/* A spec as the job file that people would write, and what is wrong with one, taken apart. */
#include "base/assert.h"
#include "runtime/job_field_internal.h"
#include "runtime/job_file.h"
#include "runtime/job_secrets.h"

#include <ctype.h>
#include <string.h>

enum {
    LINE_MAX_SIZE = 100,
    WRITTEN_SIZE_MAX = 2 * JOB_SPEC_SIZE_MAX,
    SHORT_SIZE_MAX = 16 << 10, /* of what is read again for each field */
};

/* ---- Writing --------------------------------------------------------------------------------- */

/* Words that YAML readers take for something else than text. */
static bool is_reserved(struct text value)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on",
                                        "off",  "y",     "n",    "inf", "nan"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (value.size == strlen(words[i]) && strncasecmp(value.data, words[i], value.size) == 0)
            return true;
    return false;
}

/* Text that needs no quotes: it begins with a letter and has nothing that means something. */
static bool is_plain(struct text value)
{
    if (value.size == 0 || !isalpha((unsigned char)value.data[0]) || is_reserved(value))
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (!isalnum((unsigned char)value.data[i]) && !memchr("-_./+", value.data[i], 5))
            return false;
    return true;
}

/* Lines that can stand as they are below a "|". */
static bool is_block(struct text value)
{
    if (!memchr(value.data, '\n', value.size) || value.data[0] == ' ' || value.data[0] == '\n' ||
        value.data[0] == '\t' || !text_is_utf8(value))
        return false;
    if (value.size > 1 && value.data[value.size - 1] == '\n' && value.data[value.size - 2] == '\n')
        return false;
    for (size_t i = 0; i < value.size; i++) {
        const unsigned char c = (unsigned char)value.data[i];
        if ((c < ' ' && c != '\n' && c != '\t') || c >= 0x7f)
            return false;
    }
    return true;
}

static void indent(struct buffer *yaml, int depth)
{
    for (int i = 0; i < depth; i++)
        buffer_append_string(yaml, "  ");
}

static void write_block(struct buffer *yaml, struct text value, int depth)
{
    const bool has_end = value.data[value.size - 1] == '\n';
    struct text rest = has_end ? (struct text){value.data, value.size - 1} : value, line;
    buffer_append_string(yaml, has_end ? "|\n" : "|-\n");
    for (bool has_more = true; has_more;) {
        has_more = text_cut(rest, '\n', &line, &rest);
        if (line.size)
            indent(yaml, depth);
        buffer_append_text(yaml, line);
        buffer_append_string(yaml, "\n");
    }
}

/* Characters that JSON has as they are, and YAML refuses or takes for the end of a line. */
static bool is_foreign(uint32_t code)
{
    return (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || code == 0xfeff ||
           code == 0xfffe || code == 0xffff;
}

/* JSON's quotes are YAML's too. */
static void write_text(struct buffer *yaml, struct text value)
{
    if (is_plain(value)) {
        buffer_append_text(yaml, value);
        return;
    }
    struct buffer quoted AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&quoted, WRITTEN_SIZE_MAX);
    json_writer_init(&writer, &quoted);
    json_text(&writer, value);
    ASSERT(!quoted.is_overflowed); /* it is a part of the spec's JSON */
    for (struct text one, rest = buffer_text(&quoted); rest.size > 0;) {
        one = (struct text){rest.data, text_utf8_length(rest)};
        ASSERT(one.size > 0);
        if (is_foreign(text_code_point(one)))
            buffer_append_format(yaml, "\\u%04x", text_code_point(one));
        else
            buffer_append_text(yaml, one);
        rest = (struct text){rest.data + one.size, rest.size - one.size};
    }
}

static void write_scalar(struct buffer *yaml, const struct job_node *node)
{
    if (node->is_quoted)
        write_text(yaml, node->value);
    else
        buffer_append_text(yaml, node->value);
}

/* In one line: {name: sgd, lr: 0.01}. */
static void write_inline(struct buffer *yaml, const struct job_node *node)
{
    if (node->kind == JOB_NODE_SCALAR) {
        write_scalar(yaml, node);
        return;
    }
    const bool is_mapping = node->kind == JOB_NODE_MAPPING;
    const char *before = is_mapping ? "{" : "[";
    for (const struct job_node *child = node->first_child; child; child = child->next) {
        buffer_append_string(yaml, before);
        if (is_mapping) {
            write_text(yaml, child->key);
            buffer_append_string(yaml, ": ");
        }
        write_inline(yaml, child);
        before = ", ";
    }
    if (!node->first_child)
        buffer_append_string(yaml, before);
    buffer_append_string(yaml, is_mapping ? "}" : "]");
}

static void write_members(struct buffer *yaml, const struct job_node *mapping, int depth);

static bool has_blocks(const struct job_node *node)
{
    if (node->kind == JOB_NODE_SCALAR)
        return node->is_quoted && node->value.size && is_block(node->value);
    for (const struct job_node *child = node->first_child; child; child = child->next)
        if (has_blocks(child))
            return true;
    return false;
}

static bool fits_line(const struct job_node *node)
{
    struct buffer line AUTO_BUFFER;
    buffer_init(&line, WRITTEN_SIZE_MAX);
    write_inline(&line, node);
    return line.size <= LINE_MAX_SIZE && !has_blocks(node);
}

static void write_items(struct buffer *yaml, const struct job_node *sequence, int depth)
{
    for (const struct job_node *child = sequence->first_child; child; child = child->next) {
        indent(yaml, depth);
        buffer_append_string(yaml, "- ");
        write_inline(yaml, child);
        buffer_append_string(yaml, "\n");
    }
}

/* What follows "key:", with the end of the line. Of the outermost fields objects have a line for
 * each member. */
static void write_value(struct buffer *yaml, const struct job_node *node, int depth)
{
    const bool is_nested = node->kind != JOB_NODE_SCALAR && node->first_child;
    if (node->kind == JOB_NODE_SCALAR && node->is_quoted && node->value.size &&
        is_block(node->value)) {
        buffer_append_string(yaml, " ");
        write_block(yaml, node->value, depth + 1);
    } else if (is_nested && node->kind == JOB_NODE_MAPPING && (depth == 0 || !fits_line(node))) {
        buffer_append_string(yaml, "\n");
        write_members(yaml, node, depth + 1);
    } else if (is_nested && node->kind == JOB_NODE_SEQUENCE && !fits_line(node)) {
        buffer_append_string(yaml, "\n");
        write_items(yaml, node, depth);
    } else {
        buffer_append_string(yaml, " ");
        write_inline(yaml, node);
        buffer_append_string(yaml, "\n");
    }
}

static void write_members(struct buffer *yaml, const struct job_node *mapping, int depth)
{
    for (const struct job_node *child = mapping->first_child; child; child = child->next) {
        indent(yaml, depth);
        write_text(yaml, child->key);
        buffer_append_string(yaml, ":");
        write_value(yaml, child, depth);
    }
}

int job_file_write(struct arena *arena, const struct job_spec *spec, struct buffer *yaml,
                   struct error *error)
{
    struct buffer json AUTO_BUFFER;
    struct job_node *root = NULL;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    const struct job_spec named = job_secrets_named(arena, spec);
    job_spec_write(&named, &json);
    if (buffer_check(&json, error) < 0 ||
        job_node_read_json(arena, buffer_text(&json), &root, error) < 0)
        return -1;
    write_members(yaml, root, 0);
    return buffer_check(yaml, error);
}

/* ---- Only what was said ---------------------------------------------------------------------- */

static bool is_same_spec(const struct job_node *root, struct text whole)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer json AUTO_BUFFER;
    struct job_spec spec = {0};
    struct error refused;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (job_spec_read_tree(arena, root, NULL, &spec, NULL, &refused) < 0)
        return false;
    job_spec_write(&spec, &json);
    return text_equal(buffer_text(&json), whole);
}

/* Takes out every member without which the spec is read as the same: what a field is when nobody
 * says may depend on other fields, so the reader is asked. */
static void leave_out(struct job_node *mapping, const struct job_node *root, struct text whole)
{
    struct job_node **place = &mapping->first_child;
    mapping->last_child = NULL;
    while (*place) {
        struct job_node *child = *place;
        *place = child->next;
        if (is_same_spec(root, whole))
            continue;
        *place = child;
        if (child->kind == JOB_NODE_MAPPING)
            leave_out(child, root, whole);
        mapping->last_child = child;
        place = &child->next;
    }
}

int job_file_write_short(struct arena *arena, const struct job_spec *spec, struct buffer *yaml,
                         struct error *error)
{
    struct buffer json AUTO_BUFFER;
    struct job_node *root = NULL;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    const struct job_spec named = job_secrets_named(arena, spec);
    job_spec_write(&named, &json);
    if (buffer_check(&json, error) < 0 ||
        job_node_read_json(arena, buffer_text(&json), &root, error) < 0)
        return -1;
    if (json.size <= SHORT_SIZE_MAX)
        leave_out(root, root, buffer_text(&json));
    write_members(yaml, root, 0);
    return buffer_check(yaml, error);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

/* "12:" at the start of the text, which loses it. */
static bool take_number(struct text *text, uint32_t *out_number)
{
    struct text digits, rest;
    uint64_t number;
    struct error none;
    if (!text_cut(*text, ':', &digits, &rest) || text_parse_u64(digits, &number, &none) < 0 ||
        number > UINT32_MAX)
        return false;
    *out_number = (uint32_t)number;
    *text = rest;
    return true;
}

static bool is_field_path(struct text text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!isalnum((unsigned char)text.data[i]) && !strchr("_.[]", text.data[i]))
            return false;
    return text.size > 0;
}

struct job_mistake job_mistake_read(struct text line, const char *file_name)
{
    struct job_mistake mistake = {.text = line};
    struct text field, rest = line;
    const size_t name_size = strlen(file_name);
    if (text_starts_with(line, text_of(file_name)) && line.size > name_size &&
        line.data[name_size] == ':') {
        rest = (struct text){line.data + name_size + 1, line.size - name_size - 1};
        if (!take_number(&rest, &mistake.line) || !take_number(&rest, &mistake.column))
            mistake.line = 0;
        mistake.text = text_trim(rest);
    }
    if (text_cut(mistake.text, ':', &field, &rest) && is_field_path(field)) {
        mistake.field = field;
        mistake.text = text_trim(rest);
    }
    return mistake;
}

void job_mistake_write(struct json_writer *writer, const struct job_mistake *mistake)
{
    json_object_begin(writer);
    json_field_u64(writer, "line", mistake->line);
    json_field_u64(writer, "column", mistake->column);
    json_field_text(writer, "field", mistake->field);
    json_field_text(writer, "text", mistake->text);
    json_object_end(writer);
}
