"""Jobs on a Souk market, from Python (docs/sdk.md)."""
from .aio import AsyncClient
from .client import Client, Event, validate
from .errors import (Conflict, Corrupt, Exhausted, Invalid, JobFailed, Mistake, NotFound, Refused, SoukError,
                     Stopped, TimedOut, Unavailable)
from .library import library_version
from .task import Task

__version__ = "0.1.0"  # as pyproject.toml's
__all__ = ["AsyncClient", "Client", "Conflict", "Corrupt", "Event", "Exhausted", "Invalid", "JobFailed",
           "Mistake", "NotFound", "Refused", "SoukError", "Stopped", "Task", "TimedOut", "Unavailable",
           "__version__", "library_version", "validate"]
