#!/usr/bin/env python3
"""How the page's table of machines scrolls with many of them: the browser's work per frame.

    bench/table.py [--json] [--machines N] [--program build/souk] [--fill build/release/api_fill]

The market's store is made by commands to the real engine (api_fill), the real `souk serve` runs on
it, and Debian's Chromium scrolls the table from its first row to its last, forty rows a frame. What
counts is the CPU time of the page's thread per frame: the machine may be busy with other things.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tests/system")]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--machines", type=int, default=10_000)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
parser.add_argument("--fill", default=str(ROOT / "build/release/api_fill"))
wanted = parser.parse_args()

import serving  # noqa: E402 (after the path it lies on)
from browsing import Walk  # noqa: E402

serving.PROGRAM = wanted.program
with tempfile.TemporaryDirectory() as folder:
    store = pathlib.Path(folder) / "market"
    store.mkdir()
    filled = subprocess.run([wanted.fill, str(store), "256", str(wanted.machines)], capture_output=True, check=True)
    token = json.loads(filled.stdout)["token"]
    market = serving.Market(store, "--no-local-lender", "--reads-per-minute", "0")
    try:
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("scroll.mjs", code["url"], folder, wanted.machines) as walk:
            seen = walk.end()
    finally:
        market.stop()

frames = seen["frames"]
result = {
    "machines": wanted.machines,
    "rows_in_document": seen["rowsInDocument"],
    "frames": len(frames),
    "work_ms_per_frame": round(seen["work_ms"] / len(frames), 2),
    **{f"{name}_ms_per_frame": round(spent / len(frames), 2) for name, spent in seen["parts_ms"].items()},
    "frame_ms_median": round(statistics.median(frames), 1),
    "frame_ms_95": round(sorted(frames)[int(len(frames) * 0.95)], 1),
    "filter_ms": round(seen["filter_ms"], 1),
}
if wanted.json:
    print(json.dumps(result))
else:
    for name, value in result.items():
        print(f"{name:20} {value}")
