/* Scene of tests: a small job with its data and its first model in a folder, and a function for it.
 * Its clock goes on by a millisecond each time it is looked at. */
#pragma once

#include "base/assert.h"
#include "function/handler.h"
#include "function/lesson.h"
#include "function/object_store.h"
#include "function/parcel.h"
#include "runtime/job_spec.h"
#include "testing/testing.h"
#include "train/idx_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 330, BATCH = 32, BATCHES = RECORDS / BATCH, PIXELS = 784 };

static char job_scene_folder[] = "/tmp/souk-handler-XXXXXX";

struct ticking {
    struct clock clock;
    int64_t *now_ns; /* a clock is told the time of, not changed */
};

static inline int64_t job_scene_tick(const struct clock *clock)
{
    return *((const struct ticking *)clock)->now_ns += 1000000;
}

struct job_scene {
    struct ticking clock;
    int64_t now_ns;
    struct object_store *store;
    struct handler *handler;
    struct arena *arena;
    struct kernel_set *kernels;
    struct work_job job;
    struct lesson *lesson; /* the same computed here */
    uint8_t images[RECORDS * PIXELS], labels[RECORDS];
};

/* ---- The job --------------------------------------------------------------------------------- */

static const char job_scene_spec[] =
    "{\"name\":\"digits\",\"runtime\":\"native\",\"train\":{\"model\":\"logistic\",\"data\":"
    "\"fashion-mnist\",\"batch\":32,\"epochs\":2,\"optimizer\":{\"lr\":0.05}}}";

static inline void job_scene_put_part(struct job_scene *scene, enum lesson_part part,
                                      char *header_hex)
{
    struct error error = {0};
    const bool is_images = part == LESSON_IMAGES;
    const struct idx_header header = {.rank = is_images ? 3 : 1,
                                      .sizes = {RECORDS, 28, 28},
                                      .record_size = is_images ? PIXELS : 1,
                                      .element = IDX_BYTE};
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 20);
    idx_append_header(&bytes, &header, RECORDS);
    text_hex_encode(bytes.data, bytes.size, header_hex);
    buffer_append(&bytes, is_images ? scene->images : scene->labels,
                  is_images ? sizeof(scene->images) : sizeof(scene->labels));
    work_data_key("digits", lesson_part_names[part], key);
    ASSERT_OK(object_store_put(scene->store, key, buffer_text(&bytes), true, &error));
}

static inline void job_scene_put_model(struct job_scene *scene, uint64_t version,
                                       const float *values, size_t count)
{
    struct error error = {0};
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, 1 << 20);
    ASSERT_OK(parcel_encode(&(struct parcel){TEXT("{}"), values, count}, &bytes, &error));
    work_model_key("digits", version, key);
    ASSERT_OK(object_store_put(scene->store, key, buffer_text(&bytes), true, &error));
}

static inline void job_scene_put_job(struct job_scene *scene)
{
    struct error error = {0};
    struct work_job job = {.name = "digits", .mean = 0.3, .deviation = 0.4, .records = RECORDS};
    struct job_spec spec;
    struct json_writer writer;
    struct buffer work AUTO_BUFFER;
    struct buffer json AUTO_BUFFER;
    buffer_init(&work, 1 << 16);
    buffer_init(&json, 1 << 16);
    ASSERT_OK(job_spec_read(scene->arena, text_of(job_scene_spec), &spec, &error));
    job_spec_write_work(&spec, &work);
    job.work = arena_copy_text(scene->arena, buffer_text(&work));
    job_scene_put_part(scene, LESSON_IMAGES, job.images_header);
    job_scene_put_part(scene, LESSON_LABELS, job.labels_header);
    json_writer_init(&writer, &json);
    json_write(&writer, &work_job_schema, &job);
    ASSERT_OK(object_store_put(scene->store, "jobs/digits", buffer_text(&json), true, &error));
    ASSERT_OK(kernel_set_open(NULL, &scene->kernels, &error));
    ASSERT_OK(lesson_open(scene->kernels, &job, &scene->lesson, &error));
    scene->job = job;
}

static inline int job_scene_set_up(void **state)
{
    struct error error = {0};
    memcpy(job_scene_folder + strlen(job_scene_folder) - 6, "XXXXXX", 6);
    if (!mkdtemp(job_scene_folder))
        return -1;
    struct job_scene *scene = calloc(1, sizeof(*scene));
    scene->clock.clock.monotonic_ns = job_scene_tick;
    scene->clock.now_ns = &scene->now_ns;
    scene->arena = arena_new(0);
    for (int i = 0; i < RECORDS; i++) {
        scene->labels[i] = (uint8_t)(i % 10);
        for (int j = 0; j < PIXELS; j++)
            scene->images[i * PIXELS + j] = (uint8_t)(j % 10 == i % 10 ? 200 : (i * 7 + j) % 50);
    }
    const struct object_store_options options = {.place = job_scene_folder};
    ASSERT_OK(object_store_open(&options, &scene->store, &error));
    scene->handler = handler_new(
        &(struct handler_options){.clock = &scene->clock.clock, .store = job_scene_folder});
    job_scene_put_job(scene);
    *state = scene;
    return 0;
}

static inline int job_scene_tear_down(void **state)
{
    struct job_scene *scene = *state;
    char command[96];
    handler_free(scene->handler);
    lesson_free(scene->lesson);
    kernel_set_free(scene->kernels);
    object_store_free(scene->store);
    arena_free(scene->arena);
    free(scene);
    snprintf(command, sizeof(command), "rm -rf %s", job_scene_folder);
    return system(command); /* NOLINT(concurrency-mt-unsafe,cert-env33-c) */
}
