"""Souk's synchronisation in a Keras script, by Horovod's names:

    import souk.tensorflow

    souk.tensorflow.init()
    model.fit(own_part_of_the_data, callbacks=[souk.tensorflow.DistributedCallback(sync="adsp")])

Every rank makes its own steps on data of its own; after each, the callback lets libsouk exchange what was learnt, when the
policy says so. When fit() returns all ranks have the same model. For models of tf.keras, tf_keras and Keras 3 with
TensorFlow below it.
"""
# Types are checked where the framework is not installed, too, and all that is its own is Any then.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,unused-ignore"
from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy
import tensorflow as tf

from . import sync as _engine
from .sync import barrier, init, is_initialized, rank, shutdown, size

__all__ = ["DistributedCallback", "allreduce", "barrier", "broadcast_variables", "init", "is_initialized", "rank",
           "shutdown", "size"]


def _held(variable: Any) -> Any:
    """TensorFlow's own variable: Keras 3 has one within each of its own."""
    held = variable if isinstance(variable, tf.Variable) else getattr(variable, "value", None)
    if not isinstance(held, tf.Variable):
        raise TypeError(f"not a variable of TensorFlow: {getattr(variable, 'name', variable)!r} "
                        "(Keras 3 needs KERAS_BACKEND=tensorflow)")
    return held


def _gather(variables: list[Any], flat: Any) -> None:
    at = 0
    for variable in variables:
        values = variable.numpy().reshape(-1)
        flat[at:at + values.size] = values
        at += values.size


def _flat(variables: list[Any]) -> Any:
    flat = numpy.empty(sum(variable.shape.num_elements() for variable in variables), numpy.float32)
    _gather(variables, flat)
    return flat


def _spread(flat: Any, variables: list[Any]) -> None:
    at = 0
    for variable in variables:
        count = variable.shape.num_elements()
        variable.assign(flat[at:at + count].reshape(variable.shape).astype(variable.dtype.as_numpy_dtype))
        at += count


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Variables of numbers of any type, in the same order everywhere, from one rank to all."""
    for held in [_held(variable) for variable in variables]:
        if held.dtype in (tf.string, tf.resource, tf.variant):
            raise TypeError(f"variable {held.name!r} is of {held.dtype.name}, and only numbers can be sent")
        copy = numpy.array(held.numpy(), order="C")
        if copy.size > 0:
            _engine.broadcast_bytes(copy.ctypes.data, copy.nbytes, root_rank)
            held.assign(copy)


def allreduce(tensor: Any, average: bool = True) -> Any:
    """The mean, or sum, over the ranks that are there; float32."""
    values = numpy.array(tensor, order="C")
    flat = values.astype(numpy.float32).reshape(-1)
    if flat.size > 0:
        _engine.allreduce_floats(flat.ctypes.data, flat.size, _engine.MEAN if average else _engine.SUM)
    return tf.constant(flat.reshape(values.shape).astype(values.dtype))


def _momentum(optimizer: Any) -> float:
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # one that scales losses has another within
    return float(getattr(optimizer, "momentum", 0) or 0)


def _trained(model: Any) -> list[Any]:
    variables = [_held(variable) for variable in model.trainable_variables]
    for variable in variables:
        if variable.dtype != tf.float32:
            raise TypeError(f"weight {variable.name!r} is of {variable.dtype.name}: only float32 is trained across ranks")
    if not variables:
        raise ValueError("the model has no weights to train")
    return variables


class DistributedCallback(tf.keras.callbacks.Callback):
    """Makes fit() train the model of all ranks; all begin with rank 0's weights.

    `sync` is any of Souk's policies, `compress` any of its codecs or "auto". `reports_loss=True` gives the loss of each
    batch to policies that go by it. Weights that are not trained (batch norm's) are rank 0's at the start and their mean
    at the end; between, and the optimizer's own state always, they are the rank's. Stand it first among the callbacks:
    the others then see the weights as they are after an exchange.
    """

    _supports_tf_logs = False  # of tf_keras, which asks even where tf.keras is Keras 3

    def __init__(self, sync: str = "adsp", compress: str = "f32", batch_size: int = 1, local_steps: int = 0,
                 slack: int = 0, check_period: float = 0, reports_loss: bool = False) -> None:
        super().__init__()
        rank()  # says so at once where init() was forgotten
        self.batch_size = batch_size
        self.reports_loss = reports_loss
        self._settings: dict[str, Any] = {"sync": sync, "compress": compress, "local_steps": local_steps, "slack": slack,
                                          "check_period": check_period, "reports_loss": reports_loss}
        self._training: _engine.Training | None = None
        self._trained: list[Any] = []
        self._mirror: Any = None
        self._batches, self._mean_loss = 0, 0.0

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False

    def _others(self) -> list[Any]:
        held = [_held(variable) for variable in self.model.non_trainable_variables]
        return [variable for variable in held if variable.dtype.is_floating and variable.shape.num_elements() > 0]

    def _begin(self) -> None:
        self._trained = _trained(self.model)
        others = self._others()
        if others:
            flat = _flat(others)
            _engine.broadcast_bytes(flat.ctypes.data, flat.nbytes)
            _spread(flat, others)
        self._mirror = _flat(self._trained)
        self._training = _engine.Training([(self._mirror.ctypes.data, self._mirror.size)],
                                          momentum=_momentum(self.model.optimizer), **self._settings)
        _spread(self._mirror, self._trained)

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        if self.model.built:
            self._begin()

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self._batches, self._mean_loss = 0, 0.0

    def _loss(self, batch: int, logs: Mapping[str, Any]) -> float:
        """The loss of the batches since the last call: Keras tells the mean since the epoch began."""
        if "loss" not in logs:
            if self.reports_loss:
                raise ValueError("reports_loss=True, but the model's train_step tells no 'loss'")
            return 0.0
        mean, batches = float(logs["loss"]), batch + 1
        new = batches - self._batches
        loss = self._mean_loss + (mean - self._mean_loss) * batches / new if new > 0 else mean
        self._batches, self._mean_loss = batches, mean
        return loss

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        loss = self._loss(batch, logs or {})
        if self._training is None:
            self._begin()  # a model that knew its shapes only with its first batch
        elif self._training.count(self.batch_size, loss):
            _gather(self._trained, self._mirror)
            if self._training.exchange():
                _spread(self._mirror, self._trained)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """The same weights on all ranks, and of those that are not trained the mean."""
        if self._training is None:
            return
        training, self._training = self._training, None
        _gather(self._trained, self._mirror)
        training.settle()
        _spread(self._mirror, self._trained)
        others = self._others()
        if others:
            flat = _flat(others)
            _engine.allreduce_floats(flat.ctypes.data, flat.size)
            _spread(flat, others)

    def status(self) -> dict[str, int]:
        """Steps and commits of this rank, and how long it stood still; while fit() runs."""
        return self._training.status() if self._training else {}
