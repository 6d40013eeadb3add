/*
 * Book: entries with keys from 0 to 255, found best first by a wish over all keys at once.
 *
 * An entry fits a wish when each key reaches the wish's, all wished bits are there, and at least
 * one of the alternatives is (none wished: any will do). Entries come by falling score (or a key),
 * equal ones by rising id: the order depends on the entries alone, not on how they got here.
 *
 * A tree whose nodes carry, of each part below them, the largest of every key, the union of the
 * bits, the largest score and the smallest id: a part that cannot hold a fit, or none as good as
 * one already seen, is not entered. A conjunction that no entry meets but every part seems to must
 * be looked at entry by entry, so alike entries should lie together: `order` is a number of the
 * caller's making, near for entries that are alike. It changes the time, never the answer. At
 * worst a search looks at each entry once. Adding, changing and removing take O(log n).
 *
 * The same book asked the other way round (which wishes does one thing fulfil?) holds the wishes'
 * keys and bits negated and is asked with the thing's own, negated: book_point_negate.
 */
#pragma once

#include "base/scope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BOOK_KEY_COUNT = 19 };

struct book_point {
    uint8_t keys[BOOK_KEY_COUNT]; /* of a wish, 0: any will do */
    uint64_t bits;
};

struct book_entry {
    struct book_point point;
    int64_t score;
    uint64_t id;    /* unique in the book */
    uint64_t order; /* where alike ones lie */
    void *item;     /* the caller's; not NULL */
};

struct book_wish {
    struct book_point least;
    uint64_t any_bits; /* 0: no alternatives */
};

/* The way an entry's keys look to one who asks which wishes it fulfils, and a wish's to be asked.
 */
struct book_point book_point_negate(struct book_point point);
/* The wish that every entry fits. */
struct book_wish book_wish_any(void);
bool book_point_fits(const struct book_point *point, const struct book_wish *wish);

struct book;

struct book *book_new(void);
void book_free(struct book *book); /* NULL is fine */
DEFINE_AUTO(book);

/* A number for the entry, the book's own until it is removed. Never 0. */
uint32_t book_add(struct book *book, const struct book_entry *entry);
void book_change(struct book *book, uint32_t number, const struct book_entry *entry);
void book_remove(struct book *book, uint32_t number);

size_t book_count(const struct book *book);
uint64_t book_bits(const struct book *book, uint32_t number);
void *book_item(const struct book *book, uint32_t number);
/* Bytes taken from the heap. */
size_t book_memory_bytes(const struct book *book);
/* Aborts when a node does not say what lies below it; for tests. */
void book_check(const struct book *book);

enum book_by { BOOK_BY_SCORE, BOOK_BY_KEYS, BOOK_BY_ID };

struct book_sort {
    enum book_by by;
    int first_key; /* by keys: the larger first, then the larger of the second key */
    int second_key;
};

/* An entry by where it comes in a walk. */
struct book_mark {
    int64_t rank;
    uint64_t id;
};

/* A walk over the fits. Zeroed before its first start; keeps its memory for the next. The book may
 * not change while it goes on. */
struct book_search {
    const struct book *book;
    struct book_wish wish;
    struct book_sort sort;
    struct book_found *heap;
    size_t heap_count;
    size_t heap_capacity;
    uint8_t named_keys[BOOK_KEY_COUNT]; /* those the wish asks for */
    int named_count;
    struct book_mark mark; /* the entry given last, or after which to begin */
    uint64_t looked_at;    /* nodes' parts and entries compared with the wish */
};

void book_search_start(struct book_search *search, const struct book *book,
                       const struct book_wish *wish, struct book_sort sort);
/* Goes on after the entry that another walk of the same sort gave last. */
void book_search_start_after(struct book_search *search, const struct book *book,
                             const struct book_wish *wish, struct book_sort sort,
                             struct book_mark mark);
/* The next item, NULL when there is none. */
void *book_search_next(struct book_search *search);
void book_search_done(struct book_search *search);
