#include "server/statement.h"

#include "base/assert.h"
#include "base/map.h"
#include "server/tables.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PAGE_BYTES = 240,
    NUMBER_BYTES_MAX = 10, /* of 64 bits, seven in each byte */
    PAGE_ENTRIES_MAX = PAGE_BYTES + 1,
    PAGES_AT_ONCE = 32,
    LOOK_AT_ONCE = 256,
};

/* ---- Writing --------------------------------------------------------------------------------- */

struct page {
    uint64_t subject;
    uint64_t first, last; /* events */
    size_t size;
    uint8_t bytes[PAGE_BYTES];
};

struct statement_pages {
    struct map by_subject; /* -> index + 1 into pages */
    struct page *pages;
    size_t count, capacity;
};

struct statement_pages *statement_pages_new(void)
{
    struct statement_pages *pages = calloc(1, sizeof(*pages));
    ASSERT(pages);
    map_init(&pages->by_subject);
    return pages;
}

void statement_pages_free(struct statement_pages *pages)
{
    if (!pages)
        return;
    map_done(&pages->by_subject);
    free(pages->pages);
    free(pages);
}

void statement_pages_clear(struct statement_pages *pages)
{
    map_clear(&pages->by_subject);
    pages->count = 0;
}

static void put_page(const struct page *page, struct store_batch *batch)
{
    const struct store_value row[STATEMENTS_COLUMN_COUNT] = {
        [STATEMENTS_SUBJECT] = store_integer((int64_t)page->subject),
        [STATEMENTS_FIRST] = store_integer((int64_t)page->first),
        [STATEMENTS_MORE] = store_blob(page->bytes, page->size),
    };
    store_batch_put(batch, &tables[TABLE_STATEMENTS], row, STATEMENTS_COLUMN_COUNT);
}

void statement_pages_flush(struct statement_pages *pages, struct store_batch *batch)
{
    for (size_t i = 0; i < pages->count; i++)
        put_page(&pages->pages[i], batch);
    statement_pages_clear(pages);
}

static struct page *open_page(struct statement_pages *pages, uint64_t subject)
{
    if (pages->count == pages->capacity) {
        pages->capacity = pages->capacity ? 2 * pages->capacity : 64;
        pages->pages = realloc(pages->pages, pages->capacity * sizeof(*pages->pages));
        ASSERT(pages->pages);
    }
    struct page *page = &pages->pages[pages->count++];
    /* A number, not an address: pages move when there are more. NOLINTNEXTLINE */
    map_put(&pages->by_subject, subject, (void *)pages->count);
    return page;
}

