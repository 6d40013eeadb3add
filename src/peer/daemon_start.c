/* How leases begin: those that the market starts, and those that a former daemon left running. */
#include "base/log.h"
#include "peer/daemon_internal.h"
#include "peer/lease_verify.h"
#include "peer/own_data.h"
#include "peer/software.h"
#include "sandbox/folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* True when an older holder of the same lease is out of the way. */
static bool daemon_supersede(struct daemon *daemon, struct lease_fence lease)
{
    struct holding *older = map_get(&daemon->holdings, lease.lease);
    if (!older)
        return true;
    const struct lease_fence fence = holding_fence(older);
    if (fence.fence == lease.fence)
        daemon_tell_keeper_market(daemon, older); /* asked again: the market missed the answer */
    if (fence.fence >= lease.fence)
        return false;
    daemon_kill(daemon, older);
    daemon_send_state(daemon, fence, LEASE_RUN_STOPPED, "the lease has a newer holder");
    return true;
}

static int daemon_check_start(struct daemon *daemon, const struct lease_document *document,
                              uint32_t *out_gpus, struct error *error)
{
    if (daemon->is_stopping)
        return error_set(error, ERROR_UNAVAILABLE, "the lender stopped lending");
    if (daemon->holdings.count >= DAEMON_LEASE_MAX)
        return error_set(error, ERROR_EXHAUSTED, "this machine runs %d leases already",
                         DAEMON_LEASE_MAX);
    const int64_t now_ms = clock_utc_ms(loop_clock(daemon->loop)) + daemon->market_ahead_ms;
    struct lent_use running[DAEMON_LEASE_MAX];
    const size_t count = daemon_list_uses(daemon, running);
    if (lease_check(document, now_ms, error) < 0)
        return -1;
    if (lent_check(&daemon->lent, document, running, count, error) < 0)
        return -1;
    return lent_choose_gpus(&daemon->lent, document->gpus_milli, running, count, out_gpus, error);
}

/* What there is to know of a lease that runs here. */
static void daemon_note(struct daemon *daemon, struct holding *holding,
                        const struct lease_document *document, uint32_t gpus)
{
    struct holding_state *state = holding_state(holding);
    struct text name = document->name;
    if (name.size >= sizeof(state->job_name))
        name.size = sizeof(state->job_name) - 1;
    struct error error;
    if (sandbox_host_adopt(daemon->options->sandboxes, holding_pid(holding), &error) < 0)
        log_event(LOG_WARN, "keeper_not_adopted", "lease=%" PRIu64 " error=\"%s\"", document->lease,
                  error.message);
    state->is_known = true;
    state->use = lent_use_of(document);
    state->use.gpus = gpus;
    state->job = document->job;
    state->role = document->role;
    snprintf(state->job_name, sizeof(state->job_name), TEXT_FORMAT, TEXT_ARGS(name));
    daemon_watch_leases(daemon);
}

static void daemon_on_hello(struct holding *holding, const struct keeper_hello *hello,
                            void *context)
{
    struct daemon *daemon = context;
    struct error error;
    struct lease_document document;
    const struct lease_fence lease = holding_fence(holding);
    struct start_message start = {.document = hello->document};
    memcpy(start.signature, hello->signature, sizeof(start.signature));
    arena_clear(daemon->arena);
    if (holding_state(holding)->is_known)
        return;
    if (hello->version != KEEPER_VERSION ||
        lease_verify(daemon->arena, &start, daemon->enrolment, &document, &error) < 0 ||
        document.lease != lease.lease || document.fence != lease.fence) {
        daemon_on_keeper_gone(holding, daemon);
        return;
    }
    daemon->awaited_count--;
    daemon_note(daemon, holding, &document, hello->gpus);
    log_event(LOG_INFO, "lease_taken_up", "lease=%" PRIu64 " fence=%" PRIu64 " state=%s",
              lease.lease, lease.fence, lease_run_state_name(hello->state));
    daemon_tell_keeper_market(daemon, holding);
    daemon_tell_keeper_yield(daemon, holding); /* the former daemon may have said something else */
    if (lent_check_permissions(&daemon->lent, &document, &error) == 0)
        return;
    log_event(LOG_WARN, "lease_not_permitted", "error=\"%s\"", error.message);
    daemon_reclaim(daemon, holding, DAEMON_STOP_GRACE_MS,
                   TEXT("the machine's owner no longer permits what it uses"));
}

