#include "function/lesson.h"

#include "base/arena.h"
#include "base/memory.h"
#include "runtime/job_model.h"
#include "train/augment.h"
#include "train/idx_reader.h"
#include "train/loss.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

const char *const lesson_part_names[] = {"images", "labels"};

struct lesson {
    struct arena *arena; /* holds the spec */
    struct job_spec spec;
    struct dataset_shape shape;
    double mean, deviation;
    uint64_t records;
    struct idx_header headers[LESSON_PART_COUNT]; /* record_size 0: there is no such part */
    struct model_spec model_spec;
    struct model *model;
    struct optimizer *optimizer;
    struct augment augment;
    uint32_t batch;
    uint32_t *indices; /* [batch] */
    int32_t *labels;   /* [batch, dataset_labels_each] */
    float *values;     /* [batch, values] */
    uint64_t memory_bytes;
};

/* ---- Opening --------------------------------------------------------------------------------- */

static int read_header(const char *hex, struct idx_header *out_header, struct error *error)
{
    uint8_t bytes[WORK_HEADER_SIZE];
    const struct text text = text_of(hex);
    if (!text.size)
        return 0;
    if (text.size / 2 > sizeof(bytes) || text_hex_decode(text, bytes, text.size / 2, error) < 0 ||
        idx_parse_header(bytes, text.size / 2, out_header, error) < 0)
        return error_set(error, ERROR_INVALID, "job: a file's header is none");
    return 0;
}

static int read_job(struct lesson *lesson, const struct work_job *job, struct error *error)
{
    int layer;
    const struct job_train *train = &lesson->spec.train;
    if (read_header(job->images_header, &lesson->headers[LESSON_IMAGES], error) < 0 ||
        read_header(job->labels_header, &lesson->headers[LESSON_LABELS], error) < 0)
        return -1;
    const struct text work = arena_copy_text(lesson->arena, job->work);
    if (job_spec_read_work(lesson->arena, TEXT("native"), work, &lesson->spec, error) < 0)
        return -1;
    if (!lesson->headers[LESSON_IMAGES].record_size || !job_train_shape(train, &lesson->shape))
        return error_set(error, ERROR_INVALID, "job: what its records are is not known");
    lesson->mean = job->mean;
    lesson->deviation = job->deviation > 0 ? job->deviation : 1;
    lesson->records = job->records;
    lesson->batch = (uint32_t)train->batch;
    lesson->augment = job_train_augment(train);
    if (lesson->records < lesson->batch)
        return error_set(error, ERROR_INVALID, "job: %" PRIu64 " records are fewer than a batch",
                         lesson->records);
    return job_train_model(train, &lesson->shape, &lesson->model_spec, &layer, error);
}

static int open_model(struct lesson *lesson, struct kernel_set *kernels, struct error *error)
{
    const struct model_options options = {lesson->model_spec, lesson->batch, .is_training = true};
    struct optimizer_options optimizer;
    job_train_optimizer(&lesson->spec.train, &optimizer);
    if (model_spec_memory(&lesson->model_spec, lesson->batch, &lesson->memory_bytes, error) < 0 ||
        loss_check_data(&lesson->model_spec, &lesson->shape, error) < 0 ||
        augment_check(&lesson->augment, &lesson->shape, error) < 0 ||
        model_open(kernels, &options, &lesson->model, error) < 0)
        return -1;
    model_init_parameters(lesson->model, lesson->spec.train.seed);
    return optimizer_open(&optimizer, model_parameter_count(lesson->model),
                          model_learned_count(lesson->model), &lesson->optimizer, error);
}

int lesson_open(struct kernel_set *kernels, const struct work_job *job, struct lesson **out_lesson,
                struct error *error)
{
    AUTO(lesson) struct lesson *lesson = memory_zeroed(1, sizeof(*lesson));
    lesson->arena = arena_new(0);
    if (read_job(lesson, job, error) < 0 || open_model(lesson, kernels, error) < 0)
        return -1;
    const size_t batch = lesson->batch;
    lesson->indices = memory_zeroed(batch, sizeof(*lesson->indices));
    lesson->labels =
        memory_zeroed(batch * dataset_labels_each(&lesson->shape) + 1, sizeof(*lesson->labels));
    lesson->values = memory_zeroed(batch * lesson->shape.values + 1, sizeof(*lesson->values));
    *out_lesson = TAKE(lesson);
    return 0;
}

void lesson_free(struct lesson *lesson)
{
    if (!lesson)
        return;
    model_free(lesson->model);
    optimizer_free(lesson->optimizer);
    free(lesson->indices);
    free(lesson->labels);
    free(lesson->values);
    arena_free(lesson->arena);
    free(lesson);
}

uint32_t lesson_batch(const struct lesson *lesson)
{
    return lesson->batch;
}

uint64_t lesson_batch_count(const struct lesson *lesson)
{
    return lesson->records / lesson->batch;
}

size_t lesson_parameter_count(const struct lesson *lesson)
{
    return model_parameter_count(lesson->model);
}

float *lesson_parameters(struct lesson *lesson)
{
    return model_parameters(lesson->model);
}

/* ---- Records --------------------------------------------------------------------------------- */

