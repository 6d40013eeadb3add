/* What the handlers of statements and of transfers share. */
#pragma once

#include "server/view.h"

/* The entry with the names an account's statement shows beside it; texts are in the arena. */
struct view_entry handle_entry_view(struct server *server, struct arena *arena,
                                    const struct statement_entry *entry, uint64_t account);
