/* The streams of a tenancy, and the files it sends back. */
#include "base/assert.h"
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>

static void stream_entry_free(struct tenancy_stream *entry)
{
    if (entry->stream) {
        const struct stream_counts counts = stream_counts(entry->stream);
        entry->tenancy->ended_bytes_in += counts.bytes_in;
        entry->tenancy->ended_bytes_out += counts.bytes_out;
    }
    list_remove(&entry->node);
    stream_free(entry->stream);
    if (entry->ready_fd >= 0)
        close(entry->ready_fd);
    free(entry);
}

static void stream_entry_hand(struct tenancy_stream *entry)
{
    struct tenancy *tenancy = entry->tenancy;
    if (entry->ready_fd < 0 || !tenancy->has_config || tenancy->has_exited)
        return;
    AUTO_FD int fd = TAKE_FD(entry->ready_fd);
    const struct child_message message = {.kind = CHILD_STREAM,
                                          .stream = {.peer_lease = entry->peer.lease,
                                                     .peer_fence = entry->peer.fence,
                                                     .peer_role = entry->peer.role,
                                                     .peer_rank = entry->peer.rank,
                                                     .fd = fd}};
    tenancy_tell_child(tenancy, &message);
    const struct lease_message ready = {.type = LEASE_MESSAGE_STREAM_READY,
                                        .stream_ready = {.lease = tenancy->document.lease,
                                                         .fence = tenancy->document.fence,
                                                         .peer_lease = entry->peer.lease}};
    outbox_send(tenancy->host->outbox, &ready, tenancy_now_ns(tenancy));
}

static void stream_on_ready(struct stream *stream, int fd, void *context)
{
    struct tenancy_stream *entry = context;
    (void)stream;
    entry->ready_fd = fd;
    stream_entry_hand(entry);
}

static void stream_on_done(struct stream *stream, const struct error *reason, void *context)
{
    struct tenancy_stream *entry = context;
    (void)stream;
    log_event(LOG_DEBUG, "stream_ended", "lease=%" PRIu64 " peer=%" PRIu64 " reason=\"%s\"",
              entry->tenancy->document.lease, entry->peer.lease, reason ? reason->message : "");
    /* The process inside sees the end itself; a new ticket comes from the market. */
    stream_entry_free(entry);
}

void tenancy_dial(struct tenancy *tenancy, const struct tenancy_peer *peer,
                  const uint8_t ticket[LEASE_TICKET_SIZE])
{
    if (lease_document_is_command(&tenancy->document))
        return; /* a command has no use for one, and may make sockets: whatever the market says */
    LIST_EACH(&tenancy->streams, node)
    {
        struct tenancy_stream *old = LIST_ITEM(node, struct tenancy_stream, node);
        if (old->peer.lease == peer->lease)
            stream_entry_free(old);
    }
    struct tenancy_stream *entry = calloc(1, sizeof(*entry));
    ASSERT(entry);
    entry->tenancy = tenancy;
    entry->peer = *peer;
    entry->ready_fd = -1;
    struct stream_options options = {.loop = tenancy->host->loop,
                                     .target = tenancy->host->link_target,
                                     .seed = tenancy->document.lease ^ peer->lease << 20,
                                     .on_ready = stream_on_ready,
                                     .on_done = stream_on_done,
                                     .context = entry};
    memcpy(options.ticket, ticket, LEASE_TICKET_SIZE);
    entry->stream = stream_start(&options);
    list_append(&tenancy->streams, &entry->node);
}

void tenancy_hand_streams(struct tenancy *tenancy)
{
    LIST_EACH(&tenancy->streams, node)
    {
        stream_entry_hand(LIST_ITEM(node, struct tenancy_stream, node));
    }
}

void tenancy_free_streams(struct tenancy *tenancy)
{
    LIST_EACH(&tenancy->streams, node)
    {
        stream_entry_free(LIST_ITEM(node, struct tenancy_stream, node));
    }
}

static void upload_entry_free(struct tenancy_upload *entry)
{
    list_remove(&entry->node);
    upload_free(entry->upload);
    free(entry);
}

static void upload_send(struct tenancy *tenancy, struct text name);
static void uploads_go_on(struct tenancy *tenancy);

/* Results are what a lease is for. A checkpoint that does not get through costs no more than
 * itself: the next one may. */
static void upload_failed(struct tenancy *tenancy, struct text name, const struct error *reason)
{
    struct error error = *reason;
    if (lease_document_is_checkpoint(&tenancy->document, name)) {
        log_event(LOG_WARN, "checkpoint_not_sent", "lease=%" PRIu64 " error=\"%s\"",
                  tenancy->document.lease, error.message);
        tenancy_checkpoint_sent(tenancy, name, NULL, &error);
        return;
    }
    error_wrap(&error, "send back \"" TEXT_FORMAT "\"", TEXT_ARGS(name));
    tenancy_fail(tenancy, &error);
}

