/*
 * Upkeep: what the main thread does from time to time: parts of logs and metrics to disk, answers
 * older than a day forgotten.
 */
#pragma once

struct server;
struct upkeep;

struct upkeep *upkeep_new(struct server *server);
void upkeep_free(struct upkeep *upkeep); /* NULL is fine */
