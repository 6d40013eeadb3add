#!/usr/bin/env python3
"""How soon training goes on when a worker or the parameter server is killed.

    bench/recover.py [--json] [--policies adsp,ssp,tap,bsp] [--parts process,keeper,machine] [--interval 30]
                     [--workers 4] [--program build/souk]

A real market, seven real lenders on this machine (five for workers, two for parameter servers), LeNet-5 on
four workers of a fifth of a core each. SIGKILL goes to the process that trains, in its sandbox.

survivor_stall_ms   the longest time in which the training thread of one of the other three got no further, within
                    8 s of the kill; the worst of adsp, ssp and tap. Read from the thread's CPU time, every 10 ms.
                    `baseline_stall_ms` is the same for 4 s before the kill: what quotas and other load make of it.
bsp_release_ms      the same under bsp
replacement_ms      until the market was told of the first push accepted of the killed worker's successor; the worst
ps_resume_ms        from the kill of the parameter server's process until the market was told of the first push that
                    its successor accepted; `ps_resume_keeper_ms` after the kill of its keeper,
                    `ps_resume_machine_ms` of its lender with all its processes, of which nobody tells the market
ps_lost_ms          how much older than the model at the kill the checkpoint was that the successor went on from;
                    the kill comes when the next one is due
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"survivor_stall_ms": "<= 1000", "bsp_release_ms": "<= 5000", "replacement_ms": "<= 10000",
         "ps_resume_ms": "<= 10000", "ps_lost_ms": "<= interval"}
SAMPLE_S = 0.01


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--policies", default="adsp,ssp,tap,bsp", help="under which a worker is killed")
    parser.add_argument("--parts", default="process,keeper,machine", help="of a parameter server, that are killed")
    parser.add_argument("--interval", type=int, default=30, help="between checkpoints, in seconds")
    parser.add_argument("--workers", type=int, default=4, help="workers of each job")
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    return parser.parse_args()


WANTED = arguments() if __name__ == "__main__" else None
if WANTED:
    os.environ["SOUK_PROGRAM"] = WANTED.program
sys.path.insert(0, str(ROOT / "tests/system"))
from serving import Market  # noqa: E402 -- found through the line above
from training import Lender, job_spec, wait_for  # noqa: E402 -- found through the line above


def descendants(pid):
    found = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
             for child in (task / "children").read_text().split()]
    return found + [below for child in found for below in descendants(child)]


class Stalls(threading.Thread):
    """The longest time in which the first thread of each process got no CPU time."""

    def __init__(self, pids, seconds):
        super().__init__()
        self.pids, self.end = pids, time.monotonic() + seconds
        self.longest_ms = 0.0
        self.start()

    def run(self):
        last = {pid: (self.used_ns(pid), time.monotonic()) for pid in self.pids}
        while time.monotonic() < self.end:
            time.sleep(SAMPLE_S)
            now = time.monotonic()
            for pid in self.pids:
                used_ns = self.used_ns(pid)
                if used_ns != last[pid][0]:
                    last[pid] = (used_ns, now)
                self.longest_ms = max(self.longest_ms, (now - last[pid][1]) * 1e3)

    @staticmethod
    def used_ns(pid):
        return int(pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


class Place:
    def __init__(self, folder, workers):
        self.workers = workers
        self.market = Market(folder / "market", "--no-local-lender")
        self.token = self.market.sign_up("borrower")
        lender_token = self.market.sign_up("lender")
        self.lenders = {name: Lender(self.market, lender_token, folder / name, name, name.split("-")[0])
                        for name in [*(f"worker-{i}" for i in range(workers + 1)), "server-0", "server-1"]}
        wait_for("all machines", lambda: len(self.lenders) == sum(
            m["state"] == "online" for m in self.get("/v1/machines")["items"]))

    def get(self, path):
        return self.market.get(path, self.token).json

    def stop(self):
        wait_for("all machines", lambda: len(self.lenders) == sum(
            m["state"] == "online" for m in self.get("/v1/machines")["items"]))
        for lender in self.lenders.values():
            lender.stop()
        self.market.stop()

    def leases(self, job, role):
        return [lease for lease in self.get(f"/v1/jobs/{job}")["leases"] if lease["role"] == role]

    def figures(self, job):
        """What each lease's process has told, by lease."""
        return {worker["lease"]: worker for worker in self.get(f"/v1/jobs/{job}/metrics")["workers"]}

    def trained_ms(self, job, at_ms):
        """How long the parameter server had been training at that time, and its predecessors."""
        told = [point for point in self.get(f"/v1/jobs/{job}/metrics")["curve"] if point["at_ms"] <= at_ms]
        return told[-1]["elapsed_ms"] + at_ms - told[-1]["at_ms"]

    def keeper(self, lease):
        keepers = self.lenders[lease["machine_name"]].keepers()
        return next(pid for name, pid in keepers.items() if name.startswith(f"{lease['id']}-"))

    def process(self, lease):
        return descendants(self.keeper(lease))[-1]

    @contextlib.contextmanager
    def job(self, policy, interval_s):
        spec = job_spec(self.market, self.token, self.workers, min_time="1h", max_run_time="2h")
        spec["resources"] = {"cpus": "0.2", "memory": "0.2"}
        spec["train"]["model"] = "lenet5"
        spec["sync"] = {"policy": policy, "gamma": "2s", "tick": "1s", "checkpoint_interval": f"{interval_s}s"}
        job = self.market.post("/v1/jobs", spec, self.token).json["id"]
        wait_for("pushes of all workers", lambda: self.workers == sum(
            worker["role"] == "worker" and worker["commits"] > 3 for worker in self.figures(job).values()), 60)
        try:
            yield job
        finally:
            self.market.post(f"/v1/jobs/{job}/cancel", {}, self.token)
            wait_for("the job's end", lambda: self.get(f"/v1/jobs/{job}")["state"] == "cancelled", 60)

    def wait_for_push(self, job, role, after, killed_at):
        """Milliseconds until a later lease of the role has had a push accepted, and that lease."""
        def pushed():
            figures = self.figures(job)
            return next((lease for lease in self.leases(job, role)
                         if lease["id"] > after and figures.get(lease["id"], {}).get("commits", 0) > 0), None)
        lease = wait_for("an accepted push", pushed, 120, step=0.02)
        return (time.monotonic() - killed_at) * 1e3, lease


