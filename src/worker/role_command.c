/*
 * Role of a borrower's program (runtime `command` and the frameworks): unpacks the borrower's
 * files, runs the scripts `setup` and `run` in a shell, and says how they ended. In an image
 * without `run`, what the image says runs.
 *
 * Ranks that start together (crew.h) run `run` in rounds, as often as their rank 0 says; the others
 * run it once, and again by themselves where the job allows it after a failure.
 *
 * The scripts' standard output and error are this process's own, so it says nothing there itself
 * unless something is wrong. What they leave in $SOUK_OUTPUT_DIR is kept, and what in
 * $SOUK_CHECKPOINT_DIR for whoever goes on after them (command_checkpoint.h). Asked to stop, they
 * get SIGTERM; the daemon ends what does not go.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "blob/image_document.h"
#include "net/packet.h"
#include "worker/command_checkpoint.h"
#include "worker/command_environment.h"
#include "worker/command_files.h"
#include "worker/command_output.h"
#include "worker/crew.h"
#include "worker/script_group.h"
#include "worker/worker_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STOP_GRACE_MS = 5000, /* of a script, between two rounds */
    STATUS_STOPPED = 128 + SIGTERM,
};

struct command_role {
    struct work *work;
    struct loop *loop;
    struct control *control;
    struct crew *crew;           /* NULL: it starts alone */
    struct script_group *script; /* NULL: none runs */
    struct list launched;        /* struct launched: commands besides, that rank 0 asked for */
    struct loop_timer *run_timer;
    struct command_checkpoint *checkpoint;
    bool is_restoring, is_settling; /* the checkpoint: nothing may start, or has ended */
    bool is_ended_well;             /* the script whose checkpoint is settled */
    struct arena *arena;            /* of one start of `run` */
    bool is_setup;                  /* the script that runs */
    bool is_stopping;               /* the daemon wants it */
    bool is_round_over;             /* `run` is to end, or not to start */
    uint64_t restarts;              /* by itself */
    uint64_t round;
    const struct muster_rank *members;
    size_t member_count;
    struct image_config image; /* empty: the lease has none */
    const char *start_folder;  /* of the scripts */
    struct work_result result;
};

/* A command that a launcher on rank 0 has started here. */
struct launched {
    struct list_node node;
    struct command_role *role;
    uint64_t id;
    char *command;
    struct script *script; /* NULL: it is yet to start */
};

#define SOUK_PROGRAM "/souk" /* in every sandbox */
#define DONE_FILE    "done-ranks"
#define IMAGE_START  "/.souk/start.json"

/* ---- Before it starts ------------------------------------------------------------------------ */

/* The scripts run as the same user: what this process was told, the lease's key too, is not theirs
 * to read from its memory, and its descriptor is not theirs to speak on. A script is again as any
 * program once the shell starts. */
static int hide_from_scripts(struct error *error)
{
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return error_set_errno(error, errno, "hide from the scripts");
    return 0;
}

