/*
 * Inside of exchange messages: those between servers (message_range.c), and what the two files read
 * with. A value out of range fails the reader.
 */
#pragma once

#include "exchange/message.h"
#include "wire/wire.h"

int64_t message_get_span(struct wire_reader *reader); /* from 0 to a day */
double message_get_finite(struct wire_reader *reader);
enum codec message_get_codec(struct wire_reader *reader);
/* One of 1 to EXCHANGE_SERVERS_MAX servers, or the replica behind them. */
void message_get_server(struct wire_reader *reader, uint32_t *out_server, uint32_t *out_servers);

void range_message_encode(struct buffer *payload, const struct exchange_message *message);
/* The type is set. */
void range_message_decode(struct wire_reader *reader, struct exchange_message *message);
