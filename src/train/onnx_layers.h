/*
 * ONNX layers: the nodes that compute one layer of ours; inside of onnx.c.
 */
#pragma once

#include "train/layer.h"
#include "train/onnx_graph.h"

/* How a value lies: images [batch, channels, height, width], sequences [batch, steps, features],
 * rows [batch, features]. */
enum onnx_form { ONNX_IMAGE, ONNX_SEQUENCE, ONNX_ROW };

struct onnx_value {
    const char *name;
    enum onnx_form form;
    struct layer_shape shape;
};

/* Nodes and constants of one layer at most. */
enum { ONNX_LAYER_NODES_MAX = 12, ONNX_LAYER_CONSTANTS_MAX = 12 };

/* The same value in another form, by a Reshape where it lies otherwise. */
struct onnx_value onnx_as(struct onnx_graph *graph, struct onnx_value value, enum onnx_form form);

/* What the layer makes of `input`; `skip` is what a residual adds. `table` begins with the layer's
 * own parameters, `values` is the whole vector. */
struct onnx_value onnx_layer(struct onnx_graph *graph, const struct layer_plan *plan,
                             const struct parameter *table, const float *values,
                             struct onnx_value input, struct onnx_value skip);
