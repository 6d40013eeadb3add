"""tools/test-all: its turns, its counts and its table, without running a suite."""
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
from xml.etree.ElementTree import fromstring

import pytest
from serving import HUNG_S

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
loader = importlib.machinery.SourceFileLoader("test_all", str(ROOT / "tools/test-all"))
test_all = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_all", loader))
sys.modules["test_all"] = test_all  # dataclasses look there
loader.exec_module(test_all)

PYTEST = """<testsuites><testsuite name="pytest">
<testcase name="a"/><testcase name="b"><failure message="x"/></testcase><testcase name="c"><error message="x"/></testcase>
<testcase name="d"><skipped message="no torch"/></testcase><testcase name="e"><skipped message="no torch"/></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite name="Linux">
<testcase name="a" time="1" status="run"><system-out>3 passed, 1 skipped in 0.01s
SKIPPED [1] tests/a.py:4: no torch</system-out></testcase>
<testcase name="b" time="1" status="fail"><failure message=""/><system-out>[==========] 5 test(s) run.</system-out></testcase>
<testcase name="c" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>skipped: needs root
</system-out></testcase></testsuite>"""
# As main does it.
INTERRUPTED = """
import runpy, signal, sys
sys.path.insert(0, "tools")
test_all = runpy.run_path("tools/test-all")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
daemon = "setsid sh -c 'echo ready; exec sleep inf'"
test_all["shell"](f"trap 'echo cleaned; exit' TERM; ({daemon} &); {daemon} & wait", None)
"""
PASSED = '<testsuite><testcase name="a"/></testsuite>'
SKIPPED = '<testsuite><testcase name="a"><skipped message="no Slurm"/></testcase></testsuite>'


@pytest.mark.parametrize("first", [0, 3, 20775])
def test_each_suite_has_its_turn_in_any_seven_days(first):
    turns = [(suite, name) for day in range(first, first + 7) for suite, name, _ in test_all.chosen([], day)]
    assert len(turns) == len(set(turns)) and {suite for suite, _ in turns} == set(test_all.SUITES)


@pytest.mark.parametrize("first", [0, 20775])
def test_each_piece_has_its_turn_in_any_seven_weeks(first):
    turns = {(suite, name) for day in range(first, first + 49) for suite, name, _ in test_all.chosen([], day)}
    assert turns == {(suite, name) for suite, pieces in test_all.SUITES.items() for name in pieces}


def test_a_suite_in_seven_parts_runs_another_one_each_week():
    turns = [name for day in range(70, 119) for suite, name, _ in test_all.chosen(["arm64", "asan-all"], day) if suite == "asan-all"]
    assert turns == ["4", "5", "6", "7", "1", "2", "3"]


def test_suites_and_pieces_are_chosen_in_the_order_of_the_table():
    assert [suite for suite, _, _ in test_all.chosen(["deb/install", "cloud"], None)] == ["cloud", "deb"]
    with pytest.raises(SystemExit, match="no suite nonsense"):
        test_all.chosen(["nonsense"], None)


def test_every_file_of_a_suite_in_pieces_is_in_the_table():
    assert {path.stem for path in (ROOT / "tests/frameworks").glob("test_*.py")} == {
        f"test_{name}" for name in test_all.SUITES["frameworks"]}
    programs = {path.relative_to(ROOT / "bench").with_suffix("").as_posix() for path in (ROOT / "bench").rglob("*.py")
                if "ArgumentParser(" in path.read_text() and os.access(path, os.X_OK)}
    # bench/frameworks.py runs those in bench/frameworks/.
    assert programs - {"frameworks"} == {name.partition("-")[0] for name in test_all.SUITES["bench"]}


def test_cases_are_counted_as_pytest_and_ctest_write_them():
    assert test_all.count(fromstring(PYTEST)) == test_all.Row(passed=1, failed=2, skipped={"no torch": 2})
    assert test_all.count(fromstring(CTEST)) == test_all.Row(passed=7, failed=1, skipped={"a: no torch (a.py:4)": 1, "c: needs root": 1})


def test_a_skip_that_nobody_reviewed_is_a_failure(tmp_path):
    row, log = test_all.Row(skipped={"no GPU of a kind that nobody heard of": 1, "there are no tests/recipes": 1}), tmp_path / "log"
    test_all.fail_not_reviewed(row, "recipes/all", log)
    assert row.failed == 1 and "recipes/all: no GPU of" in log.read_text() and "there are no" not in log.read_text()


