"""Starts the walks through the page: a script beside this file, driven over its standard input and output."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))


def screens(tmp_path):
    """Where pictures go: SOUK_SCREENS keeps them."""
    folder = pathlib.Path(os.environ.get("SOUK_SCREENS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def free_port():
    """For a market that has to be found at the same address when it starts again."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Walk:
    """A walk under way. Each word it says is answered once what the word asks for has been done."""

    def __init__(self, script, url, folder, *more):
        self.process = subprocess.Popen(
            ["node", str(HERE / script), url, str(folder), *map(str, more)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def expect(self, word):
        said = self.process.stdout.readline()
        assert said == f"{word}\n", said or self.process.communicate()[1]

    def answer(self, line="done"):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def restart(self, market, by=signal.SIGINT):
        """What a walk asks for by "stop" and, when it has seen that the market is away, "start"."""
        self.expect("stop")
        market.stop(by)
        self.answer()
        self.expect("start")
        market.start()
        self.answer()

    def end(self, timeout=180):
        out, errors = self.process.communicate(timeout=timeout)
        assert self.process.returncode == 0, errors
        return json.loads(out)


def credits(microcredits):
    """An amount as the page writes it where every microcredit counts."""
    return f"{microcredits / 1e6:.{2 if microcredits % 10_000 == 0 else 6}f}"


def assert_clean(seen):
    """Nothing on the console, nothing from elsewhere, nothing refused, nothing clipped, nothing axe-core minds."""
    for what in ("console", "foreign", "failed", "wide", "violations"):
        assert seen[what] == [], (what, seen[what])
