"""A market and its jobs."""
from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import pathlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, TypeVar

from . import library
from .errors import Stopped, TimedOut

if TYPE_CHECKING:
    from .task import Task

T = TypeVar("T")
STATE, LOG, METRIC, MARKET = 1, 2, 4, 8
ALL_KINDS = STATE | LOG | METRIC
_KIND_NAMES = {STATE: "state", LOG: "log", METRIC: "metric", MARKET: "market"}
_SLICE_MS = 100  # Python looks for Ctrl-C so often


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened to a job: a new state, something a rank wrote, or something measured; or to the way to it."""

    kind: str  # "state", "log", "metric"; where MARKET is asked for "market"
    lease: int
    rank: int | None  # of a log or metric: the worker's; None: it is the job's, or a parameter server's
    source: str  # of a log or metric: "0", "server", "server-1", "replica"
    text: str  # of a log: what was written; of a state: its name; of the market: "away" or "reached"
    reason: str  # of a state, and of a market that is away
    at_ms: int  # of a metric, UTC; of the market: since when it was not reached; else 0
    is_server: bool  # of a metric: the parameter server's
    steps: int
    samples: int
    commits: int
    loss: float  # NaN: not known
    test_accuracy: float  # NaN: not known
    steps_per_second: float  # 0: not known


def _job_text(task: Task | str) -> library.JobText:
    text, name = (task, "job") if isinstance(task, str) else (task.source, task.source_name)
    return library.JobText(ctypes.sizeof(library.JobText), text.encode(), os.fsencode(name))


def validate(task: Task | str) -> str:
    """The job with every field it has, as YAML; raises Invalid with every mistake, its line and column."""
    return library.call_for_text("souk_job_validate", ctypes.byref(_job_text(task)))


def _interruptible(work: Callable[[ctypes.c_int32], T]) -> T:
    """Long work on a thread, so that Ctrl-C reaches the main one, and ends the work."""
    stop = ctypes.c_int32(0)
    if threading.current_thread() is not threading.main_thread():
        return work(stop)
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:  # it is raised where it is waited for
            failures.append(error)

    thread = threading.Thread(target=run, name="souk", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_SLICE_MS / 1000)
    except BaseException:
        stop.value = 1
        thread.join()
        raise
    if failures:
        raise failures[0]
    return results[0]


def market_words(event: Event) -> str:
    """What a person is told of a market that is not reached, or again."""
    if event.text == "reached":
        return f"market reached again after {max(0, round(time.time() - event.at_ms / 1000))} s"
    since = time.strftime("%H:%M:%S", time.localtime(event.at_ms / 1000))
    return f"market not reached since {since}, still trying: {event.reason}"


def tell_person(words: str) -> None:
    print(f"souk: {words}", file=sys.stderr, flush=True)


class Follow:
    """A job's events as they come: an iterator that ends with the job. May be stopped by any thread."""

    def __init__(self, client: Client, job: int, kinds: int = ALL_KINDS) -> None:
        self._handle: ctypes.c_void_p | None = None
        self._lock = threading.Lock()
        self._stopping = False
        handle = ctypes.c_void_p()
        library.call("souk_follow_open", client.handle, job, kinds, ctypes.byref(handle))
        self._handle = handle
        self.result: dict[str, Any] | None = None  # the job, once it has ended

    def next(self, timeout_s: float | None = None) -> Event | None:
        """None: the job has ended. Raises TimedOut, and can be called again."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_ms = _SLICE_MS if until is None else max(0, int((until - time.monotonic()) * 1000))
            try:
                return self._next(min(left_ms, _SLICE_MS))
            except TimedOut:
                if until is not None and time.monotonic() >= until:
                    raise

    def _next(self, timeout_ms: int) -> Event | None:
        with self._lock:
            if self._handle is None or self._stopping:
                raise Stopped("the following was stopped")
            raw = ctypes.POINTER(library.RawEvent)()
            if library.call("souk_follow_next", self._handle, timeout_ms, ctypes.byref(raw)) == 0:
                told = library.load().souk_follow_job(self._handle)
                self.result = json.loads(told) if told else None
                return None
            return _read_event(raw.contents)

    def __iter__(self) -> Iterator[Event]:
        while (event := self.next()) is not None:
            yield event

    def stop(self) -> None:
        """Ends next() in whatever thread; the job goes on."""
        self._stopping = True

    def close(self) -> None:
        self.stop()
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                library.load().souk_follow_free(handle)

    def __enter__(self) -> Follow:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


def _read_event(raw: library.RawEvent) -> Event:
    text = ctypes.string_at(raw.text, raw.text_size) if raw.text_size else b""
    source = raw.rank.decode()
    return Event(kind=_KIND_NAMES[raw.kind], lease=raw.lease, rank=int(source) if source.isdecimal() else None,
                 source=source, text=text.decode(errors="replace"), reason=raw.reason.decode(errors="replace"),
                 at_ms=raw.at_ms, is_server=bool(raw.is_server), steps=raw.steps, samples=raw.samples, commits=raw.commits, loss=raw.loss,
                 test_accuracy=raw.test_accuracy, steps_per_second=raw.steps_per_second)


class Client:
    """A connection to a market; may be shared by threads.

    What is not given comes from SOUK_SERVER, SOUK_TOKEN and SOUK_FINGERPRINT, else from the files that
    `souk account open` wrote.
    """

    def __init__(self, server: str | None = None, token: str | None = None, fingerprint: str | None = None,
                 config_dir: str | os.PathLike[str] | None = None) -> None:
        self._handle: ctypes.c_void_p | None = None
        options = library.ConnectOptions(
            ctypes.sizeof(library.ConnectOptions), library.encode(server), library.encode(token),
            library.encode(fingerprint), library.encode(config_dir))
        handle = ctypes.c_void_p()
        _interruptible(lambda stop: library.call("souk_client_connect", ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle

    @property
    def handle(self) -> ctypes.c_void_p:
        """For the library's functions."""
        if self._handle is None:
            raise Stopped("the client is closed")
        return self._handle

    @property
    def server(self) -> str:
        return str(library.load().souk_client_server(self.handle).decode())

    def close(self) -> None:
        """When no thread uses it any more."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.load().souk_client_free(handle)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    # ---- Before a job is sent

    def quote(self, task: Task | str) -> dict[str, Any]:
        """What it may cost (microcredits), and whether it could start now; nothing is sent or held."""
        told: dict[str, Any] = json.loads(
            library.call_for_text("souk_client_quote", self.handle, ctypes.byref(_job_text(task))))
        return told

    def submit(self, task: Task | str, *, dataset_dir: str | os.PathLike[str] | None = None,
               resume: str | os.PathLike[str] | None = None, on_note: Callable[[str], None] | None = None) -> int:
        """Sends what the market lacks of its files, then the job; the job's number. Credits are held."""
        return _interruptible(lambda stop: self.submit_stoppable(task, stop, dataset_dir, resume, on_note))

    def submit_stoppable(self, task: Task | str, stop: ctypes.c_int32,
                         dataset_dir: str | os.PathLike[str] | None = None,
                         resume: str | os.PathLike[str] | None = None,
                         on_note: Callable[[str], None] | None = None) -> int:
        """As submit, on this thread: it ends with Stopped once `stop` is not 0."""
        def note(_: object, what: bytes) -> None:
            if on_note is not None:
                on_note(what.decode(errors="replace"))

        options = library.SubmitOptions(
            ctypes.sizeof(library.SubmitOptions), library.encode(dataset_dir), library.encode(resume),
            library.NOTE_FUNCTION(note), None, ctypes.pointer(stop))
        job = ctypes.c_uint64()
        library.call("souk_client_submit", self.handle, ctypes.byref(_job_text(task)), ctypes.byref(options),
                     ctypes.byref(job))
        return job.value

    # ---- Jobs in the market

    def get(self, path: str) -> Any:
        """Anything that can be read: "/v1/account", "/v1/jobs/7/bill"."""
        return json.loads(library.call_for_text("souk_client_get", self.handle, path.encode()))

    def jobs(self, limit: int = 50) -> list[dict[str, Any]]:
        """The newest."""
        told = json.loads(library.call_for_text("souk_client_jobs", self.handle, limit))
        items: list[dict[str, Any]] = told["items"]
        return items

    def job(self, job: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(library.call_for_text("souk_client_job", self.handle, job))
        return told

    def cancel(self, job: int) -> None:
        library.call_for_text("souk_client_cancel", self.handle, job)

    def follow(self, job: int, kinds: int = ALL_KINDS) -> Follow:
        """Its events; to be closed, or used by `with`."""
        return Follow(self, job, kinds)

    def wait(self, job: int, timeout_s: float | None = None,
             on_note: Callable[[str], None] = tell_person) -> dict[str, Any]:
        """The job once it has ended, well or not; raises TimedOut.

        A market that is not reached meanwhile is tried again, and `on_note` told; else stderr is.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self.follow(job, MARKET) as follow:
            while (event := follow.next(None if until is None else max(0.0, until - time.monotonic()))) is not None:
                on_note(market_words(event))
            return follow.result or self.job(job)

    def _follow_telling(self, job: int, kind: int) -> Iterator[Event]:
        with self.follow(job, kind | MARKET) as follow:
            for event in follow:
                if event.kind == "market":
                    tell_person(market_words(event))
                else:
                    yield event

    def logs(self, job: int) -> Iterator[Event]:
        """All that its ranks wrote, from the beginning, until the job ends."""
        return self._follow_telling(job, LOG)

    def metrics(self, job: int) -> Iterator[Event]:
        """What is measured from now on, until the job ends; get("/v1/jobs/7/metrics") has what was."""
        return self._follow_telling(job, METRIC)

    def fetch(self, job: int, folder: str | os.PathLike[str] = ".", name: str | None = None) -> list[pathlib.Path]:
        """Brings the files that it left, or one of them."""
        return _interruptible(lambda stop: self.fetch_stoppable(job, stop, folder, name))

    def fetch_stoppable(self, job: int, stop: ctypes.c_int32, folder: str | os.PathLike[str] = ".",
                        name: str | None = None) -> list[pathlib.Path]:
        """As fetch, on this thread: it ends with Stopped once `stop` is not 0."""
        options = library.FetchOptions(ctypes.sizeof(library.FetchOptions), library.encode(folder),
                                       library.encode(name), ctypes.pointer(stop))
        told = library.call_for_text("souk_client_fetch", self.handle, job, ctypes.byref(options))
        return [pathlib.Path(path) for path in json.loads(told)]
