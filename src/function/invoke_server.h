/*
 * Invoke server: a function host over HTTP, by the calls of Lambda's API that running a function
 * takes.
 *
 *     POST /2015-03-31/functions/NAME/invocations     X-Amz-Invocation-Type, X-Amz-Log-Type
 *     GET  /2015-03-31/functions/NAME/configuration
 *     PUT  /2015-03-31/functions/NAME/configuration   {"MemorySize": MB, "Timeout": s}
 *
 * Everyone who calls has the token, as "Authorization: Bearer TOKEN". Errors are Lambda's:
 * X-Amzn-Errortype and {"Type", "Message"}; one in the function itself is status 200 with
 * X-Amz-Function-Error.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"
#include "function/host.h"
#include "net/address.h"

#include <stdint.h>

struct invoke_server_options {
    struct loop *loop;
    struct host *host;
    const char *name;  /* of the function */
    const char *token; /* copied */
    struct address listen;
    const char *certificate_pem, *key_pem; /* both: HTTPS; neither: plain */
};

struct invoke_server;

/* Loop and host outlive it. */
MUST_CHECK int invoke_server_open(const struct invoke_server_options *options,
                                  struct invoke_server **out_server, struct error *error);
void invoke_server_free(struct invoke_server *server); /* NULL is fine */
DEFINE_AUTO(invoke_server);

uint16_t invoke_server_port(const struct invoke_server *server);
