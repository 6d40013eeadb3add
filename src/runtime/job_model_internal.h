/* Job model internals: the field tables of layers, optimizer and data, for job_spec.c; and of the
 * spec, for job_spec_work.c. */
#pragma once

#include "runtime/job_field_internal.h"

extern const struct job_table job_layer_table;      /* struct layer_spec */
extern const struct job_table job_optimizer_table;  /* struct job_optimizer */
extern const struct job_table job_read_table;       /* struct job_read */
extern const struct job_table job_augment_table;    /* struct job_augment */
extern const struct job_table job_train_table;      /* struct job_train */
extern const struct job_table job_sync_table;       /* struct job_sync */
extern const struct job_table job_tensorflow_table; /* struct job_tensorflow */
extern const struct job_table job_torch_table;      /* struct job_torch */
extern const struct job_table job_spec_table;       /* struct job_spec */
extern const char *const job_predict_names[];

/* What no single field can say of the network: fills in model and loss, and where the data's shape
 * is known builds it; a mistake is told with the layer's place in the file. */
MUST_CHECK int job_model_check(const struct job_node *root, const char *file_name,
                               struct job_train *train, struct error *error);
/* The same of the data, once the model is known. */
MUST_CHECK int job_data_check(const struct job_node *root, const char *file_name,
                              const struct job_spec *spec, struct error *error);
/* What belongs to which runtime: fills in the runtime, and what it implies. */
MUST_CHECK int job_runtime_check(const struct job_node *root, const char *file_name,
                                 struct job_spec *spec, struct error *error);
/* Refuses what jobs that were stored by older versions may have, and new ones may not. */
MUST_CHECK int job_runtime_check_new(const struct job_node *root, const char *file_name,
                                     const struct job_spec *spec, struct error *error);