@pytest.mark.parametrize("status,junit,row", [
    (0, None, test_all.Row(passed=1)),
    (1, None, test_all.Row(failed=1)),
    (77, None, test_all.Row(skipped={"last line": 1})),
    (0, PASSED, test_all.Row(passed=1)),
    (0, SKIPPED, test_all.Row(skipped={"no Slurm": 1})),
    (77, SKIPPED, test_all.Row(skipped={"no Slurm": 1})),
    (5, "<testsuite/>", test_all.Row(failed=1)),
    (0, "<testsuite/>", test_all.Row(failed=1)),  # it ran nothing
    (1, PASSED, test_all.Row(passed=1, failed=1)),  # what failed is not a case: a report of a sanitizer
    (1, PYTEST, test_all.Row(passed=1, failed=2, skipped={"no torch": 2})),
])
def test_a_piece_is_judged_by_its_counts_and_its_exit_status(status, junit, row):
    assert test_all.judge(status, junit and fromstring(junit), "last line") == row


def test_the_table_has_a_row_a_suite_and_a_line_for_what_failed_or_was_skipped():
    said = test_all.table({
        "bench/gpu": test_all.Row(skipped={"no GPU": 1}),
        "bench/market": test_all.Row(passed=1, seconds=2.4),
        "cloud/all": test_all.Row(passed=3, failed=2, seconds=61),
        "frameworks/mpi": test_all.Row(skipped={"no root": 1})}).splitlines()
    assert [line.split() for line in said[:4]] == [
        ["suite", "ran", "passed", "failed", "skipped", "seconds"],
        ["frameworks", "0", "0", "0", "1", "0"],
        ["cloud", "5", "3", "2", "0", "61"],
        ["bench", "1", "1", "0", "1", "2"]]
    assert said[4:] == [
        f"skipped: bench/gpu, 1: no GPU; to run it: {test_all.SUITES['bench']['gpu'].needs}",
        "failed: cloud/all, 2; its log is build/test-all/cloud.log",
        "skipped: frameworks/mpi, 1: no root; to run it: sudo tools/test-all frameworks/mpi"]


@pytest.mark.parametrize("reason,way", [
    ("it could not be prepared: no venv with spark, from PyPI", "tools/test-all frameworks/spark"),
    ("it could not be prepared: it makes network namespaces, which only root may", "sudo tools/test-all frameworks/spark"),
    ("it could not be prepared: this root may make no network namespaces", "a machine, or a container, that allows it"),
    ("it could not be prepared: there is no /dev/net/tun, which a job's network needs", "a machine, or a container, that allows it"),
    ("system/kinds: SOUK_DATA names no folder with real data", "SOUK_DATA=FOLDER tools/test-all frameworks/spark"),
    ("system/kinds: sandboxes cannot run under the address sanitizer", "make test"),
    ("train/export: could not import 'onnxruntime': No module named 'onnxruntime'", "make reference"),
    ("function/object_store_test: of a folder alone", "not on this machine")])
def test_what_was_skipped_has_a_command_that_runs_it(reason, way):
    assert test_all.way_to_run("frameworks/spark", reason) == way


def test_an_interrupted_run_leaves_nothing_running():
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert [run.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        run.send_signal(signal.SIGTERM)
        # It ends when the last of those that have it ends.
        assert run.communicate(timeout=HUNG_S)[0] == "cleaned\n" and run.returncode == 9


def test_what_a_piece_leaves_running_ends_with_it():
    piece = [sys.executable, "-c", INTERRUPTED.replace("& wait", "&")]
    assert subprocess.run(piece, cwd=ROOT, stdout=subprocess.PIPE, timeout=HUNG_S).returncode == 0


@pytest.mark.parametrize("log,told", [
    ("== x\nE   assert 1\nFAILED tests/cloud/test_ec2.py::test_a - assert 1\nend\n",
     ["--- cloud/all failed; all of it: build/test-all/cloud.log", "    E   assert 1", "    FAILED tests/cloud/test_ec2.py::test_a - assert 1"]),
    ("E   of one that passed\n--- net/a_test failed; all of it: build/ci/failed/asan/net/a_test/\n    [  ERROR   ] 1\n",
     ["--- net/a_test failed; all of it: build/ci/failed/asan/net/a_test/", "    [  ERROR   ] 1"])])
def test_a_failed_piece_shows_its_assertion_and_where_its_log_is(monkeypatch, tmp_path, log, told):
    monkeypatch.setattr(test_all, "ROOT", tmp_path)
    path = tmp_path / "build/test-all/cloud.log"
    path.parent.mkdir(parents=True)
    path.write_text(log)
    assert test_all.told_failure("cloud/all", path)[:len(told)] == told
