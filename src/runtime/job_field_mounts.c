/* Field file_mounts: a mapping of targets to sources, {data: s3://bucket/rows/}, or to more words
 * about them, {data: {source: ./rows, shard: true}}. */
#include "runtime/job_reader_internal.h"
#include "runtime/mount_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "~/data/" and "./data" are "data". */
static struct text plain_target(struct text target)
{
    if (text_starts_with(target, TEXT("~/")) || text_starts_with(target, TEXT("./")))
        target = (struct text){target.data + 2, target.size - 2};
    while (target.size && target.data[target.size - 1] == '/')
        target.size--;
    return target;
}

static int read_more(struct job_reader *reader, const struct job_node *node,
                     const struct job_place *place, struct job_mount *out)
{
    const struct job_field path = {.maximum = JOB_MOUNT_SOURCE_SIZE_MAX};
    const struct job_field flag = {.kind = JOB_FIELD_BOOL};
    for (const struct job_node *child = node->first_child; child; child = child->next) {
        const struct job_place inner = {place, text_is(child->key, "shard") ? "shard" : "source",
                                        0};
        const bool is_source = text_is(child->key, "source");
        if (!is_source && !text_is(child->key, "shard"))
            return REFUSE(reader, child, place, "\"%.*s\" is unknown; it may have source and shard",
                          (int)(child->key.size < 40 ? child->key.size : 40), child->key.data);
        if (child->kind != JOB_NODE_SCALAR)
            return REFUSE(reader, child, &inner, "must be a single value");
        if ((is_source ? job_read_script(reader, &path, child, &inner, &out->source)
                       : job_read_scalar(reader, &flag, child, &inner, (char *)&out->shard)) < 0)
            return -1;
    }
    return 0;
}

static int read_mount(struct job_reader *reader, const struct job_node *node,
                      const struct job_place *place, struct job_mount *out)
{
    const struct job_field path = {.maximum = JOB_MOUNT_SOURCE_SIZE_MAX};
    const struct text target = plain_target(node->key);
    if (target.size > JOB_MOUNT_TARGET_SIZE_MAX || !mount_path_is_fine(target) ||
        target.data[0] == '~')
        return REFUSE(reader, node, place,
                      "\"%.*s\" is no place in the working folder: write data, or data/rows",
                      (int)(node->key.size < 60 ? node->key.size : 60), node->key.data);
    out->target = arena_copy_text(reader->arena, target);
    if (node->kind == JOB_NODE_MAPPING)
        return read_more(reader, node, place, out);
    if (node->kind != JOB_NODE_SCALAR || !node->value.size)
        return REFUSE(reader, node, place, "\"%.*s\" needs a source: a path or an address",
                      TEXT_ARGS(target));
    return job_read_script(reader, &path, node, place, &out->source);
}

static int compare(const void *left, const void *right)
{
    const struct text a = ((const struct job_mount *)left)->target;
    const struct text b = ((const struct job_mount *)right)->target;
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Where both are, or one lies in the other. */
static bool is_within(struct text target, struct text other)
{
    return text_equal(target, other) ||
           (text_starts_with(target, other) && target.size > other.size &&
            target.data[other.size] == '/');
}

int job_read_mounts(struct job_reader *reader, const struct job_field *field,
                    const struct job_node *node, const struct job_place *place, char *base)
{
    if (node->kind != JOB_NODE_MAPPING)
        return REFUSE(reader, node, place, "must be a mapping of targets to sources");
    size_t count = 0;
    for (const struct job_node *child = node->first_child; child; child = child->next)
        count++;
    if (count > (size_t)field->maximum)
        return REFUSE(reader, node, place, "has more than %" PRId64 " items", field->maximum);
    struct job_mount *mounts = arena_alloc(reader->arena, (count + 1) * sizeof(*mounts));
    memset(mounts, 0, (count + 1) * sizeof(*mounts));
    size_t index = 0;
    for (const struct job_node *child = node->first_child; child; child = child->next)
        if (read_mount(reader, child, place, &mounts[index++]) < 0 && !reader->more)
            return -1;
    if (reader->has_failed)
        return -1;
    qsort(mounts, count, sizeof(*mounts), compare);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (i != k && is_within(mounts[i].target, mounts[k].target))
                return REFUSE(reader, node, place, "\"%.*s\" lies in \"%.*s\"",
                              TEXT_ARGS(mounts[i].target), TEXT_ARGS(mounts[k].target));
    *(void **)(void *)(base + field->offset) = mounts;
    *(size_t *)(void *)(base + field->count_offset) = count;
    return 0;
}

void job_write_mounts(struct json_writer *writer, const struct job_mount *mounts, size_t count)
{
    json_object_begin(writer);
    for (size_t i = 0; i < count; i++) {
        char target[JOB_MOUNT_TARGET_SIZE_MAX + 1];
        const size_t size =
            mounts[i].target.size < sizeof(target) ? mounts[i].target.size : sizeof(target) - 1;
        memcpy(target, mounts[i].target.data, size);
        target[size] = '\0';
        json_key(writer, target);
        if (mounts[i].source.size && !mounts[i].shard) {
            json_text(writer, mounts[i].source);
            continue;
        }
        json_object_begin(writer);
        if (mounts[i].source.size)
            json_field_text(writer, "source", mounts[i].source);
        if (mounts[i].shard)
            json_field_bool(writer, "shard", true);
        json_object_end(writer);
    }
    json_object_end(writer);
}

static void write_source_kind(struct json_writer *writer)
{
    json_field_string(writer, "type", "string");
    json_field_i64(writer, "maxLength", JOB_MOUNT_SOURCE_SIZE_MAX);
}

void job_write_mounts_kind(struct json_writer *writer, const struct job_field *field)
{
    json_field_string(writer, "type", "object");
    json_field_i64(writer, "maxProperties", field->maximum);
    json_key(writer, "additionalProperties");
    json_object_begin(writer);
    json_key(writer, "anyOf");
    json_array_begin(writer);
    json_object_begin(writer);
    write_source_kind(writer);
    json_object_end(writer);
    json_object_begin(writer);
    json_field_string(writer, "type", "object");
    json_key(writer, "properties");
    json_object_begin(writer);
    json_key(writer, "source");
    json_object_begin(writer);
    write_source_kind(writer);
    json_object_end(writer);
    json_key(writer, "shard");
    json_object_begin(writer);
    json_field_string(writer, "type", "boolean");
    json_object_end(writer);
    json_object_end(writer);
    json_field_bool(writer, "additionalProperties", false);
    json_object_end(writer);
    json_array_end(writer);
    json_object_end(writer);
}
