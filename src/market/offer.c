#include "market/offer.h"

#include "base/assert.h"
#include "market/machine.h"
#include "market/offer_shared.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const network_names[OFFER_NETWORK_COUNT] = {"none", "job", "open"};
static const char *const install_names[OFFER_INSTALL_COUNT] = {"none", "wheels", "index"};
static const char *const audience_names[OFFER_AUDIENCE_COUNT] = {"anyone", "accounts", "group"};

const char *offer_network_name(enum offer_network network)
{
    ASSERT(network < OFFER_NETWORK_COUNT);
    return network_names[network];
}

const char *offer_install_name(enum offer_install install)
{
    ASSERT(install < OFFER_INSTALL_COUNT);
    return install_names[install];
}

const char *offer_audience_name(enum offer_audience audience)
{
    ASSERT(audience < OFFER_AUDIENCE_COUNT);
    return audience_names[audience];
}

/* ---- Checking -------------------------------------------------------------------------------- */

bool offer_are_labels(struct text labels)
{
    size_t word_size = 0;
    for (size_t i = 0; i < labels.size; i++) {
        const char character = labels.data[i];
        if (character == ',') {
            if (word_size == 0)
                return false;
            word_size = 0;
        } else if (character <= ' ' || character == 0x7f) {
            return false;
        } else {
            word_size++;
        }
    }
    return labels.size == 0 || word_size > 0;
}

static bool is_price(struct price_vector price)
{
    const int64_t parts[] = {price.core_micro, price.ram_micro, price.gpu_micro, price.disk_micro};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i] < 0 || parts[i] > PRICE_PER_HOUR_MAX)
            return false;
    return true;
}

static int check_texts(const struct offer_terms *terms, struct error *error)
{
    if (name_check_text(terms->gpu_model, "gpu_model", OFFER_GPU_MODEL_MAX, error) < 0 ||
        name_check_text(terms->labels, "labels", OFFER_LABELS_MAX, error) < 0 ||
        name_check_text(terms->schedule, "schedule", OFFER_SCHEDULE_MAX, error) < 0)
        return -1;
    if (!offer_are_labels(terms->labels))
        return error_set(error, ERROR_INVALID, "labels must be words with one comma between");
    return 0;
}

static int check_audience(const struct offer_terms *terms, struct error *error)
{
    const struct offer_account *accounts = terms->accounts.items;
    if ((terms->audience == OFFER_AUDIENCE_ACCOUNTS) != (terms->accounts.count > 0) ||
        (terms->audience == OFFER_AUDIENCE_GROUP) != (terms->group != 0))
        return error_set(error, ERROR_INVALID,
                         "audience: accounts are listed for `accounts`, a group named for `group`");
    if (terms->accounts.count > OFFER_ACCOUNTS_MAX)
        return error_set(error, ERROR_INVALID, "accounts: at most %d", OFFER_ACCOUNTS_MAX);
    for (size_t i = 1; i < terms->accounts.count; i++)
        if (accounts[i - 1].account >= accounts[i].account)
            return error_set(error, ERROR_INVALID, "accounts: each once, in the order of ids");
    return 0;
}

static int check_resources(const struct resources *offered, const struct resources *found,
                           struct error *error)
{
    const struct {
        const char *field;
        int64_t offered;
        int64_t found;
    } parts[] = {
        {"cores_milli", offered->cores_milli, found->cores_milli},
        {"ram_bytes", offered->ram_bytes, found->ram_bytes},
        {"gpus_milli", offered->gpus_milli, found->gpus_milli},
        {"disk_bytes", offered->disk_bytes, found->disk_bytes},
        {"bandwidth_kbit", offered->bandwidth_kbit,
         found->bandwidth_kbit ? found->bandwidth_kbit : RESOURCES_KBIT_MAX},
    };
    if (offered->cores_milli == 0)
        return error_set(error, ERROR_INVALID, "cores_milli: an offer lends some");
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (parts[i].offered > parts[i].found)
            return error_set(error, ERROR_INVALID,
                             "%s: %" PRId64 " is more than the machine has to lend, %" PRId64,
                             parts[i].field, parts[i].offered, parts[i].found);
        if (parts[i].offered < 0)
            return error_set(error, ERROR_INVALID, "%s is out of range", parts[i].field);
    }
    return 0;
}

