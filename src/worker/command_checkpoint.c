#include "worker/command_checkpoint.h"

#include "base/assert.h"
#include "base/log.h"
#include "worker/checkpoint_folder.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_MS = 500,
    OPEN_TOLD_MS = 300000, /* a file that is open so long is told of, once */
    EXIT_CHANGED = 2,
};

struct folder {
    const char *path, *name; /* and of the file that is announced */
    bool is_ours;            /* to send */
    uint64_t seen;           /* signatures: at the last look, */
    uint64_t finished;       /* of what was found finished, */
    uint64_t sent;           /* and of what the market has, or refused */
    int64_t sent_ns, open_ns;
    bool is_told_open;
    uint8_t manifest[CHILD_HASH_SIZE]; /* of `sent`; zeroes: of none */
    char source[64];                   /* of what is unpacked; empty: nothing is */
    bool is_cleared;
};

enum phase { PHASE_IDLE, PHASE_RESTORE, PHASE_UNPACK, PHASE_RUN, PHASE_SETTLE };

struct command_checkpoint {
    struct loop *loop;
    const struct work *work;
    void *context;
    enum phase phase;
    command_checkpoint_function *done;
    struct folder folders[CHILD_CHECKPOINT_COUNT];
    struct loop_timer *timer;
    struct loop_child *child; /* packs or unpacks; NULL: nobody does */
    struct folder *packed;    /* by the child, or sent; NULL: none */
    uint64_t packed_signature;
    bool is_good_end, is_hurried, is_confirmed;
    bool has_restored; /* once: from then on the job's own input is older */
};

const char *command_checkpoint_folder(struct arena *arena, const struct work *work, bool is_of_job)
{
    const char *slash = strrchr(work->work_folder, '/');
    const int parent = slash ? (int)(slash - work->work_folder) + 1 : 0;
    return arena_format(arena, "%.*s%s", parent, work->work_folder,
                        is_of_job ? CHECKPOINT_FOLDER : RANK_CHECKPOINT_FOLDER);
}

static uint64_t bytes_max(const struct command_checkpoint *checkpoint)
{
    const int64_t disk_bytes = checkpoint->work->lease.disk_bytes;
    return disk_bytes > 0 ? (uint64_t)disk_bytes / 3 : UINT64_C(1) << 36;
}

static int64_t now_ns(const struct command_checkpoint *checkpoint)
{
    return clock_monotonic_ns(loop_clock(checkpoint->loop));
}

static void end_phase(struct command_checkpoint *checkpoint, enum phase next, const char *reason)
{
    command_checkpoint_function *done = TAKE(checkpoint->done);
    checkpoint->phase = next;
    if (done)
        done(checkpoint->context, reason);
}

