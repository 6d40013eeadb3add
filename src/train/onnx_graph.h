/*
 * ONNX graph: nodes, constants and the values between them while a model is written down.
 *
 * Everything lives in the arena; weights are borrowed from the parameters. Values are known by
 * their names.
 */
#pragma once

#include "base/arena.h"
#include "onnx.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct onnx_graph {
    struct arena *arena;
    Onnx__GraphProto proto;
    size_t node_max, initializer_max;
    uint32_t value_count; /* names made up so far */
};

enum { ONNX_LIST_MAX = 8 };

struct onnx_attribute {
    const char *name; /* NULL: no more */
    enum { ONNX_INT, ONNX_INTS, ONNX_FLOAT } kind;
    int64_t number;
    double real;
    int64_t list[ONNX_LIST_MAX];
    size_t list_count;
};
#define ONNX_ATTRIBUTE_INT(key, value)                                                             \
    (struct onnx_attribute)                                                                        \
    {                                                                                              \
        .name = (key), .kind = ONNX_INT, .number = (int64_t)(value)                                \
    }
#define ONNX_ATTRIBUTE_FLOAT(key, value)                                                           \
    (struct onnx_attribute)                                                                        \
    {                                                                                              \
        .name = (key), .kind = ONNX_FLOAT, .real = (value)                                         \
    }
#define ONNX_ATTRIBUTE_INTS(key, count, ...)                                                       \
    (struct onnx_attribute)                                                                        \
    {                                                                                              \
        .name = (key), .kind = ONNX_INTS, .list = {__VA_ARGS__}, .list_count = (count)             \
    }

struct onnx_node {
    const char *type;
    const char *inputs[5]; /* until NULL */
    const char *output;    /* NULL: a name of its own */
    size_t output_place;   /* which of the node's outputs that is; those before it are left out */
    struct onnx_attribute attributes[5];
};

/* Room for so many nodes and constants. */
void onnx_graph_init(struct onnx_graph *graph, struct arena *arena, const char *name,
                     size_t node_max, size_t initializer_max);

/* Returns its output's name. */
const char *onnx_graph_node(struct onnx_graph *graph, const struct onnx_node *node);

/* Constants; each returns its name. Floats are borrowed. */
const char *onnx_graph_floats(struct onnx_graph *graph, const char *name, const float *values,
                              const int64_t *shape, size_t rank);
const char *onnx_graph_float(struct onnx_graph *graph, float value);
const char *onnx_graph_ints(struct onnx_graph *graph, const int64_t *values, size_t count);

/* A value of [batch, ...] from outside or to it. */
enum onnx_side { ONNX_INPUT, ONNX_OUTPUT };
void onnx_graph_declare(struct onnx_graph *graph, enum onnx_side side, const char *name,
                        bool is_whole_numbers, const uint64_t *shape, size_t rank);
