#include "base/file.h"
#include "base/options_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 64 << 10, PATH_SIZE = 4096 };

static int format_path(const char *config_dir, bool is_secret, char out[PATH_SIZE],
                       struct error *error)
{
    const int length =
        snprintf(out, PATH_SIZE, "%s/%s", config_dir, is_secret ? "secrets" : "config");
    if (length < 0 || length >= PATH_SIZE)
        return error_set(error, ERROR_INVALID, "the path of the configuration folder is too long");
    return 0;
}

static int check_private(const char *path, struct error *error)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : error_set_errno(error, errno, "look at \"%s\"", path);
    if (info.st_mode & 077)
        return error_set(error, ERROR_REFUSED,
                         "\"%s\" holds secrets but others may read it; run: chmod 600 %s", path,
                         path);
    if (info.st_uid != geteuid())
        return error_set(error, ERROR_REFUSED, "\"%s\" holds secrets but belongs to another user",
                         path);
    return 0;
}

/* An absent file reads as empty. */
static int read_file(const char *path, bool is_secret, struct buffer *out, struct error *error)
{
    if (is_secret && check_private(path, error) < 0)
        return -1;
    if (file_read(path, out, error) < 0 && error->code != ERROR_NOT_FOUND)
        return -1;
    return 0;
}

static struct text strip_comment(struct text line)
{
    line = text_trim(line);
    if (line.size && line.data[0] == '#')
        return (struct text){0};
    for (size_t i = 1; i < line.size; i++)
        if (line.data[i] == '#' && (line.data[i - 1] == ' ' || line.data[i - 1] == '\t'))
            return text_trim((struct text){line.data, i});
    return line;
}

int options_file_each(const char *config_dir, bool is_secret, const char *command,
                      option_line_handler *handle, void *context, struct error *error)
{
    char path[PATH_SIZE];
    if (format_path(config_dir, is_secret, path, error) < 0)
        return -1;
    struct buffer content AUTO_BUFFER;
    buffer_init(&content, FILE_SIZE_MAX);
    if (read_file(path, is_secret, &content, error) < 0)
        return -1;

    struct text rest = buffer_text(&content);
    bool is_for_command = true, is_in_section = false, has_more = true;
    for (unsigned number = 1; has_more; number++) {
        struct text line;
        has_more = text_cut(rest, '\n', &line, &rest);
        line = strip_comment(line);
        if (line.size == 0)
            continue;
        if (line.data[0] == '[' && line.data[line.size - 1] == ']') {
            const struct text section = text_trim((struct text){line.data + 1, line.size - 2});
            is_for_command = text_equal(section, text_of(command));
            is_in_section = true;
            continue;
        }
        struct option_line found = {.path = path, .number = number, .is_in_section = is_in_section};
        if (!text_cut(line, '=', &found.key, &found.value))
            return error_set(error, ERROR_INVALID, "%s:%u: write it as key = value", path, number);
        found.key = text_trim(found.key);
        found.value = text_trim(found.value);
        if (handle(context, &found, is_for_command, error) < 0)
            return -1;
    }
    return 0;
}

/* True when the line sets one of `settings`, which is then written instead of it. */
static bool is_replaced(struct text line, const struct option_setting *settings, size_t count)
{
    struct text key, value;
    line = strip_comment(line);
    if (!text_cut(line, '=', &key, &value))
        return false;
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_trim(key), text_of(settings[i].key)))
            return true;
    return false;
}

static void write_settings(const struct option_setting *settings, size_t count, struct buffer *out)
{
    for (size_t i = 0; i < count; i++)
        if (settings[i].value)
            buffer_append_format(out, "%s = %s\n", settings[i].key, settings[i].value);
}

/* The name in "[name]"; false: the line is something else. */
static bool is_heading(struct text line, struct text *out_name)
{
    line = strip_comment(line);
    if (line.size < 2 || line.data[0] != '[' || line.data[line.size - 1] != ']')
        return false;
    *out_name = text_trim((struct text){line.data + 1, line.size - 2});
    return true;
}

/* New settings go first in their section; those of every command before any section. */
static void merge(struct text old, struct text section, const struct option_setting *settings,
                  size_t count, struct buffer *out)
{
    bool is_inside = section.size == 0, is_written = is_inside;
    if (is_inside)
        write_settings(settings, count, out);
    while (old.size) {
        struct text line, name, rest = {0};
        text_cut(old, '\n', &line, &rest);
        old = rest;
        const bool is_next = is_heading(line, &name);
        if (is_next)
            is_inside = section.size > 0 && text_equal(name, section);
        else if (is_inside && is_replaced(line, settings, count))
            continue;
        buffer_append_text(out, line);
        buffer_append_byte(out, '\n');
        if (is_next && is_inside && !is_written) {
            write_settings(settings, count, out);
            is_written = true;
        }
    }
    if (is_written)
        return;
    buffer_append_format(out, "%s[" TEXT_FORMAT "]\n", out->size > 0 ? "\n" : "",
                         TEXT_ARGS(section));
    write_settings(settings, count, out);
}

static int make_directories(const char *path, struct error *error)
{
    char part[PATH_SIZE];
    if (text_copy(text_of(path), part, sizeof(part), error) < 0)
        return -1;
    for (char *at = part + 1;; at++) {
        const char saved = *at;
        if (saved != '/' && saved != '\0')
            continue;
        *at = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make folder \"%s\"", part);
        if (saved == '\0')
            return 0;
        *at = saved;
    }
}

static int store(const char *config_dir, bool is_secret, struct text section,
                 const struct option_setting *settings, size_t count, struct error *error)
{
    char path[PATH_SIZE];
    if (format_path(config_dir, is_secret, path, error) < 0)
        return -1;
    struct buffer old AUTO_BUFFER, content AUTO_BUFFER;
    buffer_init(&old, FILE_SIZE_MAX);
    buffer_init(&content, FILE_SIZE_MAX);
    if (make_directories(config_dir, error) < 0 || read_file(path, is_secret, &old, error) < 0)
        return -1;
    merge(buffer_text(&old), section, settings, count, &content);
    if (buffer_check(&content, error) < 0)
        return error_wrap(error, "write \"%s\"", path);
    const struct text parts[] = {buffer_text(&content)};
    return file_replace(path, parts, 1, is_secret ? 0600 : 0644, error);
}

int options_file_store(const char *config_dir, bool is_secret,
                       const struct option_setting *settings, size_t count, struct error *error)
{
    return store(config_dir, is_secret, (struct text){0}, settings, count, error);
}

int options_file_store_command(const char *config_dir, const char *command,
                               const struct option_setting *settings, size_t count,
                               struct error *error)
{
    return store(config_dir, /* is_secret= */ false, text_of(command), settings, count, error);
}
