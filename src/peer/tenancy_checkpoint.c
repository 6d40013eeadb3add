/* The checkpoints of a borrower's program: the newest are fetched for it before it starts, and it
 * is told what became of those that it announced. */
#include "base/assert.h"
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* A link that breaks takes the question along. */
enum { ASK_AGAIN_MS = 5000 };

static const struct lease_checkpoint *found_of(const struct tenancy_checkpoints *checkpoints,
                                               size_t kind)
{
    return kind == CHILD_CHECKPOINT_JOB ? &checkpoints->found.of_job : &checkpoints->found.of_rank;
}

static bool is_upload_under_way(const struct tenancy *tenancy)
{
    LIST_EACH(&tenancy->uploads, node)
    {
        if (lease_document_is_checkpoint(&tenancy->document,
                                         LIST_ITEM(node, struct tenancy_upload, node)->name))
            return true;
    }
    return false;
}

static void on_ask_again(void *context)
{
    tenancy_ask_for_checkpoints(context);
}

void tenancy_ask_for_checkpoints(struct tenancy *tenancy)
{
    struct tenancy_checkpoints *checkpoints = &tenancy->checkpoints;
    if (!checkpoints->is_wanted || checkpoints->shard || tenancy->has_exited ||
        is_upload_under_way(tenancy))
        return;
    const struct lease_message message = {
        .type = LEASE_MESSAGE_CHECKPOINT_WANTED,
        .checkpoint_wanted = {tenancy->document.lease, tenancy->document.fence}};
    outbox_send(tenancy->host->outbox, &message, tenancy_now_ns(tenancy));
    loop_timer_start(checkpoints->timer, ASK_AGAIN_MS);
}

/* What was fetched the last time is unpacked. */
static void remove_fetched(struct tenancy *tenancy)
{
    struct tenancy_checkpoints *checkpoints = &tenancy->checkpoints;
    for (size_t i = 0; i < checkpoints->data_count; i++) {
        char path[PATH_MAX];
        const int size =
            snprintf(path, sizeof(path), "%s/%s", tenancy->data_folder, checkpoints->data[i].name);
        ASSERT(size < PATH_MAX);
        unlink(path);
    }
    checkpoints->data_count = 0;
}

void tenancy_want_checkpoints(struct tenancy *tenancy,
                              const uint8_t manifests[CHILD_CHECKPOINT_COUNT][CHILD_HASH_SIZE])
{
    struct tenancy_checkpoints *checkpoints = &tenancy->checkpoints;
    if (!lease_document_is_command(&tenancy->document) || checkpoints->is_wanted)
        return;
    if (!checkpoints->timer)
        checkpoints->timer = loop_timer_new(tenancy->host->loop, on_ask_again, tenancy);
    memcpy(checkpoints->manifests, manifests, sizeof(checkpoints->manifests));
    checkpoints->is_wanted = true;
    remove_fetched(tenancy);
    tenancy_ask_for_checkpoints(tenancy);
}

static void answer(struct tenancy *tenancy, const struct error *reason)
{
    struct tenancy_checkpoints *checkpoints = &tenancy->checkpoints;
    struct child_message message = {.kind = CHILD_CHECKPOINTS};
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        const struct lease_checkpoint *found = found_of(checkpoints, i);
        struct child_checkpoint *item = &message.checkpoints.items[i];
        if (found->size_bytes > 0)
            memcpy(item->manifest, found->manifest, sizeof(item->manifest));
    }
    for (size_t i = 0; i < checkpoints->data_count; i++)
        message.checkpoints.items[checkpoints->data_kinds[i]].name =
            text_of(checkpoints->data[i].name);
    if (reason)
        message.checkpoints.trouble = text_of(reason->message);
    checkpoints->is_wanted = false;
    tenancy_tell_child(tenancy, &message);
}

static void on_fetched(void *context, const struct error *reason)
{
    struct tenancy *tenancy = context;
    const struct error error = reason ? *reason : (struct error){0}; /* it goes with the shard */
    shard_free(TAKE(tenancy->checkpoints.shard));
    answer(tenancy, reason ? &error : NULL);
}

/* Those that the program does not have. */
static void choose(struct tenancy_checkpoints *checkpoints)
{
    checkpoints->answer_count++;
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        const struct lease_checkpoint *found = found_of(checkpoints, i);
        if (found->size_bytes == 0 ||
            memcmp(found->manifest, checkpoints->manifests[i], CHILD_HASH_SIZE) == 0)
            continue;
        checkpoints->data_kinds[checkpoints->data_count] = i;
        struct lease_data *data = &checkpoints->data[checkpoints->data_count++];
        *data = (struct lease_data){.record_count = found->size_bytes};
        snprintf(data->name, sizeof(data->name), "restored-%" PRIu64 "-%zu",
                 checkpoints->answer_count, i);
        memcpy(data->manifest, found->manifest, sizeof(data->manifest));
    }
}

void tenancy_take_checkpoints(struct tenancy *tenancy, const struct checkpoints_message *found)
{
    struct tenancy_checkpoints *checkpoints = &tenancy->checkpoints;
    if (!checkpoints->is_wanted || checkpoints->shard || tenancy->has_ended || tenancy->has_exited)
        return;
    loop_timer_stop(checkpoints->timer);
    checkpoints->found = *found;
    choose(checkpoints);
    if (checkpoints->data_count == 0) {
        answer(tenancy, NULL);
        return;
    }
    log_event(LOG_INFO, "checkpoint_fetched", "lease=%" PRIu64, tenancy->document.lease);
    struct shard_options options = {.access = tenancy_chunk_access(tenancy),
                                    .folder = tenancy->data_folder,
                                    .data = checkpoints->data,
                                    .data_count = checkpoints->data_count,
                                    .bytes_max = (uint64_t)tenancy_disk_bytes(tenancy),
                                    .callback = on_fetched,
                                    .context = tenancy};
    options.access.peers = NULL; /* others have it no sooner than the market */
    options.access.server = NULL;
    checkpoints->shard = shard_start(&options);
}

void tenancy_checkpoint_sent(struct tenancy *tenancy, struct text name,
                             const struct upload_result *result, const struct error *reason)
{
    if (!lease_document_is_command(&tenancy->document) ||
        !lease_document_is_checkpoint(&tenancy->document, name))
        return;
    struct child_message message = {.kind = CHILD_KEPT, .kept = {.name = name}};
    if (result)
        memcpy(message.kept.manifest, result->manifest.bytes, CHILD_HASH_SIZE);
    else
        message.kept.trouble = text_of(reason->message);
    tenancy_tell_child(tenancy, &message);
}

void tenancy_free_checkpoints(struct tenancy *tenancy)
{
    shard_free(TAKE(tenancy->checkpoints.shard));
    loop_timer_free(TAKE(tenancy->checkpoints.timer));
}