static int enter_folder(const struct work *work, struct error *error)
{
    if (mkdir(work->work_folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", work->work_folder);
    if (chdir(work->work_folder) < 0)
        return error_set_errno(error, errno, "enter \"%s\"", work->work_folder);
    return 0;
}

/* ---- The scripts ----------------------------------------------------------------------------- */

static void role_end(struct command_role *role, bool is_ok, const char *message)
{
    role->result.is_ok = is_ok;
    if (message != role->result.message)
        snprintf(role->result.message, sizeof role->result.message, "%s", message);
    loop_stop(role->loop);
}

/* Its entrypoint and what follows it. */
static char **image_command(struct arena *arena, const struct image_config *image)
{
    const size_t count = image->entrypoint.count + image->cmd.count;
    char **list = arena_alloc(arena, (count + 1) * sizeof(*list));
    const struct text *entrypoint = image->entrypoint.items, *cmd = image->cmd.items;
    for (size_t i = 0; i < count; i++)
        list[i] = arena_copy_string(
            arena, i < image->entrypoint.count ? entrypoint[i] : cmd[i - image->entrypoint.count]);
    list[count] = NULL;
    return list;
}

static char **shell_command(struct arena *arena, struct text script)
{
    char **list = arena_alloc(arena, 4 * sizeof(*list));
    list[0] = arena_copy_string(arena, TEXT("sh"));
    list[1] = arena_copy_string(arena, TEXT("-c"));
    list[2] = arena_copy_string(arena, script);
    list[3] = NULL;
    return list;
}

static void on_exit_of_script(void *context, const struct child_exit *exit);

static int start_script(struct command_role *role, struct text script, char ***environments,
                        size_t count, struct error *error)
{
    char **arguments =
        script.size ? shell_command(role->arena, script) : image_command(role->arena, &role->image);
    if (!arguments[0])
        return error_set(error, ERROR_INVALID,
                         "the image names no command, and neither does the job");
    const struct script_options options = {
        .loop = role->loop,
        .arguments = arguments,
        .folder = role->start_folder,
        .on_exit = on_exit_of_script,
        .context = role,
    };
    return script_group_start(&options, environments, count, &role->script, error);
}

static int start_alone(struct command_role *role, struct text script, struct error *error)
{
    const struct command_place place = command_place_alone(role->arena, role->work);
    char **environment = command_environment(role->arena, role->work, &role->image, &place);
    return start_script(role, script, &environment, 1, error);
}

static int make_folder(const char *folder, struct error *error)
{
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%s\"", folder);
    return 0;
}

static int write_files(const char *folder, const struct launch *launch, struct error *error)
{
    if (make_folder(folder, error) < 0)
        return -1;
    for (size_t i = 0; i < launch->file_count; i++) {
        const struct launch_file *file = &launch->files[i];
        char path[PATH_MAX];
        const char *slash = strrchr(file->name, '/');
        if (slash) {
            snprintf(path, sizeof(path), "%s/%.*s", folder, (int)(slash - file->name), file->name);
            if (make_folder(path, error) < 0)
                return -1;
        }
        snprintf(path, sizeof(path), "%s/%s", folder, file->name);
        if (file_replace(path, &file->content, 1, file->is_program ? 0755 : 0644, error) < 0)
            return -1;
    }
    return 0;
}

/* What the framework of a round wants to find. */
static int find_launch(struct command_role *role, const struct launch_kind *kind, size_t local,
                       struct command_place *place, struct launch *out_launch, struct error *error)
{
    const struct lease_document *lease = &role->work->lease;
    char secret[2 * MUSTER_SECRET_SIZE + 1] = "";
    if (lease->rank == 0)
        text_hex_encode(crew_secret(role->crew), MUSTER_SECRET_SIZE, secret);
    const struct launch_round round = {
        .job = lease->job,
        .index = role->round + role->restarts,
        .max_restarts = lease->max_restarts,
        .members = place->members,
        .member_count = place->member_count,
        .own = place->rank,
        .ram_bytes = lease->ram_bytes,
        .parameter_servers = lease->tensorflow.parameter_servers,
        .processes = lease->torch.processes,
        .local = local,
        .folder = role->work->launch_folder,
        .secret = secret,
        .program = SOUK_PROGRAM,
    };
    launch_write(kind, role->arena, &round, out_launch);
    place->launch = out_launch;
    return write_files(role->work->launch_folder, out_launch, error);
}

/* Where it is in the round; `local`: which of its processes. */
static int find_place(struct command_role *role, size_t local, struct command_place *out_place,
                      struct launch *launch, struct error *error)
{
    const struct lease_document *lease = &role->work->lease;
    const struct launch_kind *kind = launch_find(lease->runtime);
    struct launch_member *members = arena_alloc(role->arena, role->member_count * sizeof(*members));
    *out_place = (struct command_place){
        .world = role->member_count, .members = members, .member_count = role->member_count};
    for (size_t i = 0; i < role->member_count; i++) {
        members[i] = (struct launch_member){
            .rank = role->members[i].rank,
            .address = packet_address((uint32_t)role->members[i].rank),
            .cores_milli = role->members[i].cores_milli,
            .gpus_milli = role->members[i].gpus_milli,
        };
        if (members[i].rank == lease->rank)
            out_place->rank = i;
    }
    *launch = (struct launch){.runs_script = true, .process_count = 1};
    out_place->done_file = arena_format(role->arena, "%s/" DONE_FILE, role->work->launch_folder);
    return kind ? find_launch(role, kind, local, out_place, launch, error) : 0;
}

/* The job's script, after what its framework wants to have run; an image's own command has none. */
static struct text put_before(struct command_role *role, struct text before)
{
    const struct text run = role->work->lease.run;
    if (!before.size || !run.size)
        return run;
    return text_of(
        arena_format(role->arena, TEXT_FORMAT TEXT_FORMAT, TEXT_ARGS(before), TEXT_ARGS(run)));
}

static int start_in_round(struct command_role *role, struct error *error)
{
    char **environments[JOB_PROCESSES_MAX];
    struct text script = role->work->lease.run;
    size_t count = 1;
    for (size_t i = 0; i < count; i++) {
        struct command_place place;
        struct launch launch;
        if (find_place(role, i, &place, &launch, error) < 0)
            return -1;
        if (!launch.runs_script)
            return 0;
        count = launch.process_count < JOB_PROCESSES_MAX ? launch.process_count : JOB_PROCESSES_MAX;
        environments[i] = command_environment(role->arena, role->work, &role->image, &place);
        script = launch.instead.size ? launch.instead : put_before(role, launch.before);
    }
    return start_script(role, script, environments, count, error);
}

static void on_restored(void *context, const char *reason);
static void settle_stop(struct command_role *role);

static void begin_run(void *context)
{
    struct command_role *role = context;
    if (role->is_round_over) { /* before it began, or without a script */
        crew_exit(role->crew, STATUS_STOPPED);
        return;
    }
    role->is_restoring = true;
    command_checkpoint_restore(role->checkpoint, on_restored);
}

static void start_launched(struct launched *launched);

static void on_restored(void *context, const char *reason)
{
    struct command_role *role = context;
    struct error error;
    role->is_restoring = false;
    if (reason) {
        role_end(role, false, reason);
        return;
    }
    if (role->is_round_over) {
        settle_stop(role);
        return;
    }
    arena_clear(role->arena);
    LIST_EACH(&role->launched, node)
    start_launched(LIST_ITEM(node, struct launched, node));
    if ((role->crew ? start_in_round(role, &error)
                    : start_alone(role, role->work->lease.run, &error)) < 0)
        role_end(role, false, error.message);
}

static void on_start(void *context, uint64_t round, const struct muster_rank *members, size_t count)
{
    struct command_role *role = context;
    role->is_round_over = false;
    role->round = round;
    role->members = members;
    role->member_count = count;
    loop_timer_start(role->run_timer, 0); /* not from inside the last script's watch */
}

/* For a script that waits for one of them, which may never come: libsouk looks there. */
static void on_done(void *context, const struct muster_rank *ranks, size_t count)
{
    const struct command_role *role = context;
    struct error error;
    char path[PATH_MAX];
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, (size_t)8 * MUSTER_RANKS_MAX);
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < role->member_count; at++)
            if (role->members[at].rank == ranks[i].rank)
                buffer_append_format(&text, "%zu\n", at);
    const struct text part = buffer_text(&text);
    snprintf(path, sizeof(path), "%s/" DONE_FILE, role->work->launch_folder);
    if (make_folder(role->work->launch_folder, &error) < 0 ||
        file_replace(path, &part, 1, 0644, &error) < 0)
        fprintf(stderr, "souk: which ranks are done is not known here: %s\n", error.message);
}

