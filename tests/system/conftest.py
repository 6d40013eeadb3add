"""What whole-program tests share: the program, run with a home of its own."""
import os
import pathlib
import subprocess

import pytest
from serving import HUNG_S

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOG_LINES = 12
FOLDER = pytest.StashKey()


class Souk:
    """The program with an empty home folder and no variables but those a test sets."""

    def __init__(self, home):
        self.program = os.environ.get("SOUK_PROGRAM", str(ROOT / "build" / "souk"))
        self.home = home
        self.variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
        # Sanitizers take their settings from the environment.
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.variables[name] = os.environ[name]

    def start(self, *arguments, **options):
        return subprocess.Popen([self.program, *map(str, arguments)], env=self.variables,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def __call__(self, *arguments, stdin="", code=0):
        result = subprocess.run([self.program, *map(str, arguments)], env=self.variables,
                                input=stdin, capture_output=True, text=True, timeout=HUNG_S)
        assert result.returncode == code, result.stderr
        return result


@pytest.fixture
def souk(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Souk(home)


@pytest.fixture(autouse=True)
def noted_folder(request, tmp_path):
    """First of all, so that a case whose place could not be set up has it too."""
    request.node.stash[FOLDER] = tmp_path


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A case that failed shows what its daemons and markets logged last."""
    outcome = yield
    report = outcome.get_result()
    folder = item.stash.get(FOLDER, None)
    if not report.failed or folder is None:
        return
    for path in sorted(folder.rglob("*.log")):
        lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:]
        report.sections.append((f"log {path.relative_to(folder)}", "\n".join(f"log {line}" for line in lines)))