static struct holding_options daemon_holding_options(struct daemon *daemon,
                                                     struct lease_fence lease)
{
    return (struct holding_options){.loop = daemon->loop,
                                    .lease = lease,
                                    .reapers = &daemon->reapers,
                                    .callbacks = {.on_message = daemon_on_keeper_message,
                                                  .on_hello = daemon_on_hello,
                                                  .on_gone = daemon_on_keeper_gone},
                                    .context = daemon};
}

static int daemon_start_keeper(struct daemon *daemon, const struct lease_document *document,
                               uint32_t gpus, struct text payload, struct error *error)
{
    const struct lease_fence lease = {document->lease, document->fence};
    const struct holding_options options = daemon_holding_options(daemon, lease);
    struct buffer sandbox AUTO_BUFFER;
    buffer_init(&sandbox, KEEPER_SANDBOX_MAX);
    sandbox_host_export(daemon->options->sandboxes, &sandbox);
    const struct text label =
        lease_document_is_command(document) ? (struct text){0} : job_train_peer(&document->train);
    const char *data =
        label.size ? own_data_path(daemon->options->data, daemon->options->data_count, label)
                   : NULL;
    if (label.size && document->role == LEASE_ROLE_WORKER && !data)
        return error_set(error, ERROR_UNAVAILABLE,
                         "this machine does not offer peer://" TEXT_FORMAT, TEXT_ARGS(label));
    struct keeper_setup setup = {
        .log_level = (uint8_t)log_get_level(),
        .machine = daemon->enrolment->machine,
        .leases_dir = text_of(daemon->leases_dir),
        .blobs_dir = text_of(daemon->blobs_dir),
        .disk_bytes = (uint64_t)daemon->options->limits.disk_bytes,
        .gpus = gpus,
        .cache_bytes = (uint64_t)daemon->options->cache_bytes,
        .is_direct = daemon->options->is_direct,
        .open = daemon->options->open,
        .data_path = data && document->role == LEASE_ROLE_WORKER ? text_of(data) : (struct text){0},
        .index_url =
            document->fetches_packages ? text_of(daemon->options->index_url) : (struct text){0},
        .sdk_folder = text_of(daemon->options->sdk_folder ? daemon->options->sdk_folder : ""),
        .functions = daemon->options->functions,
        .sandbox_host = buffer_text(&sandbox)};
    _Static_assert((int)SOFTWARE_MAX == (int)KEEPER_SOFTWARE_MAX, "all are told");
    setup.software_count =
        (uint32_t)software_choose(daemon->options->software, daemon->options->software_count,
                                  document->labels, setup.software);
    memcpy(setup.server_public_key, daemon->enrolment->server_public_key,
           sizeof(setup.server_public_key));
    struct holding *holding = NULL;
    if (buffer_check(&sandbox, error) < 0 || holding_start(&options, &setup, &holding, error) < 0)
        return -1;
    holding_set_paused(holding, daemon->is_held_back);
    map_put(&daemon->holdings, lease.lease, holding);
    daemon_tell_keeper_market(daemon, holding);
    holding_send(holding, LEASE_MESSAGE_START, payload);
    daemon_tell_keeper_yield(daemon, holding);
    daemon_note(daemon, holding, document, gpus);
    return 0;
}

static void daemon_refuse(struct daemon *daemon, struct lease_fence lease,
                          const struct error *reason)
{
    log_event(LOG_ERROR, "lease_refused", "lease=%" PRIu64 " error=\"%s\"", lease.lease,
              reason->message);
    daemon_answer(daemon, lease, LEASE_RUN_FAILED, reason->message);
}

/* Of what it says only the number is taken, to answer: whoever sent it hears why nothing runs. */
static void daemon_refuse_unverified(struct daemon *daemon, struct text document,
                                     const struct error *reason)
{
    struct error ignored;
    struct lease_document claimed = {0};
    if (lease_document_read(daemon->arena, document, &claimed, &ignored) == 0 &&
        !map_get(&daemon->holdings, claimed.lease)) /* of one that runs nothing false is said */
        daemon_refuse(daemon, (struct lease_fence){claimed.lease, claimed.fence}, reason);
    else
        log_event(LOG_ERROR, "lease_refused", "error=\"%s\"", reason->message);
}

