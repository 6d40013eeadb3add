#include "runtime/job_file.h"

#include "base/assert.h"
#include "runtime/job_field_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

enum { NAME_SHOWN_MAX = 80 };

struct parse {
    struct arena *arena;
    yaml_parser_t yaml;
    struct text source;
    const char *file_name;
    size_t node_count;
    struct error *error;
};

static int refuse_at(struct parse *parse, yaml_mark_t mark, const char *what)
{
    return error_set(parse->error, ERROR_INVALID, "%.*s:%zu:%zu: %s", NAME_SHOWN_MAX,
                     parse->file_name, mark.line + 1, mark.column + 1, what);
}

/* Errors of the reader (bad UTF-8) come with a byte offset only. */
static yaml_mark_t mark_of_offset(struct text source, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < source.size; i++) {
        mark.column++;
        if (source.data[i] == '\n') {
            mark.line++;
            mark.column = 0;
        }
    }
    return mark;
}

static bool is_tab_at(struct text source, yaml_mark_t mark)
{
    return mark.index < source.size && source.data[mark.index] == '\t';
}

static int refuse_yaml(struct parse *parse)
{
    const yaml_parser_t *yaml = &parse->yaml;
    if (yaml->error == YAML_READER_ERROR)
        return refuse_at(parse, mark_of_offset(parse->source, yaml->problem_offset),
                         "is not valid UTF-8 text");
    if (is_tab_at(parse->source, yaml->problem_mark))
        return refuse_at(parse, yaml->problem_mark, "a tab may not indent; use spaces");
    return refuse_at(parse, yaml->problem_mark,
                     yaml->problem ? yaml->problem : "is not valid YAML");
}

/* The event is the caller's to delete, also after a failure below. */
static int next_event(struct parse *parse, yaml_event_t *event)
{
    if (!yaml_parser_parse(&parse->yaml, event))
        return refuse_yaml(parse);
    return 0;
}

