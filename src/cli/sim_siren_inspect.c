/* What an agent is made of, and what it chooses on its way; of no world, as it may be of any. */
#include "base/json.h"
#include "cli/output.h"
#include "cli/sim_siren.h"
#include "cli/table.h"

#include <math.h>
#include <stdio.h>

enum { LOOKS = 6, JSON_BYTES_MAX = 1 << 16 };

struct look {
    double way_left; /* a share */
    uint32_t function_count, memory_mb;
};

/* A state on the way, as after an epoch of the centre's choice. */
static struct look look_at(const struct agent *agent, double way)
{
    double input[AGENT_INPUTS];
    for (int i = 0; i < AGENT_INPUTS; i++)
        input[i] = agent->scale.mean[i];
    input[0] = agent->scale.mean[0] * 2 * (1 - way);
    input[1] = way;
    input[8] = way;
    const struct agent_policy policy = agent_look(agent, input);
    const struct agent_wish wish = agent_wish(agent, policy.mean);
    return (struct look){
        .way_left = way,
        .function_count = (uint32_t)lround(fmin(fmax(wish.function_count, 1), EPOCH_FUNCTIONS_MAX)),
        .memory_mb = (uint32_t)lround(fmin(fmax(wish.memory_mb, 0), 1 << 20)),
    };
}

static int print_json(const struct agent *agent, const struct look *looks, struct error *error)
{
    const struct mlp_shape *shape = mlp_shape(agent->mlp);
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, JSON_BYTES_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_u64(&writer, "episodes", agent->episode_count);
    json_field_u64(&writer, "centre_functions", agent->centre.function_count);
    json_field_u64(&writer, "centre_memory_mb", agent->centre.memory_mb);
    json_field_double(&writer, "offset", agent->offset);
    json_field_u64(&writer, "parameters", mlp_parameter_count(shape));
    json_key(&writer, "layers");
    json_array_begin(&writer);
    for (uint32_t i = 0; i <= shape->layer_count; i++)
        json_u64(&writer, shape->widths[i]);
    json_array_end(&writer);
    json_key(&writer, "choices");
    json_array_begin(&writer);
    for (int i = 0; i < LOOKS; i++) {
        json_object_begin(&writer);
        json_field_double(&writer, "way_left", looks[i].way_left);
        json_field_u64(&writer, "functions", looks[i].function_count);
        json_field_u64(&writer, "memory_mb", looks[i].memory_mb);
        json_object_end(&writer);
    }
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}

static void print_table(struct cli *cli, const struct agent *agent, const struct look *looks)
{
    const struct mlp_shape *shape = mlp_shape(agent->mlp);
    printf("trained on %llu runs, from %u functions of %u MB; shifted by %.3f\nlayers",
           (unsigned long long)agent->episode_count, agent->centre.function_count,
           agent->centre.memory_mb, agent->offset);
    for (uint32_t i = 0; i <= shape->layer_count; i++)
        printf(" %u", shape->widths[i]);
    printf(", %zu parameters\n\n", mlp_parameter_count(shape));
    struct table shown;
    table_init(&shown, cli->arena,
               (const char *const[]){">way left", ">functions", ">memory, MB", NULL});
    for (int i = 0; i < LOOKS; i++)
        TABLE_ROW(&shown, arena_format(cli->arena, "%.0f %%", 100 * looks[i].way_left),
                  arena_format(cli->arena, "%u", looks[i].function_count),
                  arena_format(cli->arena, "%u", looks[i].memory_mb));
    table_show(&shown, cli);
}

int sim_siren_inspect(struct cli *cli, const struct agent *agent, struct error *error)
{
    struct look looks[LOOKS];
    for (int i = 0; i < LOOKS; i++)
        looks[i] = look_at(agent, 1 - (double)i / (LOOKS - 1));
    if (cli->common.json)
        return print_json(agent, looks, error);
    print_table(cli, agent, looks);
    return 0;
}
