#include "cli/offer_terms.h"

#include "base/json.h"
#include "base/schedule.h"
#include "base/units.h"
#include "cli/output.h"

#include <inttypes.h>
#include <string.h>

struct writing {
    struct arena *arena;
    const struct offer_terms_options *options;
    const struct api_machine *machine;
    int64_t now_ms;
    struct json_writer json;
    struct buffer *plan;
};

static void plan_line(struct writing *writing, const char *label, const char *value)
{
    buffer_append_format(writing->plan, "  %-14s %s\n", label, value);
}

static bool is_share(const char *text)
{
    return text_ends_with(text_trim(text_of(text)), TEXT("%"));
}

typedef int parse_amount(struct text text, int64_t *out_amount, struct error *error);
typedef const char *show_amount(struct arena *arena, int64_t amount);

struct amount {
    const char *option, *label;
    const char *text; /* NULL: not given */
    const char *amount_field, *share_field;
    parse_amount *parse;
    show_amount *show;
    int64_t whole; /* of the machine; negative: not known here */
};

static int write_amount(struct writing *writing, const struct amount *amount, struct error *error)
{
    int64_t value = 0;
    if (!amount->text)
        return 0;
    if (amount->share_field && is_share(amount->text)) {
        if (units_parse_share(text_of(amount->text), &value, error) < 0)
            return error_wrap(error, "--%s", amount->option);
        json_field_i64(&writing->json, amount->share_field, value);
        if (amount->whole >= 0)
            plan_line(writing, amount->label,
                      arena_format(writing->arena, "%s, %s of %s",
                                   amount->show(writing->arena, amount->whole * value / 1000),
                                   amount->text, amount->show(writing->arena, amount->whole)));
        else
            plan_line(writing, amount->label, amount->text);
        return 0;
    }
    if (amount->parse(text_of(amount->text), &value, error) < 0)
        return error_wrap(error, "--%s", amount->option);
    json_field_i64(&writing->json, amount->amount_field, value);
    plan_line(writing, amount->label, amount->show(writing->arena, value));
    return 0;
}

static int parse_rate(struct text text, int64_t *out_kbit, struct error *error)
{
    static const struct {
        const char *name;
        int64_t kbit;
    } units[] = {{"kbit", 1}, {"Mbit", 1000}, {"Gbit", 1000000}};
    const struct text trimmed = text_trim(text);
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        uint64_t count;
        const struct text unit = text_of(units[i].name);
        if (!text_ends_with(trimmed, unit))
            continue;
        const struct text number = text_trim((struct text){trimmed.data, trimmed.size - unit.size});
        if (text_parse_u64(number, &count, error) == 0 && count <= 1000000000) {
            *out_kbit = (int64_t)count * units[i].kbit;
            return 0;
        }
    }
    return error_set(error, ERROR_INVALID, "\"%.*s\" is not a rate; write it like 20Mbit or 1Gbit",
                     (int)(text.size < 40 ? text.size : 40), text.data);
}

static const char *show_rate(struct arena *arena, int64_t kbit)
{
    return kbit % 1000 == 0 ? arena_format(arena, "%" PRId64 " Mbit/s", kbit / 1000)
                            : arena_format(arena, "%" PRId64 " kbit/s", kbit);
}

static int write_amounts(struct writing *writing, struct error *error)
{
    const struct offer_terms_options *options = writing->options;
    const struct api_share *whole = &writing->machine->probe;
    const struct amount amounts[] = {
        {"cores", "cores", options->cores, "cores_milli", "cores_share_milli", units_parse_cores,
         output_cores, whole->cores_milli},
        {"memory", "memory", options->ram, "ram_bytes", "ram_share_milli", units_parse_bytes,
         output_bytes, whole->ram_bytes},
        {"gpus", "GPUs", options->gpus, "gpus_milli", "gpus_share_milli", units_parse_cores,
         output_cores, -1},
        {"gpu-ram", "GPU memory", options->gpu_ram, "gpu_ram_bytes", NULL, units_parse_bytes,
         output_bytes, -1},
        {"disk", "disk", options->disk, "disk_bytes", "disk_share_milli", units_parse_bytes,
         output_bytes, whole->disk_bytes},
        {"bandwidth", "network rate", options->bandwidth, "bandwidth_kbit", NULL, parse_rate,
         show_rate, -1},
    };
    for (size_t i = 0; i < sizeof(amounts) / sizeof(*amounts); i++)
        if (write_amount(writing, &amounts[i], error) < 0)
            return -1;
    return 0;
}

