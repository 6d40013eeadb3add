#include "server/offer_body.h"

#include "base/schedule.h"
#include "market/labels.h"
#include "server/view.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WORDS_SIZE_MAX = 512 };

/* What a text or list points to that was left out; nothing read from JSON ever does. */
static char left_out[1];

static const char *const networks[] = {"none", "job", "open", NULL};
static const char *const installs[] = {"none", "wheels", "index", NULL};
static const char *const audiences[] = {"anyone", "accounts", "group", NULL};

static const struct json_field minimum_fields[] = {
    {"core_micro", JSON_I64, offsetof(struct price_vector, core_micro), .minimum = 0,
     .maximum = PRICE_PER_HOUR_MAX},
    {"ram_micro", JSON_I64, offsetof(struct price_vector, ram_micro), .minimum = 0,
     .maximum = PRICE_PER_HOUR_MAX},
    {"gpu_micro", JSON_I64, offsetof(struct price_vector, gpu_micro), .minimum = 0,
     .maximum = PRICE_PER_HOUR_MAX},
    {"disk_micro", JSON_I64, offsetof(struct price_vector, disk_micro), .minimum = 0,
     .maximum = PRICE_PER_HOUR_MAX},
};
const struct json_schema offer_minimum_schema =
    JSON_SCHEMA("minimum", minimum_fields, struct price_vector);

#define BODY(member) offsetof(struct offer_body, member)
static const struct json_field body_fields[] = {
    {"cores_milli", JSON_I64, BODY(given.resources.cores_milli), .minimum = 1,
     .maximum = RESOURCES_CORES_MILLI_MAX},
    {"cores_share_milli", JSON_I64, BODY(cores_share_milli), .minimum = 1, .maximum = 1000},
    {"ram_bytes", JSON_I64, BODY(given.resources.ram_bytes), .minimum = 0,
     .maximum = RESOURCES_BYTES_MAX},
    {"ram_share_milli", JSON_I64, BODY(ram_share_milli), .minimum = 0, .maximum = 1000},
    {"gpus_milli", JSON_I64, BODY(given.resources.gpus_milli), .minimum = 0,
     .maximum = RESOURCES_GPUS_MILLI_MAX},
    {"gpus_share_milli", JSON_I64, BODY(gpus_share_milli), .minimum = 0, .maximum = 1000},
    {"gpu_model", JSON_TEXT, BODY(given.gpu_model), .size_max = OFFER_GPU_MODEL_MAX},
    {"gpu_ram_bytes", JSON_I64, BODY(given.gpu_ram_bytes), .minimum = 0,
     .maximum = RESOURCES_BYTES_MAX},
    {"disk_bytes", JSON_I64, BODY(given.resources.disk_bytes), .minimum = 0,
     .maximum = RESOURCES_BYTES_MAX},
    {"disk_share_milli", JSON_I64, BODY(disk_share_milli), .minimum = 0, .maximum = 1000},
    {"bandwidth_kbit", JSON_I64, BODY(given.resources.bandwidth_kbit), .minimum = 0,
     .maximum = RESOURCES_KBIT_MAX},
    {"roles", JSON_TEXTS, BODY(roles), .size_max = 8},
    {"minimum", JSON_OBJECT, BODY(given.minimum), .schema = &offer_minimum_schema},
    {"max_lease_ms", JSON_I64, BODY(given.max_lease_ms), .minimum = 0, .maximum = PRICE_RUN_MS_MAX},
    {"spare", JSON_BOOL, BODY(spare)},
    {"when", JSON_TEXT, BODY(when), .size_max = WORDS_SIZE_MAX},
    {"zone", JSON_TEXT, BODY(zone), .size_max = WORDS_SIZE_MAX},
    {"grid", JSON_TEXTS, BODY(grid), .size_max = SCHEDULE_GRID_DAYS},
    {"audience", JSON_CHOICE, BODY(audience), .choices = audiences},
    {"accounts", JSON_TEXTS, BODY(account_names), .size_max = OFFER_ACCOUNTS_MAX},
    {"group", JSON_TEXT, BODY(group_name), .size_max = MARKET_NAME_SIZE},
    {"network", JSON_CHOICE, BODY(network), .choices = networks},
    {"install", JSON_CHOICE, BODY(install), .choices = installs},
    {"labels", JSON_TEXT, BODY(given.labels), .size_max = OFFER_LABELS_MAX},
};
static const struct json_schema body_schema = JSON_SCHEMA("offer", body_fields, struct offer_body);

static bool is_text_given(struct text text)
{
    return text.data != left_out;
}

