#include "cli/lend_slurm_node.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/file.h"
#include "sandbox/folder.h"

#include <string.h>

enum { MINUTE_MS = 60000, MINUTES_PER_DAY = 24 * 60, SETTING_MAX = 40 };

const char *lend_slurm_node_name(const struct lend_slurm *lend, struct arena *arena,
                                 const char *node)
{
    return lend->name ? arena_format(arena, "%s-%s", lend->name, node)
                      : arena_format(arena, "%s", node);
}

static const char *minute_words(struct arena *arena, int64_t minute)
{
    const struct date date = date_of_days(minute / MINUTES_PER_DAY);
    const int of_day = (int)(minute % MINUTES_PER_DAY);
    return arena_format(arena, "%04d-%02d-%02d %02d:%02d", date.year, date.month, date.day,
                        of_day / 60, of_day % 60);
}

const char *lend_slurm_when(struct arena *arena, int64_t from_ms, int64_t until_ms)
{
    return arena_format(arena, "%s - %s", minute_words(arena, from_ms / MINUTE_MS),
                        minute_words(arena, until_ms / MINUTE_MS));
}

/* 'it'\''s': as the shell reads it. */
static const char *quoted(struct arena *arena, const char *text)
{
    char *out = arena_alloc(arena, strlen(text) * 4 + 3);
    char *at = out;
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            at = stpcpy(at, "'\\''");
        else
            *at++ = *text;
    }
    stpcpy(at, "'");
    return out;
}

static const char *servers(struct arena *arena, const struct cli *cli)
{
    const char *all = cli->common.server;
    for (size_t i = 1; i < cli->common.servers.count; i++)
        all = arena_format(arena, "%s,%s", all, cli->common.servers.items[i]);
    return all;
}

/* The market, how to know it, and what is lent of the node when. */
static int write_settings(const struct lend_slurm_place *place, struct arena *arena,
                          const char *folder, const char *node, int64_t limit_ms,
                          const struct lend_slurm_code *code, struct error *error)
{
    const struct lend_slurm *lend = place->lend;
    const int64_t now_ms = clock_utc_ms(&clock_system);
    const char *fingerprint = place->cli->common.fingerprint;
    if (!fingerprint && code->fingerprint[0] &&
        text_starts_with(text_of(place->cli->common.server), TEXT("https://")))
        fingerprint = code->fingerprint;
    struct option_setting settings[SETTING_MAX] = {
        {"server", servers(arena, place->cli)},
        {"fingerprint", fingerprint},
        {"name", lend_slurm_node_name(lend, arena, node)},
        {"when", lend_slurm_when(arena, now_ms, now_ms + limit_ms)},
        {"zone", "UTC"},
        {"watch", "false"}, /* Slurm says whose the node is */
    };
    size_t count = 6;
    for (size_t i = 0; i < lend->setting_count && count < SETTING_MAX; i++)
        settings[count++] = lend->settings[i];
    const struct text secret[] = {TEXT("[lend]\ncode = "), text_of(code->code), TEXT("\n")};
    if (options_file_store_command(folder, "lend", settings, count, error) < 0)
        return -1;
    return file_replace(arena_format(arena, "%s/secrets", folder), secret, 3, 0600, error);
}

int lend_slurm_prepare(const struct lend_slurm_place *place, const struct lend_slurm_code *code,
                       struct arena *arena, const char *node, int64_t limit_ms,
                       struct slurm_start *out_start, struct error *error)
{
    const char *folder = arena_format(arena, "%s/%s", place->folder, node);
    if (folder_make(folder, 0700, error) < 0 ||
        write_settings(place, arena, folder, node, limit_ms, code, error) < 0)
        return -1;
    const struct lend_slurm_options *options = place->lend->options;
    *out_start = (struct slurm_start){
        .node = node,
        .limit_ms = limit_ms,
        .script = arena_format(arena, "#!/bin/sh\nexec %s slurm-node --folder %s --beat %s\n",
                               quoted(arena, place->program), quoted(arena, folder),
                               quoted(arena, arena_format(arena, "%s/beat", place->folder))),
        .folder = folder,
        .output = arena_format(arena, "%s/lend.log", folder),
        .account = options->account,
        .qos = options->qos};
    return 0;
}
