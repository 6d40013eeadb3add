"""libsouk.so by ctypes: include/souk/library.h and client.h in Python's words."""
from __future__ import annotations

import ctypes
import functools
import json
import os
import pathlib
import shutil
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)
from typing import Any, Iterator

from .errors import BY_CODE, SoukError

ABI_VERSION = 0
FILE_NAME = f"libsouk.so.{ABI_VERSION}"


class Error(Structure):
    _fields_ = [("code", c_int32), ("status", c_int32), ("line", c_int32), ("column", c_int32),
                ("message", c_char * 512), ("problem", c_char * 4096)]


class ConnectOptions(Structure):
    _fields_ = [("size", c_size_t), ("server", c_char_p), ("token", c_char_p), ("fingerprint", c_char_p),
                ("config_dir", c_char_p)]


class JobText(Structure):
    _fields_ = [("size", c_size_t), ("yaml", c_char_p), ("name", c_char_p)]


NOTE_FUNCTION = CFUNCTYPE(None, c_void_p, c_char_p)


class SubmitOptions(Structure):
    _fields_ = [("size", c_size_t), ("dataset_dir", c_char_p), ("resume", c_char_p),
                ("on_note", NOTE_FUNCTION), ("context", c_void_p), ("stop", POINTER(c_int32))]


class FetchOptions(Structure):
    _fields_ = [("size", c_size_t), ("folder", c_char_p), ("name", c_char_p), ("stop", POINTER(c_int32))]


class RawEvent(Structure):
    _fields_ = [("kind", c_int32), ("is_server", c_int32), ("lease", c_uint64), ("at_ms", c_int64),
                ("rank", c_char_p), ("text", c_void_p), ("text_size", c_size_t), ("reason", c_char_p),
                ("steps", c_uint64), ("samples", c_uint64), ("commits", c_uint64), ("loss", c_double),
                ("test_accuracy", c_double), ("steps_per_second", c_double)]


# Texts that are handed over are void pointers, so that they can be released.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "souk_error_code_name": (c_char_p, [c_int32]),
    "souk_library_version": (c_char_p, []),
    "souk_library_abi": (c_uint32, []),
    "souk_text_free": (None, [c_void_p]),
    "souk_client_connect": (c_int, [POINTER(ConnectOptions), POINTER(c_void_p), POINTER(Error)]),
    "souk_client_free": (None, [c_void_p]),
    "souk_client_server": (c_char_p, [c_void_p]),
    "souk_job_validate": (c_int, [POINTER(JobText), POINTER(c_void_p), POINTER(Error)]),
    "souk_client_quote": (c_int, [c_void_p, POINTER(JobText), POINTER(c_void_p), POINTER(Error)]),
    "souk_client_submit": (c_int, [c_void_p, POINTER(JobText), POINTER(SubmitOptions), POINTER(c_uint64),
                                   POINTER(Error)]),
    "souk_client_jobs": (c_int, [c_void_p, c_size_t, POINTER(c_void_p), POINTER(Error)]),
    "souk_client_job": (c_int, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(Error)]),
    "souk_client_cancel": (c_int, [c_void_p, c_uint64, POINTER(c_void_p), POINTER(Error)]),
    "souk_client_get": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(Error)]),
    "souk_client_wait": (c_int, [c_void_p, c_uint64, c_int64, POINTER(c_void_p), POINTER(Error)]),
    "souk_client_fetch": (c_int, [c_void_p, c_uint64, POINTER(FetchOptions), POINTER(c_void_p), POINTER(Error)]),
    "souk_follow_open": (c_int, [c_void_p, c_uint64, c_int32, POINTER(c_void_p), POINTER(Error)]),
    "souk_follow_next": (c_int, [c_void_p, c_int64, POINTER(POINTER(RawEvent)), POINTER(Error)]),
    "souk_follow_stop": (None, [c_void_p]),
    "souk_follow_job": (c_char_p, [c_void_p]),
    "souk_follow_free": (None, [c_void_p]),
}


def places() -> Iterator[str]:
    """Where the library may lie, the likeliest first."""
    named = os.environ.get("SOUK_LIBRARY")
    if named:
        yield named
        return
    beside = pathlib.Path(__file__).resolve().with_name(FILE_NAME)  # as on the machines that a job runs on
    if beside.exists():
        yield str(beside)
    program = shutil.which("souk")
    if program:
        folder = pathlib.Path(program).resolve().parent
        for path in (folder / FILE_NAME, folder.parent / "lib" / FILE_NAME):
            if path.exists():
                yield str(path)
    yield FILE_NAME


@functools.cache
def load() -> ctypes.CDLL:
    """The library, looked for at the first call."""
    reasons = []
    for place in places():
        try:
            library = ctypes.CDLL(place)
        except OSError as error:
            reasons.append(str(error))
            continue
        library.souk_library_abi.restype = c_uint32
        abi = library.souk_library_abi()
        if abi != ABI_VERSION:
            raise ImportError(f"{place} is of ABI {abi}, and this package needs {ABI_VERSION}")
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        return library
    raise ImportError(f"{FILE_NAME} was not found ({'; '.join(reasons)}); install Souk, or set SOUK_LIBRARY "
                      "to the library's path")


def library_version() -> str:
    """Of the libsouk that is used: "0.1.0"."""
    return str(load().souk_library_version().decode())


def to_exception(error: Error) -> SoukError:
    problem = None
    if error.problem:
        try:
            parsed = json.loads(error.problem.decode(errors="replace"))
            problem = parsed if isinstance(parsed, dict) else None
        except ValueError:
            problem = None  # not every server before a market answers in JSON
    return BY_CODE.get(error.code, SoukError)(error.message.decode(errors="replace"), status=error.status,
                                              problem=problem, line=error.line, column=error.column)


def call(name: str, *arguments: Any) -> int:
    """Calls a function that takes an error last; raises what it says."""
    error = Error()
    result = int(getattr(load(), name)(*arguments, ctypes.byref(error)))
    if result < 0:
        raise to_exception(error)
    return result


def call_for_text(name: str, *arguments: Any) -> str:
    """The same for one that hands over text."""
    text = c_void_p()
    call(name, *arguments, ctypes.byref(text))
    try:
        return ctypes.string_at(text.value or 0).decode(errors="replace") if text.value else ""
    finally:
        load().souk_text_free(text)


def encode(text: str | os.PathLike[str] | None) -> bytes | None:
    return None if text is None else os.fsencode(text)
