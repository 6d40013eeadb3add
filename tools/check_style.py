#!/usr/bin/env python3
"""Fails when the tree breaks a rule of CONTRIBUTING.md that a machine can see.

Layers: a file includes only modules its CMakeLists.txt names in DEPENDS, never another's private
header, and DEPENDS points down the floors. Files: at most 800 lines, no "../" includes, and every
x.c has an x_test.c beside it, is covered by a test that says so (`covers x.c`), or is listed here.
Benches: `make bench` can run every bench/*.py. Documents: the Map of README.md has every folder, and
ARCHITECTURE.md names only what exists. Commits: their subjects are short. Tests wait for events: what
waits by the clock gives its reason on its line.

Each check below returns the mistakes it found; to add one, write it and name it in CHECKS.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LINES_MAX = 800
SUBJECT_MAX = 72
SUBJECTS_SINCE = "8e4d4606"  # commits up to this one were made under no such check; some are longer
FLOORS = [
    ["base"],
    ["net", "wire", "store", "blob", "tensor", "sandbox"],
    ["market", "ledger", "sync", "recommend", "learn", "core"],
    ["train", "exchange", "runtime", "source", "cloud"],
    ["server", "peer", "client", "worker", "function", "sim", "library", "cli"],
]
DECISIONS = set(FLOORS[2])
FLOOR_OF = {module: floor for floor, modules in enumerate(FLOORS) for module in modules}
notes = []  # for the last line of a tree that keeps the rules


def git(*words):
    """What git prints; None where it knows nothing, as in an unpacked archive."""
    if not (ROOT / ".git").exists():
        return None
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


# ---- Layers ----

def depends_of(text):
    """The module of a CMakeLists.txt and what it depends on; None: it has no module."""
    call = re.search(r"add_module\((\w+)(.*?)\)", text, re.S)
    if not call:
        return None
    named = re.search(r"DEPENDS((?:\s+[a-z]\w*)*)", call[2])
    return call[1], set(named[1].split()) if named else set()


def check_depends():
    bad = []
    for cmake in SRC.glob("*/CMakeLists.txt"):
        text = cmake.read_text()
        found = depends_of(text)
        if not found:
            bad.append(f"{cmake.relative_to(ROOT)}: no add_module")
            continue
        module, depends = found
        for lower in depends:
            where = f"{cmake.relative_to(ROOT)}: {module} may not depend on {lower}"
            if lower not in FLOOR_OF:
                bad.append(f"{where}: no such module")
            elif FLOOR_OF[lower] > FLOOR_OF[module]:
                bad.append(f"{where}: it stands on a higher floor")
            elif FLOOR_OF[lower] == FLOOR_OF[module] and not re.search(rf"#.*\b{lower}\b", text):
                bad.append(f"{where}: same floor, and no comment gives the reason")
            elif module in DECISIONS and lower != "base" and lower not in DECISIONS:
                bad.append(f"{where}: decisions see base only")
    return bad


def check_sources():
    found = [depends_of(cmake.read_text()) for cmake in SRC.glob("*/CMakeLists.txt")]
    depends = dict(one for one in found if one)
    bad = []
    for path in sorted(SRC.glob("*/*.[ch]")):
        module = path.parent.name
        name = path.relative_to(ROOT)
        lines = path.read_text().splitlines()
        if len(lines) > LINES_MAX:
            bad.append(f"{name}: {len(lines)} lines, more than {LINES_MAX}: split it")
        for number, text in enumerate(lines, 1):
            if not text.startswith("#include"):
                continue
            if text.startswith('#include "../'):
                bad.append(f"{name}:{number}: include by its path from src/")
            include = re.match(r'#include "(\w+)/(\S+)"', text)
            if not include or include[1] in (module, "testing"):
                continue
            if include[1] not in depends.get(module, set()):
                bad.append(f"{name}:{number}: {module} may not include {include[1]}")
            elif include[2].endswith("_internal.h"):
                bad.append(f"{name}:{number}: {include[2]} is private to {include[1]}")
    return bad


# ---- Tests ----

def covered():
    """The sources that a test says it covers."""
    found = set()
    for test in list(SRC.glob("*/*_test.c")) + list((ROOT / "tests").rglob("*.py")):
        for names in re.findall(r"covers ([\w./ ,]+\.c)", test.read_text()):
            for name in re.split(r"[ ,]+", names):
                found.add(test.parent / name if "/" not in name else SRC / name)
    return found


def check_tests():
    tested = covered()
    return [f"{path.relative_to(ROOT)}: no test beside it and none that `covers` it"
            for path in sorted(SRC.glob("*/*.c"))
            if path.parent.name != "testing" and not re.search(r"_(test|fuzz)\.c$", path.name)
            and path not in tested and not path.with_name(path.stem + "_test.c").exists()]


def check_benches():
    """`make bench` runs every bench/*.py; what those import or start lies in a folder of theirs."""
    return [f"{path.relative_to(ROOT)}: `make bench` runs it, and it has no run bit or no #! line; if a bench imports it, move it "
            f"to bench/{path.stem.split('_')[0]}/"
            for path in sorted((ROOT / "bench").glob("*.py"))
            if not path.stat().st_mode & 0o100 or not path.read_text().startswith("#!")]


# A number, or a constant that is not one of the limits after which something counts as hung: HUNG_S, HUNG_MS, HUNG_JOB_S.
FIXED = r"(?:\d|(?!HUNG_)[A-Z][A-Z_]+\b)"
# A command of the shell, in a string. One of a hundred seconds or more is a program that runs until it is ended.
SHELL_SLEEP = r"\bsleep (?!\d{3})[\d.$]"
# A limit on what something took: a busy machine takes longer. A least time, as in `took_ms >= 1000`, holds there too.
CLOCK = r"(?:now_ms\(\)|clock_monotonic_ns\(&clock_system\))"
TOOK = rf"{CLOCK} - [\w.>-]+(?: [<>]=?|,) {FIXED}|(?<![A-Za-z])(?:took|late|elapsed)_(?:max_)?(?:ms|ns) (?:<=?|>) {FIXED}"
INNER = r"(?:[^;()]|\((?:[^;()]|\([^;()]*\))*\))*"  # arguments, with brackets
WAITS = {
    ".py": rf"(?<![A-Za-z0-9_])(?:u|nano)?sleep\(|\bTimer\(|\btimeout={FIXED}|\bwait\w*\({INNER}\bseconds={FIXED}|(?<![\"'])\.(?:wait|join|settimeout|result|poll)\((?!0\)){FIXED}"
           rf"|monotonic\(\) \+ {FIXED}|\btime\(\) \+ {FIXED}|(?:asyncio\.|(?<!\.)\b)wait_for\(.*, {FIXED}[\w.]*(?:, [\d.]+)?\)(?!\))"
           rf"|\bselect\.select\({INNER}, (?!0\)){FIXED}[\w.]*\)|\.select\((?!0\)){FIXED}|(?:time|monotonic|perf_counter)\(\) - [\w.]+ [<>]=? {FIXED}|{SHELL_SLEEP}",
    ".mjs": rf"setTimeout\(|waitForTimeout\(|timeout: {FIXED}|\.timeout\({FIXED}",
    ".c": rf"(?<![A-Za-z0-9_])(?:u|nano|clock_nano)?sleep\(|alarm\({FIXED}|poll\(NULL, 0, |(?:poll|epoll_p?wait|loop_timer_start)\({INNER}, (?!0\)|NULL){FIXED}\w*\)"
          rf"|(?<!\w)p?select\((?!{INNER}, NULL\))|timedwait\(|SO_(?:RCV|SND)TIMEO"
          rf"|{CLOCK} \+ (?:\(\w+\))?(?:INT64_C\()?{FIXED}|{TOOK}",
}
WAITS[".h"] = WAITS[".c"]


def check_waits():
    """Tests wait for what happens. A sleep or a fixed deadline says on its line why it must be: `clock: ...`."""
    tests = [*(ROOT / "tests").rglob("*"), *SRC.rglob("*_test*.c"), *SRC.rglob("*_internal.h"), *SRC.glob("testing/*")]
    bad, count = [], 0
    for path in sorted(tests):
        if path.suffix not in WAITS:
            continue
        text = path.read_text()
        if path.name.endswith("_internal.h") and not re.search(r'"(?:testing/testing|\w+/\w+_fixture_internal)\.h"', text):
            continue
        numbers = {text.count("\n", 0, wait.start()) for wait in re.finditer(WAITS[path.suffix], text)}
        lines = text.split("\n") if numbers else []
        bad += [f"{path.relative_to(ROOT)}:{number + 1}: waits by the clock: wait for the event, or say why not: `clock: ...`"
                for number in sorted(numbers) if not re.search(r"(?:#|//|/\*) clock: \S", lines[number])]
        count += len(numbers)
    notes.append(f"{count} waits by the clock, each with its reason")
    return bad


# ---- Documents ----

def folders():
    """Those of src/, and those at the top that are the project's."""
    tracked = git("ls-tree", "-d", "--name-only", "HEAD")
    top = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"} if tracked is None else set(tracked.split())
    return {name for name in top if name != "src" and not name.startswith(".")} | {
        f"src/{path.name}" for path in SRC.iterdir() if path.is_dir()}


def check_map():
    """README.md's Map has every folder, and no other."""
    text = re.search(r"^## Map\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.S | re.M)[1]
    named = [name for row in re.findall(r"^\|([^|]*)\|", text, re.M) for name in re.findall(r"`(.+?)`", row)]
    there = folders()
    return ([f"README.md: the Map does not name {name}" for name in sorted(there - set(named))]
            + [f"README.md: the Map names {name}, which is no folder" for name in named if name not in there]
            + [f"README.md: the Map names {name} twice" for name in sorted(set(named)) if named.count(name) > 1])


def check_architecture():
    """Paths in ARCHITECTURE.md, from src/ or the root, lead to something; those with a * to one file at least."""
    bad = []
    for number, line in enumerate((ROOT / "ARCHITECTURE.md").read_text().splitlines(), 1):
        for word in re.findall(r"`([\w*][\w.*/-]*)`", line):
            is_path = "/" in word or re.search(r"\.\w+$", word)
            if is_path and not any(True for base in (SRC, ROOT) for _ in base.glob(word.rstrip("/"))):
                bad.append(f"ARCHITECTURE.md:{number}: {word} does not exist")
    return bad


# ---- Commits ----

def check_subjects():
    log = git("log", "--format=%h %s", f"{SUBJECTS_SINCE}..HEAD")
    if log is None:
        notes.append(f"commit subjects not looked at: no git history here that reaches {SUBJECTS_SINCE}")
        return []
    commits = [line.split(" ", 1) for line in log.splitlines()]
    return [f"{commit}: the commit's subject has {len(subject)} characters, more than {SUBJECT_MAX}: {subject}"
            for commit, subject in commits if len(subject) > SUBJECT_MAX]


CHECKS = [check_depends, check_sources, check_tests, check_benches, check_map, check_architecture, check_subjects, check_waits]


def main():
    bad = [line for check in CHECKS for line in check()]
    print("\n".join(bad) or "; ".join(["style ok", *notes]))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
