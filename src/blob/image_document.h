/*
 * Image document: the JSON that an OCI image, or one that `docker save` packed, describes itself
 * with (OCI image specification 1.1: index, manifest, configuration).
 *
 * All of it is a stranger's: each document has a maximum, each list too, and what is not needed is
 * skipped. Text lives in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "base/text.h"

#include <stdint.h>

enum {
    IMAGE_DOCUMENT_BYTES_MAX = 1 << 20,
    IMAGE_LAYERS_MAX = 127, /* as docker has it */
    IMAGE_MANIFESTS_MAX = 64,
    IMAGE_WORDS_MAX = 256, /* of a command line, or variables */
    IMAGE_WORD_BYTES_MAX = 4096,
    IMAGE_DIGEST_SIZE = 32,
};

struct image_platform {
    struct text architecture; /* "amd64", "arm64"; empty: not said */
    struct text os;
};

/* A blob of the image, by what its bytes hash to. */
struct image_descriptor {
    struct text media_type;
    uint8_t digest[IMAGE_DIGEST_SIZE]; /* SHA-256 */
    uint64_t size_bytes;
    struct image_platform platform; /* of a manifest in an index */
};

struct image_index {
    struct image_descriptor *manifests;
    size_t manifest_count;
};

struct image_manifest {
    struct image_descriptor config;
    struct image_descriptor *layers;
    size_t layer_count;
};

/* manifest.json of `docker save`: files of the archive, and no digests. */
struct image_save {
    struct text config;
    const struct text *layers;
    size_t layer_count;
};

/* What runs when the job names no command, and in what. */
struct image_config {
    struct image_platform platform;
    struct json_array env; /* of struct text: "NAME=value" */
    struct json_array entrypoint, cmd;
    struct text working_dir;
    struct text user;
    uint8_t (*diff_ids)[IMAGE_DIGEST_SIZE]; /* SHA-256 of each layer, uncompressed */
    size_t diff_count;
};

/* INVALID, saying where, for what is no such document. */
MUST_CHECK int image_index_read(struct arena *arena, struct text json, struct image_index *out,
                                struct error *error);
MUST_CHECK int image_manifest_read(struct arena *arena, struct text json,
                                   struct image_manifest *out, struct error *error);
MUST_CHECK int image_save_read(struct arena *arena, struct text json, struct image_save *out,
                               struct error *error);
MUST_CHECK int image_config_read(struct arena *arena, struct text json, struct image_config *out,
                                 struct error *error);

/* What of it a program needs to start in the image, as JSON, and back. */
struct buffer;
void image_config_write(const struct image_config *config, struct buffer *json);
MUST_CHECK int image_start_read(struct arena *arena, struct text json, struct image_config *out,
                                struct error *error);

/* Whether it is an index, which names other manifests. */
bool image_is_index(struct text media_type);

/* This machine's, in the words of images. */
const char *image_architecture(void);
