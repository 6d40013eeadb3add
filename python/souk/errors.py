"""What can go wrong, as exceptions with the market's own words."""
from __future__ import annotations

import dataclasses
from typing import Any, Mapping


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One of what is wrong in a job file."""

    line: int  # from 1; 0: it has no place
    column: int
    field: str  # "train.batch"; "": it is about none, or about several
    text: str

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line else ""
        return place + (f"{self.field}: " if self.field else "") + self.text


class SoukError(Exception):
    """Anything the market or the library refused.

    `code` is its name ("not_found"), `status` the market's HTTP status (0: it did not answer), `problem`
    the market's problem details (RFC 9457) if it gave any; `line` and `column` are the place in a job file,
    and `mistakes` all that is wrong in it, if it has more than one.
    """

    code = "unknown"

    def __init__(self, message: str, *, status: int = 0, problem: Mapping[str, Any] | None = None,
                 line: int = 0, column: int = 0) -> None:
        told = problem.get("mistakes", []) if problem and not status else []  # the library's own words
        self.mistakes = [Mistake(one["line"], one["column"], one["field"], one["text"]) for one in told]
        more = "\n".join(str(mistake) for mistake in self.mistakes[1:])
        super().__init__(f"{message}\n{more}" if more else message)
        self.status, self.problem = status, problem
        self.line, self.column = line, column


class Invalid(SoukError):
    """The request, or the job file, is wrong."""
    code = "invalid"


class NotFound(SoukError):
    """It names something that does not exist."""
    code = "not_found"


class Conflict(SoukError):
    """It lost to another request, or repeats one."""
    code = "conflict"


class Refused(SoukError):
    """Who asks may not do this: a wrong token, or another market's key."""
    code = "refused"


class Exhausted(SoukError):
    """A limit or a balance is used up."""
    code = "exhausted"


class Unavailable(SoukError):
    """The market or the network is away; to be tried again."""
    code = "unavailable"


class Corrupt(SoukError):
    """Data that came breaks its own rules."""
    code = "corrupt"


class Stopped(SoukError):
    """Another thread ended it."""
    code = "stopped"


class TimedOut(SoukError, TimeoutError):
    """The caller's own time is over."""
    code = "timed_out"


class JobFailed(SoukError):
    """A job that was waited for failed or was cancelled; `job` is what the market says of it."""
    code = "job_failed"

    def __init__(self, job: Mapping[str, Any]) -> None:
        reason = f": {job['reason']}" if job.get("reason") else ""
        super().__init__(f"job {job['id']} {job['state']}{reason}")
        self.job = job


BY_CODE: dict[int, type[SoukError]] = {1: Invalid, 2: NotFound, 3: Conflict, 4: Refused, 5: Exhausted,
                                       6: Unavailable, 7: Corrupt, 8: Stopped, 9: TimedOut}
