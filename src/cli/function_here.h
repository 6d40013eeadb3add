/*
 * Function here: a function host on this machine, with its sandboxes and its store; what `souk
 * function host` listens for and `souk function train` uses without asking.
 */
#pragma once

#include "base/scope.h"
#include "function/host.h"

struct function_here_options {
    const char *state_dir;    /* made with mode 0700; DIR-1, DIR-2, ... while others have it */
    const char *store;        /* a folder, made if it is not there; NULL: none */
    struct host_options host; /* all but its sandboxes and its store */
};

struct function_here {
    int lock_fd; /* of its folder: what is left in there is nobody's */
    struct sandbox_host *sandboxes;
    struct host *host;
};

/* UNAVAILABLE where no sandbox can be started. */
MUST_CHECK int function_here_open(const struct function_here_options *options,
                                  struct function_here **out_here, struct error *error);
void function_here_free(struct function_here *here); /* NULL is fine */
DEFINE_AUTO(function_here);