/* In a process of its own: the others of the job are to hear from this one meanwhile. */
static int
start_child(struct command_checkpoint *checkpoint,
            int (*work)(const struct command_checkpoint *checkpoint, struct error *error),
            void (*on_exit)(void *context, const struct child_exit *exit), struct error *error)
{
    const pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(error, errno, "start a process");
    if (pid == 0) {
        if (work(checkpoint, error) == 0)
            _exit(0);
        if (error->code == ERROR_CONFLICT)
            _exit(EXIT_CHANGED);
        fprintf(stderr, "souk: checkpoint: %s\n", error->message);
        _exit(1);
    }
    return loop_child_open(checkpoint->loop, pid, on_exit, checkpoint, &checkpoint->child, error);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void settle(struct command_checkpoint *checkpoint);

static void path_of_file(const struct command_checkpoint *checkpoint, const struct folder *folder,
                         char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.4000s/%s", checkpoint->work->out_folder, folder->name);
}

static int pack_now(const struct command_checkpoint *checkpoint, struct error *error)
{
    char path[PATH_MAX];
    path_of_file(checkpoint, checkpoint->packed, path);
    return checkpoint_pack(checkpoint->packed->path, path, bytes_max(checkpoint),
                           checkpoint->packed_signature, error);
}

/* Nobody was told of it, so that nobody will say that it was kept. */
static void give_up_packed(struct command_checkpoint *checkpoint, const struct error *reason)
{
    char path[PATH_MAX];
    path_of_file(checkpoint, checkpoint->packed, path);
    unlink(path);
    if (checkpoint->phase == PHASE_SETTLE)
        checkpoint->packed->sent = checkpoint->packed_signature; /* it would be packed for ever */
    checkpoint->packed = NULL;
    log_event(LOG_WARN, "checkpoint_left", "error=\"%s\"", reason->message);
}

/* Packed or not: it is looked at again. */
static void on_packed(void *context, const struct child_exit *exit)
{
    struct command_checkpoint *checkpoint = context;
    struct error error;
    struct folder *folder = checkpoint->packed;
    loop_child_free(TAKE(checkpoint->child));
    const struct child_message message = {.kind = CHILD_ARTIFACT,
                                          .artifact = {.name = text_of(folder->name)}};
    if (exit->signal == 0 && exit->status == 0) {
        folder->sent_ns = now_ns(checkpoint);
        checkpoint->is_confirmed = false;
        if (control_send(checkpoint->work->control_fd, &message, &error) < 0)
            give_up_packed(checkpoint, &error);
    } else {
        checkpoint->packed = NULL;
        if (exit->status != EXIT_CHANGED || checkpoint->phase == PHASE_SETTLE)
            folder->sent = checkpoint->packed_signature; /* trying again would change nothing */
    }
    if (checkpoint->phase == PHASE_SETTLE)
        settle(checkpoint);
}

static void pack(struct command_checkpoint *checkpoint, struct folder *folder, uint64_t signature)
{
    struct error error;
    checkpoint->packed = folder;
    checkpoint->packed_signature = signature;
    if (start_child(checkpoint, pack_now, on_packed, &error) == 0)
        return;
    checkpoint->packed = NULL;
    log_event(LOG_WARN, "checkpoint_left", "error=\"%s\"", error.message);
}

static void tell_open(struct command_checkpoint *checkpoint, struct folder *folder,
                      const char *path)
{
    const int64_t now = now_ns(checkpoint);
    if (folder->open_ns == 0)
        folder->open_ns = now;
    if (folder->is_told_open || now - folder->open_ns < OPEN_TOLD_MS * INT64_C(1000000))
        return;
    folder->is_told_open = true;
    fprintf(stderr,
            "souk: no checkpoint was taken for %d minutes: \"%s\" is open for writing all the "
            "time\n",
            OPEN_TOLD_MS / 60000, path);
}

/* What is in the folder now, if it is finished; else 0. */
static uint64_t look(struct command_checkpoint *checkpoint, struct folder *folder)
{
    struct checkpoint_scan scan;
    struct error error;
    if (checkpoint_scan(folder->path, /* looks_for_writers= */ false, &scan, &error) < 0)
        return 0; /* packing it will tell */
    const bool is_still = scan.signature == folder->seen;
    folder->seen = scan.signature;
    if (!is_still || scan.signature == 0 || scan.signature == folder->sent)
        return 0;
    if (scan.signature == folder->finished)
        return scan.signature;
    if (checkpoint_scan(folder->path, /* looks_for_writers= */ true, &scan, &error) < 0)
        return 0;
    if (scan.open_path[0]) {
        tell_open(checkpoint, folder, scan.open_path);
        return 0;
    }
    folder->open_ns = 0;
    if (scan.signature == folder->seen)
        folder->finished = scan.signature;
    return folder->finished;
}

static void on_look(void *context)
{
    struct command_checkpoint *checkpoint = context;
    if (checkpoint->phase != PHASE_RUN)
        return;
    loop_timer_start(checkpoint->timer, LOOK_MS);
    const int64_t interval_ns = checkpoint->work->lease.checkpoint_interval_ms * 1000000;
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        struct folder *folder = &checkpoint->folders[i];
        const uint64_t finished = folder->is_ours ? look(checkpoint, folder) : 0;
        const bool is_due =
            folder->sent_ns == 0 || now_ns(checkpoint) - folder->sent_ns >= interval_ns;
        if (finished && is_due && !checkpoint->packed)
            pack(checkpoint, folder, finished);
    }
}

/* What the folder is to leave after its program's end; 0: nothing new. */
static uint64_t last_of(const struct command_checkpoint *checkpoint, const struct folder *folder)
{
    struct checkpoint_scan scan;
    struct error error;
    if (!folder->is_ours ||
        checkpoint_scan(folder->path, /* looks_for_writers= */ false, &scan, &error) < 0 ||
        scan.signature == 0 || scan.signature == folder->sent)
        return 0;
    return checkpoint->is_good_end || scan.signature == folder->finished ? scan.signature : 0;
}

static void ask(struct command_checkpoint *checkpoint)
{
    struct error error;
    struct child_message message = {.kind = CHILD_WANTED};
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++)
        memcpy(message.wanted.manifests[i], checkpoint->folders[i].manifest, CHILD_HASH_SIZE);
    if (control_send(checkpoint->work->control_fd, &message, &error) < 0)
        log_event(LOG_WARN, "checkpoint_left", "error=\"%s\"", error.message);
}