int offer_terms_check(const struct offer_terms *terms, const struct probe *probe, int64_t now_ms,
                      struct error *error)
{
    if (check_resources(&terms->resources, &probe->resources, error) < 0)
        return -1;
    if (terms->roles == 0 || (terms->roles & ~(uint64_t)MACHINE_ROLE_ALL))
        return error_set(error, ERROR_INVALID,
                         "roles: an offer has the role worker, server or both");
    if (!is_price(terms->minimum))
        return error_set(error, ERROR_INVALID, "minimum: a price is out of range");
    if (terms->max_lease_ms < 0 || terms->max_lease_ms > PRICE_RUN_MS_MAX)
        return error_set(error, ERROR_INVALID, "max_lease_ms is out of range");
    if (terms->paused_until_ms < 0 || terms->paused_until_ms > OFFER_PAUSED_FOREVER)
        return error_set(error, ERROR_INVALID, "paused_until_ms is out of range");
    if (terms->gpu_ram_bytes < 0 || terms->gpu_ram_bytes > RESOURCES_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "gpu_ram_bytes is out of range");
    if (terms->network >= OFFER_NETWORK_COUNT || terms->install >= OFFER_INSTALL_COUNT ||
        terms->audience >= OFFER_AUDIENCE_COUNT)
        return error_set(error, ERROR_INVALID, "network, install or audience is none that exists");
    if (check_texts(terms, error) < 0 || check_audience(terms, error) < 0)
        return -1;
    return window_check((struct window){terms->spans.items, terms->spans.count}, now_ms, error);
}

/* ---- Enlisting again ------------------------------------------------------------------------- */

static int64_t amount_again(int64_t had, int64_t before, int64_t said, int64_t now)
{
    if (had >= before)
        return said;
    return had < now ? had : now;
}

static bool has_price(struct price_vector price)
{
    return price.core_micro || price.ram_micro || price.gpu_micro || price.disk_micro;
}

struct offer_terms offer_terms_again(const struct offer_terms *had, const struct probe *before,
                                     const struct offer_terms *said, const struct probe *now)
{
    struct offer_terms terms = *had;
    const struct resources *found = &now->resources, *lent = &before->resources;
    struct resources *amounts = &terms.resources;
    *amounts = resources_smaller(*amounts, *found);
    amounts->cores_milli = amount_again(had->resources.cores_milli, lent->cores_milli,
                                        said->resources.cores_milli, found->cores_milli);
    amounts->ram_bytes = amount_again(had->resources.ram_bytes, lent->ram_bytes,
                                      said->resources.ram_bytes, found->ram_bytes);
    amounts->disk_bytes = amount_again(had->resources.disk_bytes, lent->disk_bytes,
                                       said->resources.disk_bytes, found->disk_bytes);
    if (said->resources.gpus_milli > 0)
        amounts->gpus_milli = said->resources.gpus_milli;
    if (found->bandwidth_kbit == 0) /* not known */
        amounts->bandwidth_kbit = had->resources.bandwidth_kbit;
    if (had->network >= probe_network(before) || had->network > said->network)
        terms.network = said->network;
    terms.roles = had->roles & said->roles ? had->roles & said->roles : said->roles;
    if (has_price(said->minimum))
        terms.minimum = said->minimum;
    if (said->paused_until_ms > terms.paused_until_ms)
        terms.paused_until_ms = said->paused_until_ms;
    if (said->spans.count > 0) {
        terms.schedule = said->schedule;
        terms.spans = said->spans;
    }
    return terms;
}

/* ---- Copying --------------------------------------------------------------------------------- */

static struct text put_text(char **at, struct text text)
{
    if (text.size == 0)
        return (struct text){0};
    const struct text put = {*at, text.size};
    memcpy(*at, text.data, text.size);
    *at += text.size;
    return put;
}

static size_t accounts_size(const struct offer_terms *terms)
{
    return terms->accounts.count * sizeof(struct offer_account);
}

static size_t spans_size(const struct offer_terms *terms)
{
    return terms->spans.count * sizeof(struct span);
}

static size_t block_size(const struct offer_terms *terms)
{
    return spans_size(terms) + accounts_size(terms) + terms->gpu_model.size + terms->labels.size +
           terms->schedule.size;
}

/* Arrays first: the block is aligned for them. */
static struct offer_terms copy_into(void *block, const struct offer_terms *terms)
{
    struct offer_terms copy = *terms;
    char *at = block;
    copy.spans.items = spans_size(terms) ? memcpy(at, terms->spans.items, spans_size(terms)) : NULL;
    at += spans_size(terms);
    copy.accounts.items =
        accounts_size(terms) ? memcpy(at, terms->accounts.items, accounts_size(terms)) : NULL;
    at += accounts_size(terms);
    copy.gpu_model = put_text(&at, terms->gpu_model);
    copy.labels = put_text(&at, terms->labels);
    copy.schedule = put_text(&at, terms->schedule);
    return copy;
}

