/* What the handlers of machines and of their offers share. */
#pragma once

#include "server/server_internal.h"

/* The machine as the account sees it. */
void handle_machine_send(struct server *server, struct http_request *request, uint64_t account,
                         uint64_t machine);