/* One after the other; then the market's answer shows that it has them. */
static void settle(struct command_checkpoint *checkpoint)
{
    if (checkpoint->child || (checkpoint->packed && !checkpoint->is_hurried))
        return;
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT && !checkpoint->packed; i++) {
        const uint64_t signature = last_of(checkpoint, &checkpoint->folders[i]);
        if (signature == 0)
            continue;
        pack(checkpoint, &checkpoint->folders[i], signature);
        if (checkpoint->child)
            return;
    }
    if (checkpoint->is_confirmed || checkpoint->is_hurried)
        end_phase(checkpoint, PHASE_IDLE, NULL);
    else
        ask(checkpoint);
}

void command_checkpoint_settle(struct command_checkpoint *checkpoint, bool is_good_end,
                               command_checkpoint_function *done)
{
    checkpoint->phase = PHASE_SETTLE;
    checkpoint->is_good_end = is_good_end;
    checkpoint->done = done;
    settle(checkpoint);
}

void command_checkpoint_hurry(struct command_checkpoint *checkpoint)
{
    checkpoint->is_hurried = true;
    if (checkpoint->phase == PHASE_SETTLE)
        settle(checkpoint);
}

static void take_kept(struct command_checkpoint *checkpoint, const struct child_message *message)
{
    struct folder *folder = checkpoint->packed;
    if (!folder || checkpoint->child || !text_is(message->kept.name, folder->name))
        return;
    char path[PATH_MAX];
    path_of_file(checkpoint, folder, path);
    unlink(path); /* a new one would take its place: it is of no more use */
    checkpoint->packed = NULL;
    folder->sent = checkpoint->packed_signature;
    if (message->kept.trouble.size > 0)
        fprintf(stderr, "souk: the checkpoint was not kept: " TEXT_FORMAT "\n",
                TEXT_ARGS(message->kept.trouble));
    else
        memcpy(folder->manifest, message->kept.manifest, CHILD_HASH_SIZE);
    if (checkpoint->phase == PHASE_SETTLE)
        settle(checkpoint);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

static int unpack_now(const struct command_checkpoint *checkpoint, struct error *error)
{
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        const struct folder *folder = &checkpoint->folders[i];
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%.4000s/%s", checkpoint->work->data_folder, folder->source);
        if (folder->source[0]
                ? checkpoint_unpack(path, folder->path, bytes_max(checkpoint), error) < 0
                : folder->is_cleared && checkpoint_clear(folder->path, error) < 0)
            return -1;
    }
    return 0;
}

/* What lies there now is what the market has. */
static void begin_looking(struct command_checkpoint *checkpoint)
{
    struct error error;
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        struct folder *folder = &checkpoint->folders[i];
        struct checkpoint_scan scan = {0};
        if (checkpoint_scan(folder->path, /* looks_for_writers= */ false, &scan, &error) < 0)
            log_event(LOG_WARN, "checkpoint_left", "error=\"%s\"", error.message);
        folder->seen = folder->finished = folder->sent = scan.signature;
    }
    checkpoint->has_restored = true;
    loop_timer_start(checkpoint->timer, LOOK_MS);
    end_phase(checkpoint, PHASE_RUN, NULL);
}

static void on_unpacked(void *context, const struct child_exit *exit)
{
    struct command_checkpoint *checkpoint = context;
    loop_child_free(TAKE(checkpoint->child));
    if (exit->signal == 0 && exit->status == 0)
        begin_looking(checkpoint);
    else
        end_phase(checkpoint, PHASE_IDLE, "the checkpoint could not be unpacked");
}

/* What a job that was resumed goes on from, before it leaves any of its own. */
static bool has_input(const struct command_checkpoint *checkpoint)
{
    const struct lease_document *lease = &checkpoint->work->lease;
    for (size_t i = 0; i < lease->data_count; i++)
        if (strcmp(lease->data[i].name, LEASE_CHECKPOINT_NAME) == 0)
            return true;
    return false;
}

static bool is_none(const uint8_t manifest[CHILD_HASH_SIZE])
{
    static const uint8_t none[CHILD_HASH_SIZE];
    return memcmp(manifest, none, sizeof(none)) == 0;
}