static void write_text(struct writing *writing, const char *field, const char *label,
                       const char *text)
{
    if (!text)
        return;
    json_field_string(&writing->json, field, text);
    plan_line(writing, label, output_text(writing->arena, text_of(text)));
}

static void write_list(struct writing *writing, const char *field, const struct option_list *list)
{
    json_key(&writing->json, field);
    json_array_begin(&writing->json);
    for (size_t i = 0; i < list->count; i++)
        json_string(&writing->json, list->items[i]);
    json_array_end(&writing->json);
}

static const char *join(struct arena *arena, const struct option_list *list)
{
    const char *joined = "";
    for (size_t i = 0; i < list->count; i++)
        joined = arena_format(arena, "%s%s%s", joined, i ? ", " : "", list->items[i]);
    return output_text(arena, text_of(joined));
}

/* ---- When ------------------------------------------------------------------------------------ */

/* When it is open first, as far as this computer knows the zone; the market has the last word. */
static void plan_opening(struct writing *writing, const struct schedule *schedule)
{
    struct error ignored;
    struct span spans[SCHEDULE_SPAN_MAX];
    size_t count = 0;
    AUTO(zone) struct zone *zone = NULL;
    if (zone_open(ZONE_FOLDER, text_of(schedule->zone), &zone, &ignored) < 0 ||
        schedule_expand(schedule, zone, writing->now_ms, spans, &count, &ignored) < 0)
        return;
    plan_line(writing, "open first",
              arena_format(writing->arena, "%s until %s",
                           spans[0].open_ms <= writing->now_ms
                               ? "now"
                               : output_instant(writing->arena, spans[0].open_ms),
                           output_instant(writing->arena, spans[0].close_ms)));
}

static int write_when(struct writing *writing, struct error *error)
{
    const struct offer_terms_options *options = writing->options;
    struct schedule schedule;
    char words[SCHEDULE_TEXT_SIZE];
    if (!options->when) {
        write_text(writing, "zone", "zone", options->zone);
        return 0;
    }
    if (schedule_parse(text_of(options->when), &schedule, error) < 0)
        return error_wrap(error, "--when");
    const char *zone = options->zone;
    if (!zone && !schedule.zone[0] && schedule.part_count > 0)
        zone = options_time_zone(writing->arena, NULL, "/etc");
    json_field_string(&writing->json, "when", options->when);
    if (zone)
        json_field_string(&writing->json, "zone", zone);
    if (zone && text_copy(text_of(zone), schedule.zone, sizeof(schedule.zone), error) < 0)
        return error_wrap(error, "--zone");
    plan_line(writing, "when", schedule_format(&schedule, words));
    if (schedule.part_count > 0)
        plan_opening(writing, &schedule);
    return 0;
}

static int write_max_lease(struct writing *writing, struct error *error)
{
    const char *text = writing->options->max_lease;
    int64_t ms = 0;
    if (!text)
        return 0;
    if (strcmp(text, "any") != 0 && units_parse_duration(text_of(text), &ms, error) < 0)
        return error_wrap(error, "--max-lease");
    if (strcmp(text, "any") != 0 && ms == 0)
        return error_set(error, ERROR_INVALID, "--max-lease: write a span like 8h, or any");
    json_field_i64(&writing->json, "max_lease_ms", ms);
    plan_line(writing, "longest lease", ms ? output_duration(writing->arena, ms) : "any");
    return 0;
}

static int write_spare(struct writing *writing, struct error *error)
{
    const char *text = writing->options->spare;
    if (!text)
        return 0;
    const bool is_on = strcmp(text, "on") == 0;
    if (!is_on && strcmp(text, "off") != 0)
        return error_set(error, ERROR_INVALID, "--spare: write on or off");
    json_field_bool(&writing->json, "spare", is_on);
    plan_line(writing, "unsold time",
              is_on ? "free for members with less than 1 credit, until somebody pays for it"
                    : "not given away");
    return 0;
}

/* ---- Price and audience ---------------------------------------------------------------------- */

