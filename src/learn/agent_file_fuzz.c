/* Any bytes may come as an agent: they are refused, or mean one that is written and read again. */
#include "base/assert.h"
#include "learn/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    AUTO(agent) struct agent *agent = NULL;
    if (agent_decode((struct text){(const char *)data, size}, &agent, &error) < 0)
        return 0;
    const size_t room = (size_t)4 * AGENT_FILE_BYTES_MAX;
    struct buffer once AUTO_BUFFER, again AUTO_BUFFER;
    buffer_init(&once, room);
    buffer_init(&again, room);
    int result = agent_encode(agent, &once, &error);
    ASSERT(result == 0);
    AUTO(agent) struct agent *second = NULL;
    if (agent_decode(buffer_text(&once), &second, &error) < 0) {
        /* Short numbers may grow past the maximum when written in full. */
        ASSERT(once.size > AGENT_FILE_BYTES_MAX);
        return 0;
    }
    result = agent_encode(second, &again, &error);
    ASSERT(result == 0 && text_equal(buffer_text(&once), buffer_text(&again)));
    const double input[AGENT_INPUTS] = {0.5, 0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5};
    const struct epoch_space space = {3000, 128, 64, 3008};
    const struct agent_policy policy = agent_look(agent, input);
    const struct epoch_choice choice = agent_action(agent, &space, policy.mean);
    ASSERT(choice.function_count >= 1 && choice.function_count <= space.function_max);
    ASSERT(choice.memory_mb >= space.memory_min_mb && choice.memory_mb <= space.memory_max_mb);
    return 0;
}
