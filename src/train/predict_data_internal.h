/* Predict data, inside: shared by predict_data.c, predict_table.c and predict_texts.c. */
#pragma once

#include "base/map.h"
#include "train/predict_data.h"

struct predict_data {
    const struct predict_data_options *options;
    const struct model_spec *spec;
    uint64_t size_max;
    size_t input_size;
    float *input;       /* [input_size] */
    struct map classes; /* by name: their number + 1; empty: they have none */
};

static inline int predict_data_take(const struct predict_data *data,
                                    const struct predict_label *label, struct error *error)
{
    return data->options->take(data->options->context, data->input, label, error);
}

/* What a label's name says: unknown where the model's classes have no names and it is no number. */
struct predict_label predict_data_label(const struct predict_data *data, struct text name);

MUST_CHECK int predict_table_read(struct predict_data *data, struct error *error);
MUST_CHECK int predict_texts_read(struct predict_data *data, struct error *error);
