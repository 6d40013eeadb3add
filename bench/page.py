#!/usr/bin/env python3
"""What the page costs a browser: its first load, and a job's page under many events.

    bench/page.py [--json] [--program build/souk] [--workers 64] [--reports 10] [--minutes 1] [--warm 60] [--samples 20]

A real market, and Debian's Chromium without a window. The job's workers are `souk bench lenders`, with links and leases
of their own; nothing runs under the leases, but each reports as if it trained.

first_load_bytes         what is sent until the first screen stands, compressed, without answers of the API
interactive_ms           from the navigation until then, by the browser's clock; the median of `loads`
job_page_core_share      CPU time of all of Chromium's processes over the time passed, while a job's page is shown
job_page_kept_growth_mb  growth of the script's heap after garbage collection, by a line through samples (bench/page/trend.py)
job_page_code_growth_mb  likewise of what the browser has compiled: it compiles a function anew, and larger, as it runs oftener
noise_mb                 how far a sample of what is kept lies from that line, as a rule
events_per_s             that reach the page, counted before
streams_cut              how often the market ended the page's events as it was too slow for them; it asks for them again
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"first_load_bytes": "<= 90000", "interactive_ms": "< 1000", "job_page_core_share": "< 0.5",
         "job_page_kept_growth_mb": "0", "streams_cut": "0"}
CUT = "ERR_INCOMPLETE_CHUNKED_ENCODING"  # as Chromium says it


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--reports", type=int, default=10, help="a second, of each worker")
    parser.add_argument("--minutes", type=float, default=1, help="how long a job's page is measured; 10 say more")
    parser.add_argument("--warm", type=float, default=60, help="seconds before: until its scripts are compiled")
    parser.add_argument("--samples", type=int, default=20, help="of the heap, over the time measured")
    parser.add_argument("--loads", type=int, default=5)
    return parser.parse_args()


WANTED = arguments()
os.environ["SOUK_PROGRAM"] = os.path.abspath(WANTED.program)
sys.path[:0] = [str(ROOT / folder) for folder in ("tests/browser", "bench/lending", "bench/page")]
import browsing  # noqa: E402 -- found through the line above
import trend  # noqa: E402 -- in bench/page
from process import end, start  # noqa: E402 -- found through the line above
from serving import Market  # noqa: E402 -- browsing makes it found
from training import job_spec, wait_for  # noqa: E402 -- browsing makes it found

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def descendants(pid):
    try:
        found = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                 for child in (task / "children").read_text().split()]
    except FileNotFoundError:
        return []
    return found + [deeper for child in found for deeper in descendants(child)]


def cpu_s(pids):
    """With what their ended threads used."""
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / TICKS_PER_S


def walk(market, token, folder, *part):
    code = market.post("/v1/account/page-codes", {}, token).json
    return browsing.Walk(ROOT / "bench/page/page.mjs", code["url"], folder, *part)


def first_loads(market, token, folder):
    loads = []
    for _ in range(WANTED.loads):
        with walk(market, token, folder, "first") as load:
            loads.append(load.end())
    return {"first_load_bytes": max(load["first_load_bytes"] for load in loads),
            "interactive_ms": round(statistics.median(load["interactive_ms"] for load in loads))}


def crowded_job(market, token):
    minutes = WANTED.minutes + 10
    spec = job_spec(market, token, WANTED.workers, min_time="1d", max_run_time=f"{minutes:g}m", expected_run_time=f"{minutes:g}m")
    answer = market.post("/v1/jobs", {**spec, "resources": {"cpus": "1", "memory": "0.1+"}}, token)
    assert answer.status == 201, answer
    job = answer.json["id"]
    wait_for("the workers' leases", lambda: WANTED.workers == sum(
        lease["role"] == "worker" and lease["state"] == "running"
        for lease in market.get(f"/v1/jobs/{job}", token).json["leases"]))
    return job


def job_page(market, token, folder):
    job = crowded_job(market, token)
    with walk(market, token, folder, "watch", job, WANTED.workers, WANTED.samples) as watch:
        watch.expect("warm")
        time.sleep(WANTED.warm)
        watch.answer()
        used, passed_s = cpu_while_sampling(watch)
        seen = watch.end()
    state = market.get(f"/v1/jobs/{job}", token).json["state"]
    assert state == "running", f"the job was {state} before the end"
    cut = [line for line in seen["console"] if CUT in line]
    assert len(cut) == len(seen["console"]) and seen["failed"] == [], seen
    return {"job_page_core_share": round(used / passed_s, 3), "job_page_seconds": round(passed_s),
            **heap_figures(seen["heap"]), "events_per_s": round(seen["events_per_s"]), "streams_cut": len(cut), "workers": WANTED.workers}


def cpu_while_sampling(watch):
    """CPU and wall seconds between the samples; what taking them costs does not count."""
    used = passed = 0
    for _ in range(WANTED.samples - 1):
        watch.expect("sample")
        browsers = descendants(watch.process.pid)
        begun, before = time.monotonic(), cpu_s(browsers)
        time.sleep(60 * WANTED.minutes / (WANTED.samples - 1))
        used, passed = used + cpu_s(browsers) - before, passed + time.monotonic() - begun
        watch.answer()
    return used, passed


def heap_figures(heap):
    kept, code = ([(sample["at_s"], sample[which]) for sample in heap] for which in ("kept_mb", "code_mb"))
    return {"job_page_kept_growth_mb": round(trend.growth(kept), 3), "kept_mb": round(kept[-1][1], 2),
            "noise_mb": round(trend.noise(kept), 3),
            "job_page_code_growth_mb": round(trend.growth(code), 3), "code_mb": round(code[-1][1], 2),
            "kept_by_sample_mb": [round(value, 2) for _, value in kept]}


def measure(folder):
    market = Market(folder / "market", "--no-local-lender", "--grant", "1000000", "--writes-per-minute", "0")
    try:
        token, owner = market.sign_up("borrower"), market.sign_up("owner")
        figures = first_loads(market, token, folder)
        lenders, _ = start(WANTED.program, "bench", "lenders", "--lenders", str(WANTED.workers + 2), "--reports",
                           str(WANTED.reports), "--json", "--server", market.url, "--config-dir", str(folder / "config"),
                           environment={"SOUK_TOKEN": owner}, stdout=subprocess.DEVNULL)
        try:
            return {**figures, **job_page(market, token, folder)}
        finally:
            end(lenders)
    finally:
        market.stop()


def main():
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(pathlib.Path(folder))
    figures["load"] = os.getloadavg()[0]
    if WANTED.json:
        print(json.dumps(figures))
        return
    print("kept by sample, MB:", *figures.pop("kept_by_sample_mb"))
    for name, value in figures.items():
        print(f"{name:<26}{value:>12}   {GOALS.get(name, '')}")


if __name__ == "__main__":
    main()
