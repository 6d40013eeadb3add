"""How long a lease takes from its offer to its process running.

lease_start_ms_p50       the bundle is in the lender's cache
lease_start_cold_ms_p50  a bundle of 1 MB that no packing makes smaller, never seen before
cold_server_cpu_ms       what a cold start costs the market more than a warm one: taking the bundle
                         from the borrower and sending it to the lender; of medians

By the market's own log: from lease_sent to lease_state running, `souk run --files DIR -- true` one at
a time, cold and warm in turns, over real processes on one machine.
"""
import datetime
import os
import pathlib
import re
import statistics
import time

from process import cpu_s, end, souk, start


def spans_ms(log):
    """By lease, in the order they were sent."""
    sent, spans = {}, {}
    for line in pathlib.Path(log).read_text().splitlines():
        found = re.match(r"(\S+)Z info (lease_sent|lease_state) lease=(\d+) .*?(state=running|machine=)", line)
        if found:
            at = datetime.datetime.fromisoformat(found[1])
            if found[2] == "lease_sent":
                sent[found[3]] = at
            else:
                spans.setdefault(found[3], (at - sent[found[3]]).total_seconds() * 1000)
    return [spans[lease] for lease in sent if lease in spans]


def run_once(program, config, files, market, log):
    """Returns how long it took to run, and what it cost the market."""
    count, before = len(spans_ms(log)), cpu_s(market.pid)
    souk(program, config, "run", "-y", "-d", "--cpus", "0.1", "--memory", "0.1", "--files", str(files), "--",
         "true")
    end_s = time.monotonic() + 60
    while len(spans_ms(log)) == count:
        assert time.monotonic() < end_s, "the lease did not run"
        time.sleep(0.02)
    return spans_ms(log)[-1], (cpu_s(market.pid) - before) * 1000


def measure(program, folder, rounds):
    log = f"{folder}/market.log"
    with open(log, "wb") as told:
        market, ready = start(program, "serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                              "--link-listen", "127.0.0.1:0", "--no-local-lender", "--writes-per-minute", "0",
                              stderr=told)
    config = f"{folder}/config"
    souk(program, config, "account", "open", "--name", "borrower", "--server", ready["url"])
    code = souk(program, config, "machines", "add")["code"]
    lender, _ = start(program, "lend", "--server", ready["url"], "--state-dir", f"{folder}/lender", "--no-watch",
                      environment={"SOUK_LEND_CODE": code})
    files = pathlib.Path(folder) / "files"
    files.mkdir()
    cold, warm = [], []
    try:
        for _ in range(rounds):
            (files / "data").write_bytes(os.urandom(1000000))
            cold.append(run_once(program, config, files, market, log))
            warm.append(run_once(program, config, files, market, log))
    finally:
        end(lender, market)
    return {"lease_start_ms_p50": round(statistics.median(ms for ms, _ in warm)),
            "lease_start_cold_ms_p50": round(statistics.median(ms for ms, _ in cold)),
            "cold_server_cpu_ms": round(statistics.median(cpu for _, cpu in cold)
                                        - statistics.median(cpu for _, cpu in warm), 2),
            "lease_start_rounds": rounds}
