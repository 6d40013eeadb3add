"""All tests in Python share this: a folder that is kept when a case fails, and an exit status of its own for a file whose
cases were all skipped.

tools/run-tests names the test in SOUK_TEST, its run in SOUK_RUN, and the folder that keeps failures in SOUK_FAILED.
"""
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import sys
import tempfile

import pytest

from program import Souk

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent / "tools"))
from kept import keep  # noqa: E402 -- found through the line above

FAILED = os.environ.get("SOUK_FAILED", str(TESTS.parent / "build/ci/failed"))
ALL_SKIPPED = 77  # CTest's SKIP_RETURN_CODE
LOG_LINES = 12
LOGS = pytest.StashKey()
IS_OURS = pytest.StashKey()


@pytest.fixture
def souk(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Souk(home)


@pytest.fixture(scope="session")
def cgroups(tmp_path_factory):
    """For cases that need sandboxes with control groups: not every machine gives root any."""
    limits = json.loads(Souk(tmp_path_factory.mktemp("doctor"))("lend", "--doctor", "--json").stdout)["limits"]
    if not limits.startswith("ok"):
        pytest.skip(f"no control groups here: {limits}")


def name_of(config):
    """tests/system/test_run.py is system/run."""
    path = pathlib.Path(config.args[0].partition("::")[0]).resolve()
    whole = path.relative_to(TESTS).as_posix().removesuffix(".py") if path.is_relative_to(TESTS) else path.stem
    return os.environ.get("SOUK_TEST", whole.replace("test_", ""))


def pytest_configure(config):
    # A shell's background job ignores some signals, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_DFL)
    if not config.option.basetemp:
        # Short, since the paths of sockets are; tools/run-tests, which has a name for each run, finds it when a test is killed.
        config.stash[IS_OURS] = True
        run = os.environ.get("SOUK_RUN") or secrets.token_hex(4)
        config.option.basetemp = os.path.join(tempfile.gettempdir(), f"souk-{name_of(config).replace('/', '-')}-{run}")
        os.mkdir(config.option.basetemp, 0o700)


def logs_below(folder):
    """With their sizes. Files and folders of what runs below come and go meanwhile."""
    found = {}
    for root, _, files in os.walk(folder):
        for name in sorted(name for name in files if name.endswith(".log")):
            path = pathlib.Path(root, name)
            with contextlib.suppress(OSError):
                found[path] = path.stat().st_size
    return found


def pytest_runtest_setup(item):
    item.stash[LOGS] = logs_below(pathlib.Path(item.config.option.basetemp))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed case shows the last lines of every log that grew during it."""
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    folder = pathlib.Path(item.config.option.basetemp)
    before = item.stash.get(LOGS, {})
    for path, size in logs_below(folder).items():
        with contextlib.suppress(FileNotFoundError):
            if size == before.get(path):
                continue
            lines = path.read_text(errors="replace").splitlines()[-LOG_LINES:]
            report.sections.append((f"log {path.relative_to(folder)}", "\n".join(f"log {line}" for line in lines)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    outcomes = session.config.pluginmanager.get_plugin("terminalreporter").stats
    folder = pathlib.Path(session.config.option.basetemp)
    if outcomes.get("failed") or outcomes.get("error"):
        keep(folder, pathlib.Path(FAILED) / name_of(session.config))
    elif session.exitstatus in (0, 5) and outcomes.get("skipped") and not outcomes.get("passed"):
        session.exitstatus = ALL_SKIPPED
    if session.config.stash.get(IS_OURS, False):
        shutil.rmtree(folder, ignore_errors=True)