/* Of one without a script of its own: it is done once all that it was told to start has ended. */
static void settle_stop(struct command_role *role)
{
    if (role->is_round_over && !role->script && list_is_empty(&role->launched) &&
        !role->is_restoring && !role->is_settling)
        loop_timer_start(role->run_timer, 0);
}

static void refuse_launched(struct launched *launched, const char *reason);

static void on_round_stop(void *context)
{
    struct command_role *role = context;
    role->is_round_over = true;
    if (role->script)
        script_group_stop(role->script, STOP_GRACE_MS);
    LIST_EACH(&role->launched, node)
    {
        struct launched *launched = LIST_ITEM(node, struct launched, node);
        if (launched->script)
            script_stop(launched->script, STOP_GRACE_MS);
        else
            refuse_launched(launched, "the round is over");
    }
    settle_stop(role);
}

static void on_job_end(void *context, bool is_ok, const char *text)
{
    struct command_role *role = context;
    loop_timer_stop(role->run_timer);
    if (is_ok)
        role->result.exit_code = 0; /* of no use any more, what still runs is killed */
    role_end(role, is_ok, is_ok ? "the job is done" : text[0] ? text : role->result.message);
}

static void launched_free(struct launched *launched)
{
    list_remove(&launched->node);
    script_free(launched->script);
    free(launched->command);
    free(launched);
}

static void on_exit_of_launched(void *context, const struct child_exit *exit)
{
    struct launched *launched = context;
    struct command_role *role = launched->role;
    crew_launched(role->crew, launched->id, exit->signal ? 128 + exit->signal : exit->status);
    launched_free(launched);
    settle_stop(role);
}

