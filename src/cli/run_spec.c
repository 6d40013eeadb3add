#include "cli/run_spec.h"

#include "base/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

void run_spec_quote(struct buffer *script, const char *word)
{
    buffer_append_string(script, "'");
    for (const char *at = word; *at; at++)
        if (*at == '\'')
            buffer_append_string(script, "'\\''");
        else
            buffer_append(script, at, 1);
    buffer_append_string(script, "'");
}

static void append_script(struct buffer *script, const struct option_list *command)
{
    if (command->count == 0)
        return;
    if (command->count == 1) {
        buffer_append_string(script, command->items[0]);
        return;
    }
    buffer_append_string(script, "exec");
    for (size_t i = 0; i < command->count; i++) {
        buffer_append_string(script, " ");
        run_spec_quote(script, command->items[i]);
    }
}

/* NAME=value, of a shell script. */
static bool is_assignment(const char *word)
{
    size_t size = 0;
    while (isalnum((unsigned char)word[size]) || word[size] == '_')
        size++;
    return size > 0 && word[size] == '=';
}

/* What a script begins with that is no program. */
static bool is_of_the_shell(const char *word)
{
    static const char *const words[] = {
        "for",  "while", "until",  "if",     "case",  "trap",  "set",     "export", "cd",
        "eval", "exec",  "ulimit", "umask",  "unset", "local", "shift",   "read",   "readonly",
        "wait", "exit",  "return", "source", "alias", "time",  "function"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return is_assignment(word);
}

/* The last part of the command's path, as far as it may stand in a name. Of a script that is the
 * path of its first command, where it begins with one: slashes further on are arguments'. */
static const char *name_of(struct arena *arena, const struct run_options *wanted)
{
    if (wanted->name)
        return wanted->name;
    const char *command = wanted->command.count ? wanted->command.items[0] : wanted->image;
    command += strspn(command, " \t\n");
    const char *word = arena_format(arena, "%.*s", (int)strcspn(command, " \t\n;|&<>()"), command);
    if (wanted->command.count == 1 && is_of_the_shell(word))
        return "command";
    const char *slash = strrchr(word, '/');
    char *name = arena_format(arena, "%.40s", slash ? slash + 1 : word);
    size_t size = 0;
    while (isalnum((unsigned char)name[size]) || (size && strchr("-_.", name[size]) && name[size]))
        size++;
    name[size] = '\0';
    return size ? name : "command";
}

static int write_envs(struct json_writer *writer, struct arena *arena,
                      const struct option_list *envs, struct error *error)
{
    json_key(writer, "envs");
    json_object_begin(writer);
    for (size_t i = 0; i < envs->count; i++) {
        struct text name, value = {0};
        if (!text_cut(text_of(envs->items[i]), '=', &name, &value))
            return error_set(error, ERROR_INVALID, "--env: write it as NAME=VALUE, not \"%.60s\"",
                             envs->items[i]);
        json_field_text(writer, arena_copy_string(arena, name), value);
    }
    json_object_end(writer);
    return 0;
}

static void write_resources(struct json_writer *writer, const struct run_options *wanted)
{
    json_key(writer, "resources");
    json_object_begin(writer);
    json_field_string(writer, "cpus", wanted->cpus);
    json_field_string(writer, "memory", wanted->memory);
    json_field_string(writer, "disk_size", wanted->disk);
    json_field_string(writer, "network", wanted->network);
    if (wanted->gpus)
        json_field_string(writer, "accelerators", wanted->gpus);
    if (wanted->image)
        json_field_string(writer, "image_id", wanted->image);
    json_key(writer, "labels");
    json_array_begin(writer);
    for (size_t i = 0; i < wanted->labels.count; i++)
        json_string(writer, wanted->labels.items[i]);
    json_array_end(writer);
    json_object_end(writer);
}

static void write_market(struct json_writer *writer, struct arena *arena,
                         const struct run_options *wanted)
{
    json_key(writer, "market");
    json_object_begin(writer);
    json_field_string(writer, "max_run_time",
                      arena_format(arena, "%" PRId64 "ms", wanted->max_run_time_ms));
    json_field_string(writer, "start", wanted->start);
    json_field_bool(writer, "spare", wanted->is_spare);
    if (wanted->max_rtt_ms)
        json_field_string(writer, "max_rtt",
                          arena_format(arena, "%" PRId64 "ms", wanted->max_rtt_ms));
    const struct {
        const char *name;
        int64_t micro;
    } limits[] = {{"max_total_cost", wanted->max_total_cost_micro},
                  {"max_hourly_cost", wanted->max_hourly_cost_micro}};
    for (size_t i = 0; i < 2; i++)
        if (limits[i].micro)
            json_field_string(writer, limits[i].name,
                              arena_format(arena, "%" PRId64 ".%06" PRId64,
                                           limits[i].micro / 1000000, limits[i].micro % 1000000));
    json_object_end(writer);
}

int run_spec_make(struct arena *arena, const struct run_options *wanted, struct job_spec *out_spec,
                  struct error *error)
{
    struct buffer json AUTO_BUFFER, script AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    buffer_init(&script, JOB_SCRIPT_SIZE_MAX);
    append_script(&script, &wanted->command);
    if (buffer_check(&script, error) < 0)
        return error_wrap(error, "the command is too long; put it into a script under --files");
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    json_field_string(&writer, "name", name_of(arena, wanted));
    json_field_string(&writer, "runtime", wanted->runtime);
    json_field_u64(&writer, "num_nodes", wanted->nodes);
    if (wanted->command.count > 0)
        json_field_text(&writer, "run", buffer_text(&script));
    if (wanted->files)
        json_field_string(&writer, "workdir", wanted->files);
    write_resources(&writer, wanted);
    write_market(&writer, arena, wanted);
    if (write_envs(&writer, arena, &wanted->envs, error) < 0)
        return -1;
    json_object_end(&writer);
    if (buffer_check(&json, error) < 0)
        return -1;
    return job_spec_read_new(arena, buffer_text(&json), out_spec, error);
}
