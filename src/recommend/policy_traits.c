#include "recommend/policy_traits.h"

#include "base/assert.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct policy_traits table[] = {
    {"bsp", FLOW_ROUND, false, 1, 0, 1, 1, 0},
    {"ssp", FLOW_BOUNDED, false, 1, 40, 1, 1, 0},
    {"tap", FLOW_FREE, false, 1, 0, 1, 1, 0},
    {"fixed-adacomm", FLOW_ROUND, false, 8, 0, 1, 1, 0},
    {"adacomm", FLOW_ROUND, false, 8, 0, 1, 1, 0},
    {"adsp", FLOW_OVERLAP, false, 4, 0, 1, 1, 0},
    {"hsp", FLOW_FREE, false, 1, 0, 1, 1, 0},
    {"batchtune", FLOW_ROUND, true, 1, 0, 1, 1, 0},
    {"batchtune-fixed", FLOW_ROUND, true, 8, 0, 1, 1, 0},
    {"backup", FLOW_FIRST, false, 1, 0, 1, 1, 0},
    {"diloco", FLOW_ROUND, false, 30, 0, 7, 7, 0},
    {"async-local", FLOW_OVERLAP, false, 8, 0, 7, 7, 0},
    {"pace", FLOW_PACED, false, 1, 0, 10, 1, 0.18},
    {"auto", FLOW_PACED, false, 1, 0, 10, 1, 0.18},
};
enum { TABLE_COUNT = sizeof(table) / sizeof(*table) };

const struct policy_traits *policy_traits_find(const char *name)
{
    for (uint32_t i = 0; i < TABLE_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return &table[0];
}

const struct policy_traits *policy_traits_at(uint32_t index)
{
    return index < TABLE_COUNT ? &table[index] : NULL;
}

uint32_t policy_traits_index(const struct policy_traits *traits)
{
    const ptrdiff_t index = traits - table;
    ASSERT(index >= 0 && index < TABLE_COUNT);
    return (uint32_t)index;
}

uint32_t policy_traits_count(void)
{
    return TABLE_COUNT;
}

double policy_traits_gain(const struct policy_traits *traits, double workers)
{
    return fmin(traits->gain_most, fmax(traits->gain_alone, workers));
}