void daemon_on_start(struct daemon *daemon, const struct start_message *start, struct text payload)
{
    struct error error;
    struct lease_document document;
    if (lease_verify(daemon->arena, start, daemon->enrolment, &document, &error) < 0) {
        daemon_refuse_unverified(daemon, start->document, &error);
        return;
    }
    const struct lease_fence lease = {document.lease, document.fence};
    if (!daemon_supersede(daemon, lease))
        return;
    if (past_has(&daemon->past, lease)) {
        log_event(LOG_WARN, "lease_over", "lease=%" PRIu64 " fence=%" PRIu64, lease.lease,
                  lease.fence);
        daemon_answer(daemon, lease, LEASE_RUN_LOST, "the lease has ended here before");
        return;
    }
    if (!owner_takes_leases(daemon->owner)) {
        daemon_answer(daemon, lease, LEASE_RUN_RECLAIMED, "the machine's owner needs it");
        return;
    }
    uint32_t gpus = 0;
    if (daemon_check_start(daemon, &document, &gpus, &error) < 0 ||
        daemon_start_keeper(daemon, &document, gpus, payload, &error) < 0)
        daemon_refuse(daemon, lease, &error);
}

/* A folder LEASE-FENCE of a former daemon's. Anything else that lies there is none of ours and goes
 * too. */
static void daemon_take_up(struct daemon *daemon, const char *name)
{
    struct error error;
    struct text lease_text, fence_text;
    struct lease_fence lease;
    char folder[PATH_MAX + 300];
    snprintf(folder, sizeof(folder), "%s/%s", daemon->leases_dir, name);
    if (!text_cut(text_of(name), '-', &lease_text, &fence_text) ||
        text_parse_u64(lease_text, &lease.lease, &error) < 0 ||
        text_parse_u64(fence_text, &lease.fence, &error) < 0) {
        if (folder_remove(folder, &error) < 0)
            log_event(LOG_WARN, "folder_left", "error=\"%s\"", error.message);
        return;
    }
    struct holding *holding = NULL;
    const struct holding_options options = daemon_holding_options(daemon, lease);
    if (holding_take_up(&options, folder, &holding, &error) < 0) {
        daemon_clear_away(daemon, lease);
        daemon_lose(daemon, lease, "the machine or the lender's daemon was restarted");
        return;
    }
    daemon->awaited_count++;
    struct holding *other = map_get(&daemon->holdings, lease.lease);
    const bool is_newer = !other || holding_fence(other).fence < lease.fence;
    if (other)
        daemon_kill(daemon, is_newer ? other : holding);
    if (is_newer)
        map_put(&daemon->holdings, lease.lease, holding);
}

static bool daemon_keeps_sandbox(const char *name, void *context)
{
    const struct daemon *daemon = context;
    for (size_t i = 0; i < daemon->holdings.count; i++)
        if (daemon_is_sandbox_of(holding_fence(daemon_holding_at(daemon, i)), name))
            return true;
    return false;
}

/* Those that do not answer in time are stuck, and killed. */
static int daemon_await_keepers(struct daemon *daemon, struct error *error)
{
    const int64_t end_ns = daemon_now_ns(daemon) + DAEMON_TAKE_UP_MS * INT64_C(1000000);
    while (daemon->awaited_count > 0) {
        const int64_t left_ms = (end_ns - daemon_now_ns(daemon)) / 1000000;
        if (left_ms <= 0)
            break;
        if (loop_step(daemon->loop, left_ms, error) < 0)
            return -1;
    }
    for (size_t i = daemon->holdings.count; i-- > 0;)
        if (!holding_state(daemon_holding_at(daemon, i))->is_known)
            daemon_on_keeper_gone(daemon_holding_at(daemon, i), daemon);
    return 0;
}

int daemon_take_up_leases(struct daemon *daemon, struct error *error)
{
    DIR *folder = opendir(daemon->leases_dir);
    if (!folder)
        return error_set_errno(error, errno, "open \"%s\"", daemon->leases_dir);
    struct dirent *entry;
    while ((entry = readdir(folder))) // NOLINT(concurrency-mt-unsafe): the stream is not shared
        if (entry->d_name[0] != '.')
            daemon_take_up(daemon, entry->d_name);
    closedir(folder);
    size_t swept_count = 0;
    if (daemon_await_keepers(daemon, error) < 0 ||
        sandbox_sweep_others(daemon->options->sandboxes, daemon_keeps_sandbox, daemon, &swept_count,
                             error) < 0)
        return -1;
    if (swept_count > 0)
        log_event(LOG_WARN, "swept", "sandboxes=%zu", swept_count);
    return 0;
}
