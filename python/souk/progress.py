"""A job's progress, for people: a live block in a notebook, plain lines elsewhere."""
from __future__ import annotations

import html
import importlib
import math
import sys
import time
from typing import Any, Callable, TextIO

from .client import MARKET, METRIC, STATE, Client, Event, market_words
from .errors import TimedOut

_LINE_S = 5.0
_DRAW_S = 0.5


def _notebook_display() -> Callable[[str], None] | None:
    """What shows HTML in place of what it showed before; None where there is no notebook."""
    try:
        ipython = importlib.import_module("IPython")
        display = importlib.import_module("IPython.display")
    except ImportError:
        return None
    shell = ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    shown = display.display(display.HTML(""), display_id=True)
    return lambda text: shown.update(display.HTML(text))


class Progress:
    def __init__(self, client: Client, job: int, stream: TextIO | None = None) -> None:
        self._client, self._job = client, job
        self._stream = stream if stream is not None else sys.stderr
        self._show_html = _notebook_display()
        self._state, self._reason, self._away = "", "", ""
        self._loss, self._accuracy = math.nan, math.nan
        self._workers: dict[int, Event] = {}
        self._drawn_s = -math.inf

    def run(self, timeout_s: float | None = None) -> dict[str, Any]:
        """Shows the job until it has ended, well or not."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        with self._client.follow(self._job, STATE | METRIC | MARKET) as follow:
            while True:
                left_s = None if until is None else until - time.monotonic()
                try:
                    event = follow.next(left_s if left_s is not None and left_s < _DRAW_S else _DRAW_S)
                except TimedOut:
                    if until is not None and time.monotonic() >= until:
                        raise
                    continue
                if event is None:
                    break
                self.take(event)
            self._draw()
            return follow.result or self._client.job(self._job)

    def take(self, event: Event) -> None:
        if event.kind == "market":
            self._away = market_words(event) if event.text == "away" else ""
            if self._show_html is None:
                print(market_words(event), file=self._stream, flush=True)
                return
        elif event.kind == "state":
            self._state, self._reason = event.text, event.reason
        elif event.is_server:
            self._loss = self._loss if math.isnan(event.loss) else event.loss
            self._accuracy = self._accuracy if math.isnan(event.test_accuracy) else event.test_accuracy
        else:
            self._workers[event.lease] = event
        now_s = time.monotonic()
        pause_s = _DRAW_S if self._show_html else _LINE_S
        if event.kind in ("state", "market") or now_s - self._drawn_s >= pause_s:
            self._drawn_s = now_s
            self._draw()

    def _words(self) -> list[str]:
        words = [f"job {self._job}: {self._state}"]
        if self._reason:
            words.append(self._reason)
        if not math.isnan(self._loss):
            words.append(f"loss {self._loss:.4f}")
        if not math.isnan(self._accuracy):
            words.append(f"accuracy {self._accuracy:.2%}")
        if self._workers:
            speed = sum(worker.steps_per_second for worker in self._workers.values())
            words.append(f"{sum(worker.steps for worker in self._workers.values())} steps, {speed:.1f} a second")
        return words

    def _draw(self) -> None:
        words = self._words()
        if self._show_html is None:
            print(", ".join(words), file=self._stream, flush=True)
            return
        rows = "".join(f"<tr><td>lease {lease}</td><td>{worker.steps} steps</td><td>{worker.steps_per_second:.1f}/s</td></tr>"
                       for lease, worker in sorted(self._workers.items()))
        away = f"<br><i>{html.escape(self._away)}</i>" if self._away else ""
        self._show_html(f"<b>{html.escape(words[0])}</b>{away}<br>{html.escape(', '.join(words[1:]))}<table>{rows}</table>")
