/* What the handlers of machines and of their offers share. */
#pragma once

#include "server/server_internal.h"

/* The machine as the account sees it. */
void handle_machine_send(struct server *server, struct http_request *request, uint64_t account,
                         uint64_t machine);
/* NOT_FOUND; REFUSED when it is another account's than the caller's. */
MUST_CHECK int handle_machine_find_own(struct server *server, struct http_request *request,
                                       uint64_t machine, const struct store_value **out_row,
                                       struct error *error);
