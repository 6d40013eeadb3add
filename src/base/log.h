/*
 * Log: one event per line on standard error, "2026-11-15T08:44:55.120Z info lease_started
 * key=value".
 *
 * Only programs log, once, where a failure stops. Values are given as key=value by the format;
 * control characters that came with them are shown as '?', and a quote or backslash inside a value
 * written as key=\"%s\" gets a backslash before it, so that no input can forge a line or a key.
 * Secrets are never passed to a log call.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

/* Lines above this level are left out. The default is LOG_INFO. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
MUST_CHECK int log_level_parse(struct text name, enum log_level *out_level, struct error *error);

void log_event(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
