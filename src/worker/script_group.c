#include "worker/script_group.h"

#include "base/assert.h"

#include <stdlib.h>

enum { FAILED_GRACE_MS = 5000 }; /* of the others, once one has failed */

struct member {
    struct script_group *group;
    struct script *script;
};

struct script_group {
    struct member *members;
    size_t count;
    size_t running;
    bool has_failed;
    struct child_exit exit; /* of the first that failed, else of any */
    void (*on_exit)(void *context, const struct child_exit *exit);
    void *context;
};

static void on_exit_of_one(void *context, const struct child_exit *exit)
{
    const struct member *member = context;
    struct script_group *group = member->group;
    group->running--;
    if (!group->has_failed)
        group->exit = *exit;
    if (!group->has_failed && (exit->signal || exit->status)) {
        group->has_failed = true;
        script_group_stop(group, FAILED_GRACE_MS);
    }
    const struct child_exit last = group->exit; /* on_exit may free the group */
    if (group->running == 0)
        group->on_exit(group->context, &last);
}

int script_group_start(const struct script_options *options, char ***environments, size_t count,
                       struct script_group **out_group, struct error *error)
{
    ASSERT(count > 0);
    AUTO(script_group) struct script_group *group = calloc(1, sizeof(*group));
    ASSERT(group);
    group->members = calloc(count, sizeof(*group->members));
    ASSERT(group->members);
    group->on_exit = options->on_exit;
    group->context = options->context;
    for (size_t i = 0; i < count; i++) {
        struct script_options one = *options;
        struct member *member = &group->members[i];
        member->group = group;
        one.environment = environments[i];
        one.on_exit = on_exit_of_one;
        one.context = member;
        if (script_start(&one, &member->script, error) < 0)
            return -1;
        group->count++;
        group->running++;
    }
    *out_group = TAKE(group);
    return 0;
}

void script_group_stop(struct script_group *group, int64_t grace_ms)
{
    for (size_t i = 0; i < group->count; i++)
        script_stop(group->members[i].script, grace_ms);
}

void script_group_free(struct script_group *group)
{
    if (!group)
        return;
    for (size_t i = 0; i < group->count; i++)
        script_free(group->members[i].script);
    free(group->members);
    free(group);
}