void statement_pages_add(struct statement_pages *pages, uint64_t subject, uint64_t event,
                         struct store_batch *batch)
{
    const size_t place = (size_t)map_get(&pages->by_subject, subject);
    struct page *page = place ? &pages->pages[place - 1] : open_page(pages, subject);
    const bool is_full = place && page->size + NUMBER_BYTES_MAX > PAGE_BYTES;
    if (is_full)
        put_page(page, batch);
    if (!place || is_full) {
        page->subject = subject;
        page->first = page->last = event;
        page->size = 0;
        return;
    }
    ASSERT(event > page->last);
    uint64_t distance = event - page->last;
    page->last = event;
    for (; distance >= 0x80; distance >>= 7)
        page->bytes[page->size++] = (uint8_t)(distance | 0x80);
    page->bytes[page->size++] = (uint8_t)distance;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int broken_page(const struct store_value *row, struct error *error)
{
    return error_set(error, ERROR_CORRUPT,
                     "the statement of %" PRId64 " is damaged at event %" PRId64,
                     row[STATEMENTS_SUBJECT].integer, row[STATEMENTS_FIRST].integer);
}

int statement_page_read(const struct store_value *row, void (*each)(void *context, uint64_t event),
                        void *context, struct error *error)
{
    const struct text more = row[STATEMENTS_MORE].bytes;
    uint64_t event = (uint64_t)row[STATEMENTS_FIRST].integer;
    if (more.size > PAGE_BYTES)
        return broken_page(row, error);
    each(context, event);
    for (size_t at = 0; at < more.size;) {
        uint64_t distance = 0;
        uint8_t byte = 0x80;
        for (unsigned shift = 0; byte & 0x80; shift += 7) {
            if (at == more.size || shift > 63)
                return broken_page(row, error);
            byte = (uint8_t)more.data[at++];
            distance |= (uint64_t)(byte & 0x7f) << shift;
        }
        if (distance == 0 || distance > INT64_MAX - event)
            return broken_page(row, error);
        event += distance;
        each(context, event);
    }
    return 0;
}

/* Events that may be shown, in the order asked for, taken from pages until there are enough. */
struct pick {
    const struct statement_query *query;
    uint64_t start;
    uint64_t *events;
    size_t count, wanted;
    uint64_t page[PAGE_ENTRIES_MAX]; /* the page being read, oldest first */
    size_t page_count;
    uint64_t last_page; /* the `first` of the last page read */
};

static void pick_add(void *context, uint64_t event)
{
    struct pick *pick = context;
    pick->page[pick->page_count++] = event;
}

static bool is_past_start(const struct pick *pick, uint64_t event)
{
    if (!pick->start)
        return true;
    return pick->query->is_oldest_first ? event > pick->start : event < pick->start;
}

static int pick_page(const struct store_row *row, void *context, struct error *error)
{
    struct pick *pick = context;
    pick->page_count = 0;
    pick->last_page = (uint64_t)row->values[STATEMENTS_FIRST].integer;
    if (statement_page_read(row->values, pick_add, pick, error) < 0)
        return -1;
    for (size_t i = 0; i < pick->page_count && pick->count < pick->wanted; i++) {
        const size_t at = pick->query->is_oldest_first ? i : pick->page_count - 1 - i;
        if (is_past_start(pick, pick->page[at]))
            pick->events[pick->count++] = pick->page[at];
    }
    return pick->count == pick->wanted;
}

static int read_pages(struct store_reader *reader, struct pick *pick,
                      const struct store_filter *first, bool is_descending, uint32_t limit,
                      struct error *error)
{
    const struct store_filter filters[] = {
        {"subject", STORE_EQUAL, store_integer((int64_t)pick->query->subject)},
        first ? *first : (struct store_filter){0},
    };
    const struct store_query query = {.table = &tables[TABLE_STATEMENTS],
                                      .filters = filters,
                                      .filter_count = first ? 2 : 1,
                                      .is_descending = is_descending,
                                      .limit = limit};
    pick->last_page = 0;
    return store_read_rows(reader, &query, pick_page, pick, NULL, error);
}

/* Fills `pick` with the events past pick->start, as many as wanted if there are. */
static int pick_events(struct store_reader *reader, struct pick *pick, struct error *error)
{
    const bool is_rising = pick->query->is_oldest_first;
    pick->count = 0;
    uint64_t from = pick->start;
    if (is_rising && from) { /* the page it is in may go on after it */
        const struct store_filter within = {"first", STORE_LESS, store_integer((int64_t)from + 1)};
        if (read_pages(reader, pick, &within, /* is_descending= */ true, 1, error) < 0)
            return -1;
        from = pick->last_page ? pick->last_page : from;
    }
    while (pick->count < pick->wanted) {
        const struct store_filter beyond = {"first", is_rising ? STORE_GREATER : STORE_LESS,
                                            store_integer((int64_t)from)};
        if (read_pages(reader, pick, from ? &beyond : NULL, !is_rising, PAGES_AT_ONCE, error) < 0)
            return -1;
        if (!pick->last_page)
            break;
        from = pick->last_page;
    }
    return 0;
}

struct gather {
    struct arena *scratch;
    const struct statement_query *query;
    struct statement *statement;
};

static int read_entry(struct arena *scratch, const struct store_event *stored,
                      struct statement_entry *out_entry, struct error *error)
{
    struct event event;
    arena_clear(scratch);
    if (event_decode(scratch, stored->body, &event, error) < 0)
        return -1;
    if (event.kind != EVENT_ENTRY_POSTED)
        return error_set(error, ERROR_NOT_FOUND, "event %" PRIu64 " is no entry", stored->sequence);
    *out_entry = (struct statement_entry){
        .event = stored->sequence, .time_ms = stored->time_ms, .entry = event.entry_posted};
    return 0;
}

/* What it adds to all the account has, held or not. */
static int64_t change_micro(const struct ledger_entry *entry, uint64_t account)
{
    return (entry->to_account == account ? entry->amount_micro : 0) -
           (entry->from_account == account ? entry->amount_micro : 0);
}

static bool is_shown(const struct statement_query *query, const struct ledger_entry *entry)
{
    return (!query->account || entry->from_account == query->account ||
            entry->to_account == query->account) &&
           (!query->kinds || query->kinds & 1U << entry->kind);
}

static int gather_entry(const struct store_event *stored, void *context, struct error *error)
{
    struct gather *gather = context;
    struct statement *statement = gather->statement;
    const struct statement_query *query = gather->query;
    struct statement_entry *item = &statement->items[statement->count];
    if (read_entry(gather->scratch, stored, item, error) < 0)
        return -1;
    const int64_t change = change_micro(&item->entry, query->subject);
    statement->balance_micro += query->is_oldest_first ? change : -change;
    item->balance_micro = statement->balance_micro;
    statement->count += is_shown(query, &item->entry);
    return statement->count > query->limit;
}

/* The entry past the last that is shown says that a page follows, which will begin before it. */
static void cut(struct statement *statement, size_t limit)
{
    statement->count = limit;
    statement->next = statement->items[limit - 1].event;
    statement->balance_micro = statement->items[limit - 1].balance_micro;
}

int statement_read(struct store_reader *reader, struct arena *arena,
                   const struct statement_query *query, struct statement *out_statement,
                   struct error *error)
{
    AUTO(arena) struct arena *scratch = arena_new(0);
    const size_t wanted = query->limit + 1;
    *out_statement = (struct statement){
        .items = arena_alloc(arena, (wanted + 1) * sizeof(*out_statement->items)),
        .balance_micro = query->balance_micro};
    struct gather gather = {.scratch = scratch, .query = query, .statement = out_statement};
    const bool is_part = query->kinds || (query->account && query->account != query->subject);
    const size_t at_once = is_part && wanted < LOOK_AT_ONCE ? LOOK_AT_ONCE : wanted;
    struct pick *pick = arena_alloc(arena, sizeof(*pick));
    *pick = (struct pick){.query = query,
                          .start = query->start,
                          .events = arena_alloc(arena, at_once * sizeof(*pick->events)),
                          .wanted = at_once};
    size_t looked = 0;
    if (query->subject > INT64_MAX || query->start >= INT64_MAX)
        return 0;
    do {
        if (pick_events(reader, pick, error) < 0 ||
            store_read_listed(reader, pick->events, pick->count, gather_entry, &gather, error) < 0)
            return -1;
        if (pick->count)
            pick->start = pick->events[pick->count - 1];
        looked += pick->count;
    } while (pick->count == at_once && out_statement->count < wanted &&
             looked < STATEMENT_LOOK_MAX);
    if (out_statement->count == wanted)
        cut(out_statement, query->limit);
    else if (pick->count == at_once)
        out_statement->next = pick->start;
    return 0;
}

static int take_entry(const struct store_event *stored, void *context, struct error *error)
{
    AUTO(arena) struct arena *scratch = arena_new(0);
    return read_entry(scratch, stored, context, error);
}

int statement_read_entry(struct store_reader *reader, uint64_t event,
                         struct statement_entry *out_entry, struct error *error)
{
    struct statement_entry entry = {0};
    if (store_read_listed(reader, &event, 1, take_entry, &entry, error) < 0)
        return -1;
    if (!entry.event)
        return error_set(error, ERROR_NOT_FOUND, "event %" PRIu64 " does not exist", event);
    *out_entry = entry;
    return 0;
}

static int take_proven(const struct store_event *stored, void *context, struct error *error)
{
    AUTO(arena) struct arena *scratch = arena_new(0);
    uint64_t *machine = context;
    struct event event;
    if (event_decode(scratch, stored->body, &event, error) < 0)
        return -1;
    if (event.kind == EVENT_MACHINE_PROVEN)
        *machine = event.machine_proven.machine;
    return 0;
}

int statement_read_proven(struct store_reader *reader, uint64_t release, uint64_t *out_machine,
                          struct error *error)
{
    const uint64_t before = release - 1;
    *out_machine = 0;
    return store_read_listed(reader, &before, 1, take_proven, out_machine, error);
}