static const yaml_char_t *event_anchor(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.anchor;
    if (event->type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.anchor;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.anchor;
    return NULL;
}

static const yaml_char_t *event_tag(const yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        return event->data.scalar.tag;
    if (event->type == YAML_MAPPING_START_EVENT)
        return event->data.mapping_start.tag;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return event->data.sequence_start.tag;
    return NULL;
}

static int check_event(struct parse *parse, const yaml_event_t *event)
{
    if (event->type == YAML_ALIAS_EVENT || event_anchor(event))
        return refuse_at(parse, event->start_mark,
                         "anchors and aliases are not allowed; write the value out");
    if (event_tag(event))
        return refuse_at(parse, event->start_mark, "tags (!...) are not allowed");
    if (++parse->node_count > JOB_NODES_IN_TREE_MAX)
        return refuse_at(parse, event->start_mark, "the file has too many values");
    return 0;
}

static int build_value(struct parse *parse, struct job_node *parent, const yaml_event_t *event,
                       int depth, struct job_node **out_node);

/* Reads one key, whose event is `event`, and its value. */
static int build_member(struct parse *parse, struct job_node *mapping, const yaml_event_t *event,
                        int depth)
{
    if (check_event(parse, event) < 0)
        return -1;
    if (event->type != YAML_SCALAR_EVENT)
        return refuse_at(parse, event->start_mark, "a field's name must be plain text");
    const struct text key =
        arena_copy_text(parse->arena, (struct text){(const char *)event->data.scalar.value,
                                                    event->data.scalar.length});
    const struct job_node *earlier = job_node_find(mapping, key);
    if (earlier)
        return error_set(parse->error, ERROR_INVALID,
                         "%.*s:%zu:%zu: field \"%.*s\" is there twice; first in line %u",
                         NAME_SHOWN_MAX, parse->file_name, event->start_mark.line + 1,
                         event->start_mark.column + 1, (int)(key.size < 40 ? key.size : 40),
                         key.data, earlier->key_line);
    yaml_event_t value;
    if (next_event(parse, &value) < 0)
        return -1;
    struct job_node *node;
    const int result = build_value(parse, mapping, &value, depth, &node);
    yaml_event_delete(&value);
    if (result < 0)
        return -1;
    node->key = key;
    node->key_line = (unsigned)event->start_mark.line + 1;
    node->key_column = (unsigned)event->start_mark.column + 1;
    return 0;
}

static int build_children(struct parse *parse, struct job_node *node, int depth)
{
    const yaml_event_type_t end =
        node->kind == JOB_NODE_MAPPING ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    for (;;) {
        yaml_event_t event;
        if (next_event(parse, &event) < 0)
            return -1;
        const bool is_end = event.type == end;
        struct job_node *child;
        int result = 0;
        if (!is_end)
            result = node->kind == JOB_NODE_MAPPING
                         ? build_member(parse, node, &event, depth)
                         : build_value(parse, node, &event, depth, &child);
        yaml_event_delete(&event);
        if (result < 0 || is_end)
            return result;
    }
}

/* Depth is checked before descending, so the stack is bounded whatever the file. */
static int build_value(struct parse *parse, struct job_node *parent, const yaml_event_t *event,
                       int depth, struct job_node **out_node)
{
    if (check_event(parse, event) < 0)
        return -1;
    const enum job_node_kind kind = event->type == YAML_MAPPING_START_EVENT    ? JOB_NODE_MAPPING
                                    : event->type == YAML_SEQUENCE_START_EVENT ? JOB_NODE_SEQUENCE
                                                                               : JOB_NODE_SCALAR;
    struct job_node *node = job_node_append(parse->arena, parent, kind);
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    *out_node = node;
    if (kind == JOB_NODE_SCALAR) {
        ASSERT(event->type == YAML_SCALAR_EVENT);
        node->value =
            arena_copy_text(parse->arena, (struct text){(const char *)event->data.scalar.value,
                                                        event->data.scalar.length});
        node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        return 0;
    }
    if (depth + 1 >= JOB_DEPTH_MAX)
        return refuse_at(parse, event->start_mark, "is nested too deeply");
    return build_children(parse, node, depth + 1);
}

/* Takes one event and demands its type. */
static int expect(struct parse *parse, yaml_event_type_t type, const char *otherwise)
{
    yaml_event_t event;
    if (next_event(parse, &event) < 0)
        return -1;
    const bool is_right = event.type == type;
    const yaml_mark_t mark = event.start_mark;
    yaml_event_delete(&event);
    return is_right ? 0 : refuse_at(parse, mark, otherwise);
}

static int build_document(struct parse *parse, struct job_node **out_root)
{
    if (expect(parse, YAML_STREAM_START_EVENT, "is not YAML") < 0 ||
        expect(parse, YAML_DOCUMENT_START_EVENT, "the file is empty") < 0)
        return -1;
    yaml_event_t event;
    if (next_event(parse, &event) < 0)
        return -1;
    const int result = build_value(parse, NULL, &event, 0, out_root);
    yaml_event_delete(&event);
    if (result < 0)
        return -1;
    if (expect(parse, YAML_DOCUMENT_END_EVENT, "is not YAML") < 0)
        return -1;
    return expect(parse, YAML_STREAM_END_EVENT, "a second document is not allowed");
}

int job_file_parse(struct arena *arena, struct text yaml, const char *file_name,
                   struct job_spec *out_spec, struct buffer *more, struct error *error)
{
    struct parse parse = {.arena = arena, .source = yaml, .file_name = file_name, .error = error};
    if (yaml.size > JOB_SPEC_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "%.*s: is larger than %d bytes", NAME_SHOWN_MAX,
                         file_name, JOB_SPEC_SIZE_MAX);
    if (!yaml_parser_initialize(&parse.yaml))
        return error_set(error, ERROR_EXHAUSTED, "no memory to read \"%.*s\"", NAME_SHOWN_MAX,
                         file_name);
    yaml_parser_set_encoding(&parse.yaml, YAML_UTF8_ENCODING);
    /* libyaml takes no NULL, not even for nothing. */
    yaml_parser_set_input_string(&parse.yaml, (const unsigned char *)(yaml.size ? yaml.data : ""),
                                 yaml.size);
    struct job_node *root = NULL;
    const int result = build_document(&parse, &root);
    yaml_parser_delete(&parse.yaml);
    if (result < 0)
        return -1;
    return job_spec_read_new_tree(arena, root, file_name, out_spec, more, error);
}

int job_file_read(struct arena *arena, const char *path, struct job_spec *out_spec,
                  struct buffer *more, struct error *error)
{
    const bool is_input = !strcmp(path, "-");
    AUTO_FD int opened = -1;
    if (!is_input) {
        opened = open(path, O_RDONLY | O_CLOEXEC);
        if (opened < 0)
            return error_set_errno(error, errno, "open \"%.*s\"", NAME_SHOWN_MAX, path);
    }
    struct buffer content AUTO_BUFFER;
    buffer_init(&content, JOB_SPEC_SIZE_MAX + 1);
    while (!content.is_overflowed) {
        uint8_t block[8192];
        const ssize_t count = read(is_input ? STDIN_FILENO : opened, block, sizeof(block));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_set_errno(error, errno, "read \"%.*s\"", NAME_SHOWN_MAX, path);
        if (count == 0)
            break;
        buffer_append(&content, block, (size_t)count);
    }
    if (buffer_check(&content, error) < 0)
        return error_set(error, ERROR_INVALID, "%.*s: is larger than %d bytes", NAME_SHOWN_MAX,
                         path, JOB_SPEC_SIZE_MAX);
    return job_file_parse(arena, buffer_text(&content), is_input ? "standard input" : path,
                          out_spec, more, error);
}
