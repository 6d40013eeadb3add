"""libsouk's sync engine by ctypes: include/souk/sync.h in Python's words.

The engine of a process, which souk.torch and souk.tensorflow share: init, rank, size, barrier, broadcast and
allreduce of arrays, and Training, a model that all ranks train.
"""
from __future__ import annotations

import atexit
import ctypes
import functools
import sys
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, NoReturn, Sequence

from .errors import SoukError
from .library import load

VERSION = 1
ERROR_SIZE = 256
SUM, MEAN = 0, 1


class _Buffer(Structure):
    _fields_ = [("values", c_void_p), ("count", c_size_t)]


class _Training(Structure):
    _fields_ = [("size", c_size_t), ("policy", c_char_p), ("compress", c_char_p), ("buffers", POINTER(_Buffer)),
                ("buffer_count", c_size_t), ("gamma_ms", c_int64), ("local_steps", c_uint32),
                ("slack", c_uint32), ("momentum", c_double), ("reports_loss", c_int)]


class _Status(Structure):
    _fields_ = [("size", c_size_t), ("steps", c_uint64), ("commits", c_uint64), ("waiting_ms", c_int64),
                ("batch", c_uint32), ("is_connected", c_int)]


_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "souk_sync_version": (c_int, []),
    "souk_sync_init": (c_int, [c_void_p, POINTER(c_void_p), c_char_p, c_size_t]),
    "souk_sync_is_over": (c_int, []),
    "souk_sync_finish": (None, [c_void_p]),
    "souk_sync_rank": (c_int, [c_void_p]),
    "souk_sync_size": (c_int, [c_void_p]),
    "souk_sync_error": (c_char_p, [c_void_p]),
    "souk_sync_barrier": (c_int, [c_void_p]),
    "souk_sync_broadcast": (c_int, [c_void_p, c_void_p, c_size_t, c_int]),
    "souk_sync_allreduce": (c_int, [c_void_p, c_void_p, c_size_t, c_int]),
    "souk_sync_train": (c_int, [c_void_p, POINTER(_Training)]),
    "souk_sync_count": (c_int, [c_void_p, c_uint32, c_double]),
    "souk_sync_exchange": (c_int, [c_void_p]),
    "souk_sync_settle": (c_int, [c_void_p]),
    "souk_sync_status": (c_int, [c_void_p, POINTER(_Status)]),
}

_sync: c_void_p | None = None


@functools.cache
def _library() -> ctypes.CDLL:
    library = load()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    version = library.souk_sync_version()
    if version != VERSION:
        raise ImportError(f"libsouk's sync engine is of version {version}, and this package needs {VERSION}")
    return library


def _engine() -> c_void_p:
    if _sync is None:
        raise SoukError("init() comes first")
    return _sync


def _fail(words: str) -> NoReturn:
    """A rank that comes when rank 0 has ended well has nothing left to do: its program ends well, too."""
    if _library().souk_sync_is_over():
        print(f"souk: {words}", file=sys.stderr, flush=True)
        raise SystemExit(0)
    raise SoukError(words)


def _check(result: int) -> int:
    if result < 0:
        _fail(_library().souk_sync_error(_engine()).decode(errors="replace"))
    return result


def init() -> None:
    """Meets the other ranks: as SOUK_RANK, SOUK_WORLD_SIZE and SOUK_PEERS say; alone without them."""
    global _sync
    if _sync is not None:
        return
    engine = c_void_p()
    error = ctypes.create_string_buffer(ERROR_SIZE)
    if _library().souk_sync_init(None, ctypes.byref(engine), error, ERROR_SIZE) < 0:
        _fail(error.value.decode(errors="replace"))
    _sync = engine
    atexit.register(shutdown)


def shutdown() -> None:
    """Leaves the other ranks; rank 0 waits for them."""
    global _sync
    if _sync is not None:
        engine, _sync = _sync, None
        _library().souk_sync_finish(engine)


def is_initialized() -> bool:
    return _sync is not None


def rank() -> int:
    return int(_library().souk_sync_rank(_engine()))


def size() -> int:
    return int(_library().souk_sync_size(_engine()))


def barrier() -> None:
    _check(_library().souk_sync_barrier(_engine()))


def broadcast_bytes(address: int, byte_count: int, root: int = 0) -> None:
    """What lies at this address of rank `root`, to all ranks."""
    _check(_library().souk_sync_broadcast(_engine(), address, byte_count, root))


def allreduce_floats(address: int, count: int, op: int = MEAN) -> int:
    """float32 values in place; returns how many ranks they are of."""
    return _check(_library().souk_sync_allreduce(_engine(), address, count, op))


class Training:
    """A model that all ranks train; one at a time."""

    def __init__(self, buffers: Sequence[tuple[int, int]], sync: str = "adsp", compress: str = "f32",
                 local_steps: int = 0, slack: int = 0, check_period: float = 0, momentum: float = 0,
                 reports_loss: bool = False) -> None:
        """`buffers`: address and count of float32 values each, which stay there."""
        items = (_Buffer * len(buffers))(*(_Buffer(address, count) for address, count in buffers))
        training = _Training(ctypes.sizeof(_Training), sync.encode(), compress.encode(), items, len(buffers),
                             int(1000 * check_period), local_steps, slack, momentum, int(reports_loss))
        try:
            _check(_library().souk_sync_train(_engine(), ctypes.byref(training)))
        except SoukError as error:
            if not reports_loss and "needs the loss of each step" in str(error):
                raise SoukError(f"{error}: say reports_loss=True, and with souk.torch step(loss=loss)") from None
            raise

    def count(self, samples: int = 1, loss: float = 0.0) -> bool:
        """A step was made; whether exchange() is to follow."""
        return bool(_check(_library().souk_sync_count(_engine(), samples, loss)))

    def exchange(self) -> bool:
        """Whether the buffers were changed."""
        return bool(_check(_library().souk_sync_exchange(_engine())))

    def settle(self) -> None:
        """Waits for all ranks; all have the same model then."""
        _check(_library().souk_sync_settle(_engine()))

    def status(self) -> dict[str, int]:
        status = _Status(ctypes.sizeof(_Status))
        _check(_library().souk_sync_status(_engine(), ctypes.byref(status)))
        return {field[0]: int(getattr(status, field[0])) for field in _Status._fields_[1:]}
