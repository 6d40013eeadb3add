/*
 * Door: a TCP port of the machine's own choosing, on every IPv4 address, and whoever comes to it.
 *
 * What a visitor may do is for whoever opened the door to say: it knows nobody.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"

#include <stdint.h>

struct door;

struct door_options {
    struct loop *loop;
    const char *closed_event; /* logged, a literal, when no more visitors can be let in */
    void (*on_visit_take)(void *context, int fd);
    void *context;
};

/* No callback comes from inside this call. */
MUST_CHECK int door_open(const struct door_options *options, struct door **out_door,
                         struct error *error);
void door_free(struct door *door); /* NULL is fine */
DEFINE_AUTO(door);

uint16_t door_port(const struct door *door);
