#include "market/book.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/*
 * Leaves and branches are the same struct: FAN parts side by side, a part being an entry (leaf) or
 * all of a lower node (branch). Parts lie in no order; only a split sorts them. One key of all
 * parts is one vector, so that a search compares 16 parts at once and reads only the keys its wish
 * names.
 */
enum { FAN = 16, FEW = 4, JOINED_MAX = 12, CHUNK_BITS = 8, CHUNK = 1 << CHUNK_BITS };
enum { DEPTH_MAX = 16 };

typedef uint8_t row __attribute__((vector_size(FAN)));

struct node {
    row keys[BOOK_KEY_COUNT]; /* of parts that are not there: 0 */
    uint64_t bits[FAN];
    int64_t score[FAN];
    uint64_t id[FAN];
    uint32_t order[FAN]; /* of a branch: about the smallest below */
    uint32_t below[FAN]; /* a node, or an entry's number */
    uint32_t parent;     /* 0: the root; a free node: the next free one */
    uint16_t count;
    bool is_leaf;
};

/* What one part says: the sum of a node, or an entry. */
struct part {
    uint8_t keys[BOOK_KEY_COUNT];
    uint64_t bits;
    int64_t score;
    uint64_t id;
    uint32_t order;
    uint32_t below;
};

struct place {
    void *item; /* NULL: the number is free */
    uint32_t leaf;
    uint32_t next_free;
};

struct book {
    struct node **chunks; /* nodes are numbered from 1 and never move */
    uint32_t node_count;  /* made so far, free ones included */
    uint32_t chunk_count;
    uint32_t free_node;
    uint32_t root;        /* 0: empty */
    struct place *places; /* by entry number - 1 */
    uint32_t place_count;
    uint32_t place_capacity;
    uint32_t free_place;
    size_t count;
};

struct book_found {
    int64_t rank; /* the larger first */
    uint64_t id;  /* then the smaller */
    uint32_t below;
    bool is_entry;
};

/* ---- Points ---------------------------------------------------------------------------------- */

struct book_point book_point_negate(struct book_point point)
{
    struct book_point negated = {.bits = ~point.bits};
    for (int i = 0; i < BOOK_KEY_COUNT; i++)
        negated.keys[i] = (uint8_t)~point.keys[i];
    return negated;
}

struct book_wish book_wish_any(void)
{
    return (struct book_wish){0};
}

