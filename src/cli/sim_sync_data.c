/* Sim sync: the data, from the catalogue's four files or through a reader. */
#include "cli/sim_sync.h"
#include "train/dataset_catalogue.h"
#include "train/reader.h"

static int open_rows(const struct dataset_entry *entry, const struct import_rows *rows,
                     struct dataset **out_dataset, struct error *error)
{
    const struct dataset_shape shape = {.count = rows->count,
                                        .channels = entry->channels,
                                        .height = entry->height,
                                        .width = entry->width,
                                        .classes = entry->classes};
    const struct dataset_arrays arrays = {.pixels = rows->values.data,
                                          .mean = entry->mean,
                                          .deviation = entry->deviation,
                                          .labels = (const int32_t *)rows->targets.data};
    return dataset_open_arrays(&shape, &arrays, out_dataset, error);
}

static int open_import(struct sim_sync *plan, const struct dataset_entry *entry,
                       struct error *error)
{
    const char *folder = plan->wanted->folder;
    struct import_options options;
    if (!folder)
        return error_set(error, ERROR_NOT_FOUND,
                         "data set \"%s\" comes with no package: name the folder that holds it "
                         "with --folder",
                         entry->name);
    import_options_default(&options);
    options.classes = entry->classes;
    if (import_read(folder, &options, &plan->import, error) < 0)
        return -1;
    const struct import *import = &plan->import;
    if (import->form != IMPORT_BYTES || import->channels != entry->channels ||
        import->height != entry->height || import->width != entry->width)
        return error_set(error, ERROR_INVALID, "\"%.150s\" does not hold %s", folder, entry->name);
    if (import->test.count == 0)
        return error_set(error, ERROR_NOT_FOUND, "\"%.150s\" holds no test records", folder);
    return open_rows(entry, &import->train, &plan->train, error) < 0
               ? -1
               : open_rows(entry, &import->test, &plan->test, error);
}

static int open_files(struct sim_sync *plan, const struct dataset_entry *entry, struct error *error)
{
    const char *folder = plan->wanted->folder;
    return dataset_entry_open(entry, folder, DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS,
                              &plan->train, error) < 0
               ? -1
               : dataset_entry_open(entry, folder, DATASET_TEST_IMAGES, DATASET_TEST_LABELS,
                                    &plan->test, error);
}

int sim_sync_open_data(struct sim_sync *plan, struct error *error)
{
    const struct sim_sync_options *wanted = plan->wanted;
    const struct dataset_entry *entry;
    if (dataset_entry_find(text_of(wanted->data), &entry, error) < 0)
        return -1;
    const int result =
        entry->is_imported ? open_import(plan, entry, error) : open_files(plan, entry, error);
    if (result < 0)
        return -1;
    struct model_spec *spec = &plan->compare.engine.spec;
    model_spec_default((enum model_kind)wanted->model, spec);
    spec->channels = entry->channels;
    spec->height = entry->height;
    spec->width = entry->width;
    spec->classes = entry->classes;
    plan->compare.engine.batch = (uint32_t)wanted->batch;
    return model_spec_check(spec, error);
}

void sim_sync_close_data(struct sim_sync *plan)
{
    dataset_free(plan->train);
    dataset_free(plan->test);
    import_done(&plan->import);
}
