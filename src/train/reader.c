#include "train/reader.h"

#include "base/assert.h"
#include "train/import_windows.h"
#include "train/reader_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In the order they are asked: those that are sure come first. */
static const struct reader *const readers[] = {
    &reader_idx,    &reader_npy,  &reader_cifar,  &reader_cifar_strips,
    &reader_libsvm, &reader_text, &reader_images, &reader_csv,
};
enum { READER_COUNT = sizeof(readers) / sizeof(*readers) };

size_t reader_count(void)
{
    return READER_COUNT;
}

const struct reader *reader_at(size_t index)
{
    ASSERT(index < READER_COUNT);
    return readers[index];
}

/* ---- Which ----------------------------------------------------------------------------------- */

static struct text plain_name(const char *path)
{
    static const struct text endings[] = {{".gz", 3}, {".zst", 4}};
    struct text name = text_of(path);
    while (name.size > 1 && name.data[name.size - 1] == '/')
        name.size--;
    const char *slash = memrchr(name.data, '/', name.size);
    if (slash && name.size > 1)
        name = (struct text){slash + 1, name.size - (size_t)(slash + 1 - name.data)};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (text_ends_with(name, endings[i]))
            return (struct text){name.data, name.size - endings[i].size};
    return name;
}

static int find_by_name(const char *format, const struct reader **out_reader, struct error *error)
{
    for (size_t i = 0; i < READER_COUNT; i++)
        if (!strcmp(readers[i]->name, format)) {
            *out_reader = readers[i];
            return 0;
        }
    return error_set(error, ERROR_NOT_FOUND,
                     "format \"%.40s\" is not known: there are csv, libsvm, idx, npy, cifar, "
                     "cifar-strips, text and images",
                     format);
}

int reader_find(const char *path, const char *format, const struct reader **out_reader,
                struct error *error)
{
    struct stat status;
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "\"%s\"", path);
    if (format)
        return find_by_name(format, out_reader, error);
    struct reader_clue clue = {
        .path = path, .is_folder = S_ISDIR(status.st_mode), .name = plain_name(path)};
    if (!clue.is_folder && (data_stream_open(path, UINT64_MAX, &stream, error) < 0 ||
                            data_stream_peek(stream, &clue.start, error) < 0))
        return error_wrap(error, "\"%s\"", path);
    for (size_t i = 0; i < READER_COUNT; i++)
        if (readers[i]->matches(&clue)) {
            *out_reader = readers[i];
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "\"%s\": nothing tells what format %s is; name it with train.read.format",
                     path, clue.is_folder ? "this folder" : "this file");
}

int import_read(const char *path, const struct import_options *options, struct import *out_import,
                struct error *error)
{
    const struct reader *reader;
    struct import import = {.is_part = options->is_part, .is_asked = options->is_asked};
    if (reader_find(path, options->format, &reader, error) < 0)
        return -1;
    if (reader->read(path, options, &import, error) < 0 ||
        (options->window &&
         import_make_windows(&import, options->window, options->ahead, error) < 0) ||
        import_finish(&import, error) < 0) {
        import_done(&import);
        return error_wrap(error, "\"%s\" (%s)", path, reader->name);
    }
    *out_import = import;
    return 0;
}

/* ---- Files and folders ----------------------------------------------------------------------- */

int reader_source_open(const struct reader_source *source, uint64_t size_max,
                       struct data_stream **out_stream, struct error *error)
{
    return source->path ? data_stream_open(source->path, size_max, out_stream, error)
                        : data_stream_open_bytes(source->bytes, size_max, out_stream, error);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static int collect_names(DIR *folder, struct reader_names *names, struct error *error)
{
    size_t room = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): a DIR of our own
        if (entry->d_name[0] == '.')
            continue;
        if (names->count == READER_NAMES_MAX)
            return error_set(error, ERROR_EXHAUSTED, "more than %d files", READER_NAMES_MAX);
        if (names->count == room) {
            room = room ? 2 * room : 64;
            names->names = realloc(names->names, room * sizeof(*names->names));
            ASSERT(names->names);
        }
        names->names[names->count] = strdup(entry->d_name);
        ASSERT(names->names[names->count]);
        names->count++;
    }
    return 0;
}

int reader_names_read(const char *folder, struct reader_names *out_names, struct error *error)
{
    *out_names = (struct reader_names){0};
    DIR *directory = opendir(folder);
    if (!directory)
        return error_set_errno(error, errno, "open \"%s\"", folder);
    const int result = collect_names(directory, out_names, error);
    closedir(directory);
    if (result < 0) {
        reader_names_done(out_names);
        return error_wrap(error, "\"%s\"", folder);
    }
    if (out_names->count)
        qsort(out_names->names, out_names->count, sizeof(*out_names->names), compare_names);
    return 0;
}

void reader_names_done(struct reader_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct reader_names){0};
}

int reader_join(const char *folder, const char *name, char *out, struct error *error)
{
    const int size = snprintf(out, READER_PATH_SIZE, "%s/%s", folder, name);
    if (size < 0 || size >= READER_PATH_SIZE)
        return error_set(error, ERROR_INVALID, "a path is longer than %d bytes", READER_PATH_SIZE);
    return 0;
}

static bool has_mode(const char *folder, const char *name, mode_t mode)
{
    char path[READER_PATH_SIZE];
    struct stat status;
    struct error ignored;
    return reader_join(folder, name, path, &ignored) == 0 && stat(path, &status) == 0 &&
           (status.st_mode & S_IFMT) == mode;
}

bool reader_is_file(const char *folder, const char *name)
{
    return has_mode(folder, name, S_IFREG);
}

bool reader_is_folder(const char *folder, const char *name)
{
    return has_mode(folder, name, S_IFDIR);
}

bool reader_find_file(const char *folder, const char *name, char *out)
{
    static const char *const endings[] = {"", ".gz", ".zst"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        char file[READER_PATH_SIZE];
        struct error ignored;
        const int size = snprintf(file, sizeof(file), "%s%s", name, endings[i]);
        if (size > 0 && size < READER_PATH_SIZE && reader_is_file(folder, file))
            return reader_join(folder, file, out, &ignored) == 0;
    }
    return false;
}

bool reader_list_has(const char *list, const char *word)
{
    struct text rest = text_of(list ? list : ""), head;
    while (rest.size) {
        struct text tail = {0};
        text_cut(rest, ',', &head, &tail);
        if (text_equal(text_trim(head), text_of(word)))
            return true;
        rest = tail;
    }
    return false;
}
