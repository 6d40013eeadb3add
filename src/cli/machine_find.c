#include "cli/machine_find.h"

#include <inttypes.h>

static int by_name(const struct cli *cli, struct client *client, const char *name, bool is_mine,
                   struct api_machine *out_machine, bool *out_is_found, struct error *error)
{
    struct json_array machines;
    struct text json;
    const char *path =
        arena_format(cli->arena, "/v1/machines?name=%s%s", client_escape(cli->arena, text_of(name)),
                     is_mine ? "&mine=true" : "");
    if (client_list(client, cli->arena, path, &api_machine_page_schema, 1, &machines, &json,
                    error) < 0)
        return -1;
    *out_is_found = machines.count > 0;
    if (machines.count)
        *out_machine = *(const struct api_machine *)machines.items;
    return 0;
}

static int by_id(const struct cli *cli, struct client *client, uint64_t id, bool is_mine,
                 struct api_machine *out_machine, bool *out_is_found, struct error *error)
{
    struct api_machine machine = {0};
    struct client_answer answer = {&api_machine_schema, &machine, {0}};
    const char *path = arena_format(cli->arena, "/v1/machines/%" PRIu64, id);
    if (client_get(client, cli->arena, path, &answer, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    *out_is_found = machine.is_mine || !is_mine;
    *out_machine = machine;
    return 0;
}

int machine_find(const struct cli *cli, struct client *client, const char *name, bool is_mine,
                 struct api_machine *out_machine, struct error *error)
{
    struct error ignored;
    uint64_t id = 0;
    bool is_found = false;
    if (by_name(cli, client, name, is_mine, out_machine, &is_found, error) < 0)
        return -1;
    if (!is_found && text_parse_u64(text_of(name), &id, &ignored) == 0 && id &&
        by_id(cli, client, id, is_mine, out_machine, &is_found, error) < 0)
        return -1;
    if (is_found)
        return 0;
    return is_mine ? error_set(error, ERROR_NOT_FOUND,
                               "this account lends no machine \"%.60s\"; \"souk machines --mine\" "
                               "lists them",
                               name)
                   : error_set(error, ERROR_NOT_FOUND,
                               "there is no machine \"%.60s\" here; \"souk machines\" lists them",
                               name);
}
