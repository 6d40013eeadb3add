/* souk group: accounts that belong together. */
#include "base/json.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

static void print_group(struct cli *cli, const struct api_group *group, struct text json)
{
    if (cli->common.json) {
        output_json(json);
        return;
    }
    printf("Group: %s (%s)\n", output_text(cli->arena, group->name),
           output_number(cli->arena, group->id));
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){">ID", "MEMBER", "", NULL});
    for (size_t i = 0; i < group->members.count; i++) {
        const struct api_member *member = (const struct api_member *)group->members.items + i;
        TABLE_ROW(&table, output_number(cli->arena, member->id),
                  output_text(cli->arena, member->name), member->id == group->owner ? "owner" : "");
    }
    table_show(&table, cli);
}

static int run_show(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_group group = {0};
    struct client_answer answer = {&api_group_schema, &group, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account/group", &answer, error) < 0)
        return -1;
    print_group(cli, &group, answer.json);
    return 0;
}

const struct command command_group_show = {
    .name = "group show",
    .summary = "Shows the account's group and who is in it.",
    .details = "A group can be the audience of an offer. Its members count as one borrower in "
               "prices, and work they do for each other earns no grant and no reputation.",
    .example = "souk group show",
    .run = run_show,
};

struct group_options {
    const char *value;
};

/* POST {"KEY": "VALUE"}, answered with a group. */
static int send_one(struct cli *cli, const char *path, const char *key, const char *value,
                    struct error *error)
{
    AUTO(client) struct client *client = NULL;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, key, value);
    json_object_end(&writer);
    struct api_group group = {0};
    struct client_answer answer = {&api_group_schema, &group, {0}};
    if (buffer_check(&body, error) < 0 || cli_connect(cli, true, &client, error) < 0 ||
        client_send(client, cli->arena, "POST", path, buffer_text(&body), &answer, error) < 0)
        return -1;
    print_group(cli, &group, answer.json);
    return 0;
}

static const struct option create_options[] = {
    {"name", OPTION_TEXT, offsetof(struct group_options, value), "NAME",
     .help = "What it is called.", .is_positional = true, .is_required = true},
};

static int run_create(void *context, const void *options, struct error *error)
{
    return send_one(context, "/v1/groups", "name", ((const struct group_options *)options)->value,
                    error);
}

const struct command command_group_create = {
    .name = "group create",
    .summary = "Makes a group with this account as its owner.",
    .example = "souk group create our-lab",
    COMMAND_OPTIONS(create_options, group_options),
    .run = run_create,
};

static const struct option join_options[] = {
    {"code", OPTION_TEXT, offsetof(struct group_options, value), "CODE",
     .help = "From the group's owner.", .is_positional = true, .is_required = true},
};

static int run_join(void *context, const void *options, struct error *error)
{
    return send_one(context, "/v1/account/group", "code",
                    ((const struct group_options *)options)->value, error);
}

const struct command command_group_join = {
    .name = "group join",
    .summary = "Joins a group by a code of its owner.",
    .example = "souk group join souk_group_...",
    COMMAND_OPTIONS(join_options, group_options),
    .run = run_join,
};

static int run_invite(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_code code = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_post(cli, client, "/v1/account/group/codes", &api_code_schema, &code, &is_done, error) <
            0)
        return -1;
    if (is_done)
        return 0;
    printf("%s\n", output_text(cli->arena, code.code));
    output_note(cli, "One account joins with it before %s: souk group join CODE",
                output_instant(cli->arena, code.expires_ms));
    return 0;
}

const struct command command_group_invite = {
    .name = "group invite",
    .summary = "Makes a code with which one account joins the group.",
    .example = "souk group invite",
    .run = run_invite,
};

static const struct option remove_options[] = {
    {"account", OPTION_TEXT, offsetof(struct group_options, value), "ACCOUNT",
     .help = "The member's name.", .is_positional = true, .is_required = true},
};

static int run_remove(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const char *name = ((const struct group_options *)options)->value;
    AUTO(client) struct client *client = NULL;
    struct api_group group = {0};
    struct client_answer answer = {&api_group_schema, &group, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account/group", &answer, error) < 0)
        return -1;
    const struct api_member *members = group.members.items, *found = NULL;
    for (size_t i = 0; i < group.members.count; i++)
        if (text_equal(members[i].name, text_of(name)))
            found = &members[i];
    if (!found)
        return error_set(error, ERROR_NOT_FOUND, "\"%.60s\" is not in the group \"%s\"", name,
                         output_text(cli->arena, group.name));
    const char *path = arena_format(cli->arena, "/v1/account/group/members/%s",
                                    output_number(cli->arena, found->id));
    if (client_delete(client, path, error) < 0 ||
        client_get(client, cli->arena, "/v1/account/group", &answer, error) < 0)
        return -1;
    print_group(cli, &group, answer.json);
    return 0;
}

const struct command command_group_remove = {
    .name = "group remove",
    .summary = "Takes a member out of the group (its owner).",
    .details = "Leases that run go on; offers for the group are no longer open to the account.",
    .example = "souk group remove eve",
    COMMAND_OPTIONS(remove_options, group_options),
    .run = run_remove,
};

struct leave_options {
    bool is_yes;
};

static const struct option leave_options[] = {
    {"yes", OPTION_FLAG, offsetof(struct leave_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

/* Who owns the group when its owner leaves: the market's rule. NULL: nobody is left. */
static const struct api_member *find_heir(const struct api_group *group)
{
    const struct api_member *members = group->members.items, *heir = NULL;
    for (size_t i = 0; i < group->members.count; i++)
        if (members[i].id != group->owner && (!heir || members[i].id < heir->id))
            heir = &members[i];
    return heir;
}

/* A member just leaves; an owner is told who comes after, and asked. */
static int confirm_leave(const struct cli *cli, struct client *client, bool is_yes,
                         struct error *error)
{
    struct arena *arena = cli->arena;
    struct api_group group = {0};
    struct api_account account = {0};
    struct client_answer shown = {&api_group_schema, &group, {0}};
    struct client_answer own = {&api_account_schema, &account, {0}};
    if (client_get(client, arena, "/v1/account/group", &shown, error) < 0 ||
        client_get(client, arena, "/v1/account", &own, error) < 0)
        return -1;
    const struct api_member *heir = find_heir(&group);
    if (group.owner != account.id)
        return 0;
    const char *then =
        heir ? arena_format(arena, "\"%s\", the member with the oldest account, owns it then",
                            output_text(arena, heir->name))
             : "nobody is left in it: it ends, and its name is free again";
    const char *plan = arena_format(arena, "You own the group \"%s\". When you leave, %s.\n",
                                    output_text(arena, group.name), then);
    return output_confirm(cli, is_yes, plan, "Leave it?", error);
}

static int run_leave(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct leave_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct client_answer answer = {0};
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    const int confirmed = confirm_leave(cli, client, wanted->is_yes, error);
    if (confirmed != 0)
        return confirmed;
    if (client_send(client, cli->arena, "DELETE", "/v1/account/group", (struct text){0}, NULL,
                    error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    output_note(cli, "Left the group.");
    return 0;
}

const struct command command_group_leave = {
    .name = "group leave",
    .summary = "Leaves the group.",
    .details = "When its owner leaves, the member with the oldest account owns it; when the last "
               "leaves, its name is free again. An owner is told which, and asked.",
    .example = "souk group leave",
    COMMAND_OPTIONS(leave_options, leave_options),
    .run = run_leave,
};
