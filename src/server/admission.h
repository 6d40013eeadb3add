/*
 * Admission: who may wait at the link port before having proved to be a machine.
 *
 * Anyone can connect, and so anyone can fill the places there are. Each address block has only so
 * many; when a block has all of its own, or all blocks together have all there are, one that waits
 * makes room for the newcomer: of the block with the most, the one that has said nothing for the
 * longest, else the oldest. So who is honest, and done within a few round trips, gets in however
 * many places a flood holds, unless it comes from as many blocks. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ADMISSION_MAX = 512, ADMISSION_BLOCK_MAX = 128 };

struct admission_guest {
    uint64_t block; /* client_address.h */
    bool is_silent; /* not a byte has come from it */
    bool is_known;  /* a machine has proved its key: it is not asked to go */
};

enum admission_kind { ADMISSION_FREE, ADMISSION_INSTEAD, ADMISSION_FULL };

struct admission {
    enum admission_kind kind;
    size_t index; /* of INSTEAD: the guest that goes */
};

/* Whether one more of `block` may come. At most ADMISSION_MAX guests, in the order they came. */
struct admission admission_judge(const struct admission_guest *guests, size_t count,
                                 uint64_t block);
