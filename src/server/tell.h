/*
 * Tell: which of the addresses that somebody says to have are told to a lender's machine.
 *
 * Only those that the machine would dial, and of these only the one that the market itself sees the
 * other at, or private ones where it sees both at the same: nobody has lenders knock at a third.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* `asked_at` and `told_at` are where the market sees the two: hosts, as connection_host has them.
 */
bool tell_may(const char *asked_at, const char *told_at, struct text address);

/* Of an IPv4 address, also as a socket of both kinds has it; 0: it is none. */
uint32_t tell_host_number(const char *host);
