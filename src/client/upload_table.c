#include "client/upload_table.h"

#include "base/assert.h"
#include "client/bring.h"
#include "runtime/job_import.h"
#include "source/place.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Of data that lie at lenders the borrower's own part is the test. */
const char *upload_table_path(struct arena *arena, const struct job_train *train,
                              const char *folder)
{
    const bool is_peer = job_train_peer(train).size > 0;
    const char *name = arena_copy_string(arena, is_peer ? train->test : train->data);
    struct place place;
    struct error ignored;
    if (place_is_address(text_of(name)))
        return place_parse(text_of(name), &place, &ignored) == 0 && place.kind == PLACE_FILE &&
                       !place.has_hash
                   ? arena_copy_string(arena, place.path)
                   : name;
    return folder && name[0] != '/' ? arena_format(arena, "%s/%s", folder, name) : name;
}

static const char *field_of(const struct job_train *train)
{
    return job_train_peer(train).size ? "train.test" : "train.data";
}

int upload_check_table(const struct job_spec *spec, const char *folder, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const char *path = upload_table_path(arena, &spec->train, folder);
    const struct bring_options bringing = {.address = path, .spec = spec};
    if (place_is_address(text_of(path)))
        return bring_check(&bringing, error) == 0 ? 0
                                                  : error_wrap(error, "%s", field_of(&spec->train));
    if (access(path, R_OK) < 0)
        return error_set_errno(error, errno, "%s: \"%s\"", field_of(&spec->train), path);
    return 0;
}

static void free_parts(void *context)
{
    struct import_parts *parts = context;
    import_parts_done(parts);
    free(parts);
}

static int add_parts(struct arena *arena, const struct upload_options *options,
                     const struct import_parts *parts, struct job_spec *spec, struct error *error)
{
    struct job_part files[JOB_PARTS_MAX];
    size_t count;
    struct job_input *inputs = arena_alloc(arena, JOB_PARTS_MAX * sizeof(*inputs));
    if (job_import_parts(&spec->train, parts, files, &count, error) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct job_part *file = &files[i];
        const struct bundle_part added = {.name = file->title,
                                          .packing = {.media_type = file->media_type,
                                                      .header_bytes = file->header_bytes,
                                                      .record_bytes = file->record_bytes},
                                          .bytes = file->bytes};
        inputs[i] = (struct job_input){.name = text_of(file->name), .split = file->split};
        if (bundle_add(options->bundle, &added, &inputs[i], error) < 0)
            return -1;
    }
    spec->inputs = inputs;
    spec->input_count = count;
    return 0;
}

/* What lies elsewhere is brought here for as long as it is read. */
int upload_read(struct arena *arena, const struct upload_options *options, const char *path,
                struct job_spec *spec, struct import_parts *out_parts, struct error *error)
{
    AUTO(bring) struct bring *bring = NULL;
    const struct bring_options bringing = {.address = path,
                                           .spec = spec,
                                           .on_note = options->on_reading,
                                           .context = options->context,
                                           .leaves_signals = options->leaves_signals,
                                           .stop = options->stop};
    if (!place_is_address(text_of(path)))
        return job_import_read(arena, path, spec, options->on_reading, options->context, out_parts,
                               error);
    if (bring_open(&bringing, &bring, error) < 0)
        return error_wrap(error, "%s", field_of(&spec->train));
    if (job_import_read(arena, bring_path(bring), spec, options->on_reading, options->context,
                        out_parts, error) == 0)
        return 0;
    bring_rename(bring, error);
    return -1;
}

int upload_import(struct arena *arena, const struct upload_options *options, const char *path,
                  struct job_spec *spec, struct error *error)
{
    struct import_parts *parts = calloc(1, sizeof(*parts));
    ASSERT(parts);
    if (options->on_reading && !place_is_address(text_of(path)))
        options->on_reading(options->context, arena_format(arena, "Reading \"%s\".", path));
    if (upload_read(arena, options, path, spec, parts, error) < 0) {
        free(parts);
        return -1;
    }
    bundle_keep_take(options->bundle, parts, free_parts);
    return add_parts(arena, options, parts, spec, error);
}

int upload_table(struct arena *arena, const struct upload_options *options, struct job_spec *spec,
                 struct error *error)
{
    return upload_import(arena, options, upload_table_path(arena, &spec->train, options->folder),
                         spec, error);
}
