/* Seccomp, inside: lists of system calls by name, each ended by NULL. */
#pragma once

/* All that a program may call at all. */
extern const char *const seccomp_allowed_calls[];
/* Of the others, those that get EPERM. */
extern const char *const seccomp_refused_calls[];
/* Of the allowed ones: memory that is no process's, only a cgroup counts it. */
extern const char *const seccomp_uncounted_calls[];
/* Of the allowed ones: to open and dial sockets. One that was handed in could be disconnected and
 * dialled elsewhere. */
extern const char *const seccomp_socket_calls[];
