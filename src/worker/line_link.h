/*
 * Line link: messages between ranks (runtime/muster_message.h) over a connection, on a loop.
 */
#pragma once

#include "base/scope.h"
#include "net/loop.h"
#include "runtime/muster_message.h"

struct line_link;

struct line_link_callbacks {
    void (*on_message)(void *context, const struct muster_message *message);
    /* Once: it is over, and the owner frees it. */
    void (*on_closed)(void *context, const char *why);
};

/* The descriptor is the link's. Callbacks may free the link. */
MUST_CHECK int line_link_open_take(struct loop *loop, int fd,
                                   const struct line_link_callbacks *callbacks, void *context,
                                   struct line_link **out_link, struct error *error);
void line_link_free(struct line_link *link); /* NULL is fine */
DEFINE_AUTO(line_link);

/* What does not go at once waits; one that lets too much wait is closed. */
void line_link_send(struct line_link *link, const struct muster_message *message);
