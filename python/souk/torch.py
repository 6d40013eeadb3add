"""Souk's synchronisation in a PyTorch script, by Horovod's names:

    import souk.torch

    souk.torch.init()
    optimizer = souk.torch.DistributedOptimizer(optimizer, model, sync="adsp")
    ...the loop as it was...
    optimizer.finish()

Every rank makes its own steps; `optimizer.step()` makes one and lets libsouk exchange what was learnt, when the policy
says so. finish() leaves the same model on all ranks.
"""
# Types are checked where the framework is not installed, too, and all that is its own is Any then.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,unused-ignore"
from __future__ import annotations

import warnings
from typing import Any, Callable, Mapping

import torch

from . import sync as _engine
from .sync import barrier, init, is_initialized, rank, shutdown, size

__all__ = ["DistributedOptimizer", "allreduce", "barrier", "broadcast_parameters", "init", "is_initialized", "rank",
           "shutdown", "size"]


def _floats(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1).to("cpu", torch.float32) for tensor in tensors])


def _spread(flat: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    at = 0
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(flat[at:at + tensor.numel()].reshape(tensor.shape))
            at += tensor.numel()


def broadcast_parameters(state: Mapping[str, Any], root_rank: int = 0) -> None:
    """All tensors of a state_dict, of any type, from one rank to all."""
    for name in sorted(state):
        tensor = state[name]
        if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0:
            continue
        copy = tensor.detach().to("cpu").contiguous().clone()
        _engine.broadcast_bytes(copy.data_ptr(), copy.numel() * copy.element_size(), root_rank)
        with torch.no_grad():
            tensor.copy_(copy)


def allreduce(tensor: torch.Tensor, average: bool = True) -> torch.Tensor:
    """The mean, or sum, over the ranks that are there; float32."""
    flat = _floats([tensor]).clone()
    if flat.numel() > 0:
        _engine.allreduce_floats(flat.data_ptr(), flat.numel(), _engine.MEAN if average else _engine.SUM)
    return flat.reshape(tensor.shape).to(tensor.device, tensor.dtype)


def _is_own_memory(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()


class DistributedOptimizer(torch.optim.Optimizer):
    """An optimizer whose steps are a rank's own, and whose model is that of all ranks.

    `sync` is any of Souk's policies, `compress` any of its codecs or "auto". Parameters of float32 in the CPU's memory are
    exchanged where they lie; others by a copy in pinned memory, made when an exchange is due and not before.
    Give step() its loss, `step(loss=loss)`, and say `reports_loss=True`, for policies that go by it.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, model: torch.nn.Module, sync: str = "adsp",
                 compress: str = "f32", batch_size: int = 1, **settings: Any) -> None:
        # Not Optimizer.__init__: groups and state are the wrapped one's, so that schedulers work on those.
        self.optimizer = optimizer
        self.model = model
        self.batch_size = batch_size
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self._parameters:
            raise ValueError("the model has no parameters to train")
        self._reports_loss = bool(settings.get("reports_loss"))
        self._mirror: torch.Tensor | None = None
        if all(_is_own_memory(parameter) for parameter in self._parameters):
            self._places = [parameter.data_ptr() for parameter in self._parameters]
            buffers = [(parameter.data_ptr(), parameter.numel()) for parameter in self._parameters]
        else:
            flat = _floats(self._parameters)
            self._mirror = flat.pin_memory() if torch.cuda.is_available() else flat.clone()
            buffers = [(self._mirror.data_ptr(), self._mirror.numel())]
        momentum = optimizer.defaults.get("momentum", 0) or 0
        self._training: _engine.Training | None = _engine.Training(buffers, sync=sync, compress=compress,
                                                                   momentum=momentum, **settings)
        if self._mirror is not None:
            _spread(self._mirror, self._parameters)

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.optimizer.state

    @property
    def defaults(self) -> Any:  # type: ignore[override]
        return self.optimizer.defaults

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def __repr__(self) -> str:
        return f"souk.torch.DistributedOptimizer({self.optimizer!r})"

    def step(self, closure: Callable[[], Any] | None = None, *, loss: Any = None) -> Any:  # type: ignore[override]
        """The optimizer's own step, then an exchange if one is due."""
        if self._reports_loss and loss is None and closure is None:
            raise ValueError("with reports_loss=True give each step its loss: step(loss=loss)")
        result = self.optimizer.step(closure) if closure else self.optimizer.step()
        told = result if loss is None and closure else loss
        if self._training is None:
            warnings.warn("step() after finish() trains this rank's own model, which the others do not get", RuntimeWarning,
                          stacklevel=2)
            return result
        if self._training.count(self.batch_size, float(told) if told is not None else 0.0):
            self._exchange()
        return result

    def _exchange(self) -> None:
        assert self._training is not None
        if self._mirror is not None:
            self._mirror.copy_(_floats(self._parameters))
            if self._training.exchange():
                _spread(self._mirror, self._parameters)
            return
        if self._places != [parameter.data_ptr() for parameter in self._parameters]:
            raise RuntimeError("the model's parameters were moved: make the DistributedOptimizer after model.to()")
        self._training.exchange()

    def status(self) -> dict[str, int]:
        """Steps and commits of this rank, and how long it stood still."""
        return self._training.status() if self._training else {}

    def finish(self) -> None:
        """Ends training: the same parameters on all ranks, and of buffers (batch norm's) the mean."""
        if self._training is None:
            return
        if self._mirror is not None:
            self._mirror.copy_(_floats(self._parameters))
        self._training.settle()
        self._training = None
        if self._mirror is not None:
            _spread(self._mirror, self._parameters)
        buffers = [buffer for buffer in self.model.buffers() if buffer.is_floating_point() and buffer.numel() > 0]
        if buffers:
            flat = _floats(buffers).clone()
            _engine.allreduce_floats(flat.data_ptr(), flat.numel())
            _spread(flat, buffers)
