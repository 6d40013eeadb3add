/*
 * Commands about groups. Nobody is put into one: its owner makes a code, and whoever wants to join
 * uses it. Its owner can take members out; when the last has left, the name is free again.
 */
#include "core/core_internal.h"

#include <inttypes.h>

static int check_groupless(const struct core *core, uint64_t account, struct error *error)
{
    const struct account *found = core_account(core, account);
    if (found->group)
        return error_set(error, ERROR_CONFLICT,
                         "this account is in the group \"%s\": leave it first",
                         core_group(core, found->group)->name);
    return 0;
}

int decide_create_group(struct decision *decision, const struct command *command,
                        struct error *error)
{
    const struct core *core = decision->core;
    const __typeof__(command->create_group) *create = &command->create_group;
    if (decide_find_active_account(core, create->account, error) < 0 ||
        name_check(create->name, "group", error) < 0 ||
        check_groupless(core, create->account, error) < 0)
        return -1;
    if (core_group_by_name(core, create->name))
        return error_set(error, ERROR_CONFLICT, "the group name \"" TEXT_FORMAT "\" is taken",
                         TEXT_ARGS(create->name));
    struct event event = {
        .kind = EVENT_GROUP_CREATED,
        .group_created = {.group = core->last_id + 1, .account = create->account}};
    decide_copy(create->name, event.group_created.name, sizeof(event.group_created.name));
    decision->subject = event.group_created.group;
    decision_emit(decision, &event);
    return 0;
}

int decide_join_group(struct decision *decision, const struct command *command, struct error *error)
{
    const struct core *core = decision->core;
    const __typeof__(command->join_group) *join = &command->join_group;
    const struct code *code;
    if (decide_find_active_account(core, join->account, error) < 0 ||
        decide_find_code(decision, CODE_KIND_GROUP, join->code_hash, &code, error) < 0 ||
        check_groupless(core, join->account, error) < 0)
        return -1;
    const struct group *group = core_group(core, code->group);
    if (group->owner != code->account)
        return error_set(error, ERROR_REFUSED,
                         "who made this code does not own the group any more");
    if (group->member_count >= GROUP_MEMBERS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "a group has at most %d members",
                         GROUP_MEMBERS_MAX);
    struct event event = {.kind = EVENT_GROUP_JOINED,
                          .group_joined = {.group = group->id, .account = join->account}};
    decision->subject = group->id;
    decide_remove_code(decision, code->id, /* is_used= */ true);
    decision_emit(decision, &event);
    decision->admitted = join->account; /* offers for the group */
    return 0;
}

/* Of the members that stay, the one whose account is the oldest. */
static uint64_t next_owner(const struct core *core, const struct account *leaver)
{
    const struct group *group = core_group(core, leaver->group);
    if (group->owner != leaver->id)
        return group->owner;
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *member = core->accounts.entries[i].value;
        if (member->group == group->id && member != leaver)
            return member->id;
    }
    return 0;
}

void decision_leave_group(struct decision *decision, const struct account *account)
{
    struct event event = {.kind = EVENT_GROUP_LEFT,
                          .group_left = {.group = account->group,
                                         .account = account->id,
                                         .owner = next_owner(decision->core, account)}};
    decision_emit(decision, &event);
}

int decide_leave_group(struct decision *decision, const struct command *command,
                       struct error *error)
{
    const __typeof__(command->leave_group) *leave = &command->leave_group;
    const struct core *core = decision->core;
    if (decide_find_active_account(core, leave->account, error) < 0)
        return -1;
    const struct account *account = core_account(core, leave->account);
    if (!account->group)
        return error_set(error, ERROR_CONFLICT, "this account is in no group");
    const struct account *leaver = leave->member ? core_account(core, leave->member) : account;
    if (leaver != account && core_group(core, account->group)->owner != account->id)
        return error_set(error, ERROR_REFUSED, "only the group's owner takes members out of it");
    if (!leaver || leaver->group != account->group)
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " is not in the group",
                         leave->member);
    decision->subject = account->group;
    decision_leave_group(decision, leaver);
    return 0;
}
