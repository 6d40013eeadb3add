"""Starts the walks through the page: a script beside this file, driven over its standard input and output."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from serving import HUNG_S, own_port  # noqa: E402, F401 -- found through the line above


def lacking():
    """The first requirement of browser tests that this machine lacks, or an empty string."""
    for is_there, words in ((shutil.which("node"), "no Node.js: apt-get install nodejs npm"),
                            ((HERE.parent.parent / "web/node_modules/playwright-core").is_dir(), "no web/node_modules: tools/build-web"),
                            (all(pathlib.Path("/usr/bin", name).exists() for name in ("chromium", "chromium-headless-shell")),
                             "no Chromium: apt-get install chromium chromium-headless-shell")):
        if not is_there:
            return words
    return ""


# Every browser test imports this mark, which skips the test.
pytestmark = pytest.mark.skipif(lacking() != "", reason=lacking() or "nothing is lacking")


class Walk:
    """A running walk. The test answers each word of the walk after doing what it asks. The folder keeps the walk's files
    for debugging."""

    def __init__(self, script, url, folder, *more):
        self.log = pathlib.Path(folder, "walk.log")
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(
                ["node", str(HERE / script), url, str(folder), *map(str, more)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()  # the walk takes a picture first
            try:
                self.process.communicate(timeout=HUNG_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.communicate()

    def hear(self):
        """The next line that the walk prints."""
        said = self.process.stdout.readline()
        if not said:
            self.process.wait(HUNG_S)
            pytest.fail(f"the walk ended early:\n{self.log.read_text()}")
        return said.rstrip("\n")

    def expect(self, word):
        said = self.hear()
        assert said == word, said

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

    def end(self):
        """The walk's findings. The walk itself has a timeout for every wait."""
        out, _ = self.process.communicate()
        assert self.process.returncode == 0, self.log.read_text()
        return json.loads(out)


def credits(microcredits):
    """An amount as the page writes it where every microcredit counts."""
    return f"{microcredits / 1e6:.{2 if microcredits % 10_000 == 0 else 6}f}"


def assert_clean(seen):
    """Nothing on the console, nothing from elsewhere, nothing refused, nothing clipped, nothing axe-core minds."""
    for what in ("console", "foreign", "failed", "wide", "violations"):
        assert seen[what] == [], (what, seen[what])