def kill_worker(place, policy):
    with place.job(policy, 30) as job:
        workers = place.leases(job, "worker")
        victim, survivors = workers[-1], [place.process(lease) for lease in workers[:-1]]
        baseline = Stalls(survivors, 4)
        baseline.join()
        stalls = Stalls(survivors, 8)
        killed_at = time.monotonic()
        os.kill(place.process(victim), signal.SIGKILL)
        replacement_ms, _ = place.wait_for_push(job, "worker", max(lease["id"] for lease in workers), killed_at)
        stalls.join()
        return {"baseline_stall_ms": baseline.longest_ms, "stall_ms": stalls.longest_ms,
                "replacement_ms": replacement_ms}


def kill_server(place, part, interval_s):
    with place.job("adsp", interval_s) as job:
        (old,) = place.leases(job, "server")
        lender = place.lenders[old["machine_name"]]
        victim = place.process(old) if part == "process" else place.keeper(old)
        wait_for("a checkpoint", lambda: place.get(f"/v1/jobs/{job}/artifacts")["items"], 2 * interval_s)
        # Two thirds of the interval later the next one is made; the kill comes just before.
        time.sleep(interval_s * 2 / 3 - 1.5)
        killed_at, killed_ms = time.monotonic(), time.time() * 1e3
        if part == "machine":
            lender.die()
        else:
            os.kill(victim, signal.SIGKILL)
        elapsed_ms = place.trained_ms(job, killed_ms)
        resume_ms, _ = place.wait_for_push(job, "server", old["id"], killed_at)
        log = wait_for("the successor's log", lambda: re.search(
            r"checkpoint_restored .*elapsed_ms=(\d+)",
            place.market.get(f"/v1/jobs/{job}/logs?rank=server", place.token).body.decode()))
        if part == "machine":
            lender.start()  # it clears away what its former self left
        return {"resume_ms": resume_ms, "lost_ms": elapsed_ms - int(log.group(1))}


def measure(wanted):
    cases = {}
    with tempfile.TemporaryDirectory(prefix="souk-recover-") as folder:
        place = Place(pathlib.Path(folder), wanted.workers)
        try:
            for policy in filter(None, wanted.policies.split(",")):
                cases[policy] = kill_worker(place, policy)
            for part in filter(None, wanted.parts.split(",")):
                cases[part] = kill_server(place, part, wanted.interval)
        finally:
            place.stop()
    free = [case for policy, case in cases.items() if policy in ("adsp", "ssp", "tap")]
    workers = [case for case in cases.values() if "replacement_ms" in case]
    servers = [case for case in cases.values() if "resume_ms" in case]
    return {
        "survivor_stall_ms": max((case["stall_ms"] for case in free), default=None),
        "baseline_stall_ms": max((case["baseline_stall_ms"] for case in workers), default=None),
        "bsp_release_ms": cases.get("bsp", {}).get("stall_ms"),
        "replacement_ms": max((case["replacement_ms"] for case in workers), default=None),
        "ps_resume_ms": cases.get("process", {}).get("resume_ms"),
        "ps_resume_keeper_ms": cases.get("keeper", {}).get("resume_ms"),
        "ps_resume_machine_ms": cases.get("machine", {}).get("resume_ms"),
        "ps_lost_ms": max((case["lost_ms"] for case in servers), default=None),
        "load_average": os.getloadavg()[0],
        "cases": cases,
    }


def main():
    figures = measure(WANTED)
    if WANTED.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        if name != "cases":
            print(f"{name:24} {'-' if value is None else round(value, 1):>10}  {GOALS.get(name, '')}")
    for name, case in figures["cases"].items():
        print(f"  {name:22} " + "  ".join(f"{key} {value:.0f}" for key, value in case.items()))


if __name__ == "__main__":
    sys.exit(main())
