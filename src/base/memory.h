/*
 * Memory: takes what a process cannot go on without, and gives back what one that has become idle
 * does not need to keep resident.
 */
#pragma once

#include <stddef.h>

/* Zeroed memory for `count` items, which may be 0, of `size` bytes; free it. Only for counts that
 * do not come from outside: the process ends where there is no room. AUTO locals are best made by
 * it: clang's analyzer, which does not know AUTO, takes what calloc gave them to leak. */
void *memory_zeroed(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/*
 * Returns free heap pages and lets go of the program's and its libraries' code pages, which are
 * unchanged copies of files: what runs again is mapped again from the page cache. Cheap, but not
 * for inner loops. Does nothing where /proc is not there.
 */
void memory_trim(void);

/* Asks for huge pages where a large array lies: what is looked up at random in it is found without
 * a long walk of page tables. It is only faster; nothing happens where there are none. */
void memory_want_huge(void *start, size_t size);

/* Bytes of this process in memory (VmRSS); 0 where /proc is not there. */
long long memory_resident_bytes(void);
