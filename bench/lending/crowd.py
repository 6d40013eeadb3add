"""What a crowd of lenders costs the market.

server_cpu_percent  of one core, user and system, of `souk serve`, while `crowd_lenders` machines are
                    linked and `crowd_leases` of them run leases: heartbeats every 15 s, or every
                    second under a lease, and every tick a signed meter report and a line of log

The lenders are `souk bench lenders`: their own keys, enrolments and links, all from one process on
the same machine; nothing runs under the leases. Ticks are verified, billed and committed.
"""
import json
import subprocess
import time

from process import cpu_s, end, souk, start

SETTLE_S = 20  # heartbeats come quickly at first, and the market measures the way to each


def spent(program, config, jobs):
    return sum(souk(program, config, "job", "show", str(job))["spent_microcredits"] for job in jobs)


def leases_running(program, config, jobs):
    return sum(lease["state"] == "running" for job in jobs
               for lease in souk(program, config, "job", "show", str(job))["leases"])


def measure(program, folder, lender_count, seconds, settle_s=SETTLE_S):
    market, ready = start(program, "serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                          "--link-listen", "127.0.0.1:0", "--no-local-lender", "--grant", "1000000",
                          "--writes-per-minute", "0", "--reads-per-minute", "0")
    borrower, owner = f"{folder}/borrower", f"{folder}/owner"
    for config in (borrower, owner):  # the first from an address gets the grant
        souk(program, config, "account", "open", "--name", config.rsplit("/", 1)[1],
             "--server", ready["url"])
    lenders, _ = start(program, "bench", "lenders", "--lenders", str(lender_count), "--json",
                       "--config-dir", owner, stdout=subprocess.PIPE)
    try:
        # A fifth of them at work, four to a job.
        jobs = [souk(program, borrower, "run", "-d", "-y", "--wait", "-n", "4", "--cpus", "1",
                     "--max-run-time", "2h", "--", "sleep 7200")["id"]
                for _ in range(max(1, lender_count // 20))]
        end_s = time.monotonic() + 120
        while leases_running(program, borrower, jobs) < 4 * len(jobs):
            assert time.monotonic() < end_s and lenders.poll() is None, "the leases did not start"
            time.sleep(0.5)
        time.sleep(settle_s)
        spent_before = spent(program, borrower, jobs)
        begun, before = time.monotonic(), cpu_s(market.pid)
        time.sleep(seconds)
        used, passed_s = cpu_s(market.pid) - before, time.monotonic() - begun
        running = leases_running(program, borrower, jobs)
        assert running == 4 * len(jobs), f"{running} of {4 * len(jobs)} leases run"
        assert spent(program, borrower, jobs) > spent_before, "nothing was billed"
        end(lenders)
        said = json.loads(lenders.stdout.read())
        return {"server_cpu_percent": round(100 * used / passed_s, 2), "crowd_lenders": lender_count,
                "crowd_leases": running, "crowd_seconds": round(passed_s),
                "crowd_heartbeats": said["heartbeats"], "crowd_meters": said["meters"]}
    finally:
        end(lenders, market)
