"""One rank of a small regression by Keras: by souk.tensorflow, or alone with the whole batch.

souk_tensorflow_train.py HOW STEPS [norm]: HOW is alone, or a policy of Souk; norm adds a layer whose statistics are not
trained. Prints the loss on data nobody trained on, before and after, and a sum of the model's weights. SOUK_TEST_KERAS is
the module (keras, tf_keras) that takes the place of tf.keras.
"""
import os
import sys

import numpy
import tensorflow as tf

HOW, STEPS, NORM = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["norm"]
WORLD, BATCH, FEATURES = 3, 16, 20
rank = int(os.environ["SOUK_RANK"])
keras = __import__(os.environ["SOUK_TEST_KERAS"]) if "SOUK_TEST_KERAS" in os.environ else tf.keras

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
draw = numpy.random.default_rng(5)
truth = draw.standard_normal((FEATURES, 1), dtype="f4")
test_x = draw.standard_normal((512, FEATURES), dtype="f4")
whole = draw.standard_normal((STEPS, WORLD * BATCH, FEATURES), dtype="f4")
own = whole if HOW == "alone" else whole[:, rank * BATCH:(rank + 1) * BATCH]
x = own.reshape(-1, FEATURES)


def answers(of):
    return numpy.tanh(of @ truth)


# Ranks begin unlike each other: what makes them alike is the callback.
keras.utils.set_random_seed(5 if HOW == "alone" else 5 + rank)
model = keras.Sequential([keras.layers.Input((FEATURES,)), keras.layers.Dense(32, activation="tanh")]
                         + [keras.layers.BatchNormalization(momentum=0.9)] * NORM + [keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.05), "mse")


def test_loss():
    return float(model.evaluate(test_x, answers(test_x), batch_size=512, verbose=0))


callbacks = []
if HOW != "alone":
    import souk.tensorflow
    souk.tensorflow.init()
    assert (souk.tensorflow.rank(), souk.tensorflow.size()) == (rank, WORLD)
    souk.tensorflow.broadcast_variables(model.weights)
    callbacks = [souk.tensorflow.DistributedCallback(sync=HOW, batch_size=BATCH, check_period=0.5, reports_loss=True)]
before = test_loss()
model.fit(x, answers(x), batch_size=len(x) // STEPS, epochs=1, shuffle=False, verbose=0, callbacks=callbacks)
total = sum(float(weight.astype("f8").sum()) for weight in model.get_weights())
print(f"before {before:.6f} after {test_loss():.6f} weights {total:.6f}")
