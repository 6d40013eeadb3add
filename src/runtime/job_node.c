#include "base/assert.h"
#include "base/json.h"
#include "runtime/job_field_internal.h"

#include <json.h>

struct job_node *job_node_append(struct arena *arena, struct job_node *parent,
                                 enum job_node_kind kind)
{
    struct job_node *node = arena_alloc(arena, sizeof(*node));
    node->kind = kind;
    if (!parent)
        return node;
    if (parent->last_child)
        parent->last_child->next = node;
    else
        parent->first_child = node;
    parent->last_child = node;
    return node;
}

const struct job_node *job_node_find(const struct job_node *mapping, struct text key)
{
    for (const struct job_node *child = mapping->first_child; child; child = child->next)
        if (text_equal(child->key, key))
            return child;
    return NULL;
}

struct builder {
    struct arena *arena;
    size_t node_count;
    size_t key_count;
    struct error *error;
};

/* Depth is bounded by the tokener. */
static int build(struct builder *builder, struct job_node *parent, struct text key,
                 json_object *value, struct job_node **out_node)
{
    if (++builder->node_count > JOB_NODES_IN_TREE_MAX)
        return error_set(builder->error, ERROR_INVALID, "more than %d values",
                         JOB_NODES_IN_TREE_MAX);
    const bool is_object = json_object_is_type(value, json_type_object);
    const bool is_array = json_object_is_type(value, json_type_array);
    struct job_node *node = job_node_append(builder->arena, parent,
                                            is_object  ? JOB_NODE_MAPPING
                                            : is_array ? JOB_NODE_SEQUENCE
                                                       : JOB_NODE_SCALAR);
    node->key = arena_copy_text(builder->arena, key);
    *out_node = node;
    struct job_node *child;
    if (is_object) {
        json_object_object_foreach(value, name, member)
        {
            builder->key_count++;
            if (build(builder, node, text_of(name), member, &child) < 0)
                return -1;
        }
        return 0;
    }
    if (is_array) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            if (build(builder, node, (struct text){0}, json_object_array_get_idx(value, i),
                      &child) < 0)
                return -1;
        return 0;
    }
    node->is_quoted = json_object_is_type(value, json_type_string);
    /* A number keeps the digits it was written with: 0.1 stays 0.1. */
    const char *text = value ? json_object_get_string(value) : "null";
    const size_t size = node->is_quoted ? (size_t)json_object_get_string_len(value) : strlen(text);
    node->value = arena_copy_text(builder->arena, (struct text){text, size});
    return 0;
}

int job_node_read_json(struct arena *arena, struct text json, struct job_node **out_root,
                       struct error *error)
{
    if (json.size > JOB_SPEC_SIZE_MAX)
        return error_set(error, ERROR_INVALID, "longer than %d bytes", JOB_SPEC_SIZE_MAX);
    if (!text_is_utf8(json)) /* json-c takes some that is none */
        return error_set(error, ERROR_INVALID, "JSON is not valid UTF-8 text");
    json_tokener *tokener = json_tokener_new_ex(JOB_DEPTH_MAX);
    ASSERT(tokener);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    json_object *root = json_tokener_parse_ex(tokener, json.data, (int)json.size);
    const enum json_tokener_error failure = json_tokener_get_error(tokener);
    const size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    int result = 0;
    if (failure == json_tokener_continue)
        result = error_set(error, ERROR_INVALID, "JSON ends too early, at byte %zu", end);
    else if (failure != json_tokener_success)
        result = error_set(error, ERROR_INVALID, "JSON is wrong at byte %zu: %s", end,
                           json_tokener_error_desc(failure));
    struct builder builder = {.arena = arena, .error = error};
    if (result == 0)
        result = build(&builder, NULL, (struct text){0}, root, out_root);
    struct text repeated;
    if (result == 0 && json_count_keys(json, &repeated) != builder.key_count)
        result = error_set(error, ERROR_INVALID, "field \"%.*s\" is there twice",
                           (int)repeated.size, repeated.data);
    json_object_put(root);
    return result;
}
