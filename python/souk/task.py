"""A job from its file to its result."""
from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Callable, Iterator, Mapping

from .client import Client, Event, validate
from .errors import JobFailed, SoukError
from .progress import Progress


class Task:
    """A job as in a job file (docs/job-file.md), and once it runs the job itself."""

    def __init__(self, fields: Mapping[str, Any] | str, *, name: str = "job") -> None:
        """`fields` are those of a job file, or its text; `name` is what messages call it. Raises Invalid."""
        self.source = fields if isinstance(fields, str) else json.dumps(fields)
        self.source_name = name
        self.id: int | None = None
        self.client: Client | None = None
        validate(self)

    @classmethod
    def from_yaml(cls, source: str | os.PathLike[str]) -> Task:
        """From a path, or from text of more than one line; raises Invalid with line and column."""
        if isinstance(source, str) and "\n" in source:
            return cls(source)
        return cls(pathlib.Path(source).read_text(encoding="utf-8"), name=os.fspath(source))

    def to_yaml(self) -> str:
        """Every field it has, as a job file."""
        return validate(self)

    def run(self, client: Client | None = None, *, dataset_dir: str | os.PathLike[str] | None = None,
            resume: str | os.PathLike[str] | None = None, on_note: Callable[[str], None] | None = None) -> Task:
        """Submits it; credits are held from then on."""
        if self.id is not None:
            raise SoukError(f"it runs already, as job {self.id}")
        self.client = client if client is not None else Client()
        self.id = self.client.submit(self, dataset_dir=dataset_dir, resume=resume, on_note=on_note)
        return self

    def _running(self) -> tuple[Client, int]:
        if self.client is None or self.id is None:
            raise SoukError("it does not run yet: call run() first")
        return self.client, self.id

    @property
    def state(self) -> str:
        client, job = self._running()
        return str(client.job(job)["state"])

    def wait(self, timeout_s: float | None = None, *, progress: bool = False) -> dict[str, Any]:
        """What the market says of it once it has succeeded; raises JobFailed when it has not, and TimedOut.

        With `progress` it is shown meanwhile: a live block in a notebook, plain lines elsewhere.
        """
        client, job = self._running()
        if progress:
            ended = Progress(client, job).run(timeout_s)
        else:
            ended = client.wait(job, timeout_s)
        if ended["state"] != "succeeded":
            raise JobFailed(ended)
        return ended

    def logs(self) -> Iterator[Event]:
        """All that its ranks wrote, until it ends."""
        client, job = self._running()
        return client.logs(job)

    def metrics(self) -> Iterator[Event]:
        """What is measured from now on, until it ends."""
        client, job = self._running()
        return client.metrics(job)

    def result(self, folder: str | os.PathLike[str] = ".", *, timeout_s: float | None = None) -> list[pathlib.Path]:
        """Waits until it has succeeded and brings the files that it left."""
        client, job = self._running()
        self.wait(timeout_s)
        return client.fetch(job, folder)

    def cancel(self) -> None:
        client, job = self._running()
        client.cancel(job)
