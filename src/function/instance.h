/*
 * Instance: the process of a function inside its sandbox: `souk function-instance`, hidden, started
 * by a host (function/host.h).
 *
 * It says READY over descriptor 3 and then answers calls, one at a time, until that closes. Its
 * store is /store; where the host gives it the network, also S3 by the credentials in its
 * environment, and that of the market whose address and fingerprint are its arguments, by the
 * token of each call.
 */
#pragma once

#define INSTANCE_COMMAND "function-instance"
#define INSTANCE_STORE   "/store"

/* Returns the process's exit status. */
int instance_main(int argc, char **argv);