struct offer_terms offer_terms_copy_to(struct arena *arena, const struct offer_terms *terms)
{
    return copy_into(arena_alloc(arena, block_size(terms)), terms);
}

/* ---- Keeping --------------------------------------------------------------------------------- */

void offer_set_terms(struct offer *offer, struct offer_shares *shares,
                     const struct offer_terms *terms)
{
    const struct offer_shared *before = offer->shared;
    /* Taken first: the terms may be the offer's own. */
    offer->shared = offer_shares_take(shares, terms);
    if (before)
        offer_shares_give(shares, before);
    offer->terms = (struct offer_kept_terms){.resources = terms->resources,
                                             .minimum = terms->minimum,
                                             .max_lease_ms = terms->max_lease_ms,
                                             .paused_until_ms = terms->paused_until_ms,
                                             .group = terms->group,
                                             .gpu_ram_bytes = terms->gpu_ram_bytes,
                                             .roles = (uint8_t)terms->roles,
                                             .network = (uint8_t)terms->network,
                                             .install = (uint8_t)terms->install,
                                             .audience = (uint8_t)terms->audience,
                                             .is_spare = terms->is_spare};
}

struct offer_terms offer_terms(const struct offer *offer)
{
    const struct offer_kept_terms *kept = &offer->terms;
    const struct offer_shared *shared = offer->shared;
    return (struct offer_terms){.resources = kept->resources,
                                .roles = kept->roles,
                                .minimum = kept->minimum,
                                .max_lease_ms = kept->max_lease_ms,
                                .paused_until_ms = kept->paused_until_ms,
                                .network = (enum offer_network)kept->network,
                                .install = (enum offer_install)kept->install,
                                .audience = (enum offer_audience)kept->audience,
                                .is_spare = kept->is_spare,
                                .group = kept->group,
                                .gpu_ram_bytes = kept->gpu_ram_bytes,
                                .gpu_model = shared->gpu_model,
                                .labels = shared->labels,
                                .schedule = shared->schedule,
                                .accounts = shared->accounts,
                                .spans = shared->spans};
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct window offer_window(const struct offer *offer)
{
    return (struct window){offer->shared->spans.items, offer->shared->spans.count};
}

bool offer_is_open(const struct offer *offer, int64_t now_ms)
{
    return offer->terms.paused_until_ms <= now_ms && window_is_open(offer_window(offer), now_ms);
}

int64_t offer_next_change_ms(const struct offer *offer, int64_t now_ms)
{
    const int64_t resumes_ms = offer->terms.paused_until_ms;
    if (resumes_ms > now_ms)
        return resumes_ms < OFFER_PAUSED_FOREVER ? resumes_ms : INT64_MAX;
    return window_next_change_ms(offer_window(offer), now_ms);
}

bool offer_admits(const struct offer *offer, uint64_t account, uint64_t group)
{
    if (account == offer->machine->owner)
        return true;
    const struct offer_account *accounts = offer->shared->accounts.items;
    switch ((enum offer_audience)offer->terms.audience) {
    case OFFER_AUDIENCE_ANYONE:
        return true;
    case OFFER_AUDIENCE_ACCOUNTS:
        for (size_t i = 0; i < offer->shared->accounts.count; i++)
            if (accounts[i].account == account)
                return true;
        return false;
    case OFFER_AUDIENCE_GROUP:
        return group == offer->terms.group;
    case OFFER_AUDIENCE_COUNT:
        break;
    }
    UNREACHABLE("an audience that does not exist");
}

bool offer_accepts_price(const struct offer *offer, struct price_units units,
                         struct price_vector price)
{
    const struct price_vector *minimum = &offer->terms.minimum;
    const bool asks_nothing =
        !minimum->core_micro && !minimum->ram_micro && !minimum->gpu_micro && !minimum->disk_micro;
    return asks_nothing || price_hourly_micro(units, price) >= price_hourly_micro(units, *minimum);
}

struct resources offer_free(const struct offer *offer)
{
    const struct resources of_offer = resources_subtract(offer->terms.resources, offer->leased);
    return resources_smaller(of_offer, machine_free(offer->machine));
}
