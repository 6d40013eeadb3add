#!/usr/bin/env python3
"""Fails when the tree breaks a rule of CONTRIBUTING.md that a machine can see.

Layers: a file includes only modules its CMakeLists.txt names in DEPENDS, never another's private
header, and DEPENDS points down the floors. Files: at most 800 lines, no "../" includes, and every
x.c has an x_test.c beside it, is covered by a test that says so (`covers x.c`), or is listed here.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LINES_MAX = 800
FLOORS = [
    ["base"],
    ["net", "wire", "store", "blob", "tensor", "sandbox"],
    ["market", "ledger", "sync", "recommend", "learn", "core"],
    ["train", "exchange", "runtime", "source", "cloud"],
    ["server", "peer", "client", "worker", "function", "sim", "library", "cli"],
]
DECISIONS = set(FLOORS[2])
FLOOR_OF = {module: floor for floor, modules in enumerate(FLOORS) for module in modules}

bad = []
depends = {}
for cmake in SRC.glob("*/CMakeLists.txt"):
    text = cmake.read_text()
    call = re.search(r"add_module\((\w+)(.*?)\)", text, re.S)
    if not call:
        bad.append(f"{cmake.relative_to(ROOT)}: no add_module")
        continue
    named = re.search(r"DEPENDS((?:\s+[a-z]\w*)*)", call[2])
    module = call[1]
    depends[module] = set(named[1].split()) if named else set()
    for lower in depends[module]:
        where = f"{cmake.relative_to(ROOT)}: {module} may not depend on {lower}"
        if lower not in FLOOR_OF:
            bad.append(f"{where}: no such module")
        elif FLOOR_OF[lower] > FLOOR_OF[module]:
            bad.append(f"{where}: it stands on a higher floor")
        elif FLOOR_OF[lower] == FLOOR_OF[module] and not re.search(rf"#.*\b{lower}\b", text):
            bad.append(f"{where}: same floor, and no comment gives the reason")
        elif module in DECISIONS and lower != "base" and lower not in DECISIONS:
            bad.append(f"{where}: decisions see base only")

for path in sorted(SRC.glob("*/*.[ch]")):
    module = path.parent.name
    name = path.relative_to(ROOT)
    lines = path.read_text().splitlines()
    if len(lines) > LINES_MAX:
        bad.append(f"{name}: {len(lines)} lines, more than {LINES_MAX}: split it")
    for number, text in enumerate(lines, 1):
        if re.match(r'#include "\.\./', text):
            bad.append(f"{name}:{number}: include by its path from src/")
        include = re.match(r'#include "(\w+)/(\S+)"', text)
        if not include or include[1] in (module, "testing"):
            continue
        if include[1] not in depends.get(module, set()):
            bad.append(f"{name}:{number}: {module} may not include {include[1]}")
        elif include[2].endswith("_internal.h"):
            bad.append(f"{name}:{number}: {include[2]} is private to {include[1]}")

covered = set()
for test in list(SRC.glob("*/*_test.c")) + list((ROOT / "tests").rglob("*.py")):
    for names in re.findall(r"covers ([\w./ ,]+\.c)", test.read_text()):
        for name in re.split(r"[ ,]+", names):
            covered.add(str((test.parent / name).resolve()) if "/" not in name else str(ROOT / "src" / name))
for path in sorted(SRC.glob("*/*.c")):
    if path.parent.name == "testing" or re.search(r"_(test|fuzz)\.c$", path.name):
        continue
    if not path.with_name(path.stem + "_test.c").exists() and str(path) not in covered:
        bad.append(f"{path.relative_to(ROOT)}: no test beside it and none that `covers` it")

print("\n".join(bad) or "style ok")
sys.exit(bool(bad))
