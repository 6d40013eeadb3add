/*
 * Escape: a program that tries to get out of its sandbox, one attempt after the other.
 *
 * Each attempt is a row: what it does, and every answer by which it counts as refused. It prints
 * "NAME: ANSWER, refused" or "NAME: ANSWER, NOT REFUSED". Built without sanitizers, which need
 * calls that a sandbox refuses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* What the attempts aim at, outside. */
struct escape_targets {
    int pid;               /* a process of the owner */
    int leaked_fd;         /* a descriptor beyond those handed in; -1: none */
    int port;              /* where a server of the owner listens, on all addresses */
    const char *secret;    /* a file of the owner that everybody may read */
    const char *socket;    /* the name of an abstract local socket */
    const char *state_dir; /* the folder of the daemon that runs the lease; "": there is none */
};

/* What came of it: not below zero when it worked, else -1 with errno set. */
typedef long escape_function(const struct escape_targets *targets);

struct escape_attempt {
    const char *name;
    escape_function *run;
    const char *refusals; /* "EPERM", "EPERM|ENOSYS", "SIGSYS" */
};

/* Each ends with a row without a name. */
extern const struct escape_attempt escape_files[];
extern const struct escape_attempt escape_processes[];
extern const struct escape_attempt escape_kernel[];
extern const struct escape_attempt escape_sockets[]; /* in a sandbox without any */
extern const struct escape_attempt escape_local[];   /* in one with local sockets */
extern const struct escape_attempt escape_network[]; /* in one with a network */
extern const struct escape_attempt escape_open[];    /* in one with the Internet */
extern const struct escape_attempt escape_lease[];   /* in a command's lease */

/* Takes as much as there is of one thing; returns 64 when there is no such bomb. */
int escape_bomb(const char *what);