static void take_found(struct command_checkpoint *checkpoint, const struct child_message *message)
{
    bool is_needed = false;
    struct error error;
    char reason[CHILD_TEXT_MAX + 64];
    if (message->checkpoints.trouble.size > 0) {
        snprintf(reason, sizeof(reason), "the checkpoint could not be fetched: " TEXT_FORMAT,
                 TEXT_ARGS(message->checkpoints.trouble));
        end_phase(checkpoint, PHASE_IDLE, reason);
        return;
    }
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        struct folder *folder = &checkpoint->folders[i];
        const struct child_checkpoint *found = &message->checkpoints.items[i];
        const bool is_new = found->name.size > 0 && found->name.size < sizeof(folder->source);
        folder->source[0] = '\0';
        if (is_new)
            snprintf(folder->source, sizeof(folder->source), TEXT_FORMAT, TEXT_ARGS(found->name));
        else if (i == CHILD_CHECKPOINT_JOB && is_none(found->manifest) && has_input(checkpoint))
            snprintf(folder->source, sizeof(folder->source), "%s", LEASE_CHECKPOINT_NAME);
        folder->is_cleared = is_none(found->manifest) && checkpoint->has_restored;
        memcpy(folder->manifest, found->manifest, CHILD_HASH_SIZE);
        is_needed = is_needed || folder->source[0] || folder->is_cleared;
    }
    checkpoint->phase = PHASE_UNPACK;
    if (!is_needed)
        begin_looking(checkpoint);
    else if (start_child(checkpoint, unpack_now, on_unpacked, &error) < 0)
        end_phase(checkpoint, PHASE_IDLE, error.message);
}

/* A folder that is not as the market has it is brought anew: it may have half a file. */
void command_checkpoint_restore(struct command_checkpoint *checkpoint,
                                command_checkpoint_function *done)
{
    ASSERT(!checkpoint->child);
    checkpoint->phase = PHASE_RESTORE;
    checkpoint->done = done;
    checkpoint->packed = NULL;
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        struct folder *folder = &checkpoint->folders[i];
        struct checkpoint_scan scan;
        struct error error;
        if (checkpoint_scan(folder->path, /* looks_for_writers= */ false, &scan, &error) < 0 ||
            scan.signature != folder->sent)
            memset(folder->manifest, 0, sizeof(folder->manifest));
    }
    ask(checkpoint);
}

void command_checkpoint_take(struct command_checkpoint *checkpoint,
                             const struct child_message *message)
{
    if (message->kind == CHILD_KEPT) {
        take_kept(checkpoint, message);
    } else if (checkpoint->phase == PHASE_RESTORE) {
        take_found(checkpoint, message);
    } else if (checkpoint->phase == PHASE_SETTLE) {
        checkpoint->is_confirmed = true;
        settle(checkpoint);
    }
}

/* ---- Begin and end --------------------------------------------------------------------------- */

/* Sent when a file is opened that is_written() looks at: it is no reason to end. */
static void on_lease_broken(int number)
{
    (void)number;
}

int command_checkpoint_open(struct loop *loop, const struct work *work, void *context,
                            struct command_checkpoint **out_checkpoint, struct error *error)
{
    struct command_checkpoint *made = calloc(1, sizeof(*made));
    ASSERT(made);
    AUTO(command_checkpoint) struct command_checkpoint *checkpoint = made;
    checkpoint->loop = loop;
    checkpoint->work = work;
    checkpoint->context = context;
    checkpoint->is_confirmed = true; /* nothing was sent yet */
    checkpoint->timer = loop_timer_new(loop, on_look, checkpoint);
    const char *const names[] = {LEASE_JOB_CHECKPOINT_NAME, LEASE_RANK_CHECKPOINT_NAME};
    for (size_t i = 0; i < CHILD_CHECKPOINT_COUNT; i++) {
        struct folder *folder = &checkpoint->folders[i];
        folder->name = names[i];
        folder->is_ours = i == CHILD_CHECKPOINT_RANK || work->lease.rank == 0;
        folder->path = command_checkpoint_folder(work->arena, work, i == CHILD_CHECKPOINT_JOB);
        if (mkdir(folder->path, 0755) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make \"%s\"", folder->path);
    }
    const struct sigaction action = {.sa_handler = on_lease_broken, .sa_flags = SA_RESTART};
    if (sigaction(SIGIO, &action, NULL) < 0)
        return error_set_errno(error, errno, "take SIGIO");
    *out_checkpoint = TAKE(checkpoint);
    return 0;
}

void command_checkpoint_free(struct command_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    loop_timer_free(checkpoint->timer);
    loop_child_free(checkpoint->child);
    free(checkpoint);
}
