"""The report of a run: what counts as passed, failed and skipped, and what is told of it."""
import pathlib
import runpy
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import test_report  # noqa: E402 -- found through the line above

PASSED = """[==========] Running 2 test(s).
[ RUN      ] a_quota_is_kept
[       OK ] a_quota_is_kept
[ RUN      ] root_may_mount
skipped: only root can mount
[  SKIPPED ] root_may_mount
[==========] 2 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] root_may_mount
"""
ALL_SKIPPED = PASSED.replace("[       OK ]", "[  SKIPPED ]")
PYTEST = """.s                                                                       [100%]
SKIPPED [2] tests/system/test_kinds.py:84: SOUK_DATA names no folder with real data
1 passed, 2 skipped in 3.21s
"""
FAILED = """    def test_it():
>       assert 1 == 2
E       assert 1 == 2
log market.log
FAILED tests/system/test_run.py::test_it - assert 1 == 2
1 failed, 4 passed in 3.21s
"""


def read(tmp_path, *cases):
    path = tmp_path / "tests.xml"
    path.write_text("<testsuite>" + "".join(
        f'<testcase name="{name}" time="{seconds}" status="{status}"><system-out>{output.replace("<", "&lt;").replace(">", "&gt;")}</system-out></testcase>'
        for name, seconds, status, output in cases) + "</testsuite>")
    return test_report.read(path)


def test_cases_are_counted_and_skips_keep_their_reason(tmp_path):
    unit, whole = read(tmp_path, ("sandbox/folder_test", 0.1, "run", PASSED), ("system/kinds", 4, "run", PYTEST))
    assert (unit.outcome, unit.cases, unit.skipped) == ("passed", 1, [(1, "only root can mount (root_may_mount)")])
    assert (whole.outcome, whole.cases, [count for count, _ in whole.skipped]) == ("passed", 1, [2])
    told = list(test_report.told_skips([unit, whole]))
    assert told == ["    sandbox/folder_test: 1 case: only root can mount  [sudo make test]",
                    "    system/kinds: 2 cases: SOUK_DATA names no folder with real data  [SOUK_DATA=FOLDER make test]"]


INSTALL = "tools/install-deps --test, as root"


@pytest.mark.parametrize("reason,command", [
    ("default-jre-headless is not installed", INSTALL),
    ("no dbus-daemon", INSTALL),
    ("no python3-dbus or no python3-gi", INSTALL),
    ("no Xvfb or no xdotool", INSTALL),
    ("no iptables here, to translate addresses with", INSTALL),
    ("no Node.js: apt-get install nodejs npm", INSTALL),
    ("needs Debian's busybox-static", INSTALL),
    ("it needs openmpi-bin", INSTALL),
    ("qemu-user-static is not installed", "tools/install-deps --arm64, as root"),
    ("no web/node_modules: tools/build-web", "tools/build-web"),
    ("no spot-traces in SOUK_DATA", "SOUK_DATA=FOLDER make test"),
    ("needs root and cgroups", "sudo make test"),
    ("sandboxes cannot run it", "make test"),
    ("TSan cannot run in a sandbox", "make test"),
    ("no control groups here", test_report.CONTAINER),
    ("cgroups are not to be had here", test_report.CONTAINER),
    ("no /dev/net/tun here", test_report.CONTAINER),
    ("sandboxes cannot be started here", test_report.CONTAINER),
    ("bwrap cannot start a sandbox here: no permission", test_report.CONTAINER),
    ("no reason given", ""),
    ("no GPU", ""),
])
def test_a_skipped_case_has_a_command_that_makes_it_run(reason, command):
    assert test_report.remedy(reason) == command


def test_every_package_that_a_command_is_to_install_is_one_that_it_installs():
    packages = (TOOLS / "install-deps").read_text().partition("= --test ]")[2].partition("= --lint ]")[0].split()
    assert {"default-jre-headless", "dbus", "python3-dbus", "python3-gi", "xvfb", "xdotool", "iptables", "busybox-static",
            "openmpi-bin"} <= {package.strip('"') for package in packages}


def test_what_ran_nothing_has_not_passed(tmp_path):
    tests = read(tmp_path, ("sandbox/folder_test", 0.1, "run", ALL_SKIPPED), ("net/tun_test", 0, "notrun", "skipped: no /dev/net/tun here\n"))
    assert [test.outcome for test in tests] == ["skipped", "skipped"]
    assert tests[1].skipped == [(1, "no /dev/net/tun here")]
    assert test_report.closing(tests) == "0 passed, 0 failed, 2 skipped"


def test_a_failure_shows_its_assertion_and_its_last_lines(tmp_path):
    tests = read(tmp_path, ("system/run", 9, "fail", FAILED + "x\n" * 60))
    told = list(test_report.told_failures(tests, "build/ci/failed"))
    assert told[0] == "--- system/run failed; all of it: build/ci/failed/system/run/"
    assert "    E       assert 1 == 2" in told and "    FAILED tests/system/test_run.py::test_it - assert 1 == 2" in told
    assert len([line for line in told if line.startswith("    | ")]) == test_report.OUTPUT_LINES
    assert test_report.closing(tests) == "0 passed, 1 failed, 0 skipped"


def test_a_skip_has_to_be_reviewed(tmp_path):
    test, = read(tmp_path, ("system/kinds", 4, "run", PYTEST))
    skips = [(test.name, reason) for _, reason in test.skipped]
    assert len(test_report.not_reviewed(skips, "# none\n\nsystem/other: SOUK_DATA\n", "release")) == 1
    assert test_report.not_reviewed(skips, "system/k.*: SOUK_DATA names\n", "release") == []
    for_tsan = "tsan/system/k.*: SOUK_DATA names\n"
    assert test_report.not_reviewed(skips, for_tsan, "tsan") == [] and len(test_report.not_reviewed(skips, for_tsan, "release")) == 1


def test_repeated_runs_are_told_with_the_failed_ones_first():
    table = runpy.run_path(str(TOOLS / "test-repeat"))["table"]
    runs = [{"tests": {"a": ["passed", 1.0], "b": ["failed", 2.0], "c": ["skipped", 0]}},
            {"tests": {"a": ["passed", 3.0], "b": ["passed", 1.0]}}]
    assert table(runs) == [["b", 2, 1, 2.0, 1], ["a", 2, 0, 3.0, 2]]
