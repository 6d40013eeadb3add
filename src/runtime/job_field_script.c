/* Fields with the borrower's own words: scripts and variables of the environment. */
#include "runtime/job_reader_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int job_read_script(struct job_reader *reader, const struct job_field *field,
                    const struct job_node *node, const struct job_place *place, struct text *out)
{
    if (node->value.size > (size_t)field->maximum)
        return REFUSE(reader, node, place, "is longer than %" PRId64 " bytes", field->maximum);
    if (memchr(node->value.data, '\0', node->value.size))
        return REFUSE(reader, node, place, "must not contain a NUL character");
    *out = arena_copy_text(reader->arena, node->value);
    return 0;
}

static bool is_env_name(struct text name)
{
    if (name.size == 0 || name.size > JOB_ENV_NAME_SIZE_MAX || isdigit((unsigned char)*name.data))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c >= 0x80 || (!isalnum(c) && c != '_'))
            return false;
    }
    return true;
}

static int compare_envs(const void *left, const void *right)
{
    const struct text a = ((const struct job_env *)left)->name;
    const struct text b = ((const struct job_env *)right)->name;
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* "${NAME}", or nothing where the variable has the secret's own name; empty: it is a value. Only
 * job files name variables: JSON, whose nodes have no lines, comes with the values themselves. */
static struct text source_of(const struct job_node *node)
{
    const struct text value = node->value;
    if (!node->is_quoted && (!value.size || text_is(value, "null") || text_is(value, "~")))
        return node->key;
    if (node->line == 0 || value.size < 4 || memcmp(value.data, "${", 2) != 0 ||
        value.data[value.size - 1] != '}')
        return (struct text){0};
    const struct text name = {value.data + 2, value.size - 3};
    return is_env_name(name) ? name : (struct text){0};
}

static int read_env(struct job_reader *reader, const struct job_field *field,
                    const struct job_node *node, const struct job_place *place, struct job_env *out)
{
    if (!is_env_name(node->key))
        return REFUSE(reader, node, place,
                      "\"%.*s\" is no name of a variable: letters, digits and '_', not a digit "
                      "first",
                      (int)(node->key.size < 40 ? node->key.size : 40), node->key.data);
    const struct text prefix = TEXT("SOUK_");
    if (node->key.size >= prefix.size && !memcmp(node->key.data, prefix.data, prefix.size))
        return REFUSE(reader, node, place, "names that begin with SOUK_ are Souk's own");
    if (node->kind != JOB_NODE_SCALAR)
        return REFUSE(reader, node, place, "\"%.*s\" must be a single value", (int)node->key.size,
                      node->key.data);
    const bool is_null =
        !node->is_quoted && (text_is(node->value, "null") || text_is(node->value, "~"));
    if (is_null && !field->is_kept_back)
        return REFUSE(reader, node, place,
                      "\"%.*s\" has no value: write \"\" for an empty one, \"null\" for the word",
                      (int)node->key.size, node->key.data);
    const struct job_field value = {.maximum = JOB_ENV_VALUE_SIZE_MAX};
    out->name = arena_copy_text(reader->arena, node->key);
    if (field->is_kept_back)
        out->source = arena_copy_text(reader->arena, source_of(node));
    return out->source.size ? 0 : job_read_script(reader, &value, node, place, &out->value);
}

int job_read_envs(struct job_reader *reader, const struct job_field *field,
                  const struct job_node *node, const struct job_place *place, char *base)
{
    if (node->kind != JOB_NODE_MAPPING)
        return REFUSE(reader, node, place, "must be a mapping of names to values");
    size_t count = 0;
    for (const struct job_node *child = node->first_child; child; child = child->next)
        count++;
    if (count > (size_t)field->maximum)
        return REFUSE(reader, node, place, "has more than %" PRId64 " items", field->maximum);
    struct job_env *envs = arena_alloc(reader->arena, (count + 1) * sizeof(*envs));
    memset(envs, 0, (count + 1) * sizeof(*envs));
    size_t index = 0;
    for (const struct job_node *child = node->first_child; child; child = child->next)
        if (read_env(reader, field, child, place, &envs[index++]) < 0 && !reader->more)
            return -1;
    if (reader->has_failed)
        return -1;
    qsort(envs, count, sizeof(*envs), compare_envs);
    *(void **)(void *)(base + field->offset) = envs;
    *(size_t *)(void *)(base + field->count_offset) = count;
    return 0;
}
