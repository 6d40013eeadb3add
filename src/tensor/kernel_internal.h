/*
 * Kernel internals: what a kernel set implements.
 *
 * To add a set: a struct kernel_ops in a file of its own and a row in kernel.c.
 */
#pragma once

#include "tensor/kernel.h"

/* The first member of each set's own struct; `free` releases that struct. */
struct operation {
    void (*forward)(struct operation *operation, const struct operation_tensors *tensors);
    void (*backward)(struct operation *operation, const struct operation_tensors *tensors);
    void (*free)(struct operation *operation);
    char description[96];
};

struct kernel_ops {
    const char *name;
    /* NULL when the set needs no state. UNAVAILABLE when it cannot work here. */
    int (*open)(void **out_state, struct error *error);
    void (*close)(void *state);

    int (*open_dense)(void *state, const struct dense_shape *shape,
                      const struct operation_options *options, struct operation **out_operation,
                      struct error *error);
    int (*open_conv)(void *state, const struct conv_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error);
    int (*open_pool)(void *state, const struct pool_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error);
    int (*open_activation)(void *state, const struct activation_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error);
    int (*open_norm)(void *state, const struct norm_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error);
    int (*open_dropout)(void *state, const struct dropout_shape *shape,
                        const struct operation_options *options, struct operation **out_operation,
                        struct error *error);
    int (*open_embedding)(void *state, const struct embedding_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error);
    int (*open_sequence_conv)(void *state, const struct sequence_conv_shape *shape,
                              const struct operation_options *options,
                              struct operation **out_operation, struct error *error);
    int (*open_recurrent)(void *state, const struct recurrent_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error);
    /* NULL: it does not. */
    bool (*prefers_channels_last)(void *state);
    /* NULL when the set has no fused form; the layers are then opened one by one. */
    int (*open_conv_block)(void *state, const struct conv_block_shape *shape,
                           const struct operation_options *options,
                           struct operation **out_operation, struct error *error);

    void (*sgd)(void *state, const struct sgd_rule *rule, float *weights, float *velocity,
                const float *gradient, size_t count);
    void (*adam)(void *state, const struct adam_rule *rule, float *weights, float *first,
                 float *second, const float *gradient, size_t count);
    void (*axpy)(void *state, float a, const float *x, float *y, size_t count);
    void (*scale)(void *state, float a, float *x, size_t count);
    void (*exp)(void *state, float *x, size_t count); /* of numbers that are not above 0 */
};

extern const struct kernel_ops kernel_plain;
extern const struct kernel_ops kernel_onednn;
extern const struct kernel_ops kernel_simd;

/* Casting the first member back to the struct around it. */
#define AS(type, operation) ((struct type *)(void *)(operation))

/* A plain operation: a struct of `size` bytes whose first member is the operation, zeroed, that
 * free() releases. */
struct operation *plain_new(size_t size, const char *description,
                            void (*forward)(struct operation *, const struct operation_tensors *),
                            void (*backward)(struct operation *, const struct operation_tensors *));

/* kernel_plain_*.c, for the tables of plain and of sets that have nothing better. */
int plain_open_norm(void *state, const struct norm_shape *shape,
                    const struct operation_options *options, struct operation **out_operation,
                    struct error *error);
/* Moves running statistics towards those of a batch: `second` holds the features' sums of squares
 * around `mean` over `count` values each. */
void norm_keep_running(const struct operation_tensors *tensors, const float *mean,
                       const double *second, size_t features, double count);
int plain_open_dropout(void *state, const struct dropout_shape *shape,
                       const struct operation_options *options, struct operation **out_operation,
                       struct error *error);
int plain_open_activation(void *state, const struct activation_shape *shape,
                          const struct operation_options *options, struct operation **out_operation,
                          struct error *error);
int plain_open_embedding(void *state, const struct embedding_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error);
int plain_open_sequence_conv(void *state, const struct sequence_conv_shape *shape,
                             const struct operation_options *options,
                             struct operation **out_operation, struct error *error);
int plain_open_recurrent(void *state, const struct recurrent_shape *shape,
                         const struct operation_options *options, struct operation **out_operation,
                         struct error *error);

/* kernel_onednn_conv.c; `state` is that of an open set. */
int onednn_open_conv(void *state, const struct conv_shape *shape,
                     const struct operation_options *options, struct operation **out_operation,
                     struct error *error);

/* For memory whose size follows from a checked shape: aborts when it is out. Zeroed, aligned to a
 * cache line; released by free(). */
void *kernel_alloc(size_t size);