static bool is_list_given(struct json_array list)
{
    return list.items != left_out;
}

static int check_one_of(int64_t amount, int64_t share_milli, const char *noun, struct error *error)
{
    if (amount < 0 || share_milli < 0)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "offer.%s: given as an amount and as a share; give one of them", noun);
}

int offer_body_read(struct arena *arena, struct text json, struct offer_body *out_body,
                    struct error *error)
{
    const struct text no_text = {left_out, 0};
    const struct json_array no_list = {left_out, 0};
    struct offer_body body = {
        .given = {.resources = {-1, -1, -1, -1, -1},
                  .minimum = {-1, -1, -1, -1},
                  .max_lease_ms = -1,
                  .gpu_ram_bytes = -1,
                  .gpu_model = no_text,
                  .labels = no_text},
        .cores_share_milli = -1,
        .ram_share_milli = -1,
        .gpus_share_milli = -1,
        .disk_share_milli = -1,
        .network = -1,
        .install = -1,
        .audience = -1,
        .spare = OFFER_BODY_LEFT_OUT,
        .roles = no_list,
        .account_names = no_list,
        .group_name = no_text,
        .when = no_text,
        .zone = no_text,
        .grid = no_list,
    };
    const struct resources *amounts = &body.given.resources;
    if (json_read(arena, json, &body_schema, &body, error) < 0 ||
        check_one_of(amounts->cores_milli, body.cores_share_milli, "cores", error) < 0 ||
        check_one_of(amounts->ram_bytes, body.ram_share_milli, "ram", error) < 0 ||
        check_one_of(amounts->gpus_milli, body.gpus_share_milli, "gpus", error) < 0 ||
        check_one_of(amounts->disk_bytes, body.disk_share_milli, "disk", error) < 0)
        return -1;
    *out_body = body;
    return 0;
}

/* ---- When it is open ------------------------------------------------------------------------- */

/* The zone in the words, else the field, else what the offer had, else UTC. */
static int choose_zone(const struct offer_body *body, const struct schedule *known,
                       struct schedule *schedule, struct error *error)
{
    if (is_text_given(body->zone)) {
        if (schedule->zone[0] && !text_equal(text_of(schedule->zone), body->zone))
            return error_set(error, ERROR_INVALID,
                             "offer.zone: the words in `when` name another zone, %s",
                             schedule->zone);
        if (text_copy(body->zone, schedule->zone, sizeof(schedule->zone), error) < 0)
            return error_set(error, ERROR_INVALID, "offer.zone: not a time zone");
    }
    if (!schedule->zone[0])
        snprintf(schedule->zone, sizeof(schedule->zone), "%s",
                 known->zone[0] ? known->zone : "UTC");
    return 0;
}

/* A text of 24 digits for each day, as view_offer.c writes it. */
static int read_grid(struct json_array grid, struct schedule *out_schedule, struct error *error)
{
    enum { DAY_HOURS = 24 };
    uint32_t hours[SCHEDULE_GRID_DAYS] = {0};
    const struct text *days = grid.items;
    bool is_grid = grid.count == SCHEDULE_GRID_DAYS;
    for (size_t day = 0; is_grid && day < grid.count; day++) {
        is_grid = days[day].size == DAY_HOURS;
        for (size_t hour = 0; is_grid && hour < DAY_HOURS; hour++) {
            const char digit = days[day].data[hour];
            is_grid = digit == '0' || digit == '1';
            hours[day] |= (uint32_t)(digit == '1') << hour;
        }
    }
    if (!is_grid)
        return error_set(error, ERROR_INVALID,
                         "offer.grid: seven texts, Monday's first, of 24 digits 0 or 1 each");
    return schedule_of_grid(hours, out_schedule, error) < 0 ? error_wrap(error, "offer.grid") : 0;
}

/* By the words or the grid, whichever is given. */
static int read_week(const struct offer_body *body, struct schedule *schedule, struct error *error)
{
    if (is_text_given(body->when) && is_list_given(body->grid))
        return error_set(error, ERROR_INVALID, "offer.grid: give it or `when`, not both");
    if (is_list_given(body->grid))
        return read_grid(body->grid, schedule, error);
    if (is_text_given(body->when) && schedule_parse(body->when, schedule, error) < 0)
        return error_wrap(error, "offer.when");
    return 0;
}

