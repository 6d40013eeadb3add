"""tools/run-tests: what it keeps of failed tests and removes of killed ones, without running a test."""
import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import test_processes  # noqa: E402

KILLED = """<testsuite><testcase name="system/run" time="600" status="fail"><system-out>Timeout</system-out></testcase>
<testcase name="system/join" time="1" status="run"><system-out>1 passed in 1.0s</system-out></testcase></testsuite>"""


@pytest.fixture
def run_tests(tmp_path, monkeypatch):
    """It, as of a tree and a temporary folder of their own, with what a killed test has left."""
    loader = importlib.machinery.SourceFileLoader("run_tests", str(TOOLS / "run-tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "build", lambda preset, choice: (tmp_path, ["system/run", "system/join"]))
    monkeypatch.setattr(sys, "argv", ["run-tests", "release"])
    monkeypatch.delenv("CI", raising=False)
    left = module.folder_left("system/run")
    left.mkdir(parents=True)
    (left / "market.log").write_text("its last words")
    pathlib.Path(f"{left}-of-another-run").mkdir()
    return module


def test_the_folder_of_a_killed_test_is_kept_and_then_removed(run_tests, tmp_path, monkeypatch):
    def run(*_):
        (tmp_path / "tests.xml").write_text(KILLED)
        return 600, 1, tmp_path / "tests.xml", tmp_path / "kept"

    left = run_tests.folder_left("system/run")
    monkeypatch.setattr(run_tests, "run", run)
    assert run_tests.main() == 1
    assert (tmp_path / "kept/system/run" / left.name / "market.log").read_text() == "its last words"
    assert [path.name for path in left.parent.iterdir()] == [f"{left.name}-of-another-run"]


def test_an_interrupted_run_removes_the_folders_too(run_tests, monkeypatch):
    monkeypatch.setattr(run_tests, "run", lambda *_: sys.exit(143))
    with pytest.raises(SystemExit, match="143"):
        run_tests.main()
    assert not run_tests.folder_left("system/run").exists()


def test_a_folder_below_which_something_is_mounted_stays(run_tests, monkeypatch, capsys):
    left = run_tests.folder_left("system/run")
    monkeypatch.setattr(run_tests, "mounts_below", lambda names: [f"{left}/home/disk"])
    run_tests.remove_folders(["system/run", "system/join"])
    assert (left / "market.log").exists() and str(left) in capsys.readouterr().out


FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
FROZEN = f"""
import os, pathlib, subprocess, test_processes
group = pathlib.Path("{FREEZER}/souk-frozen-" + str(os.getpid()))
group.mkdir()
sleeping = subprocess.Popen(["sleep", "600"])
(group / "cgroup.procs").write_text(str(sleeping.pid))
(group / "freezer.state").write_text("FROZEN")
test_processes.end_children()
group.rmdir()
"""


@pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="needs root and cgroup v1, which keeps signals from what is frozen")
def test_a_frozen_process_is_ended():
    subprocess.run([sys.executable, "-c", FROZEN], cwd=TOOLS, check=True, timeout=test_processes.HUNG_S)
