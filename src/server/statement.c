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

/* Events that may be shown, newest first, taken from pages until there are enough. */
struct pick {
    uint64_t before;
    uint64_t *events;
    size_t count, wanted;
    uint64_t page[PAGE_ENTRIES_MAX]; /* the page being read, oldest first */
    size_t page_count;
    uint64_t oldest_page; /* the `first` of the last page read */
};

static void pick_add(void *context, uint64_t event)
{
    struct pick *pick = context;
    pick->page[pick->page_count++] = event;
}

static int pick_page(const struct store_row *row, void *context, struct error *error)
{
    struct pick *pick = context;
    pick->page_count = 0;
    pick->oldest_page = (uint64_t)row->values[STATEMENTS_FIRST].integer;
    if (statement_page_read(row->values, pick_add, pick, error) < 0)
        return -1;
    for (size_t i = pick->page_count; i-- > 0 && pick->count < pick->wanted;)
        if (!pick->before || pick->page[i] < pick->before)
            pick->events[pick->count++] = pick->page[i];
    return pick->count == pick->wanted;
}

/* Fills `pick` with the newest events before pick->before, as many as wanted if there are. */
static int pick_events(struct store_reader *reader, uint64_t subject, struct pick *pick,
                       struct error *error)
{
    pick->count = 0;
    uint64_t below = pick->before;
    for (;;) {
        const struct store_filter filters[] = {
            {"subject", STORE_EQUAL, store_integer((int64_t)subject)},
            {"first", STORE_LESS, store_integer((int64_t)below)},
        };
        const struct store_query query = {.table = &tables[TABLE_STATEMENTS],
                                          .filters = filters,
                                          .filter_count = below ? 2 : 1,
                                          .is_descending = true,
                                          .limit = PAGES_AT_ONCE};
        pick->oldest_page = 0;
        if (store_read_rows(reader, &query, pick_page, pick, NULL, error) < 0)
            return -1;
        if (pick->count == pick->wanted || !pick->oldest_page)
            return 0;
        below = pick->oldest_page;
    }
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

static int gather_entry(const struct store_event *stored, void *context, struct error *error)
{
    struct gather *gather = context;
    struct statement *statement = gather->statement;
    struct statement_entry *item = &statement->items[statement->count];
    if (read_entry(gather->scratch, stored, item, error) < 0)
        return -1;
    const uint64_t account = gather->query->account;
    statement->count +=
        !account || item->entry.from_account == account || item->entry.to_account == account;
    return statement->count > gather->query->limit;
}

int statement_read(struct store_reader *reader, struct arena *arena,
                   const struct statement_query *query, struct statement *out_statement,
                   struct error *error)
{
    AUTO(arena) struct arena *scratch = arena_new(0);
    /* One more than is shown: its being there says that a page follows. */
    const size_t wanted = query->limit + 1;
    *out_statement = (struct statement){
        .items = arena_alloc(arena, (wanted + 1) * sizeof(*out_statement->items))};
    struct gather gather = {.scratch = scratch, .query = query, .statement = out_statement};
    const bool is_part = query->account && query->account != query->subject;
    const size_t at_once = is_part && wanted < LOOK_AT_ONCE ? LOOK_AT_ONCE : wanted;
    struct pick *pick = arena_alloc(arena, sizeof(*pick));
    *pick = (struct pick){.before = query->before,
                          .events = arena_alloc(arena, at_once * sizeof(*pick->events)),
                          .wanted = at_once};
    size_t looked = 0;
    if (query->subject > INT64_MAX || query->before > INT64_MAX)
        return 0;
    do {
        if (pick_events(reader, query->subject, pick, error) < 0 ||
            store_read_listed(reader, pick->events, pick->count, gather_entry, &gather, error) < 0)
            return -1;
        if (pick->count)
            pick->before = pick->events[pick->count - 1];
        looked += pick->count;
    } while (pick->count == at_once && out_statement->count < wanted &&
             looked < STATEMENT_LOOK_MAX);
    if (out_statement->count == wanted)
        out_statement->next = out_statement->items[--out_statement->count - 1].event;
    else if (pick->count == at_once)
        out_statement->next = pick->before;
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
