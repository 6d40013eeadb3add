#include "cli/lend_settings.h"

#include <assert.h>
#include <inttypes.h>

const char *const lend_networks[] = {"none", "job", "open", NULL};
const char *const lend_no_or_yes[] = {"no", "yes", NULL};
const char *const lend_log_levels[] = {"error", "warn", "info", "debug", NULL};

/* A node is lent whole while it is: the rest is for its system. */
#define NODE_MEMORY "90%"

static const char *joined(struct arena *arena, const struct option_list *list)
{
    const char *all = NULL;
    for (size_t i = 0; i < list->count; i++)
        all = all ? arena_format(arena, "%s,%s", all, list->items[i]) : list->items[i];
    return all;
}

static int refuse_own(const struct lend_options *wanted, struct error *error)
{
    const struct {
        bool is_given;
        const char *flag;
    } own[] = {{wanted->code != NULL, "--code"},    {wanted->when != NULL, "--when"},
               {wanted->zone != NULL, "--zone"},    {wanted->is_new, "--new-identity"},
               {wanted->is_same, "--same-machine"}, {wanted->is_doctor, "--doctor"}};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        if (own[i].is_given)
            return error_set(error, ERROR_INVALID,
                             "%s is for one machine: a partition lends while its nodes are idle, "
                             "and takes its codes itself",
                             own[i].flag);
    return 0;
}

int lend_settings_of_nodes(struct arena *arena, const struct lend_options *wanted,
                           struct option_setting out[LEND_SETTING_MAX], size_t *out_count,
                           struct error *error)
{
    if (refuse_own(wanted, error) < 0)
        return -1;
    const struct option_setting all[] = {
        {"cores", wanted->cores},
        {"memory", wanted->memory ? wanted->memory : NODE_MEMORY},
        {"disk", wanted->disk},
        {"cache", wanted->cache},
        {"gpus", arena_format(arena, "%" PRId64, wanted->gpus_max)},
        {"roles", joined(arena, &wanted->roles)},
        {"network", lend_networks[wanted->network]},
        {"resolver", joined(arena, &wanted->resolvers)},
        {"closed_networks", joined(arena, &wanted->closed_networks)},
        {"open_rate", wanted->open_rate},
        {"images", lend_no_or_yes[wanted->images]},
        {"install", wanted->install},
        {"index_url", wanted->index_url},
        {"labels", joined(arena, &wanted->labels)},
        {"data", joined(arena, &wanted->data)},
        {"software", joined(arena, &wanted->software)},
        {"hide_labels", joined(arena, &wanted->hide_labels)},
        {"direct", wanted->is_direct ? "true" : "false"},
        {"log_level", lend_log_levels[wanted->log_level]},
    };
    const size_t count = sizeof(all) / sizeof(*all);
    static_assert(sizeof(all) / sizeof(*all) <= LEND_SETTING_MAX, "room for all");
    for (size_t i = 0; i < count; i++)
        out[i] = all[i];
    *out_count = count;
    return 0;
}