static int launch_command(struct launched *launched, struct error *error)
{
    struct command_role *role = launched->role;
    struct command_place place;
    struct launch launch;
    arena_clear(role->arena);
    if (find_place(role, 0, &place, &launch, error) < 0)
        return -1;
    const struct script_options options = {
        .loop = role->loop,
        .arguments = shell_command(role->arena, text_of(launched->command)),
        .folder = role->start_folder,
        .environment = command_environment(role->arena, role->work, &role->image, &place),
        .on_exit = on_exit_of_launched,
        .context = launched,
    };
    return script_start(&options, &launched->script, error);
}

static void refuse_launched(struct launched *launched, const char *reason)
{
    struct command_role *role = launched->role;
    const uint64_t id = launched->id;
    fprintf(stderr, "souk: a command of rank 0 was not started: %s\n", reason);
    launched_free(launched);
    crew_launched(role->crew, id, 126);
}

static void start_launched(struct launched *launched)
{
    const struct command_role *role = launched->role;
    struct error error;
    if (role->is_round_over || role->member_count == 0)
        refuse_launched(launched, "no round is under way");
    else if (launch_command(launched, &error) < 0)
        refuse_launched(launched, error.message);
}

/* Rank 0 may be told its checkpoint before this one. */
static void on_launch(void *context, uint64_t id, struct text command)
{
    struct command_role *role = context;
    struct launched *launched = calloc(1, sizeof(*launched));
    ASSERT(launched);
    launched->role = role;
    launched->id = id;
    launched->command = strndup(command.data, command.size);
    ASSERT(launched->command);
    list_append(&role->launched, &launched->node);
    const bool is_waiting = role->is_restoring || loop_timer_is_running(role->run_timer);
    if (!is_waiting || role->is_round_over)
        start_launched(launched);
}

static int join_crew(struct command_role *role, struct error *error)
{
    const struct lease_document *lease = &role->work->lease;
    struct crew_options options = {
        .loop = role->loop,
        .muster = {.least = lease->world,
                   .most = lease->world_max,
                   .restart = lease->restart,
                   .max_restarts = lease->max_restarts,
                   .is_led = launch_is_led(launch_find(lease->runtime),
                                           lease->tensorflow.parameter_servers)},
        .own = {.rank = lease->rank,
                .cores_milli = lease->cores_milli,
                .gpus_milli = lease->gpus_milli},
        .port = MUSTER_PORT,
        .address = packet_address,
        .callbacks = {on_start, on_round_stop, on_job_end, on_done, on_launch},
        .context = role,
    };
    snprintf(options.own.name, sizeof(options.own.name), TEXT_FORMAT,
             TEXT_ARGS(lease->machine_name));
    return crew_open(&options, &role->crew, error);
}

/* After `setup`, if there is one. */
static int begin(struct command_role *role, struct error *error)
{
    role->is_setup = false;
    if (role->work->lease.is_gathered)
        return join_crew(role, error);
    loop_timer_start(role->run_timer, 0); /* not from inside the first script's watch */
    return 0;
}

static bool may_restart(const struct command_role *role)
{
    const struct lease_document *lease = &role->work->lease;
    return lease->restart == MUSTER_RESTART_RANK && role->restarts < lease->max_restarts;
}

static void run_ended(struct command_role *role, bool is_ok)
{
    if (!is_ok && may_restart(role) && !role->is_stopping) {
        role->restarts++;
        fprintf(stderr, "souk: %s; it starts anew, %" PRIu64 " of %" PRIu64 "\n",
                role->result.message, role->restarts, role->work->lease.max_restarts);
        loop_timer_start(role->run_timer, 0);
    } else if (role->crew && !role->is_stopping) {
        crew_exit(role->crew, role->result.exit_code);
    } else {
        role_end(role, is_ok, role->result.message);
    }
}

static void on_settled(void *context, const char *reason)
{
    struct command_role *role = context;
    (void)reason;
    role->is_settling = false;
    run_ended(role, role->is_ended_well);
}

