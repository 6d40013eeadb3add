"""What a run of CTest found, from its JUnit file: the report that tools/run-tests and tools/test-repeat print.

Cases are counted as well as tests: a test whose cases were all skipped has not passed.
"""
import dataclasses
import re
import xml.etree.ElementTree

ASSERTION_LINES_MAX = 15
OUTPUT_LINES = 40
WIDTH_MAX = 200
SLOWEST = 10
# pytest's cases, then what they found; cmocka's; the sanitizers'; our own assertions.
ASSERTION = re.compile(r"FAILED \S+::|ERROR \S+(::| -)|\[  FAILED  \] (?!\d+ test)|E  |ERROR: |\[  ERROR   \]|\[   LINE   \]"
                       r"|\S+:\d+: error:|.*ERROR: \w+Sanitizer|.*WARNING: ThreadSanitizer|SUMMARY: |.*runtime error: "
                       r"|.*assertion .* failed|.*Timeout", re.IGNORECASE)
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (\S+): (.*)$", re.MULTILINE)
PYTEST_COUNTED = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)
CMOCKA_SKIPPED = re.compile(r"^(?:skipped: (.*)\n)?\[  SKIPPED \] (\w+)$", re.MULTILINE)
CMOCKA_COUNTED = re.compile(r"^\[==========\] (\d+) test\(s\) run\.$", re.MULTILINE)
NO_TEST_RAN = re.compile(r"^(?:SKIPPED|.* DID NOT RUN): (.*)$", re.MULTILINE | re.IGNORECASE)
CONTAINER = "a machine, or a container, that allows it"
NO_REMEDY = "not on this machine"
# The first that fits a reason says how such a test is made to run.
REMEDIES = (
    (r"SOUK_DATA", "SOUK_DATA=FOLDER make test"),
    (r"web/node_modules", "tools/build-web"),
    (r"may make no network namespaces", CONTAINER),
    (r"\broot\b", "sudo make test"),
    (r"sandboxes cannot be started|bwrap cannot start", CONTAINER),
    (r"sanitizer|TSan|sandboxes cannot", "make test"),
    (r"could not import", "make reference"),
    (r"SOUK_CLOUD", "make test-cloud"),
    (r"SOUK_LAMBDA", "make test-lambda"),
    (r"/dev/net/tun|loop device|small disk|cgroup|control group|devices? of", CONTAINER),
    (r"qemu-user-static", "tools/install-deps --arm64, as root"),
    (r"install|needs (Debian|python3-|openmpi|libopenmpi|nftables)|^no (dbus-daemon|iptables|python3-|Xvfb)", "tools/install-deps --test, as root"),
)


@dataclasses.dataclass
class Test:
    name: str
    outcome: str  # passed, failed or skipped
    seconds: float
    output: str
    cases: int  # that ran
    skipped: list  # (count, reason) of those that did not


def skipped_cases(output):
    found = [(int(count), f"{reason} ({place.rpartition('/')[2]})") for count, place, reason in PYTEST_SKIPPED.findall(output)]
    cases = {}
    for reason, case in CMOCKA_SKIPPED.findall(output):  # at its place, and again in the summary
        cases.setdefault(case, reason or "no reason given")
    return found + [(1, f"{reason} ({case})") for case, reason in cases.items()]


def cases_run(output):
    for counted in PYTEST_COUNTED.findall(output):
        return sum(int(count) for count, what in re.findall(r"(\d+) (\w+)", counted) if what in ("passed", "failed", "error", "errors"))
    run = sum(map(int, CMOCKA_COUNTED.findall(output)))
    return run - len(skipped_cases(output)) if run else 1


def read(path):
    """All tests of a JUnit file that CTest wrote."""
    return tests_of(xml.etree.ElementTree.parse(path).getroot())


def tests_of(root):
    tests = []
    for case in root.iter("testcase"):
        output = case.findtext("system-out") or ""
        outcome = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
        why = case.find("skipped")
        if outcome == "skipped" and why is not None and not why.get("message", "").startswith("SKIP_"):
            outcome, output = "failed", f"{output}\nERROR: it could not begin: {why.get('message')}"
        skipped, cases = skipped_cases(output), cases_run(output)
        if outcome == "passed" and cases == 0:
            outcome = "skipped"
        if outcome == "skipped":
            cases, skipped = 0, skipped or [(1, "".join(NO_TEST_RAN.findall(output)) or "no reason given")]
        tests.append(Test(case.get("name"), outcome, float(case.get("time")), output, cases, skipped))
    return tests


def remedy(reason):
    return next((command for pattern, command in REMEDIES if re.search(pattern, reason)), "")


def assertion(output):
    found = dict.fromkeys(line.rstrip()[:WIDTH_MAX] for line in output.splitlines() if ASSERTION.match(line))
    return list(found)[:ASSERTION_LINES_MAX]


def last_lines(output):
    return [line[:WIDTH_MAX] for line in output.rstrip().splitlines()[-OUTPUT_LINES:]]


FAILURE = r"^--- .* failed; all of it: "


def told_failure(name, place, output):
    yield f"--- {name} failed; all of it: {place}"
    yield from (f"    {line}" for line in assertion(output))
    yield f"    the last {OUTPUT_LINES} lines:"
    yield from (f"    | {line}" for line in last_lines(output))


def told_failures(tests, folder):
    for test in tests:
        yield from told_failure(test.name, f"{folder}/{test.name}/", test.output)


def told_skips(tests):
    """A line for each reason, with the command that makes the case run."""
    reasons = {}
    for test in tests:
        for count, reason in test.skipped:
            # The same reason, at many places of one file.
            short = re.sub(r" \([^()]*\)$", "", reason)
            reasons[test.name, short] = reasons.get((test.name, short), 0) + count
    for (name, reason), count in reasons.items():
        yield f"    {name}: {count} case{'s' if count > 1 else ''}: {reason}  [{remedy(reason) or NO_REMEDY}]"


def told_slowest(tests):
    for test in sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]:
        yield f"    {test.seconds:6.1f} s  {test.name}"


def not_reviewed(skips, reviewed, preset):
    """Those of `skips`, as (test, reason), that no line of the reviewed list allows; each line is 'TEST: REASON', as regular
    expressions. A line that begins with a preset and a slash is for that preset alone."""
    allowed = [line.split(": ", 1) for line in reviewed.splitlines() if line and not line.startswith("#")]
    return [f"{test}: {reason}" for test, reason in skips
            if not any(re.fullmatch(name, each) and re.search(why, reason)
                       for name, why in allowed for each in (test, f"{preset}/{test}"))]


def closing(tests):
    """The line that counts tests, as CI reads it."""
    count = {outcome: sum(test.outcome == outcome for test in tests) for outcome in ("passed", "failed", "skipped")}
    return f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
