/*
 * Runtime tensorflow: TF_CONFIG, by which tf.distribute finds the others.
 *
 * Without parameter servers all are workers (MultiWorkerMirroredStrategy). With them the first is
 * the chief, the last so many are parameter servers, and the others are workers
 * (ParameterServerStrategy): those serve for ever, so the job is done when the chief is.
 */
#include "base/buffer.h"
#include "base/json.h"
#include "runtime/launch.h"
#include "runtime/ports.h"

enum { CONFIG_SIZE_MAX = 64 << 10 };

struct task {
    const char *type;
    size_t first, count; /* of the members */
};

static void write_task(struct json_writer *writer, const struct launch_round *round,
                       const struct task *task)
{
    if (task->count == 0)
        return;
    json_key(writer, task->type);
    json_array_begin(writer);
    for (size_t i = task->first; i < task->first + task->count; i++) {
        char address[LAUNCH_ADDRESS_SIZE], target[LAUNCH_ADDRESS_SIZE + 8];
        snprintf(target, sizeof(target), "%s:%d",
                 launch_address(round->members[i].address, address), PORT_TENSORFLOW);
        json_string(writer, target);
    }
    json_array_end(writer);
}

static void tensorflow_write(struct arena *arena, const struct launch_round *round,
                             struct launch *out)
{
    const size_t chiefs = round->parameter_servers > 0;
    const size_t workers = round->member_count - chiefs - (size_t)round->parameter_servers;
    const struct task tasks[] = {
        {"chief", 0, chiefs},
        {"worker", chiefs, workers},
        {"ps", chiefs + workers, (size_t)round->parameter_servers},
    };
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CONFIG_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_key(&writer, "cluster");
    json_object_begin(&writer);
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++)
        write_task(&writer, round, &tasks[i]);
    json_object_end(&writer);
    json_key(&writer, "task");
    json_object_begin(&writer);
    for (size_t i = 0; i < sizeof(tasks) / sizeof(tasks[0]); i++) {
        if (round->own < tasks[i].first || round->own >= tasks[i].first + tasks[i].count)
            continue;
        json_field_string(&writer, "type", tasks[i].type);
        json_field_u64(&writer, "index", round->own - tasks[i].first);
    }
    json_object_end(&writer);
    json_object_end(&writer);
    out->variables[out->variable_count++] =
        arena_format(arena, "TF_CONFIG=" TEXT_FORMAT, TEXT_ARGS(buffer_text(&json)));
}

const struct launch_kind launch_tensorflow = {.name = "tensorflow",
                                              .label = "python3-tensorflow",
                                              .software = "TensorFlow",
                                              .write = tensorflow_write};