int offer_body_expand(struct arena *arena, struct offer_body *body, struct text known_text,
                      int64_t now_ms, struct error *error)
{
    struct schedule known = {0}, schedule = {0};
    AUTO(zone) struct zone *zone = NULL;
    const bool has_week = is_text_given(body->when) || is_list_given(body->grid);
    if (!has_week && !is_text_given(body->zone))
        return 0;
    if (known_text.size > 0 && schedule_parse(known_text, &known, error) < 0)
        return error_wrap(error, "the offer's present schedule");
    schedule = known;
    if (read_week(body, &schedule, error) < 0)
        return -1;
    if (is_text_given(body->zone) && !has_week)
        schedule.zone[0] = '\0';
    if (choose_zone(body, &known, &schedule, error) < 0)
        return -1;
    body->has_schedule = true;
    if (schedule.part_count == 0 && is_text_given(body->zone))
        return error_set(error, ERROR_INVALID,
                         "offer.zone: the offer is open always, in every zone; give `when` too");
    if (schedule.part_count == 0)
        return 0;
    if (zone_open(ZONE_FOLDER, text_of(schedule.zone), &zone, error) < 0) {
        if (error->code == ERROR_NOT_FOUND || error->code == ERROR_CORRUPT)
            error->code = ERROR_INVALID;
        return error_wrap(error, "offer.zone");
    }
    struct span *spans = arena_alloc(arena, SCHEDULE_SPAN_MAX * sizeof(*spans));
    char words[SCHEDULE_TEXT_SIZE];
    if (schedule_expand(&schedule, zone, now_ms, spans, &body->given.spans.count, error) < 0)
        return error_wrap(error, "offer.when");
    body->given.spans.items = spans;
    body->given.schedule = arena_copy_text(arena, text_of(schedule_format(&schedule, words)));
    return 0;
}

int offer_body_schedule(struct arena *arena, struct text when, struct text zone, int64_t now_ms,
                        struct offer_terms *terms, struct error *error)
{
    struct offer_body body = {.when = when, .zone = zone, .grid = {left_out, 0}};
    if (zone.size == 0)
        body.zone = (struct text){left_out, 0};
    if (offer_body_expand(arena, &body, (struct text){0}, now_ms, error) < 0)
        return -1;
    terms->schedule = body.given.schedule;
    terms->spans = body.given.spans;
    return 0;
}

/* ---- On the core thread ---------------------------------------------------------------------- */

struct offer_terms offer_body_defaults(const struct machine *machine)
{
    const struct probe *probe = &machine->probe;
    return (struct offer_terms){.resources = probe->resources,
                                .roles = MACHINE_ROLE_ALL,
                                .gpu_model = text_of(probe->gpu_model),
                                .gpu_ram_bytes = probe->gpu_ram_bytes};
}

static void set_amount(int64_t given, int64_t share_milli, int64_t whole, int64_t *amount)
{
    if (given >= 0)
        *amount = given;
    else if (share_milli >= 0)
        *amount = whole * share_milli / 1000; /* whole is at most 2^52 */
}

static void set_number(int64_t given, int64_t *number)
{
    if (given >= 0)
        *number = given;
}

static void apply_resources(const struct offer_body *body, const struct probe *probe,
                            struct offer_terms *terms)
{
    const struct resources *given = &body->given.resources;
    struct resources *resources = &terms->resources;
    set_amount(given->cores_milli, body->cores_share_milli, probe->resources.cores_milli,
               &resources->cores_milli);
    set_amount(given->ram_bytes, body->ram_share_milli, probe->resources.ram_bytes,
               &resources->ram_bytes);
    set_amount(given->gpus_milli, body->gpus_share_milli, probe->resources.gpus_milli,
               &resources->gpus_milli);
    set_amount(given->disk_bytes, body->disk_share_milli, probe->resources.disk_bytes,
               &resources->disk_bytes);
    set_number(given->bandwidth_kbit, &resources->bandwidth_kbit);
    set_number(body->given.gpu_ram_bytes, &terms->gpu_ram_bytes);
    if (is_text_given(body->given.gpu_model))
        terms->gpu_model = body->given.gpu_model;
    if (resources->gpus_milli == 0) {
        terms->gpu_model = (struct text){0};
        terms->gpu_ram_bytes = 0;
    }
}

static int compare_accounts(const void *left, const void *right)
{
    const uint64_t a = ((const struct offer_account *)left)->account;
    const uint64_t b = ((const struct offer_account *)right)->account;
    return (a > b) - (a < b);
}

