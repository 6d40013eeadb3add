#include "base/memory.h"
#include "market/book_internal.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES_LARGE = 1 << 17 }; /* from which on page tables matter */

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

static void part_of_entry(const struct book_entry *entry, uint32_t number, struct part *out_part)
{
    memcpy(out_part->keys, entry->point.keys, sizeof(out_part->keys));
    out_part->bits = entry->point.bits;
    out_part->score = entry->score;
    out_part->id = entry->id;
    out_part->order = entry->order;
    out_part->below = number;
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
            if (book->place_capacity >= PLACES_LARGE)
                memory_want_huge(book->places, book->place_capacity * sizeof(*book->places));
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
    book_insert(book, &part);
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
    const int at = book_part_index(node, number);
    if (node->order[at] == entry->order) {
        book_part_set(node, at, &part);
        book_refresh_above(book, leaf);
        return;
    }
    book_take_out(book, number);
    book_insert(book, &part);
}

void book_remove(struct book *book, uint32_t number)
{
    ASSERT(number > 0 && number <= book->place_count && book->places[number - 1].item);
    book_take_out(book, number);
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

uint64_t book_bits(const struct book *book, uint32_t number)
{
    ASSERT(number > 0 && number <= book->place_count && book->places[number - 1].item);
    const struct node *node = node_at(book, book->places[number - 1].leaf);
    return node->bits[book_part_index(node, number)];
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
        book_node_sum(node_at(book, node->below[i]), node->below[i], &sum);
        book_part_get(node, i, &said);
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
