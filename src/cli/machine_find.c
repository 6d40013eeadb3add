#include "cli/machine_find.h"

enum { MACHINES_MAX = 100000 };

int machine_find(const struct cli *cli, struct client *client, const char *name, bool is_mine,
                 struct api_machine *out_machine, struct error *error)
{
    struct json_array machines;
    struct text json;
    struct error ignored;
    uint64_t id = 0;
    if (text_parse_u64(text_of(name), &id, &ignored) < 0)
        id = 0; /* a name, then */
    if (client_list(client, cli->arena, is_mine ? "/v1/machines?mine=true" : "/v1/machines",
                    &api_machine_page_schema, MACHINES_MAX, &machines, &json, error) < 0)
        return -1;
    const struct api_machine *items = machines.items, *found = NULL;
    for (size_t i = 0; i < machines.count; i++) {
        if (text_equal(items[i].name, text_of(name))) {
            *out_machine = items[i];
            return 0;
        }
        if (id && items[i].id == id)
            found = &items[i];
    }
    if (found) {
        *out_machine = *found;
        return 0;
    }
    return is_mine ? error_set(error, ERROR_NOT_FOUND,
                               "this account lends no machine \"%.60s\"; \"souk machines --mine\" "
                               "lists them",
                               name)
                   : error_set(error, ERROR_NOT_FOUND,
                               "there is no machine \"%.60s\" here; \"souk machines\" lists them",
                               name);
}
