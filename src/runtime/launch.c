#include "runtime/launch.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

/* To add one: a file that fills a struct launch_kind, its name here and in job_spec.c. */
static const struct launch_kind *const kinds[] = {&launch_torch, &launch_tensorflow, &launch_spark,
                                                  &launch_mpi};

const struct launch_kind *launch_find(struct text runtime)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (text_equal(runtime, text_of(kinds[i]->name)))
            return kinds[i];
    return NULL;
}

bool launch_is_led(const struct launch_kind *kind, uint64_t parameter_servers)
{
    return kind && (kind->is_led || parameter_servers > 0);
}

void launch_write(const struct launch_kind *kind, struct arena *arena,
                  const struct launch_round *round, struct launch *out)
{
    ASSERT(round->own < round->member_count);
    *out = (struct launch){.runs_script = true, .process_count = 1};
    kind->write(arena, round, out);
}

void launch_add(struct launch *launch, struct arena *arena, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    ASSERT(size > 0 && (size_t)size < sizeof(line));
    ASSERT(launch->variable_count < LAUNCH_VARIABLES_MAX);
    launch->variables[launch->variable_count++] = arena_copy_string(arena, text_of(line));
}

const char *launch_address(uint32_t address, char out[LAUNCH_ADDRESS_SIZE])
{
    snprintf(out, LAUNCH_ADDRESS_SIZE, "%u.%u.%u.%u", address >> 24, address >> 16 & 0xff,
             address >> 8 & 0xff, address & 0xff);
    return out;
}
