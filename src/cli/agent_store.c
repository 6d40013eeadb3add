#include "cli/agent_store.h"

#include "base/file.h"

int agent_store_read(const char *path, struct agent **out_agent, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, AGENT_FILE_BYTES_MAX);
    if (file_read(path, &bytes, error) < 0 ||
        agent_decode(buffer_text(&bytes), out_agent, error) < 0)
        return error_wrap(error, "%.150s", path);
    return 0;
}

int agent_store_write(const char *path, const struct agent *agent, struct error *error)
{
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, AGENT_FILE_BYTES_MAX);
    if (agent_encode(agent, &bytes, error) < 0)
        return -1;
    const struct text part = buffer_text(&bytes);
    return file_replace(path, &part, 1, 0644, error);
}
