/*
 * Events about groups.
 */
#include "base/memory.h"
#include "core/core_internal.h"

int apply_group_created(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->group_created) *created = &event->group_created;
    struct account *account = NULL;
    if (apply_find_account(core, event, created->account, &account, error) < 0)
        return -1;
    const struct text name = text_of(created->name);
    if (name_check(name, "group", error) < 0)
        return apply_unfit(event, error);
    if (!apply_is_next_id(core, created->group) || core_group_by_name(core, name) || account->group)
        return apply_misfit(event, "the id or the name is taken, or its owner is in another",
                            error);
    struct group *group = memory_zeroed(1, sizeof(*group));
    group->id = core->last_id = created->group;
    group->owner = created->account;
    group->created_ms = event->time_ms;
    group->member_count = 1;
    snprintf(group->name, sizeof(group->name), "%s", created->name);
    map_put(&core->groups, group->id, group);
    map_put_text(&core->groups_by_name, name, group);
    account->group = group->id;
    return 0;
}

int apply_group_joined(struct core *core, const struct event *event, struct error *error)
{
    struct account *account = NULL;
    struct group *group = map_get(&core->groups, event->group_joined.group);
    if (apply_find_account(core, event, event->group_joined.account, &account, error) < 0)
        return -1;
    if (!group || account->group)
        return apply_misfit(event, "there is no such group, or the account is in another", error);
    account->group = group->id;
    group->member_count++;
    return 0;
}

int apply_group_left(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->group_left) *left = &event->group_left;
    struct account *account = NULL;
    if (apply_find_account(core, event, left->account, &account, error) < 0)
        return -1;
    struct group *group = map_get(&core->groups, left->group);
    if (!group || account->group != group->id)
        return apply_misfit(event, "the account is not in the group", error);
    const struct account *owner = core_account(core, left->owner);
    const bool is_empty = group->member_count == 1;
    if (is_empty ? left->owner != 0
                 : !owner || owner->group != group->id || owner->id == account->id)
        return apply_misfit(event, "its next owner is not one of those who stay", error);
    account->group = 0;
    group->member_count--;
    group->owner = left->owner;
    if (is_empty) /* offers may still name it by its number */
        map_remove_text(&core->groups_by_name, text_of(group->name));
    return 0;
}
