#include "runtime/muster_message.h"

#include <string.h>

static const struct json_field rank_fields[] = {
    {"rank", JSON_U64, offsetof(struct muster_rank, rank), .is_required = true, .minimum = 0,
     .maximum = MUSTER_RANKS_MAX - 1},
    {"cores_milli", JSON_I64, offsetof(struct muster_rank, cores_milli), .is_required = true,
     .minimum = 1, .maximum = INT64_C(1000000000)},
    {"gpus_milli", JSON_I64, offsetof(struct muster_rank, gpus_milli), .minimum = 0,
     .maximum = 1000000, .is_zero_omitted = true},
    {"name", JSON_CHARS, offsetof(struct muster_rank, name), .is_required = true,
     .size_max = MUSTER_NAME_SIZE},
    {"rounds", JSON_U64, offsetof(struct muster_rank, rounds), .minimum = 0,
     .maximum = INT64_C(1000000000), .is_zero_omitted = true},
    {"is_running", JSON_BOOL, offsetof(struct muster_rank, is_running), .is_zero_omitted = true},
};
static const struct json_schema rank_schema = JSON_SCHEMA("rank", rank_fields, struct muster_rank);

#define FIELD(name_, kind_, member_)                                                               \
    (name_), (kind_), offsetof(struct muster_message, member_), .is_required = true
#define ROUND  FIELD("round", JSON_U64, round), .minimum = 0, .maximum = INT64_C(1000000000)
#define STATUS FIELD("status", JSON_I64, status), .minimum = 0, .maximum = 255
#define MEMBERS                                                                                    \
    FIELD("members", JSON_ARRAY, members), .size_max = MUSTER_RANKS_MAX, .schema = &rank_schema
#define ID FIELD("id", JSON_U64, id)

static const char *const kinds[] = {"join", "alive",  "exit",     "start", "stop",
                                    "end",  "launch", "launched", "done",  NULL};
#define KIND FIELD("kind", JSON_CHOICE, kind), .choices = kinds

static const struct json_field join_fields[] = {
    {KIND}, {FIELD("rank", JSON_OBJECT, rank), .schema = &rank_schema}};
static const struct json_field alive_fields[] = {{KIND}};
static const struct json_field exit_fields[] = {{KIND}, {ROUND}, {STATUS}};
static const struct json_field start_fields[] = {{KIND}, {ROUND}, {MEMBERS}};
static const struct json_field done_fields[] = {{KIND}, {MEMBERS}};
static const struct json_field stop_fields[] = {{KIND}, {ROUND}};
static const struct json_field end_fields[] = {{KIND}, {FIELD("is_ok", JSON_BOOL, is_ok)}};
static const struct json_field launch_fields[] = {
    {KIND},
    {ID},
    {FIELD("secret", JSON_HEX, secret), .size_max = MUSTER_SECRET_SIZE},
    {FIELD("host", JSON_TEXT, host), .size_max = 64},
    {FIELD("command", JSON_TEXT, command), .size_max = MUSTER_COMMAND_MAX}};
static const struct json_field launched_fields[] = {{KIND}, {ID}, {STATUS}};

#define SCHEMA(fields_) JSON_SCHEMA("message", fields_, struct muster_message)
static const struct json_schema schemas[] = {
    [MUSTER_MESSAGE_JOIN] = SCHEMA(join_fields),
    [MUSTER_MESSAGE_ALIVE] = SCHEMA(alive_fields),
    [MUSTER_MESSAGE_EXIT] = SCHEMA(exit_fields),
    [MUSTER_MESSAGE_START] = SCHEMA(start_fields),
    [MUSTER_MESSAGE_STOP] = SCHEMA(stop_fields),
    [MUSTER_MESSAGE_END] = SCHEMA(end_fields),
    [MUSTER_MESSAGE_LAUNCH] = SCHEMA(launch_fields),
    [MUSTER_MESSAGE_LAUNCHED] = SCHEMA(launched_fields),
    [MUSTER_MESSAGE_DONE] = SCHEMA(done_fields),
};

void muster_message_encode(const struct muster_message *message, struct buffer *out)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_write(&writer, &schemas[message->kind], message);
    buffer_append_byte(out, '\n');
}

/* The first member says by which schema the others are read. */
static int find_kind(struct text line)
{
    for (int i = 0; kinds[i]; i++) {
        char begin[32];
        const int size = snprintf(begin, sizeof(begin), "{\"kind\":\"%s\"", kinds[i]);
        if (line.size >= (size_t)size && memcmp(line.data, begin, (size_t)size) == 0)
            return i;
    }
    return -1;
}

int muster_message_decode(struct arena *arena, struct text line, struct muster_message *out,
                          struct error *error)
{
    const int kind = find_kind(line);
    memset(out, 0, sizeof(*out));
    if (line.size > MUSTER_LINE_MAX || kind < 0)
        return error_set(error, ERROR_INVALID, "not a message between ranks");
    if (json_read(arena, line, &schemas[kind], out, error) < 0)
        return -1;
    if (out->kind != kind)
        return error_set(error, ERROR_INVALID, "a message between ranks of two kinds");
    return 0;
}
