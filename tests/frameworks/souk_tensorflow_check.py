"""What souk.tensorflow says of mistakes, and the less usual models that it trains; a world of one rank."""
import os

import numpy
import tensorflow as tf

import souk
import souk.tensorflow as distributed

keras = __import__(os.environ["SOUK_TEST_KERAS"]) if "SOUK_TEST_KERAS" in os.environ else tf.keras
x = numpy.random.default_rng(1).standard_normal((64, 4), dtype="f4")
y = x.sum(1, keepdims=True)
keras.utils.set_random_seed(5)


def model_of(*layers, loss="mse"):
    model = keras.Sequential(list(layers))
    model.compile(keras.optimizers.SGD(0.01, momentum=0.5), loss)
    return model


def fit(model, epochs=1, **settings):
    callback = distributed.DistributedCallback(**settings)
    return model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, callbacks=[callback]).history["loss"]


def assert_told(kind, words, call, *arguments, **more):
    try:
        call(*arguments, **more)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"nobody said {words!r}")


assert_told(souk.SoukError, "init() comes first", distributed.DistributedCallback)
distributed.init()
assert (distributed.rank(), distributed.size()) == (0, 1)

dense = keras.layers.Dense
assert_told(souk.SoukError, "nonsense", fit, model_of(keras.layers.Input((4,)), dense(1)), sync="nonsense")
assert_told(souk.SoukError, "needs the loss", fit, model_of(keras.layers.Input((4,)), dense(1)), sync="adacomm")
assert_told(TypeError, "float64", fit, model_of(keras.layers.Input((4,)), dense(1, dtype="float64")))
assert_told(ValueError, "no weights to train", fit, model_of(keras.layers.Input((4,)), dense(1, trainable=False)))
assert_told(TypeError, "not a variable", distributed.broadcast_variables, [x])
assert_told(TypeError, "only numbers", distributed.broadcast_variables, [tf.Variable("text")])

numbers = [tf.Variable(values) for values in (3, True, [1.5, 2.5], tf.constant(0.5, tf.bfloat16), tf.zeros((0, 2)))]
distributed.broadcast_variables(numbers)
assert [variable.numpy().tolist() for variable in numbers] == [3, True, [1.5, 2.5], 0.5, []]
assert distributed.allreduce(tf.constant([[1, 2]]), average=False).numpy().tolist() == [[1, 2]]

# Shapes that come with the first batch, and two calls of fit().
late = model_of(dense(8, activation="tanh"), dense(1))
losses = fit(late, epochs=3) + fit(late, epochs=3, sync="adacomm", reports_loss=True, compress="int8")
assert losses[-1] < losses[0], losses

# Weights of float32 below sums of float16, statistics, and several steps at a call.
mixed = keras.Sequential([keras.layers.Input((4,)), dense(8, dtype="mixed_float16"), keras.layers.BatchNormalization(),
                          dense(1)])
mixed.compile(keras.optimizers.SGD(0.01), "mse", steps_per_execution=4)
losses = fit(mixed, epochs=4, sync="bsp")
assert losses[-1] < losses[0], losses


class Told(distributed.DistributedCallback):
    """Keeps what the callback tells the library of each batch."""

    def _loss(self, batch, logs):
        losses_told.append(super()._loss(batch, logs))
        return losses_told[-1]


# The loss of each batch, which Keras tells as the mean since the epoch began: nothing is learnt here, so it is known.
losses_told = []
still = keras.Sequential([keras.layers.Input((4,)), dense(1)])
still.compile(keras.optimizers.SGD(0.0), "mse")
still.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[Told()])
own = ((still.predict(x, verbose=0) - y) ** 2).reshape(8, 8).mean(1)
assert numpy.allclose(losses_told, numpy.tile(own, 2), rtol=1e-3), (losses_told, own)
print("all is told")