static int find_accounts(struct arena *arena, const struct core *core, struct json_array names,
                         struct json_array *out_accounts, struct error *error)
{
    struct offer_account *accounts = arena_alloc(arena, (names.count + 1) * sizeof(*accounts));
    const struct text *items = names.items;
    for (size_t i = 0; i < names.count; i++) {
        const struct account *account = core_account_by_name(core, items[i]);
        if (!account)
            return error_set(error, ERROR_INVALID, "offer.accounts: there is no account \"%.*s\"",
                             (int)(items[i].size < 40 ? items[i].size : 40), items[i].data);
        accounts[i].account = account->id;
    }
    if (names.count > 0)
        qsort(accounts, names.count, sizeof(*accounts), compare_accounts);
    for (size_t i = 1; i < names.count; i++)
        if (accounts[i].account == accounts[i - 1].account)
            return error_set(error, ERROR_INVALID, "offer.accounts: \"%s\" is there twice",
                             core_account(core, accounts[i].account)->name);
    *out_accounts = (struct json_array){accounts, names.count};
    return 0;
}

static int apply_audience(struct arena *arena, const struct offer_body *body,
                          const struct core *core, struct offer_terms *terms, struct error *error)
{
    const bool has_accounts = is_list_given(body->account_names);
    const bool has_group = is_text_given(body->group_name);
    if (body->audience < 0 && !has_accounts && !has_group)
        return 0;
    enum offer_audience audience = has_accounts ? OFFER_AUDIENCE_ACCOUNTS : OFFER_AUDIENCE_GROUP;
    if (body->audience >= 0)
        audience = (enum offer_audience)body->audience;
    if (has_accounts && audience != OFFER_AUDIENCE_ACCOUNTS)
        return error_set(error, ERROR_INVALID,
                         "offer.accounts: only an offer for `accounts` lists them");
    if (has_group && audience != OFFER_AUDIENCE_GROUP)
        return error_set(error, ERROR_INVALID,
                         "offer.group: only an offer for a `group` names one");
    if (audience != OFFER_AUDIENCE_ACCOUNTS)
        terms->accounts = (struct json_array){0};
    if (audience != OFFER_AUDIENCE_GROUP)
        terms->group = 0;
    terms->audience = audience;
    if (has_accounts &&
        find_accounts(arena, core, body->account_names, &terms->accounts, error) < 0)
        return -1;
    if (has_group) {
        const struct group *group = core_group_by_name(core, body->group_name);
        if (!group)
            return error_set(error, ERROR_INVALID, "offer.group: there is no group \"%.*s\"",
                             (int)body->group_name.size, body->group_name.data);
        terms->group = group->id;
    }
    if (audience == OFFER_AUDIENCE_ACCOUNTS && terms->accounts.count == 0)
        return error_set(error, ERROR_INVALID, "offer.accounts: name at least one account");
    if (audience == OFFER_AUDIENCE_GROUP && terms->group == 0)
        return error_set(error, ERROR_INVALID, "offer.group: name the group");
    return 0;
}

static int check_labels(struct text labels, struct error *error)
{
    struct text word, other;
    while (labels_next(&labels, &word))
        for (struct text later = labels; labels_next(&later, &other);)
            if (text_equal(word, other))
                return error_set(error, ERROR_INVALID, "offer.labels: \"%.*s\" is there twice",
                                 (int)(word.size < 40 ? word.size : 40), word.data);
    return 0;
}

int offer_body_apply(struct arena *arena, const struct offer_body *body, const struct core *core,
                     const struct machine *machine, struct offer_terms *terms, struct error *error)
{
    const struct offer_terms *given = &body->given;
    apply_resources(body, &machine->probe, terms);
    set_number(given->minimum.core_micro, &terms->minimum.core_micro);
    set_number(given->minimum.ram_micro, &terms->minimum.ram_micro);
    set_number(given->minimum.gpu_micro, &terms->minimum.gpu_micro);
    set_number(given->minimum.disk_micro, &terms->minimum.disk_micro);
    set_number(given->max_lease_ms, &terms->max_lease_ms);
    if (body->spare != OFFER_BODY_LEFT_OUT)
        terms->is_spare = body->spare;
    if (body->network >= 0)
        terms->network = (enum offer_network)body->network;
    if (body->install >= 0)
        terms->install = (enum offer_install)body->install;
    if (is_text_given(given->labels) && check_labels(given->labels, error) < 0)
        return -1;
    if (is_text_given(given->labels))
        terms->labels = given->labels;
    if (body->has_schedule) {
        terms->schedule = given->schedule;
        terms->spans = given->spans;
    }
    if (is_list_given(body->roles) && view_read_roles(&body->roles, &terms->roles, error) < 0)
        return error_wrap(error, "offer.roles");
    return apply_audience(arena, body, core, terms, error);
}
