/*
 * oneDNN step: one primitive of oneDNN between plain tensors of ours.
 *
 * Our tensors are plain (nchw, oihw). A primitive may choose another layout: a port stands between
 * one of our tensors and one of the primitive's memories and reorders when the two differ. "ref"
 * implementations are refused: they are slower than kernel_plain.c by orders of magnitude.
 */
#pragma once

#include "base/error.h"
#include "tensor/onednn_library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORTS_MAX = 6 };

/* One tensor of ours at one argument of a primitive. */
struct port {
    int argument;        /* DNNL_ARG_... */
    dnnl_memory_t outer; /* ours, plain */
    dnnl_memory_t inner; /* the primitive's; the same as outer when layouts agree */
    dnnl_primitive_t reorder;
    void *inner_data;
    bool is_output;
};

/* A primitive with its ports. */
struct step {
    const struct onednn_library *library;
    dnnl_primitive_desc_t descriptor;
    dnnl_primitive_t primitive;
    struct port ports[PORTS_MAX];
    uint32_t port_count;
};

/* A descriptor of ours: `sizes` [rank] in the layout `tag`. */
dnnl_memory_desc_t onednn_descriptor(const struct onednn_library *library, int rank,
                                     const dnnl_dim_t *sizes, dnnl_format_tag_t tag);

/* `operation` is one of oneDNN's operation descriptors; `hint` the forward step of a backward one.
 * UNAVAILABLE when oneDNN cannot compute it, or only by its reference. */
MUST_CHECK int step_init(struct step *step, const struct onednn_library *library,
                         const void *operation, const struct step *hint, struct error *error);
void step_done(struct step *step); /* also of a zeroed or half-made one */

/* Adds a port for the memory `query` names; `plain` is our layout of it. */
MUST_CHECK int step_add_port(struct step *step, int argument, dnnl_query_t query,
                             const dnnl_memory_desc_t *plain, struct error *error);
/* Adds one for a bias, whose layout is always ours. */
MUST_CHECK int step_add_bias(struct step *step, int argument, const dnnl_memory_desc_t *plain,
                             struct error *error);

/* data[i] belongs to port i. Outputs are written, inputs only read, whatever the type says. */
void step_run(const struct step *step, const void *const data[], dnnl_memory_t workspace);

const char *step_implementation(const struct step *step);
