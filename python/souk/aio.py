"""The client for asyncio: the same calls, on threads of their own."""
from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import pathlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, TypeVar

from .client import ALL_KINDS, LOG, MARKET, METRIC, Client, Event, Follow, market_words, tell_person
from .errors import TimedOut

if TYPE_CHECKING:
    from .task import Task

T = TypeVar("T")
_THREADS_MAX = 64
_SLICE_S = 0.2


class AsyncClient:
    """As Client, each call a coroutine. A cancelled one ends its call; a job goes on, unless it is cancelled."""

    def __init__(self, client: Client, executor: ThreadPoolExecutor) -> None:
        self._client, self._executor = client, executor

    @classmethod
    async def connect(cls, server: str | None = None, token: str | None = None, fingerprint: str | None = None,
                      config_dir: str | os.PathLike[str] | None = None) -> AsyncClient:
        executor = ThreadPoolExecutor(_THREADS_MAX, "souk")
        make = functools.partial(Client, server, token, fingerprint, config_dir)
        try:
            return cls(await asyncio.get_running_loop().run_in_executor(executor, make), executor)
        except BaseException:
            executor.shutdown(wait=False)
            raise

    async def close(self) -> None:
        """Once the calls in progress have ended."""
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)
        self._client.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, functools.partial(function, *arguments))

    async def _run_stoppable(self, function: Callable[[ctypes.c_int32], T]) -> T:
        stop = ctypes.c_int32(0)
        try:
            return await self._run(function, stop)
        except asyncio.CancelledError:
            stop.value = 1
            raise

    async def quote(self, task: Task | str) -> dict[str, Any]:
        return await self._run(self._client.quote, task)

    async def submit(self, task: Task | str, *, dataset_dir: str | os.PathLike[str] | None = None,
                     resume: str | os.PathLike[str] | None = None,
                     on_note: Callable[[str], None] | None = None) -> int:
        return await self._run_stoppable(
            lambda stop: self._client.submit_stoppable(task, stop, dataset_dir, resume, on_note))

    async def get(self, path: str) -> Any:
        return await self._run(self._client.get, path)

    async def jobs(self, limit: int = 50) -> list[dict[str, Any]]:
        return await self._run(self._client.jobs, limit)

    async def job(self, job: int) -> dict[str, Any]:
        return await self._run(self._client.job, job)

    async def cancel(self, job: int) -> None:
        await self._run(self._client.cancel, job)

    async def fetch(self, job: int, folder: str | os.PathLike[str] = ".",
                    name: str | None = None) -> list[pathlib.Path]:
        return await self._run_stoppable(lambda stop: self._client.fetch_stoppable(job, stop, folder, name))

    async def wait(self, job: int, timeout_s: float | None = None) -> dict[str, Any]:
        """The job once it has ended, well or not; raises TimedOut."""
        async def end() -> dict[str, Any]:
            async for event in self.follow(job, MARKET):
                tell_person(market_words(event))
            return await self.job(job)

        try:
            return await asyncio.wait_for(end(), timeout_s)
        except TimeoutError as error:
            raise TimedOut(f"job {job} has not ended in time") from error

    async def follow(self, job: int, kinds: int = ALL_KINDS) -> AsyncIterator[Event]:
        """Its events, until it ends."""
        follow: Follow = await self._run(self._client.follow, job, kinds)
        try:
            while True:
                try:
                    event = await self._run(follow.next, _SLICE_S)
                except TimedOut:
                    continue
                if event is None:
                    return
                yield event
        finally:
            follow.stop()
            try:
                self._executor.submit(follow.close)
            except RuntimeError:  # the client was closed meanwhile
                follow.close()

    async def _follow_telling(self, job: int, kind: int) -> AsyncIterator[Event]:
        async for event in self.follow(job, kind | MARKET):
            if event.kind == "market":
                tell_person(market_words(event))
            else:
                yield event

    def logs(self, job: int) -> AsyncIterator[Event]:
        return self._follow_telling(job, LOG)

    def metrics(self, job: int) -> AsyncIterator[Event]:
        return self._follow_telling(job, METRIC)
