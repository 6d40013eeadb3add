#include "peer/lease_verify.h"

#include <inttypes.h>
#include <sodium.h>

int lease_check(const struct lease_document *document, int64_t now_ms, struct error *error)
{
    if (document->expires_ms <= now_ms)
        return error_set(error, ERROR_REFUSED, "lease %" PRIu64 " has expired", document->lease);
    if (document->cores_milli <= 0 || document->ram_bytes <= 0 || document->disk_bytes < 0 ||
        document->tick_ms <= 0)
        return error_set(error, ERROR_CORRUPT, "lease %" PRIu64 " asks for nothing",
                         document->lease);
    return 0;
}

int lease_verify(struct arena *arena, const struct start_message *start,
                 const struct enrolment *enrolment, struct lease_document *out_document,
                 struct error *error)
{
    if (crypto_sign_verify_detached(start->signature, (const uint8_t *)start->document.data,
                                    start->document.size, enrolment->server_public_key) != 0)
        return error_set(error, ERROR_REFUSED, "a lease is not signed by the market");
    struct lease_document document = {0};
    if (lease_document_read(arena, start->document, &document, error) < 0) {
        error->code = ERROR_CORRUPT;
        return error_wrap(error, "read a lease");
    }
    if (document.machine != enrolment->machine)
        return error_set(error, ERROR_REFUSED,
                         "lease %" PRIu64 " is for machine %" PRIu64 ", this is %" PRIu64,
                         document.lease, document.machine, enrolment->machine);
    *out_document = document;
    return 0;
}
