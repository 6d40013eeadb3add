#include "source/hdfs_answer.h"

#include "base/json_schema.h"

enum { NAME_SIZE_MAX = 1024, EXCEPTION_SIZE_MAX = 128 };

static const char *const types[] = {"FILE", "DIRECTORY", "SYMLINK", NULL};
enum { TYPE_FILE, TYPE_DIRECTORY };

struct status {
    uint64_t length;
    int64_t modification_time;
    int type;
    struct text path_suffix;
};

static const struct json_field status_fields[] = {
    {"length", JSON_U64, offsetof(struct status, length), .is_required = true},
    {"modificationTime", JSON_I64, offsetof(struct status, modification_time)},
    {"type", JSON_CHOICE, offsetof(struct status, type), .is_required = true, .choices = types},
    {"pathSuffix", JSON_TEXT, offsetof(struct status, path_suffix), .size_max = NAME_SIZE_MAX},
};
static const struct json_schema status_schema =
    JSON_SCHEMA_LENIENT("FileStatus", status_fields, struct status);

struct one {
    struct status status;
};
static const struct json_field one_fields[] = {
    {"FileStatus", JSON_OBJECT, offsetof(struct one, status), .is_required = true,
     .schema = &status_schema},
};
static const struct json_schema one_schema = JSON_SCHEMA_LENIENT("answer", one_fields, struct one);

struct list {
    struct json_array statuses;
};
static const struct json_field list_fields[] = {
    {"FileStatus", JSON_ARRAY, offsetof(struct list, statuses), .is_required = true,
     .size_max = HDFS_LIST_MAX, .schema = &status_schema},
};
static const struct json_schema list_schema =
    JSON_SCHEMA_LENIENT("FileStatuses", list_fields, struct list);
struct listing {
    struct list list;
};
static const struct json_field listing_fields[] = {
    {"FileStatuses", JSON_OBJECT, offsetof(struct listing, list), .is_required = true,
     .schema = &list_schema},
};
static const struct json_schema listing_schema =
    JSON_SCHEMA_LENIENT("answer", listing_fields, struct listing);

struct exception {
    struct text exception;
};
static const struct json_field exception_fields[] = {
    {"exception", JSON_TEXT, offsetof(struct exception, exception), .is_required = true,
     .size_max = EXCEPTION_SIZE_MAX},
};
static const struct json_schema exception_schema =
    JSON_SCHEMA_LENIENT("RemoteException", exception_fields, struct exception);
struct refusal {
    struct exception exception;
};
static const struct json_field refusal_fields[] = {
    {"RemoteException", JSON_OBJECT, offsetof(struct refusal, exception), .is_required = true,
     .schema = &exception_schema},
};
static const struct json_schema refusal_schema =
    JSON_SCHEMA_LENIENT("answer", refusal_fields, struct refusal);

static int read_answer(struct arena *arena, struct text json, const struct json_schema *schema,
                       void *out, struct error *error)
{
    if (json_read(arena, json, schema, out, error) == 0)
        return 0;
    error->code = ERROR_CORRUPT;
    return error_wrap(error, "the answer is not WebHDFS's");
}

static struct hdfs_status status_of(const struct status *status)
{
    return (struct hdfs_status){.length = status->length,
                                .modification_time = status->modification_time,
                                .is_folder = status->type == TYPE_DIRECTORY,
                                .name = status->path_suffix};
}

int hdfs_answer_status(struct arena *arena, struct text json, struct hdfs_status *out_status,
                       struct error *error)
{
    struct one one = {0};
    if (read_answer(arena, json, &one_schema, &one, error) < 0)
        return -1;
    *out_status = status_of(&one.status);
    return 0;
}

int hdfs_answer_list(struct arena *arena, struct text json, const struct hdfs_status **out_list,
                     size_t *out_count, struct error *error)
{
    struct listing listing = {0};
    if (read_answer(arena, json, &listing_schema, &listing, error) < 0)
        return -1;
    const struct status *statuses = listing.list.statuses.items;
    const size_t count = listing.list.statuses.count;
    struct hdfs_status *list = arena_alloc(arena, (count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = status_of(&statuses[i]);
    *out_list = list;
    *out_count = count;
    return 0;
}

struct text hdfs_answer_exception(struct arena *arena, struct text json)
{
    struct refusal refusal = {0};
    struct error error;
    if (json_read(arena, json, &refusal_schema, &refusal, &error) < 0 ||
        !text_is_plain(refusal.exception.exception))
        return (struct text){0};
    return refusal.exception.exception;
}
