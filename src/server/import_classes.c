#include "server/import_classes.h"

#include "base/scope.h"
#include "train/idx_reader.h"
#include "train/import_columns.h"

static int count_labels(struct text bytes, struct import_classes *classes, struct error *error)
{
    struct idx_header header;
    const uint8_t *data = (const uint8_t *)bytes.data;
    if (!bytes.size)
        return 0;
    if (idx_parse_header(data, bytes.size, &header, error) < 0)
        return -1;
    const size_t size = header.record_size;
    if (header.rank != 1 || header.element == IDX_FLOAT || size != idx_element_size(header.element))
        return error_set(error, ERROR_CORRUPT, "its labels are no classes");
    if (header.sizes[0] > (bytes.size - header.header_size) / size)
        return error_set(error, ERROR_CORRUPT, "its labels are cut short");
    for (uint32_t i = 0; i < header.sizes[0]; i++) {
        const uint8_t *record = data + header.header_size + i * size;
        const int64_t label = header.element == IDX_BYTE ? *record : idx_int(record);
        if (label >= 0 && (uint64_t)label < classes->count)
            classes->items[label].records++;
    }
    return 0;
}

/* By their names, or by their numbers where they have none. */
static void name_classes(struct arena *arena, const struct import_columns *columns, uint64_t count,
                         struct import_classes *classes)
{
    const struct text *names = columns->classes.items;
    const uint64_t all = columns->classes.count ? columns->classes.count : count;
    classes->count = all < IMPORT_CLASSES_SHOWN ? (size_t)all : IMPORT_CLASSES_SHOWN;
    for (size_t i = 0; i < classes->count; i++)
        classes->items[i].name = columns->classes.count ? arena_copy_text(arena, names[i])
                                                        : text_of(arena_format(arena, "%zu", i));
}

int import_classes_read(struct arena *arena, const struct import_labels *labels,
                        struct import_classes *out_classes, struct error *error)
{
    AUTO(arena) struct arena *scratch = arena_new(0);
    struct import_columns columns;
    struct import_classes classes = {.count = 0};
    if (labels->columns.size > IMPORT_COLUMNS_SIZE_MAX)
        return error_set(error, ERROR_CORRUPT, "its columns are more than any reader writes");
    if (import_columns_read(scratch, labels->columns, &columns, error) < 0)
        return -1;
    if (text_is(columns.target, import_target_name(IMPORT_CLASS))) {
        name_classes(arena, &columns, labels->classes, &classes);
        if (count_labels(labels->train, &classes, error) < 0 ||
            count_labels(labels->test, &classes, error) < 0)
            return -1;
    }
    *out_classes = classes;
    return 0;
}

void import_classes_write(struct json_writer *writer, const struct import_classes *classes)
{
    json_array_begin(writer);
    for (size_t i = 0; i < classes->count; i++) {
        json_object_begin(writer);
        json_field_text(writer, "name", classes->items[i].name);
        json_field_u64(writer, "records", classes->items[i].records);
        json_object_end(writer);
    }
    json_array_end(writer);
}
