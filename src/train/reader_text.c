/*
 * Text: samples with a label, or running text to be continued.
 *
 *     folder/CLASS/NAME.txt   each file a sample
 *     folder/NAME.pos, .neg   each line a sample
 *     FILE                    each line LABEL <tab> TEXT; without tabs it is running text
 *
 * A sample becomes `length` tokens as words.h says; the known words are numbered by how often they
 * occur. Running text becomes rows of `length` + 1 tokens, each beginning with the last token of
 * the one before.
 */
#include "base/assert.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "train/reader_internal.h"
#include "train/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIFFERENT_MAX = 8 << 20, SAMPLE_SIZE_MAX = 16 << 20 };

struct texts {
    const struct import_options *options;
    struct import *import;
    bool is_running;
    bool is_counting; /* the first pass */
    struct map words; /* counted: index + 1 */
    uint64_t *counts;
    size_t room;
    int32_t *tokens; /* [row] */
    uint32_t filled;
};

static void texts_done(struct texts *texts)
{
    map_done(&texts->words);
    free(texts->counts);
    free(texts->tokens);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static int count_word(struct texts *texts, struct text word, struct error *error)
{
    uintptr_t number = (uintptr_t)map_get_text(&texts->words, word);
    if (number == 0) {
        if (texts->words.count == DIFFERENT_MAX)
            return error_set(error, ERROR_EXHAUSTED,
                             "more than %d different words: they must be hashed", DIFFERENT_MAX);
        if (texts->words.count == texts->room) {
            texts->room = texts->room ? 2 * texts->room : 1024;
            texts->counts = realloc(texts->counts, texts->room * sizeof(*texts->counts));
            ASSERT(texts->counts);
        }
        number = texts->words.count + 1;
        texts->counts[number - 1] = 0;
        map_put_text(&texts->words, word, (void *)number); // NOLINT(performance-no-int-to-ptr)
    }
    texts->counts[number - 1]++;
    return 0;
}

struct counted {
    struct text word;
    uint64_t count;
};

static int compare_counted(const void *left, const void *right)
{
    const struct counted *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return text_compare(a->word, b->word);
}

static void choose_words(struct texts *texts)
{
    struct import *import = texts->import;
    const size_t count = texts->words.count;
    struct counted *counted = calloc(count + 1, sizeof(*counted));
    ASSERT(counted);
    for (size_t i = 0; i < count; i++)
        counted[i] = (struct counted){texts->words.names[i], texts->counts[i]};
    qsort(counted, count, sizeof(*counted), compare_counted);
    map_init(&import->words);
    for (size_t i = 0; i < count && i + TOKEN_WORD_FIRST < texts->options->vocabulary; i++)
        map_put_text(&import->words, counted[i].word,
                     (void *)(i + 1)); // NOLINT(performance-no-int-to-ptr): never followed
    import->word_first = TOKEN_WORD_FIRST;
    import->vocabulary = TOKEN_WORD_FIRST + (uint32_t)import->words.count;
    free(counted);
}

static int32_t token_of(const struct texts *texts, struct text word)
{
    const struct words words = {.buckets =
                                    texts->options->are_words_hashed ? texts->options->buckets : 0,
                                .known = &texts->import->words};
    return words_token(&words, word);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static int end_row(struct texts *texts, struct error *error)
{
    struct import *import = texts->import;
    while (texts->filled < import->width)
        texts->tokens[texts->filled++] = TOKEN_FILL;
    if (spool_append(&import->train.values, texts->tokens, import->width * sizeof(*texts->tokens),
                     error) < 0)
        return -1;
    return import_row_end(&import->train, error);
}

static int add_words(struct texts *texts, struct text sample, struct error *error)
{
    char bytes[WORD_SIZE_MAX];
    struct text word;
    while (words_next(texts->options->unit, &sample, bytes, &word)) {
        if (texts->is_counting) {
            if (count_word(texts, word, error) < 0)
                return -1;
            continue;
        }
        if (texts->filled == texts->import->width) {
            if (!texts->is_running)
                return 0;
            const int32_t last = texts->tokens[texts->filled - 1];
            if (end_row(texts, error) < 0)
                return -1;
            texts->tokens[0] = last;
            texts->filled = 1;
        }
        texts->tokens[texts->filled++] = token_of(texts, word);
    }
    return 0;
}

static int add_sample(struct texts *texts, struct text label, struct text sample,
                      struct error *error)
{
    int32_t class;
    texts->filled = 0;
    if (texts->is_counting)
        return add_words(texts, sample, error);
    if (import_class(texts->import, label, IMPORT_CLASSES_MAX, &class, error) < 0 ||
        import_add_class_target(&texts->import->train, class, error) < 0 ||
        add_words(texts, sample, error) < 0)
        return -1;
    return end_row(texts, error);
}

static int pass_lines(struct texts *texts, const struct reader_source *source,
                      const char *fixed_label, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (reader_source_open(source, texts->options->size_max, &stream, error) < 0)
        return -1;
    for (;;) {
        struct text line, label = text_of(fixed_label), sample;
        bool has_line;
        if (data_stream_line(stream, &line, &has_line, error) < 0)
            return -1;
        if (!has_line)
            return 0;
        if (text_trim(line).size == 0)
            continue;
        sample = line;
        if (!fixed_label && !text_cut(line, '\t', &label, &sample))
            return error_set(error, ERROR_INVALID,
                             "line %" PRIu64 ": no tab between a label and a text",
                             data_stream_line_number(stream));
        if (add_sample(texts, text_trim(label), sample, error) < 0)
            return error_wrap(error, "line %" PRIu64, data_stream_line_number(stream));
    }
}

static int pass_running(struct texts *texts, const struct reader_source *source,
                        struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (reader_source_open(source, texts->options->size_max, &stream, error) < 0)
        return -1;
    for (;;) {
        struct text line;
        bool has_line;
        if (data_stream_line(stream, &line, &has_line, error) < 0)
            return -1;
        if (!has_line)
            return 0;
        if (add_words(texts, line, error) < 0 ||
            (texts->options->unit == IMPORT_CHARACTERS && add_words(texts, TEXT("\n"), error) < 0))
            return -1;
    }
}

/* ---- Folders --------------------------------------------------------------------------------- */

static int pass_file(struct texts *texts, const char *path, const char *label, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, SAMPLE_SIZE_MAX);
    if (data_stream_open(path, SAMPLE_SIZE_MAX / 2, &stream, error) < 0)
        return -1;
    for (;;) {
        size_t got;
        uint8_t *room = buffer_reserve(&bytes, 1 << 16);
        if (!room || data_stream_read(stream, room, 1 << 16, &got, error) < 0)
            return room ? error_wrap(error, "\"%s\"", path)
                        : error_set(error, ERROR_EXHAUSTED, "\"%s\" is too long", path);
        if (got == 0)
            break;
        buffer_advance(&bytes, got);
    }
    return add_sample(texts, text_of(label), buffer_text(&bytes), error);
}

static int pass_class(struct texts *texts, const char *folder, const char *label,
                      struct error *error)
{
    char inner[READER_PATH_SIZE], path[READER_PATH_SIZE];
    struct reader_names names AUTO_NAMES = {0};
    if (reader_join(folder, label, inner, error) < 0 || reader_names_read(inner, &names, error) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++)
        if (text_ends_with(text_of(names.names[i]), TEXT(".txt")) &&
            (reader_join(inner, names.names[i], path, error) < 0 ||
             pass_file(texts, path, label, error) < 0))
            return -1;
    return 0;
}

static const char *polarity_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".pos") || !strcmp(dot, ".neg")) ? dot + 1 : NULL;
}

