/* The walk over the entries of a book that fit a wish. */
#include "market/book_internal.h"

#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

struct book_found {
    int64_t rank; /* the larger first */
    uint64_t id;  /* then the smaller */
    uint32_t below;
    bool is_entry;
};

static bool comes_before(const struct book_found *left, const struct book_found *right)
{
    return left->rank != right->rank ? left->rank > right->rank : left->id < right->id;
}

static void heap_push(struct book_search *search, struct book_found found)
{
    if (search->heap_count == search->heap_capacity) {
        search->heap_capacity = search->heap_capacity ? search->heap_capacity * 2 : 256;
        search->heap = realloc(search->heap, search->heap_capacity * sizeof(*search->heap));
        ASSERT(search->heap);
    }
    size_t at = search->heap_count++;
    for (; at > 0 && comes_before(&found, &search->heap[(at - 1) / 2]); at = (at - 1) / 2)
        search->heap[at] = search->heap[(at - 1) / 2];
    search->heap[at] = found;
}

static struct book_found heap_pop(struct book_search *search)
{
    struct book_found *heap = search->heap;
    const struct book_found first = heap[0];
    const struct book_found last = heap[--search->heap_count];
    const size_t count = search->heap_count;
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static int64_t rank_of(const struct book_sort *sort, const struct node *node, int at)
{
    switch (sort->by) {
    case BOOK_BY_SCORE:
        return node->score[at];
    case BOOK_BY_KEYS:
        return node->keys[sort->first_key][at] << 8 | node->keys[sort->second_key][at];
    case BOOK_BY_ID:
        return 0;
    }
    UNREACHABLE("a sort without a rank");
}

/* A bit for each part. */
static uint32_t mask_of(book_row row)
{
#if defined(__SSE2__)
    return (uint32_t)_mm_movemask_epi8((__m128i)row);
#else
    uint32_t mask = 0;
    for (int i = 0; i < FAN; i++)
        mask |= (uint32_t)(row[i] & 1) << i;
    return mask;
#endif
}

/* Which parts reach every key of the wish. */
static uint32_t find_reaching(const struct book_search *search, const struct node *node)
{
    book_row reaching = ~(book_row){0};
    for (int i = 0; i < search->named_count; i++) {
        const int key = search->named_keys[i];
        reaching &= (book_row)(node->keys[key] >= (book_row){0} + search->wish.least.keys[key]);
    }
    return mask_of(reaching) & ((1U << node->count) - 1);
}

static bool has_bits(const struct book_wish *wish, uint64_t bits)
{
    return (bits & wish->least.bits) == wish->least.bits &&
           (wish->any_bits == 0 || (bits & wish->any_bits) != 0);
}

static bool is_after(const struct book_search *search, const struct node *node, int at)
{
    const int64_t rank = rank_of(&search->sort, node, at);
    return rank != search->mark.rank ? rank < search->mark.rank : node->id[at] > search->mark.id;
}

/* Most that is found is entered or given soon: what is read first is on its way by then. */
static void prefetch(const struct book *book, const struct book_found *found)
{
    if (found->is_entry) {
        __builtin_prefetch(&book->places[found->below - 1]);
        return;
    }
    const struct node *node = node_at(book, found->below);
    __builtin_prefetch(&node->count);
    __builtin_prefetch(&node->keys[3]);
    __builtin_prefetch(&node->keys[7]);
    __builtin_prefetch(&node->bits[0]);
    __builtin_prefetch(&node->bits[FAN / 2]);
}

static void enter(struct book_search *search, uint32_t number)
{
    const struct node *node = node_at(search->book, number);
    search->looked_at += node->count;
    for (uint32_t mask = find_reaching(search, node); mask; mask &= mask - 1) {
        const int at = __builtin_ctz(mask);
        if (!has_bits(&search->wish, node->bits[at]) ||
            (node->is_leaf && !is_after(search, node, at)))
            continue;
        const struct book_found found = {.rank = rank_of(&search->sort, node, at),
                                         .id = node->id[at],
                                         .below = node->below[at],
                                         .is_entry = node->is_leaf};
        prefetch(search->book, &found);
        heap_push(search, found);
    }
}

static void name_keys(struct book_search *search)
{
    search->named_count = 0;
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        if (search->wish.least.keys[key])
            search->named_keys[search->named_count++] = (uint8_t)key;
}

void book_search_start(struct book_search *search, const struct book *book,
                       const struct book_wish *wish, struct book_sort sort)
{
    book_search_start_after(search, book, wish, sort, (struct book_mark){.rank = INT64_MAX});
}

void book_search_start_after(struct book_search *search, const struct book *book,
                             const struct book_wish *wish, struct book_sort sort,
                             struct book_mark mark)
{
    search->book = book;
    search->mark = mark;
    search->wish = *wish;
    search->sort = sort;
    search->heap_count = 0;
    search->looked_at = 0;
    name_keys(search);
    if (book->root)
        enter(search, book->root);
}

void *book_search_next(struct book_search *search)
{
    while (search->heap_count > 0) {
        const struct book_found found = heap_pop(search);
        if (found.is_entry) {
            search->mark = (struct book_mark){found.rank, found.id};
            if (search->heap_count > 0 && search->heap[0].is_entry)
                __builtin_prefetch(search->book->places[search->heap[0].below - 1].item);
            return search->book->places[found.below - 1].item;
        }
        enter(search, found.below);
    }
    return NULL;
}

void book_search_done(struct book_search *search)
{
    free(search->heap);
    *search = (struct book_search){0};
}
