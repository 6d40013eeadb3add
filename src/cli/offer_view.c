#include "cli/offer_view.h"

#include "cli/output.h"
#include "cli/table.h"

#include <inttypes.h>

const char *offer_view_state_words(struct arena *arena, struct text state, int64_t until_ms)
{
    const char *word = output_text(arena, state);
    return until_ms > 0 ? arena_format(arena, "%s until %s", word, output_instant(arena, until_ms))
                        : word;
}

const char *offer_view_state(struct arena *arena, const struct api_offer *offer)
{
    const bool is_there =
        offer->machine_state.size == 0 || text_equal(offer->machine_state, TEXT("online"));
    if (!is_there && text_equal(offer->state, TEXT("open")))
        return output_text(arena, offer->machine_state);
    return offer_view_state_words(arena, offer->state, offer->state_until_ms);
}

static const char *when_words(struct arena *arena, const struct api_offer *offer)
{
    const char *when = output_text(arena, offer->when);
    return offer->zone.size > 0
               ? arena_format(arena, "%s %s", when, output_text(arena, offer->zone))
               : when;
}

/* Whom others lend to by name is not told: "accounts". */
static const char *audience_words(struct arena *arena, const struct api_offer *offer)
{
    if (text_equal(offer->audience, TEXT("group")))
        return arena_format(arena, "group:%s", output_text(arena, offer->group));
    return offer->accounts.count > 0 ? output_texts(arena, &offer->accounts, ", ")
                                     : output_text(arena, offer->audience);
}

/* "core=0.02, gpu=0.2", as offers are made with; "auto" without any. */
static const char *minimum_words(struct arena *arena, const struct api_minimum *minimum)
{
    const struct {
        const char *name;
        int64_t micro;
    } parts[] = {{"core", minimum->core_micro},
                 {"ram", minimum->ram_micro},
                 {"gpu", minimum->gpu_micro},
                 {"disk", minimum->disk_micro}};
    const char *words = "";
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i].micro > 0)
            words = arena_format(arena, "%s%s%s=%s", words, words[0] ? ", " : "", parts[i].name,
                                 output_credits(arena, parts[i].micro));
    return words[0] ? words : "auto";
}

static const char *price_words(struct arena *arena, const struct api_offer *offer)
{
    const char *minimum = minimum_words(arena, &offer->minimum);
    return offer->spare ? arena_format(arena, "%s; unsold free", minimum) : minimum;
}

static const char *gpu_words(struct arena *arena, const struct api_offer *offer)
{
    if (offer->gpus_milli == 0)
        return "none";
    const char *words = output_cores(arena, offer->gpus_milli);
    if (offer->gpu_model.size > 0)
        words = arena_format(arena, "%s x %s", words, output_text(arena, offer->gpu_model));
    if (offer->gpu_ram_bytes > 0)
        words = arena_format(arena, "%s with %s each", words,
                             output_bytes(arena, offer->gpu_ram_bytes));
    return words;
}

static void add_row(struct table *table, struct arena *arena, const struct api_offer *offer)
{
    TABLE_ROW(table, output_number(arena, offer->id), output_text(arena, offer->machine_name),
              offer_view_state(arena, offer), output_cores(arena, offer->cores_milli),
              output_cores(arena, offer->leased_cores_milli), output_bytes(arena, offer->ram_bytes),
              output_bytes(arena, offer->disk_bytes), output_cores(arena, offer->gpus_milli),
              when_words(arena, offer),
              offer->max_lease_ms ? output_duration(arena, offer->max_lease_ms) : "any",
              price_words(arena, offer), audience_words(arena, offer),
              output_text(arena, offer->network));
}

void offer_view_list(const struct cli *cli, const struct json_array *offers)
{
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){">OFFER", "~MACHINE", "STATE", ">CORES", ">/2LEASED",
                                     ">/4MEMORY", ">/7DISK", ">/6GPUS", "~WHEN", ">/5LONGEST",
                                     "~/8LEAST PRICE", "~/3FOR", "/9NETWORK", NULL});
    for (size_t i = 0; i < offers->count; i++)
        add_row(&table, cli->arena, (const struct api_offer *)offers->items + i);
    table_show(&table, cli);
}

void offer_view_print(const struct cli *cli, const struct api_offer *offer)
{
    struct arena *arena = cli->arena;
    const bool has_labels = offer->labels.size > 0;
    const bool is_automatic =
        text_equal(text_of(minimum_words(arena, &offer->minimum)), TEXT("auto"));
    output_field(cli, "Offer:     ", "%" PRIu64 " of \"%s\" (machine %" PRIu64 ", %s)", offer->id,
                 output_text(arena, offer->machine_name), offer->machine,
                 offer->machine_state.size ? output_text(arena, offer->machine_state)
                                           : "state not known");
    output_field(cli, "State:     ", "%s", offer_view_state(arena, offer));
    output_field(cli, "Leased:    ", "%s of %s, %" PRIu64 " lease%s",
                 output_cores(arena, offer->leased_cores_milli),
                 output_core_count(arena, offer->cores_milli), offer->lease_count,
                 offer->lease_count == 1 ? "" : "s");
    output_field(cli, "Memory:    ", "%s", output_bytes(arena, offer->ram_bytes));
    output_field(cli, "Disk:      ", "%s", output_bytes(arena, offer->disk_bytes));
    output_field(cli, "GPUs:      ", "%s", gpu_words(arena, offer));
    if (offer->bandwidth_kbit > 0)
        output_field(cli, "Bandwidth: ", "%.15g Mbit/s", (double)offer->bandwidth_kbit / 1000.0);
    else
        output_field(cli, "Bandwidth: ", "not said");
    output_field(cli, "When:      ", "%s", when_words(arena, offer));
    output_field(cli, "Longest:   ", "%s",
                 offer->max_lease_ms ? output_duration(arena, offer->max_lease_ms) : "any lease");
    output_field(cli, "Least:     ", "%s",
                 is_automatic ? "the market's price, whatever it is"
                              : arena_format(arena, "%s credits an hour",
                                             minimum_words(arena, &offer->minimum)));
    output_field(cli, "Unsold:    ", "%s",
                 offer->spare ? "free for members with less than 1 credit" : "not given away");
    output_field(cli, "For:       ", "%s", audience_words(arena, offer));
    output_field(cli, "Runs:      ", "%s", output_texts(arena, &offer->roles, ", "));
    output_field(cli, "Network:   ", "%s", output_text(arena, offer->network));
    output_field(cli, "Install:   ", "%s", output_text(arena, offer->install));
    output_field(cli, "Labels:    ", "%s", has_labels ? output_text(arena, offer->labels) : "none");
}
