/*
 * Script: a borrower's process and what it starts, in a process group of its own.
 *
 * Its standard output and error are this process's; it has no other descriptor of ours.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "net/loop.h"

struct script;

struct script_options {
    struct loop *loop;
    char **arguments; /* "sh" first: the shell that is there */
    const char *folder;
    char **environment;
    void (*on_exit)(void *context, const struct child_exit *exit);
    void *context;
};

MUST_CHECK int script_start(const struct script_options *options, struct script **out_script,
                            struct error *error);
/* All of it is asked to end, and killed after `grace_ms`; 0: it is only asked. */
void script_stop(struct script *script, int64_t grace_ms);
/* Kills what is left of it. */
void script_free(struct script *script); /* NULL is fine */
DEFINE_AUTO(script);