size_t lesson_record_bytes(const struct lesson *lesson, enum lesson_part part)
{
    return lesson->headers[part].record_size;
}

uint64_t lesson_record_offset(const struct lesson *lesson, enum lesson_part part, uint64_t record)
{
    const struct idx_header *header = &lesson->headers[part];
    return header->header_size + record * header->record_size;
}

uint64_t lesson_batch_bytes(const struct lesson *lesson)
{
    uint64_t bytes = 0;
    for (int i = 0; i < LESSON_PART_COUNT; i++)
        bytes += lesson->headers[i].record_size;
    return 2 * bytes * lesson->batch; /* as they came, and as a file */
}

/* The model, what was before, the update, and the object it becomes. */
uint64_t lesson_memory_bytes(const struct lesson *lesson)
{
    return lesson->memory_bytes + 3 * sizeof(float) * model_parameter_count(lesson->model);
}

/* Without a cgroup, a sandbox cannot count memory files and refuses them: use its bounded /tmp. */
static int make_room(void)
{
    const int fd = memfd_create("records", MFD_CLOEXEC);
    return fd >= 0 || errno != EPERM ? fd : open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

/* A file of the records that has no name but that of its descriptor. */
static int make_file(const struct idx_header *header, const void *bytes, uint32_t count,
                     struct error *error)
{
    struct buffer start AUTO_BUFFER;
    buffer_init(&start, WORK_HEADER_SIZE);
    idx_append_header(&start, header, count);
    if (buffer_check(&start, error) < 0)
        return -1;
    AUTO_FD int fd = make_room();
    const size_t sizes[2] = {start.size, count * header->record_size};
    const void *parts[2] = {start.data, bytes};
    if (fd < 0)
        return error_set_errno(error, errno, "make room for records");
    for (int i = 0; i < 2; i++)
        for (size_t done = 0; done < sizes[i];) {
            const ssize_t written = write(fd, (const char *)parts[i] + done, sizes[i] - done);
            if (written < 0 && errno != EINTR)
                return error_set_errno(error, errno, "keep records");
            done += written > 0 ? (size_t)written : 0;
        }
    return TAKE_FD(fd);
}

int lesson_open_records(const struct lesson *lesson, const void *const bytes[LESSON_PART_COUNT],
                        uint32_t count, struct dataset **out_dataset, struct error *error)
{
    char paths[LESSON_PART_COUNT][40];
    AUTO_FD int images = -1;
    AUTO_FD int labels = -1;
    const bool has_labels = lesson->headers[LESSON_LABELS].record_size > 0;
    images = make_file(&lesson->headers[LESSON_IMAGES], bytes[LESSON_IMAGES], count, error);
    if (images < 0)
        return -1;
    if (has_labels) {
        labels = make_file(&lesson->headers[LESSON_LABELS], bytes[LESSON_LABELS], count, error);
        if (labels < 0)
            return -1;
    }
    snprintf(paths[LESSON_IMAGES], sizeof(paths[0]), "/proc/self/fd/%d", images);
    snprintf(paths[LESSON_LABELS], sizeof(paths[0]), "/proc/self/fd/%d", labels);
    const struct dataset_options options = {
        .images_path = paths[LESSON_IMAGES],
        .labels_path = has_labels ? paths[LESSON_LABELS] : NULL,
        .target = lesson->shape.target,
        .classes = lesson->shape.classes,
        .vocabulary = lesson->shape.vocabulary,
        .mean = lesson->mean,
        .deviation = lesson->deviation,
    };
    return dataset_open(&options, out_dataset, error);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

void lesson_begin(struct lesson *lesson, uint64_t step)
{
    optimizer_set_step_count(lesson->optimizer, step);
    optimizer_restart(lesson->optimizer);
}

int lesson_step(struct lesson *lesson, const struct dataset *dataset, uint32_t first,
                uint64_t number, double *out_loss, struct error *error)
{
    /* The odd factor spreads small numbers over all bits. */
    const uint64_t seed = lesson->spec.train.seed ^ (number + 1) * 0x9e3779b97f4a7c15ULL;
    for (uint32_t i = 0; i < lesson->batch; i++)
        lesson->indices[i] = first + i;
    dataset_gather(dataset, lesson->indices, lesson->batch, model_input(lesson->model),
                   lesson->labels);
    augment_images(&lesson->augment, dataset, ~seed, lesson->batch, model_input(lesson->model));
    if (lesson->shape.target == DATASET_VALUES)
        dataset_gather_values(dataset, lesson->indices, lesson->batch, lesson->values);
    model_set_seed(lesson->model, seed);
    model_forward(lesson->model);
    const struct targets targets = {lesson->labels, lesson->values};
    const struct loss loss = loss_with_gradient(lesson->model, &targets);
    if (!isfinite(loss.mean))
        return error_set(error, ERROR_INVALID,
                         LESSON_DIVERGED ": take a lower lr than %g, or fewer functions",
                         optimizer_options(lesson->optimizer)->lr);
    model_backward(lesson->model);
    optimizer_step(lesson->optimizer, model_kernels(lesson->model), model_parameters(lesson->model),
                   model_gradients(lesson->model));
    *out_loss = loss.mean;
    return 0;
}
