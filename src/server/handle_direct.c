/* Where a job's own account reads what its leases print without the market between them. */
#include "runtime/log_link.h"
#include "server/handle_job.h"
#include "server/handlers.h"
#include "server/hub.h"
#include "server/query.h"
#include "server/view.h"

#include <sodium.h>
#include <stdlib.h>

static void write_place(struct json_writer *writer, const struct store_value *lease,
                        const struct hub_log_place *place)
{
    char identity[LOG_LINK_IDENTITY_SIZE], key[2 * LEASE_KEY_SIZE + 1], rank[LEASE_RANK_NAME_SIZE];
    log_link_identity((uint64_t)lease[LEASES_ID].integer, place->reader, identity);
    text_hex_encode(place->key, sizeof(place->key), key);
    json_object_begin(writer);
    json_field_i64(writer, "lease", lease[LEASES_ID].integer);
    json_field_string(writer, "rank",
                      lease_rank_name((enum lease_role)lease[LEASES_ROLE].integer,
                                      (uint64_t)lease[LEASES_RANK].integer, rank));
    json_field_string(writer, "identity", identity);
    json_field_string(writer, "key", key);
    json_key(writer, "addresses");
    json_array_begin(writer);
    for (uint32_t i = 0; i < place->address_count; i++)
        json_string(writer, place->addresses[i]);
    json_array_end(writer);
    json_object_end(writer);
    sodium_memzero(key, sizeof(key));
}

/* What has ended, or is not linked, or lets nobody connect is left out: the market has its log. */
void handle_job_direct(struct http_request *request, void *context)
{
    struct server *server = context;
    const struct store_value *row = handle_job_find(server, request);
    if (!row)
        return;
    struct error error;
    struct query_rows leases;
    if (handle_job_leases(server, http_request_arena(request), (uint64_t)row[JOBS_ID].integer,
                          &leases, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct view_answer answer;
    view_answer_begin(&answer);
    json_object_begin(&answer.writer);
    json_key(&answer.writer, "items");
    json_array_begin(&answer.writer);
    for (size_t i = 0; i < leases.count; i++) {
        struct hub_log_place place;
        const struct store_value *lease = leases.items[i];
        if (lease[LEASES_STATE].integer != LEASE_STATE_ENDED &&
            hub_open_log(server->hub, (uint64_t)lease[LEASES_ID].integer, &place))
            write_place(&answer.writer, lease, &place);
        sodium_memzero(&place, sizeof(place));
    }
    json_array_end(&answer.writer);
    json_object_end(&answer.writer);
    view_answer_send(&answer, request, 200);
}
