/*
 * souk function forget: takes away what a job of functions left in its store.
 */
#include "cli/function_market.h"
#include "cli/output.h"
#include "function/lead.h"
#include "source/remote.h"

struct forget_command {
    const char *job, *store, *state_dir;
};

#define FORGET(member) offsetof(struct forget_command, member)
static const struct option forget_options[] = {
    {"job", OPTION_TEXT, FORGET(job), "JOB", .help = "The job, as souk function train named it.",
     .is_positional = true, .is_required = true},
    {"store", OPTION_TEXT, FORGET(store), "PLACE",
     .help = "Where it lies: as --store of souk function train."},
    {"state_dir", OPTION_PATH, FORGET(state_dir), "DIR", "{state}/function/train",
     "Folder with the store of functions that ran here."},
};

static int run_forget(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct forget_command *wanted = options;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct object_market market = {0};
    AUTO(object_store) struct object_store *store = NULL;
    const struct object_store_options place = {
        .place =
            wanted->store ? wanted->store : arena_format(cli->arena, "%s/store", wanted->state_dir),
        .credentials = &credentials,
        .market = &market,
    };
    const bool is_market = object_store_is_market(text_of(place.place));
    if ((is_market && function_market_find(cli, &market, error) < 0) ||
        (!is_market && object_store_is_remote(text_of(place.place)) &&
         remote_credentials_take_environment(&credentials, error) < 0) ||
        object_store_open(&place, &store, error) < 0 || lead_forget(store, wanted->job, error) < 0)
        return -1;
    output_note(cli, "Job %s is not in the store any more.", wanted->job);
    return 0;
}

const struct command command_function_forget = {
    .name = "function forget",
    .summary = "Takes away what a job of functions left in its store.",
    .details = "A job that ended before it was done, or was killed, leaves its data, its "
               "description and its last models, so that --resume can go on with it. This deletes "
               "them; nobody may be training it. Updates that no model has stay.",
    .example = "souk function forget clothes-5f0e91ab --store market",
    COMMAND_OPTIONS(forget_options, forget_command),
    .run = run_forget,
};
