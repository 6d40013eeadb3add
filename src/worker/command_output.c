#include "worker/command_output.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LEFT_LISTED_MAX = 10000,
    LEFT_LOGGED_MAX = 20,
    LEFT_TEXT_MAX = LEFT_LISTED_MAX * (PATH_MAX + 128),
};

/* Announced by itself, packed or on its way there; or written below. */
static bool is_own(const char *name)
{
    static const char *const own[] = {LEASE_JOB_CHECKPOINT_NAME, LEASE_RANK_CHECKPOINT_NAME,
                                      RESULT_LEFT_OUT_NAME};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        const size_t size = strlen(own[i]);
        if (strncmp(name, own[i], size) == 0 &&
            (name[size] == '\0' || strcmp(name + size, ".part") == 0))
            return true;
    }
    return false;
}

static int compare_names(const FTSENT **left, const FTSENT **right)
{
    return strcmp((*left)->fts_name, (*right)->fts_name);
}

static void close_tree(FTS **tree)
{
    if (*tree)
        fts_close(*tree);
}

static void leave(struct output *output, const char *path, const char *reason)
{
    if (output->left_count++ < LEFT_LISTED_MAX) {
        const struct output_left left = {path, reason};
        buffer_append(&output->left, &left, sizeof(left));
    }
}

/* Why the item cannot be kept; NULL: it can, or it is a folder to look into. */
static const char *trouble_of(const FTSENT *item, const char *path, size_t count)
{
    const char *trouble = result_name_trouble(text_of(path));
    if (trouble)
        return trouble;
    switch (item->fts_info) {
    case FTS_D:
        return NULL;
    case FTS_F:
        return (uint64_t)item->fts_statp->st_size > RESULT_BYTES_MAX ? "it is larger than 1 GiB"
               : count == RESULT_FILES_MAX                           ? "1000 files are kept already"
                                                                     : NULL;
    case FTS_SL:
    case FTS_SLNONE:
        return "it is a link";
    case FTS_DNR:
    case FTS_NS:
    case FTS_ERR:
        return "it cannot be read";
    default:
        return "it is no plain file";
    }
}

static void look_at(struct arena *arena, FTS *tree, FTSENT *item, size_t root_size,
                    struct output *output)
{
    const char *path = arena_copy_string(arena, text_of(item->fts_path + root_size + 1));
    if (item->fts_level == 1 && item->fts_info != FTS_D && is_own(path))
        return;
    const char *trouble = trouble_of(item, path, output->count);
    if (trouble) {
        leave(output, path, trouble);
        if (item->fts_info == FTS_D)
            fts_set(tree, item, FTS_SKIP);
    } else if (item->fts_info == FTS_F)
        output->paths[output->count++] = path;
}

int output_gather(struct arena *arena, const char *folder, struct output *out_output,
                  struct error *error)
{
    __attribute__((cleanup(close_tree))) FTS *tree = NULL;
    char *const roots[] = {arena_copy_string(arena, text_of(folder)), NULL};
    out_output->count = out_output->left_count = 0;
    buffer_init(&out_output->left, LEFT_LISTED_MAX * sizeof(struct output_left));
    tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, compare_names);
    if (!tree)
        return error_set_errno(error, errno, "read \"%s\"", folder);
    for (FTSENT *item; (item = fts_read(tree));) {
        if (item->fts_level > FTS_ROOTLEVEL && item->fts_info != FTS_DP)
            look_at(arena, tree, item, strlen(folder), out_output);
        else if (item->fts_level == FTS_ROOTLEVEL && item->fts_errno)
            return error_set_errno(error, item->fts_errno, "read \"%s\"", folder);
    }
    return 0;
}

void output_done(struct output *output)
{
    buffer_done(&output->left);
}

static void announce(const struct work *work, const char *path, struct output *output)
{
    struct error error;
    const struct child_message message = {.kind = CHILD_ARTIFACT,
                                          .artifact = {.name = text_of(path)}};
    if (control_send(work->control_fd, &message, &error) < 0)
        leave(output, path, arena_copy_string(work->arena, text_of(error.message)));
}

/* A name may have what no terminal shows, a line's end too. */
static const char *shown(struct arena *arena, const char *path)
{
    char *copy = arena_copy_string(arena, text_of(path));
    const bool is_plain = text_is_plain(text_of(copy));
    for (char *at = copy; *at && !is_plain; at++)
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
    return copy;
}

static int write_left(const struct work *work, const struct output *output, struct error *error)
{
    struct buffer text AUTO_BUFFER;
    char path[PATH_MAX];
    const struct output_left *left = (const void *)output->left.data;
    buffer_init(&text, LEFT_TEXT_MAX);
    for (size_t i = 0; i < output->left_count && i < LEFT_LISTED_MAX; i++)
        buffer_append_format(&text, "%s: %s\n", shown(work->arena, left[i].path), left[i].reason);
    if (output->left_count > LEFT_LISTED_MAX)
        buffer_append_format(&text, "and %zu more\n", output->left_count - LEFT_LISTED_MAX);
    if (buffer_check(&text, error) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/" RESULT_LEFT_OUT_NAME, work->out_folder);
    const struct text whole = buffer_text(&text);
    return file_replace(path, &whole, 1, 0644, error);
}

static void tell_left(const struct work *work, struct output *output)
{
    struct error error;
    const struct output_left *left = (const void *)output->left.data;
    for (size_t i = 0; i < output->left_count && i < LEFT_LOGGED_MAX; i++)
        log_event(LOG_WARN, "output_left", "file=\"%s\" reason=\"%s\"", left[i].path,
                  left[i].reason);
    if (output->left_count > LEFT_LOGGED_MAX)
        log_event(LOG_WARN, "output_left", "more=%zu list=\"" RESULT_LEFT_OUT_NAME "\"",
                  output->left_count - LEFT_LOGGED_MAX);
    if (write_left(work, output, &error) < 0)
        log_event(LOG_WARN, "output_list_unwritten", "error=\"%s\"", error.message);
    else
        announce(work, RESULT_LEFT_OUT_NAME, output);
}

void command_keep_output(const struct work *work)
{
    struct error error;
    struct output output AUTO_OUTPUT;
    if (output_gather(work->arena, work->out_folder, &output, &error) < 0) {
        log_event(LOG_WARN, "output_unread", "error=\"%s\"", error.message);
        return;
    }
    for (size_t i = 0; i < output.count; i++)
        announce(work, output.paths[i], &output);
    if (output.left_count > 0)
        tell_left(work, &output);
}
