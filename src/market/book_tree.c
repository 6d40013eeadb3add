/* The tree of a book: nodes, and how entries come into them and leave. */
#include "base/memory.h"
#include "market/book_internal.h"

#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- Nodes ----------------------------------------------------------------------------------- */

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
            if (book->chunk_count > 0) /* small books stay small */
                memory_want_huge(book->chunks[book->chunk_count], CHUNK * sizeof(struct node));
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

void book_part_get(const struct node *node, int at, struct part *out_part)
{
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        out_part->keys[key] = node->keys[key][at];
    out_part->bits = node->bits[at];
    out_part->score = node->score[at];
    out_part->id = node->id[at];
    out_part->order = node->order[at];
    out_part->below = node->below[at];
}

void book_part_set(struct node *node, int at, const struct part *part)
{
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        node->keys[key][at] = part->keys[key];
    node->bits[at] = part->bits;
    node->score[at] = part->score;
    node->id[at] = part->id;
    node->order[at] = part->order;
    node->below[at] = part->below;
}

static book_row larger(book_row left, book_row right)
{
#if defined(__SSE2__)
    return (book_row)_mm_max_epu8((__m128i)left, (__m128i)right);
#else
    const book_row is_left = (book_row)(left > right);
    return (left & is_left) | (right & ~is_left);
#endif
}

/* Of two rows, the larger of each one's halves, side by side in turns. */
static book_row fold(book_row left, book_row right)
{
    return larger(__builtin_shufflevector(left, right, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                          22, 7, 23),
                  __builtin_shufflevector(left, right, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                          14, 30, 15, 31));
}

/* The largest of each of 16 rows: four times half as many rows of twice as many. Those that are
 * folded first come to lie farthest apart, so they are taken eight apart. */
static book_row largest_of_rows(const book_row rows[FAN])
{
    book_row left[FAN];
    for (int i = 0; i < 8; i++)
        left[i] = fold(rows[i], rows[i + 8]);
    for (int i = 0; i < 4; i++)
        left[i] = fold(left[i], left[i + 4]);
    for (int i = 0; i < 2; i++)
        left[i] = fold(left[i], left[i + 2]);
    return fold(left[0], left[1]);
}

void book_node_sum(const struct node *node, uint32_t number, struct part *out_part)
{
    _Static_assert((int)BOOK_KEY_COUNT > (int)FAN && (int)BOOK_KEY_COUNT <= 2 * FAN,
                   "two times sixteen rows");
    book_row rest[FAN] = {{0}};
    memcpy(rest, node->keys + FAN, (BOOK_KEY_COUNT - FAN) * sizeof(*rest));
    const book_row sums[] = {largest_of_rows(node->keys), largest_of_rows(rest)};
    memcpy(out_part->keys, sums, sizeof(out_part->keys));
    uint64_t bits = node->bits[0], id = node->id[0], order = node->order[0];
    int64_t score = node->score[0];
    for (int i = 1; i < node->count; i++) { /* no jumps: nobody could foresee them */
        bits |= node->bits[i];
        score = node->score[i] > score ? node->score[i] : score;
        id = node->id[i] < id ? node->id[i] : id;
        order = node->order[i] < order ? node->order[i] : order;
    }
    out_part->bits = bits;
    out_part->score = score;
    out_part->id = id;
    out_part->order = order;
    out_part->below = number;
}

int book_part_index(const struct node *node, uint32_t below)
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
    book_part_set(node, node->count, part);
    adopt(book, node, number, node->count++);
}

static void drop_part(struct node *node, int at)
{
    struct part last;
    book_part_get(node, --node->count, &last);
    if (at != node->count)
        book_part_set(node, at, &last);
    for (int key = 0; key < BOOK_KEY_COUNT; key++)
        node->keys[key][node->count] = 0;
}

void book_refresh_above(struct book *book, uint32_t number)
{
    struct part sum, said;
    for (uint32_t parent; (parent = node_at(book, number)->parent); number = parent) {
        book_node_sum(node_at(book, number), number, &sum);
        struct node *above = node_at(book, parent);
        const int at = book_part_index(above, number);
        book_part_get(above, at, &said);
        if (memcmp(sum.keys, said.keys, sizeof(sum.keys)) == 0 && sum.bits == said.bits &&
            sum.score == said.score && sum.id == said.id && sum.order == said.order)
            return;
        book_part_set(above, at, &sum);
    }
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* The part with the largest order up to that one; if all are beyond it, with the smallest. */
static int find_alike(const struct node *node, uint64_t order)
{
    /* Those beyond wrap around to large distances, the smallest order to the largest. */
    uint64_t nearest = UINT64_MAX, farthest = 0;
    int near = 0, far = 0;
    for (int i = 0; i < node->count; i++) {
        const uint64_t distance = order - node->order[i];
        near = distance <= nearest ? i : near;
        nearest = distance <= nearest ? distance : nearest;
        far = distance > farthest ? i : far;
        farthest = distance > farthest ? distance : farthest;
    }
    return node->order[near] <= order ? near : far;
}

/* The leaf whose entries are most alike. */
static uint32_t find_leaf(const struct book *book, uint64_t order)
{
    uint32_t number = book->root;
    for (const struct node *node; !(node = node_at(book, number))->is_leaf;)
        number = node->below[find_alike(node, order)];
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
        book_part_get(node, i, &parts[i]);
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
    book_node_sum(node_at(book, left), left, &part);
    append_part(book, book->root, &part);
    book_node_sum(node_at(book, right), right, &part);
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
        book_refresh_above(book, number);
        book_node_sum(node_at(book, added), added, &carried);
        number = parent;
    }
    append_part(book, number, &carried);
    book_refresh_above(book, number);
}

void book_insert(struct book *book, const struct part *part)
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
    uint64_t best_distance = UINT64_MAX;
    for (int i = 0; i < above->count; i++) {
        const uint64_t distance = above->order[i] > above->order[at]
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
        const int at = book_part_index(above, number);
        if (node->count > 0) {
            const int room = find_room(book, above, at, node->count);
            if (room < 0)
                break;
            const uint32_t joined = above->below[room];
            struct part part;
            for (int i = 0; i < node->count; i++) {
                book_part_get(node, i, &part);
                append_part(book, joined, &part);
            }
            book_node_sum(node_at(book, joined), joined, &part);
            book_part_set(above, room, &part);
        }
        drop_part(above, at);
        node_release(book, number);
        number = parent;
    }
    if (node_at(book, number)->count > 0)
        book_refresh_above(book, number);
}

void book_take_out(struct book *book, uint32_t number)
{
    const uint32_t leaf = book->places[number - 1].leaf;
    struct node *node = node_at(book, leaf);
    drop_part(node, book_part_index(node, number));
    tidy(book, leaf);
    shrink_root(book);
    if (node_at(book, book->root)->count == 0) {
        node_release(book, book->root);
        book->root = 0;
    }
}
