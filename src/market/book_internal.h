/* How a book is kept, for its own files. */
#pragma once

#include "base/assert.h"
#include "market/book.h"

/*
 * Leaves and branches are the same struct: FAN parts side by side, a part being an entry (leaf) or
 * all of a lower node (branch). Parts lie in no order; only a split sorts them. One key of all
 * parts is one vector, so that a search compares 16 parts at once and reads only the keys its wish
 * names.
 */
enum { FAN = 16, FEW = 4, JOINED_MAX = 12, CHUNK_BITS = 12, CHUNK = 1 << CHUNK_BITS };
enum { DEPTH_MAX = 16 };

typedef uint8_t book_row __attribute__((vector_size(FAN)));

struct node {
    uint32_t parent; /* 0: the root; a free node: the next free one */
    uint16_t count;
    bool is_leaf;
    book_row keys[BOOK_KEY_COUNT]; /* of parts that are not there: 0 */
    uint64_t bits[FAN];
    int64_t score[FAN];
    uint64_t id[FAN];
    uint64_t order[FAN]; /* of a branch: about the smallest below */
    uint32_t below[FAN]; /* a node, or an entry's number */
};
/* Most time goes by waiting for nodes: what is read together is in as few cache lines as it can. */
_Static_assert(sizeof(struct node) % 64 == 0 && offsetof(struct node, bits) % 64 == 0,
               "rows of numbers begin with a cache line");

/* What one part says: the sum of a node, or an entry. */
struct part {
    uint8_t keys[BOOK_KEY_COUNT];
    uint64_t bits;
    int64_t score;
    uint64_t id;
    uint64_t order;
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

static inline struct node *node_at(const struct book *book, uint32_t number)
{
    DEBUG_ASSERT(number > 0 && number <= book->node_count);
    return &book->chunks[(number - 1) >> CHUNK_BITS][(number - 1) & (CHUNK - 1)];
}

/* book_tree.c: entries as parts of nodes. */
void book_part_get(const struct node *node, int at, struct part *out_part);
void book_part_set(struct node *node, int at, const struct part *part);
int book_part_index(const struct node *node, uint32_t below);
/* All of a node that is not empty. */
void book_node_sum(const struct node *node, uint32_t number, struct part *out_part);
/* Tells every node above what has become of this one. */
void book_refresh_above(struct book *book, uint32_t number);
void book_insert(struct book *book, const struct part *part);
/* Of an entry that keeps its number. */
void book_take_out(struct book *book, uint32_t number);
