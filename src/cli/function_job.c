#include "cli/function_job.h"

#include "function/work_put.h"
#include "train/dataset_catalogue.h"
#include "train/idx_reader.h"

#include <ctype.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a part, where they lie: in what was imported, or in a file of the catalogue. */
struct part {
    struct idx *idx;
    struct text bytes;
};

static int part_open(const struct train_data *data, const struct job_spec *spec,
                     const char *dataset_dir, enum dataset_part which, struct part *out_part,
                     struct error *error)
{
    const struct dataset_entry *entry;
    char path[PATH_MAX];
    if (data->has_parts) {
        const struct spool *spool = &data->parts.files[which];
        *out_part = (struct part){.bytes = {(const char *)spool->data, spool->size}};
        return 0;
    }
    if (dataset_entry_find(spec->train.data, &entry, error) < 0 ||
        dataset_entry_path(entry, dataset_dir, which, path, sizeof(path), error) < 0 ||
        idx_open(path, DATASET_SIZE_MAX, &out_part->idx, error) < 0)
        return -1;
    out_part->bytes = (struct text){(const char *)out_part->idx->bytes, out_part->idx->size};
    return 0;
}

static int data_put(struct object_store *store, const struct job_spec *spec,
                    const struct train_data *data, const char *dataset_dir, struct work_job *job,
                    struct error *error)
{
    static const enum dataset_part parts[] = {DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS};
    for (int i = 0; i < LESSON_PART_COUNT; i++) {
        struct part part = {0};
        int result = part_open(data, spec, dataset_dir, parts[i], &part, error);
        if (result == 0)
            result = work_put_part(store, job, (enum lesson_part)i, part.bytes, error);
        idx_free(part.idx);
        if (result < 0)
            return -1;
    }
    return 0;
}

int function_job_put(struct arena *arena, struct object_store *store, const char *name,
                     const struct job_spec *spec, const struct train_data *data,
                     const char *dataset_dir, struct work_job *out_job, struct error *error)
{
    struct work_job job = {.mean = data->mean, .deviation = data->deviation};
    struct buffer work AUTO_BUFFER;
    buffer_init(&work, WORK_JSON_MAX);
    if (work_check_job_name(name, error) < 0 ||
        text_copy(text_of(name), job.name, sizeof(job.name), error) < 0 ||
        data_put(store, spec, data, dataset_dir, &job, error) < 0)
        return -1;
    job_spec_write_work(spec, &work);
    job.work = arena_copy_text(arena, buffer_text(&work));
    *out_job = job;
    return work_put_job(store, &job, error);
}

void function_job_name(struct text name, char out[WORK_JOB_SIZE])
{
    uint8_t chance[WORK_JOB_CHANCE_SIZE / 2];
    char hex[2 * sizeof(chance) + 1];
    size_t size = 0;
    for (size_t i = 0; i < name.size && size < WORK_JOB_SIZE - sizeof(hex) - 2; i++)
        if (isalnum((unsigned char)name.data[i]) || name.data[i] == '-')
            out[size++] = name.data[i];
    randombytes_buf(chance, sizeof(chance));
    text_hex_encode(chance, sizeof(chance), hex);
    snprintf(out + size, WORK_JOB_SIZE - size, "%s%s", size ? "-" : "", hex);
}