bool book_point_fits(const struct book_point *point, const struct book_wish *wish)
{
    for (int i = 0; i < BOOK_KEY_COUNT; i++)
        if (point->keys[i] < wish->least.keys[i])
            return false;
    return (point->bits & wish->least.bits) == wish->least.bits &&
           (wish->any_bits == 0 || (point->bits & wish->any_bits) != 0);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static struct node *node_at(const struct book *book, uint32_t number)
{
    DEBUG_ASSERT(number > 0 && number <= book->node_count);
    return &book->chunks[(number - 1) >> CHUNK_BITS][(number - 1) & (CHUNK - 1)];
}

static uint32_t node_new(struct book *book, bool is_leaf)
{
    uint32_t number = book->free_node;
    if (number) {
        book->free_node = node_at(book, number)->parent;
    } else {
        if (book->node_count == book->chunk_count * CHUNK) {
            book->chunks = realloc(book->chunks, (book->chunk_count + 1) * sizeof(*book->chunks));
            ASSERT(book->chunks);
            book->chunks[book->chunk_count] = aligned_alloc(64, CHUNK * sizeof(struct node));
            ASSERT(book->chunks[book->chunk_count]);
            book->chunk_count++;
        }
        number = ++book->node_count;
    }
    struct node *node = node_at(book, number);
    memset(node->keys, 0, sizeof(node->keys));
    node->parent = 0;
    node->count = 0;
    node->is_leaf = is_leaf;
    return number;
}

static void node_release(struct book *book, uint32_t number)
{
    node_at(book, number)->count = 0;
    node_at(book, number)->parent = book->free_node;
    book->free_node = number;
}

static void part_get(const struct node *node, int at, struct part *out_part)
{
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        out_part->keys[key] = node->keys[key][at];
    out_part->bits = node->bits[at];
    out_part->score = node->score[at];
    out_part->id = node->id[at];
    out_part->order = node->order[at];
    out_part->below = node->below[at];
}

static void part_set(struct node *node, int at, const struct part *part)
{
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        node->keys[key][at] = part->keys[key];
    node->bits[at] = part->bits;
    node->score[at] = part->score;
    node->id[at] = part->id;
    node->order[at] = part->order;
    node->below[at] = part->below;
}

static void part_of_entry(const struct book_entry *entry, uint32_t number, struct part *out_part)
{
    memcpy(out_part->keys, entry->point.keys, sizeof(out_part->keys));
    out_part->bits = entry->point.bits;
    out_part->score = entry->score;
    out_part->id = entry->id;
    out_part->order = entry->order;
    out_part->below = number;
}

static row larger(row left, row right)
{
    const row is_left = (row)(left > right);
    return (left & is_left) | (right & ~is_left);
}

/* Folds the vector onto itself until one is left. */
static uint8_t largest_of(row values)
{
    values = larger(values, __builtin_shufflevector(values, values, 8, 9, 10, 11, 12, 13, 14, 15, 0,
                                                    1, 2, 3, 4, 5, 6, 7));
    uint64_t word;
    memcpy(&word, &values, sizeof(word));
    uint8_t largest = 0;
    for (; word; word >>= 8)
        largest = (uint8_t)word > largest ? (uint8_t)word : largest;
    return largest;
}

/* All of a node that is not empty. */
static void node_sum(const struct node *node, uint32_t number, struct part *out_part)
{
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        out_part->keys[key] = largest_of(node->keys[key]);
    out_part->bits = node->bits[0];
    out_part->score = node->score[0];
    out_part->id = node->id[0];
    out_part->order = node->order[0];
    for (int i = 1; i < node->count; i++) {
        out_part->bits |= node->bits[i];
        if (node->score[i] > out_part->score)
            out_part->score = node->score[i];
        if (node->id[i] < out_part->id)
            out_part->id = node->id[i];
        if (node->order[i] < out_part->order)
            out_part->order = node->order[i];
    }
    out_part->below = number;
}

static int part_index(const struct node *node, uint32_t below)
{
    for (int i = 0; i < node->count; i++)
        if (node->below[i] == below)
            return i;
    UNREACHABLE("a part that is not in its node");
}

/* Who lies in the node learns where it is. */
static void adopt(struct book *book, const struct node *node, uint32_t number, int at)
{
    if (node->is_leaf)
        book->places[node->below[at] - 1].leaf = number;
    else
        node_at(book, node->below[at])->parent = number;
}

static void append_part(struct book *book, uint32_t number, const struct part *part)
{
    struct node *node = node_at(book, number);
    ASSERT(node->count < FAN);
    part_set(node, node->count, part);
    adopt(book, node, number, node->count++);
}

static void drop_part(struct node *node, int at)
{
    struct part last;
    part_get(node, --node->count, &last);
    if (at != node->count)
        part_set(node, at, &last);
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        node->keys[key][node->count] = 0;
}

/* Tells every node above what has become of this one. */
static void refresh_above(struct book *book, uint32_t number)
{
    struct part sum, said;
    for (uint32_t parent; (parent = node_at(book, number)->parent); number = parent) {
        node_sum(node_at(book, number), number, &sum);
        struct node *above = node_at(book, parent);
        const int at = part_index(above, number);
        part_get(above, at, &said);
        if (memcmp(sum.keys, said.keys, sizeof(sum.keys)) == 0 && sum.bits == said.bits &&
            sum.score == said.score && sum.id == said.id && sum.order == said.order)
            return;
        part_set(above, at, &sum);
    }
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* The leaf whose entries are most alike. */
static uint32_t find_leaf(const struct book *book, uint32_t order)
{
    uint32_t number = book->root;
    for (const struct node *node; !(node = node_at(book, number))->is_leaf;) {
        int best = -1, lowest = 0;
        for (int i = 0; i < node->count; i++) {
            if (node->order[i] <= order && (best < 0 || node->order[i] >= node->order[best]))
                best = i;
            if (node->order[i] < node->order[lowest])
                lowest = i;
        }
        number = node->below[best < 0 ? lowest : best];
    }
    return number;
}

static int compare_orders(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

/* Moves the upper half of a full node, and puts the part where it belongs. A part beyond all the
 * others begins a node of its own, so that entries that come in order leave full nodes behind. */
static uint32_t split(struct book *book, uint32_t number, const struct part *part)
{
    struct part parts[FAN + 1];
    struct node *node = node_at(book, number);
    const uint32_t added = node_new(book, node->is_leaf);
    for (int i = 0; i < FAN; i++)
        part_get(node, i, &parts[i]);
    parts[FAN] = *part;
    bool is_last = true;
    for (int i = 0; i < FAN; i++)
        is_last = is_last && parts[i].order <= part->order;
    int kept = FAN;
    if (!is_last) {
        qsort(parts, FAN + 1, sizeof(*parts), compare_orders);
        kept = FAN / 2;
    }
    node->count = 0;
    memset(node->keys, 0, sizeof(node->keys));
    for (int i = 0; i <= FAN; i++)
        append_part(book, i < kept ? number : added, &parts[i]);
    return added;
}

static void grow_root(struct book *book, uint32_t left, uint32_t right)
{
    struct part part;
    book->root = node_new(book, /* is_leaf= */ false);
    node_sum(node_at(book, left), left, &part);
    append_part(book, book->root, &part);
    node_sum(node_at(book, right), right, &part);
    append_part(book, book->root, &part);
}

static void insert_part(struct book *book, uint32_t number, const struct part *part)
{
    struct part carried = *part;
    while (node_at(book, number)->count == FAN) {
        const uint32_t parent = node_at(book, number)->parent;
        const uint32_t added = split(book, number, &carried);
        if (!parent) {
            grow_root(book, number, added);
            return;
        }
        refresh_above(book, number);
        node_sum(node_at(book, added), added, &carried);
        number = parent;
    }
    append_part(book, number, &carried);
    refresh_above(book, number);
}

static void insert_entry(struct book *book, const struct part *part)
{
    if (!book->root)
        book->root = node_new(book, /* is_leaf= */ true);
    insert_part(book, find_leaf(book, part->order), part);
}

/* ---- Removing -------------------------------------------------------------------------------- */

static void shrink_root(struct book *book)
{
    for (;;) {
        const uint32_t root = book->root;
        const struct node *node = node_at(book, root);
        if (node->is_leaf || node->count != 1)
            return;
        book->root = node->below[0];
        node_release(book, root);
        node_at(book, book->root)->parent = 0;
    }
}

/* The part of `above` that has room for all of a node with few parts: the nearest in order. */
static int find_room(const struct book *book, const struct node *above, int at, int count)
{
    int best = -1;
    uint32_t best_distance = UINT32_MAX;
    for (int i = 0; i < above->count; i++) {
        const uint32_t distance = above->order[i] > above->order[at]
                                      ? above->order[i] - above->order[at]
                                      : above->order[at] - above->order[i];
        if (i != at && (best < 0 || distance < best_distance) &&
            node_at(book, above->below[i])->count + count <= JOINED_MAX) {
            best = i;
            best_distance = distance;
        }
    }
    return best;
}

/* Empty nodes go, and those with few parts join a neighbour. */
static void tidy(struct book *book, uint32_t number)
{
    uint32_t parent;
    while ((parent = node_at(book, number)->parent)) {
        struct node *node = node_at(book, number);
        struct node *above = node_at(book, parent);
        if (node->count > FEW)
            break;
        const int at = part_index(above, number);
        if (node->count > 0) {
            const int room = find_room(book, above, at, node->count);
            if (room < 0)
                break;
            const uint32_t joined = above->below[room];
            struct part part;
            for (int i = 0; i < node->count; i++) {
                part_get(node, i, &part);
                append_part(book, joined, &part);
            }
            node_sum(node_at(book, joined), joined, &part);
            part_set(above, room, &part);
        }
        drop_part(above, at);
        node_release(book, number);
        number = parent;
    }
    if (node_at(book, number)->count > 0)
        refresh_above(book, number);
}

static void remove_entry(struct book *book, uint32_t number)
{
    const uint32_t leaf = book->places[number - 1].leaf;
    struct node *node = node_at(book, leaf);
    drop_part(node, part_index(node, number));
    tidy(book, leaf);
    shrink_root(book);
    if (node_at(book, book->root)->count == 0) {
        node_release(book, book->root);
        book->root = 0;
    }
}

/* ---- The book -------------------------------------------------------------------------------- */

struct book *book_new(void)
{
    struct book *book = calloc(1, sizeof(*book));
    ASSERT(book);
    return book;
}

void book_free(struct book *book)
{
    if (!book)
        return;
    for (uint32_t i = 0; i < book->chunk_count; i++)
        free(book->chunks[i]);
    free(book->chunks);
    free(book->places);
    free(book);
}

static uint32_t place_new(struct book *book, void *item)
{
    uint32_t number = book->free_place;
    if (number) {
        book->free_place = book->places[number - 1].next_free;
    } else {
        if (book->place_count == book->place_capacity) {
            book->place_capacity += book->place_capacity / 2 + 64;
            book->places = realloc(book->places, book->place_capacity * sizeof(*book->places));
            ASSERT(book->places && book->place_capacity < UINT32_MAX / 2);
        }
        number = ++book->place_count;
    }
    book->places[number - 1] = (struct place){.item = item};
    return number;
}

uint32_t book_add(struct book *book, const struct book_entry *entry)
{
    struct part part;
    ASSERT(entry->item);
    const uint32_t number = place_new(book, entry->item);
    part_of_entry(entry, number, &part);
    insert_entry(book, &part);
    book->count++;
    return number;
}

void book_change(struct book *book, uint32_t number, const struct book_entry *entry)
{
    ASSERT(number > 0 && number <= book->place_count && book->places[number - 1].item);
    struct part part;
    part_of_entry(entry, number, &part);
    book->places[number - 1].item = entry->item;
    const uint32_t leaf = book->places[number - 1].leaf;
    struct node *node = node_at(book, leaf);
    const int at = part_index(node, number);
    if (node->order[at] == entry->order) {
        part_set(node, at, &part);
        refresh_above(book, leaf);
        return;
    }
    remove_entry(book, number);
    insert_entry(book, &part);
}

void book_remove(struct book *book, uint32_t number)
{
    ASSERT(number > 0 && number <= book->place_count && book->places[number - 1].item);
    remove_entry(book, number);
    book->places[number - 1] = (struct place){.next_free = book->free_place};
    book->free_place = number;
    book->count--;
}

size_t book_count(const struct book *book)
{
    return book->count;
}

void *book_item(const struct book *book, uint32_t number)
{
    ASSERT(number > 0 && number <= book->place_count);
    return book->places[number - 1].item;
}

size_t book_memory_bytes(const struct book *book)
{
    return sizeof(*book) +
           book->chunk_count * (sizeof(*book->chunks) + CHUNK * sizeof(struct node)) +
           book->place_capacity * sizeof(*book->places);
}

static size_t check_node(const struct book *book, uint32_t number, int depth)
{
    const struct node *node = node_at(book, number);
    size_t entries = 0;
    ASSERT(depth < DEPTH_MAX && node->count > 0 && node->count <= FAN);
    for (int i = 0; i < node->count; i++) {
        if (node->is_leaf) {
            ASSERT(book->places[node->below[i] - 1].leaf == number &&
                   book->places[node->below[i] - 1].item);
            entries++;
            continue;
        }
        struct part sum, said;
        ASSERT(node_at(book, node->below[i])->parent == number);
        node_sum(node_at(book, node->below[i]), node->below[i], &sum);
        part_get(node, i, &said);
        ASSERT(memcmp(sum.keys, said.keys, sizeof(sum.keys)) == 0 && sum.bits == said.bits &&
               sum.score == said.score && sum.id == said.id);
        entries += check_node(book, node->below[i], depth + 1);
    }
    return entries;
}

void book_check(const struct book *book)
{
    ASSERT((book->root ? check_node(book, book->root, 0) : 0) == book->count);
    ASSERT(!book->root || node_at(book, book->root)->parent == 0);
}

/* ---- Searching ------------------------------------------------------------------------------- */

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

/* Which parts reach every key of the wish: 255 or 0 for each. False: none does. */
static bool find_reaching(const struct book_search *search, const struct node *node,
                          row *out_reaching)
{
    row reaching = ~(row){0};
    for (int i = 0; i < search->named_count; i++) {
        const int key = search->named_keys[i];
        reaching &= (row)(node->keys[key] >= (row){0} + search->wish.least.keys[key]);
    }
    uint64_t halves[2];
    memcpy(halves, &reaching, sizeof(halves));
    *out_reaching = reaching;
    return (halves[0] | halves[1]) != 0;
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

static void enter(struct book_search *search, uint32_t number)
{
    const struct node *node = node_at(search->book, number);
    row reaching;
    search->looked_at += node->count;
    if (!find_reaching(search, node, &reaching))
        return;
    for (int i = 0; i < node->count; i++)
        if (reaching[i] && has_bits(&search->wish, node->bits[i]) &&
            (!node->is_leaf || is_after(search, node, i)))
            heap_push(search, (struct book_found){.rank = rank_of(&search->sort, node, i),
                                                  .id = node->id[i],
                                                  .below = node->below[i],
                                                  .is_entry = node->is_leaf});
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