static void upload_on_done(void *context, const struct upload_result *result,
                           const struct error *reason)
{
    struct tenancy_upload *entry = context;
    struct tenancy *tenancy = entry->tenancy;
    const struct text name = entry->name;
    const bool is_stale = entry->is_stale && result;
    if (result) {
        struct lease_message message = {.type = LEASE_MESSAGE_ARTIFACT,
                                        .artifact = {.lease = tenancy->document.lease,
                                                     .fence = tenancy->document.fence,
                                                     .name = name,
                                                     .size_bytes = result->size_bytes}};
        memcpy(message.artifact.manifest, result->manifest.bytes, LEASE_HASH_SIZE);
        outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
        tenancy_checkpoint_sent(tenancy, name, result, NULL);
    } else {
        upload_failed(tenancy, name, reason);
    }
    upload_entry_free(entry);
    if (is_stale && !tenancy->has_failed)
        upload_send(tenancy, name);
    else if (!tenancy->has_failed)
        uploads_go_on(tenancy);
    tenancy_ask_for_checkpoints(tenancy);
    tenancy_check_end(tenancy);
}

/* False: it could not, and all uploads may be gone. */
static bool upload_begin(struct tenancy_upload *entry)
{
    struct error error;
    struct tenancy *tenancy = entry->tenancy;
    const struct text name = entry->name;
    const struct upload_options options = {
        .access = tenancy_chunk_access(tenancy),
        .folder = tenancy->out_folder,
        .name = name.data,
        .bytes_max = (uint64_t)tenancy_disk_bytes(tenancy),
        .is_checkpoint = lease_document_is_checkpoint(&tenancy->document, name),
        .callback = upload_on_done,
        .context = entry};
    if (upload_start(&options, &entry->upload, &error) == 0)
        return true;
    upload_entry_free(entry);
    upload_failed(tenancy, name, &error);
    return false;
}

/* However many files a lease leaves, few of them are open at a time. */
static void uploads_go_on(struct tenancy *tenancy)
{
    size_t running = 0;
    LIST_EACH(&tenancy->uploads, node)
    {
        struct tenancy_upload *entry = LIST_ITEM(node, struct tenancy_upload, node);
        if (running++ == TENANCY_UPLOADS_MAX || (!entry->upload && !upload_begin(entry)))
            return;
    }
}

static void upload_send(struct tenancy *tenancy, struct text name)
{
    struct tenancy_upload *entry = calloc(1, sizeof(*entry));
    ASSERT(entry);
    entry->tenancy = tenancy;
    entry->name = name;
    list_append(&tenancy->uploads, &entry->node);
    if (lease_document_is_checkpoint(&tenancy->document, name))
        (void)upload_begin(entry);
    else
        uploads_go_on(tenancy);
}

/* The arena's copy of the name; data NULL when there are too many already. */
static struct text artifact_note(struct tenancy *tenancy, struct text name)
{
    for (uint32_t i = 0; i < tenancy->artifact_count; i++)
        if (text_equal(tenancy->artifact_names[i], name))
            return tenancy->artifact_names[i];
    if (tenancy->artifact_count == TENANCY_ARTIFACT_MAX)
        return (struct text){0};
    const struct text copy = text_of(arena_copy_string(tenancy->arena, name));
    tenancy->artifact_names[tenancy->artifact_count++] = copy;
    return copy;
}

void tenancy_start_upload(struct tenancy *tenancy, struct text announced)
{
    struct error error;
    const struct text name = artifact_note(tenancy, announced);
    if (!name.data) {
        error_set(&error, ERROR_EXHAUSTED, "a lease may send back %d files at most",
                  TENANCY_ARTIFACT_MAX);
        tenancy_fail(tenancy, &error);
        return;
    }
    /* One upload of a file at a time: however often it changes, the last of it comes over. */
    LIST_EACH(&tenancy->uploads, node)
    {
        struct tenancy_upload *entry = LIST_ITEM(node, struct tenancy_upload, node);
        if (text_equal(entry->name, name)) {
            entry->is_stale = true;
            return;
        }
    }
    upload_send(tenancy, name);
}

const char *tenancy_upload_trouble(const struct tenancy *tenancy)
{
    LIST_EACH(&tenancy->uploads, node)
    {
        const struct upload *upload = LIST_ITEM(node, struct tenancy_upload, node)->upload;
        const char *trouble = upload ? upload_trouble(upload) : NULL;
        if (trouble)
            return trouble;
    }
    return NULL;
}

void tenancy_free_uploads(struct tenancy *tenancy)
{
    LIST_EACH(&tenancy->uploads, node)
    {
        upload_entry_free(LIST_ITEM(node, struct tenancy_upload, node));
    }
}