static int write_prices(struct writing *writing, struct error *error)
{
    static const char *const resources[] = {"core", "ram", "gpu", "disk"};
    enum { RESOURCES = sizeof(resources) / sizeof(*resources) };
    const struct option_list *prices = &writing->options->min_price;
    int64_t micro[RESOURCES] = {0};
    bool is_given[RESOURCES] = {0};
    if (prices->count == 0)
        return 0;
    const bool is_automatic = prices->count == 1 && !strcmp(prices->items[0], "auto");
    for (size_t i = 0; i < prices->count && !is_automatic; i++) {
        struct text name, amount;
        size_t found = RESOURCES;
        if (text_cut(text_of(prices->items[i]), '=', &name, &amount))
            for (found = 0; found < RESOURCES; found++)
                if (text_equal(name, text_of(resources[found])))
                    break;
        if (found == RESOURCES)
            return error_set(error, ERROR_INVALID,
                             "--min-price: \"%.40s\" is not a price; write auto, or core=0.02 (or "
                             "ram, gpu, disk)",
                             prices->items[i]);
        if (is_given[found])
            return error_set(error, ERROR_INVALID, "--min-price: %s is there twice",
                             resources[found]);
        is_given[found] = true;
        if (units_parse_credits(amount, &micro[found], error) < 0)
            return error_wrap(error, "--min-price");
        if (micro[found] < 0)
            return error_set(error, ERROR_INVALID, "--min-price: %s cannot be negative",
                             resources[found]);
    }
    json_key(&writing->json, "minimum");
    json_object_begin(&writing->json);
    for (size_t i = 0; i < RESOURCES; i++)
        json_field_i64(&writing->json, arena_format(writing->arena, "%s_micro", resources[i]),
                       micro[i]);
    json_object_end(&writing->json);
    plan_line(writing, "least price",
              is_automatic ? "automatic: the market's, whatever it is"
                           : arena_format(writing->arena, "%s credits an hour",
                                          join(writing->arena, prices)));
    return 0;
}

static int refuse_double(const char *option, struct text word, struct error *error)
{
    return error_set(error, ERROR_INVALID, "--%s: \"%.*s\" is there twice", option,
                     (int)(word.size < 40 ? word.size : 40), word.data);
}

static int write_audience(struct writing *writing, struct error *error)
{
    const struct option_list *names = &writing->options->audience;
    if (names->count == 0)
        return 0;
    for (size_t i = 1; i < names->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(names->items[i], names->items[j]))
                return refuse_double("for", text_of(names->items[i]), error);
    const char *first = names->items[0];
    const bool is_group = !strncmp(first, "group:", strlen("group:"));
    const bool is_anyone = !strcmp(first, "anyone");
    if ((is_group || is_anyone) && names->count > 1)
        return error_set(error, ERROR_INVALID,
                         "--for: %.40s stands alone; give anyone, accounts, or one group", first);
    json_field_string(&writing->json, "audience",
                      is_anyone  ? "anyone"
                      : is_group ? "group"
                                 : "accounts");
    if (is_group)
        json_field_string(&writing->json, "group", first + strlen("group:"));
    else if (!is_anyone)
        write_list(writing, "accounts", names);
    plan_line(writing, "for", join(writing->arena, names));
    return 0;
}

static int write_labels(struct writing *writing, struct error *error)
{
    const char *labels = writing->options->labels;
    struct text rest = text_of(labels ? labels : ""), word, later, other;
    while (text_cut(rest, ',', &word, &rest)) {
        bool has_more = true;
        for (later = rest; has_more;) {
            has_more = text_cut(later, ',', &other, &later);
            if (text_equal(word, other))
                return refuse_double("labels", word, error);
        }
    }
    write_text(writing, "labels", "labels", labels);
    return 0;
}

int offer_terms_write(struct arena *arena, const struct offer_terms_options *options,
                      const struct api_machine *machine, int64_t now_ms, struct buffer *body,
                      struct buffer *plan, struct error *error)
{
    struct writing writing = {
        .arena = arena, .options = options, .machine = machine, .now_ms = now_ms, .plan = plan};
    json_writer_init(&writing.json, body);
    json_object_begin(&writing.json);
    if (write_amounts(&writing, error) < 0)
        return -1;
    write_text(&writing, "gpu_model", "GPU model", options->gpu_model);
    if (options->roles.count > 0) {
        write_list(&writing, "roles", &options->roles);
        plan_line(&writing, "roles", join(arena, &options->roles));
    }
    if (write_when(&writing, error) < 0 || write_max_lease(&writing, error) < 0 ||
        write_prices(&writing, error) < 0 || write_spare(&writing, error) < 0 ||
        write_audience(&writing, error) < 0)
        return -1;
    write_text(&writing, "network", "network", options->network);
    write_text(&writing, "install", "install", options->install);
    if (write_labels(&writing, error) < 0)
        return -1;
    json_object_end(&writing.json);
    if (buffer_check(body, error) < 0 || buffer_check(plan, error) < 0)
        return error_wrap(error, "the offer's terms");
    return 0;
}