static void on_exit_of_script(void *context, const struct child_exit *exit)
{
    struct command_role *role = context;
    struct error error;
    const char *what = role->is_setup ? "setup: " : "";
    char *message = role->result.message;
    const size_t size = sizeof(role->result.message);
    script_group_free(TAKE(role->script));
    role->result.exit_code = exit->signal ? 128 + exit->signal : exit->status;
    if (exit->signal)
        snprintf(message, size, "%sended by signal %d (%s)", what, exit->signal,
                 sigdescr_np(exit->signal) ? sigdescr_np(exit->signal) : "unknown");
    else
        snprintf(message, size, "%sexit status %d", what, exit->status);
    const bool is_ok = role->result.exit_code == 0;
    if (!role->is_setup) {
        role->is_settling = true;
        role->is_ended_well = is_ok;
        const bool is_good_end =
            is_ok || (role->is_stopping && exit->signal == 0 && exit->status < 128);
        if (role->is_stopping)
            command_checkpoint_hurry(role->checkpoint);
        command_checkpoint_settle(role->checkpoint, is_good_end, on_settled);
    } else if (!is_ok || role->is_stopping)
        role_end(role, false, message);
    else if (begin(role, &error) < 0)
        role_end(role, false, error.message);
}

/* ---- Told by the daemon ---------------------------------------------------------------------- */

static void on_stop(void *context, const char *reason, int64_t grace_ms)
{
    struct command_role *role = context;
    (void)grace_ms;
    role->is_stopping = true;
    if (role->script)
        script_group_stop(role->script, 0);
    else if (role->is_settling)
        command_checkpoint_hurry(role->checkpoint);
    else { /* before its script began: it ends like one that was stopped in it */
        role->result.exit_code = STATUS_STOPPED;
        role_end(role, false, reason);
    }
}

/* No peer is needed, and none is told. */
static void on_stream(void *context, const struct child_stream *stream)
{
    (void)context;
    close(stream->fd);
}

static void on_checkpoint(void *context, const struct child_message *message)
{
    const struct command_role *role = context;
    command_checkpoint_take(role->checkpoint, message);
}

/* ---- Begin and end --------------------------------------------------------------------------- */

static int role_open(struct command_role *role, struct error *error)
{
    const struct control_callbacks callbacks = {
        .on_stream = on_stream, .on_checkpoint = on_checkpoint, .on_stop = on_stop};
    if (loop_open(&clock_system, &role->loop, error) < 0 ||
        control_open(role->loop, role->work->control_fd, &callbacks, role, &role->control, error) <
            0)
        return -1;
    role->run_timer = loop_timer_new(role->loop, begin_run, role);
    role->arena = arena_new(0);
    return command_checkpoint_open(role->loop, role->work, role, &role->checkpoint, error);
}

static void role_close(struct command_role *role)
{
    LIST_EACH(&role->launched, node)
    launched_free(LIST_ITEM(node, struct launched, node));
    crew_free(role->crew);
    script_group_free(role->script);
    command_checkpoint_free(role->checkpoint);
    loop_timer_free(role->run_timer);
    arena_free(role->arena);
    control_free(role->control);
    loop_free(role->loop);
}

static int read_image(struct command_role *role, struct error *error)
{
    const struct work *work = role->work;
    const struct lease_document *lease = &work->lease;
    role->start_folder = work->work_folder;
    if (!lease_document_image(lease))
        return 0;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, (size_t)4 << 20);
    if (file_read(IMAGE_START, &json, error) < 0 ||
        image_start_read(work->arena, buffer_text(&json), &role->image, error) < 0)
        return error_wrap(error, "the image");
    /* Whoever brings files wants to be where they are. */
    if (lease->data_count == 1 && role->image.working_dir.size)
        role->start_folder = arena_copy_string(work->arena, role->image.working_dir);
    return 0;
}

int run_command(struct work *work, struct work_result *out_result, struct error *error)
{
    __attribute__((cleanup(role_close))) struct command_role role = {.work = work};
    const struct child_message ready = {.kind = CHILD_READY};
    list_init(&role.launched);
    if (hide_from_scripts(error) < 0 || enter_folder(work, error) < 0 ||
        command_unpack_files(work, error) < 0 || command_link_mounts(work, error) < 0 ||
        read_image(&role, error) < 0 || role_open(&role, error) < 0 ||
        control_send(work->control_fd, &ready, error) < 0)
        return -1;
    role.is_setup = work->lease.setup.size > 0;
    if ((role.is_setup ? start_alone(&role, work->lease.setup, error) : begin(&role, error)) < 0 ||
        loop_run(role.loop, error) < 0)
        return -1;
    command_keep_output(work);
    *out_result = role.result;
    return 0;
}
