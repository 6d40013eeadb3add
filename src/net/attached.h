/*
 * Attached: this machine's own addresses and every network it is attached to, as the kernel tells
 * them now and whenever they change (rtnetlink).
 *
 * A route of eight bits or more counts as a network of the machine's, however it is reached: a
 * VPN's or a campus's as well as that on the cable. Shorter ones stand for "everything else", which
 * some VPNs write as two halves. The gateways of all routes count too. IPv4 alone.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/fence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attached;

MUST_CHECK int attached_open(struct attached **out_attached, struct error *error);
void attached_free(struct attached *attached); /* NULL is fine */
DEFINE_AUTO(attached);

/* Readable when something has changed since the last attached_read. */
int attached_fd(const struct attached *attached);
/* Adds what there is now to the fence. A failure leaves it incomplete: not to be opened. */
MUST_CHECK int attached_read(struct attached *attached, struct fence *fence, struct error *error);

/*
 * What the kernel answered to one question, a message or several; *out_is_done at its end,
 * *out_is_torn when it changed meanwhile and has to be asked again.
 */
MUST_CHECK int attached_parse(const uint8_t *bytes, size_t size, struct fence *fence,
                              bool *out_is_done, bool *out_is_torn, struct error *error);