static int pass_folder(struct texts *texts, const char *folder, struct error *error)
{
    char path[READER_PATH_SIZE];
    struct reader_names names AUTO_NAMES = {0};
    if (reader_names_read(folder, &names, error) < 0)
        return -1;
    for (size_t i = 0; i < names.count; i++) {
        const char *polarity = polarity_of(names.names[i]);
        const struct reader_source source = {.path = path};
        if (polarity && (reader_join(folder, names.names[i], path, error) < 0 ||
                         pass_lines(texts, &source, polarity, error) < 0))
            return error_wrap(error, "%s", names.names[i]);
        if (!polarity && reader_is_folder(folder, names.names[i]) &&
            pass_class(texts, folder, names.names[i], error) < 0)
            return -1;
    }
    return 0;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int pass(struct texts *texts, const struct reader_source *source, struct error *error)
{
    if (source->path && reader_is_folder(source->path, "."))
        return pass_folder(texts, source->path, error);
    return texts->is_running ? pass_running(texts, source, error)
                             : pass_lines(texts, source, NULL, error);
}

static int find_out(struct texts *texts, const struct reader_source *source, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    struct text start, line, tail = {0};
    if (source->path && reader_is_folder(source->path, "."))
        return 0;
    if (reader_source_open(source, texts->options->size_max, &stream, error) < 0 ||
        data_stream_peek(stream, &start, error) < 0)
        return -1;
    text_cut(start, '\n', &line, &tail);
    texts->is_running = line.size == 0 || !memchr(line.data, '\t', line.size);
    return 0;
}

int reader_text_read(const struct reader_source *source, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    __attribute__((cleanup(texts_done))) struct texts texts = {.options = options,
                                                               .import = out_import};
    map_init(&texts.words);
    if (options->is_number)
        return error_set(error, ERROR_INVALID, "labels of texts are classes, no numbers");
    if (find_out(&texts, source, error) < 0)
        return -1;
    out_import->form = IMPORT_TOKENS;
    out_import->unit = options->unit;
    out_import->target = texts.is_running ? IMPORT_NEXT : IMPORT_CLASS;
    out_import->channels = out_import->height = 1;
    out_import->width = options->length + (texts.is_running ? 1 : 0);
    texts.tokens = memory_zeroed(out_import->width, sizeof(*texts.tokens));
    if (options->are_words_hashed) {
        out_import->vocabulary = TOKEN_WORD_FIRST + options->buckets;
    } else {
        texts.is_counting = true;
        if (pass(&texts, source, error) < 0)
            return -1;
        choose_words(&texts);
    }
    texts.is_counting = false;
    texts.filled = 0;
    if (pass(&texts, source, error) < 0)
        return -1;
    if (!texts.is_running)
        import_sort_classes(out_import);
    return 0;
}

static int read_path(const char *path, const struct import_options *options,
                     struct import *out_import, struct error *error)
{
    const struct reader_source source = {.path = path};
    return reader_text_read(&source, options, out_import, error);
}

static bool has_texts(const char *folder, bool is_class)
{
    struct error ignored;
    struct reader_names names AUTO_NAMES = {0};
    if (reader_names_read(folder, &names, &ignored) < 0)
        return false;
    for (size_t i = 0; i < names.count; i++) {
        char inner[READER_PATH_SIZE];
        if (is_class ? text_ends_with(text_of(names.names[i]), TEXT(".txt"))
                     : polarity_of(names.names[i]) ||
                           (reader_is_folder(folder, names.names[i]) &&
                            reader_join(folder, names.names[i], inner, &ignored) == 0 &&
                            has_texts(inner, true)))
            return true;
    }
    return false;
}

static bool matches(const struct reader_clue *clue)
{
    return clue->is_folder ? has_texts(clue->path, false)
                           : text_ends_with(clue->name, TEXT(".txt"));
}

const struct reader reader_text = {
    .name = "text",
    .help = "texts with a label each, or one running text",
    .matches = matches,
    .read = read_path,
};
