"""The owner comes first: leases make way and go on, by what is watched and by the owner's word.

covers peer/daemon_owner.c, sandbox/keepers.c, peer/tenancy_yield.c, cli/command_lend_owner.c, cli/lend_guard.c

What the machine looks like is a folder that the tests write, since the real one is never quiet
while tests run; the leases, their sandboxes and what holds them up are real. How soon each thing
happens on a machine with nothing else to do is measured by bench/lender.py; here it is what happens,
and in which order, however slow the machine.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from serving import HUNG_S, PROGRAM, Market, audit, is_built_with, own_addresses
from training import (RECORDS, Lender, cancel, cgroups, job_spec, needs_cgroups, submit_endless, wait_for,
                      wait_for_end)

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="TSan cannot run in a sandbox")


EPOCHS_FROZEN = 2500  # ten seconds of a tenth of a core


class Machine:
    """A quiet laptop with two cores, as the kernel would show it."""

    def __init__(self, root):
        self.root = root
        self.put("proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\n")
        self.put("proc/meminfo", "MemAvailable: 8000000 kB\n")
        self.put("sys/class/power_supply/AC/type", "Mains\n")
        self.put("sys/class/power_supply/BAT0/type", "Battery\n")
        self.plug(True)

    def put(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(content)
        fresh.rename(file)

    def plug(self, is_in):
        self.put("sys/class/power_supply/AC/online", f"{int(is_in)}\n")
        self.put("sys/class/power_supply/BAT0/status", "Charging\n" if is_in else "Discharging\n")


class OwnedLender(Lender):
    def __init__(self, market, token, folder, name, options=()):
        self.folder = folder
        self.machine = Machine(folder.with_name(f"{name}-root"))
        super().__init__(market, token, folder, name, options=options)

    def start(self, environment=None):
        self.command = [word for word in self.command if word != "--no-watch"]
        if "--system-root" not in self.command:
            self.command += ["--system-root", str(self.machine.root)]
        if "--resume-after" not in self.command:
            self.command += ["--resume-after", "500ms"]
        super().start(environment)

    def say(self, *words, code=0):
        done = subprocess.run([PROGRAM, "lend", *words, "--state-dir", str(self.folder)],
                              capture_output=True, text=True, timeout=HUNG_S)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def status_if_it_runs(self):
        done = subprocess.run([PROGRAM, "lend", "status", "--json", "--state-dir", str(self.folder)],
                              capture_output=True, text=True, timeout=HUNG_S)
        return done.returncode == 0 and json.loads(done.stdout)

    def status(self):
        return json.loads(self.say("status", "--json"))


@pytest.fixture(scope="module")
def laptop(tmp_path_factory):
    with owned(tmp_path_factory.mktemp("owned")) as made:
        yield made


@contextlib.contextmanager
def owned(tmp_path, *options, make=None):
    """A market, a borrower, and an owner's machine, an OwnedLender or what `make` makes."""
    market = Market(tmp_path / "market", *own_addresses())
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    folder = tmp_path / "laptop"
    lender = (make(market, lender_token, folder) if make
              else OwnedLender(market, lender_token, folder, "laptop", options))
    try:
        wait_for("two machines", lambda: 2 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, lender_token, lender
    finally:
        lender.stop()
        stopped = market.stop()
    assert stopped == 0
    status, text = audit(market.folder)
    assert status == 0, text


def machine_of(market, token):
    return next(m for m in market.get("/v1/machines", token).json["items"] if m["name"] == "laptop")


def workers_of(market, token, job):
    leases = market.get(f"/v1/jobs/{job}", token).json["leases"]
    return [lease for lease in leases if lease["role"] == "worker"]


def worker_of(market, token, job):
    return next(iter(workers_of(market, token, job)), None)


def wait_for_work(market, token, job):
    wait_for("the worker", lambda: worker_of(market, token, job))
    wait_for("the worker's commits", lambda: worker_of(market, token, job)["commits"] > 2)


def wait_for_level(lender, level):
    wait_for(f"level {level}", lambda: lender.status()["level"] == level)


def test_work_stops_and_goes_on_when_the_owner_is_gone(laptop):
    market, token, lender_token, lender = laptop
    job = submit_endless(market, token, 1)
    wait_for_work(market, token, job)
    assert lender.status()["level"] == "full"
    lender.machine.plug(False)
    wait_for_level(lender, "frozen")
    status = lender.status()
    assert status["reason"] == "the machine runs on its battery", status
    assert len(status["leases"]) == 1
    wait_for("the market knows", lambda: machine_of(market, lender_token)["yield"] == "frozen")
    assert machine_of(market, token)["yield"] == "paused"
    assert worker_of(market, token, job)["yield"] == "frozen"
    # Wait longer than a parameter server waits for a silent worker.
    steps, until = worker_of(market, token, job)["steps"], time.monotonic() + 8  # clock: more than 6 s of silence
    while time.monotonic() < until:
        worker = worker_of(market, token, job)
        assert worker["state"] == "running" and not worker["unreachable"], worker
        time.sleep(0.5)  # clock: poll interval
    # A frozen worker runs at most a fiftieth of the time, to keep its connections.
    assert worker["id"] == worker_of(market, token, job)["id"]
    held_steps = worker["steps"] - steps
    lender.machine.plug(True)
    wait_for_level(lender, "full")
    before = worker_of(market, token, job)
    wait_for("more steps", lambda: worker_of(market, token, job)["steps"] > before["steps"] + 4 * held_steps + 20)
    assert worker_of(market, token, job)["id"] == before["id"]
    wait_for("the market knows", lambda: machine_of(market, token)["yield"] == "none")
    cancel(market, token, job)


def test_a_job_that_was_frozen_succeeds_when_the_owner_is_gone(laptop):
    market, token, _, lender = laptop
    spec = job_spec(market, token, 1, max_run_time="1h", expected_run_time="1h")
    # The job ends by its count of samples, which stops while the lease is frozen. A slow machine
    # only delays it.
    spec["train"] |= {"epochs": EPOCHS_FROZEN}
    spec["resources"]["cpus"] = "0.1"
    del spec["train"]["target"]
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    job = answer.json["id"]
    wait_for_work(market, token, job)
    lender.machine.plug(False)
    wait_for_level(lender, "frozen")
    wait_for("the market knows", lambda: worker_of(market, token, job)["yield"] == "frozen")
    lease = worker_of(market, token, job)
    lender.machine.plug(True)
    wait_for("more steps", lambda: worker_of(market, token, job)["steps"] > lease["steps"] + 100)
    done = assert_ends_and_is_paid(market, token, job, "succeeded")
    (worker,) = [x for x in done["leases"] if x["role"] == "worker"]
    assert (worker["id"], worker["outcome"]) == (lease["id"], "succeeded"), worker
    assert worker["steps"] * spec["train"]["batch"] >= EPOCHS_FROZEN * RECORDS, worker
    assert done["test_accuracy"] > 0.5, done


def processes(keeper):
    """Of the sandbox that a keeper started."""
    found = set()
    for group in cgroups(keeper):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in pathlib.Path(group, "cgroup.procs").read_text().split()}
    return found


def resident_bytes(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def wait_for_memory(lender, pids):
    """Nothing of the job is left, whatever it does."""
    wait_for("the memory", lambda: resident_bytes(pids) == 0, step=0.02)
    wait_for("the end of the keeper", lambda: not lender.keepers())


def lease_of(market, token, job, lease):
    return next(x for x in market.get(f"/v1/jobs/{job}", token).json["leases"] if x["id"] == lease)


def assert_ends_and_is_paid(market, token, job, state):
    done = wait_for_end(market, token, job)
    assert done["state"] == state, done
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    assert bill["ledger_sum_microcredits"] == 0 and bill["held_microcredits"] == 0, bill
    assert_used(done)
    return done


def assert_used(done):
    assert all(x["cpu_ms"] > 0 and x["memory_peak_bytes"] > 1 << 20 for x in done["leases"]), done["leases"]


@needs_cgroups
def test_a_frozen_job_gives_its_memory_back_and_goes_on_from_where_it_was(laptop):
    day = time.gmtime().tm_yday
    market, token, _, lender = laptop
    earned_before = lender.status()["earned_microcredits"]
    job = submit_endless(market, token, 1)
    wait_for_work(market, token, job)
    lease = wait_for("a tick that is paid", lambda: (
        lambda x: x["posted_microcredits"] > 0 and x)(worker_of(market, token, job)))
    server = next(x for x in market.get(f"/v1/jobs/{job}", token).json["leases"] if x["role"] == "server")
    (keeper,) = lender.keepers().values()
    pids = processes(keeper)
    lender.machine.plug(False)
    wait_for_level(lender, "frozen")
    assert resident_bytes(pids) > 1 << 20
    commits = worker_of(market, token, job)["commits"]
    lender.machine.put("proc/meminfo", "MemAvailable: 1000 kB\n")
    wait_for_memory(lender, pids)
    ended = wait_for("the lease's end", lambda: (
        lambda x: x if x["state"] == "ended" else None)(lease_of(market, token, job, lease["id"])))
    assert ended["outcome"] == "reclaimed" and "memory" in ended["reason"], ended
    assert ended["commits"] > commits, "what it had learnt was not pushed before it went"
    assert lender.status()["level"] == "released" and lender.status()["leases"] == []
    # No other machine lends: the job waits, and its parameter server keeps the model.
    waiting = market.get(f"/v1/jobs/{job}", token).json
    assert waiting["state"] == "running" and "no successor yet" in waiting["reason"], waiting
    lender.machine.plug(True)
    lender.machine.put("proc/meminfo", "MemAvailable: 8000000 kB\n")
    successor = wait_for("the successor's tick", lambda: (
        lambda x: x["id"] != lease["id"] and x["posted_microcredits"] > 0 and x["commits"] > 2 and x)(
            workers_of(market, token, job)[-1]))
    learnt = wait_for("what is learnt", lambda: (
        lambda x: x["test_accuracy"] > 0.5 and x)(market.get(f"/v1/jobs/{job}", token).json))
    assert learnt["state"] == "running", learnt
    done = cancel(market, token, job)
    assert_used(done)
    workers = [x for x in done["leases"] if x["role"] == "worker"]
    earned = earned_before + sum(x["earned_microcredits"] for x in workers)
    wait_for("the market's word", lambda: lender.status()["earned_microcredits"] == earned)
    today = lender.status()["earned_today_microcredits"]
    assert 0 < today == earned or (time.gmtime().tm_yday != day and today < earned)  # midnight passed
    assert [(x["id"], x["outcome"]) for x in workers] == [
        (lease["id"], "reclaimed"), (successor["id"], "stopped")], workers
    assert all(x["posted_microcredits"] > 0 for x in workers), workers
    assert [x["id"] for x in done["leases"] if x["role"] == "server"] == [server["id"]]


# The program ignores SIGTERM and ends when the test creates "stop".
STUBBORN = """trap '' TERM
exec python3 -c "
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
held = bytearray(os.urandom(1 << 20) * 64)
while not os.path.exists('stop'):
    time.sleep(0.05)  # clock: poll interval
open(os.environ['SOUK_OUTPUT_DIR'] + '/held', 'w').write(str(len(held)))
"
"""


@needs_cgroups
def test_a_command_that_does_not_go_is_killed_and_starts_again_elsewhere(laptop, tmp_path):
    market, token, lender_token, lender = laptop
    other = OwnedLender(market, lender_token, tmp_path / "other", "other")

    def held():
        """The job's processes on the first machine, once they hold the memory."""
        pids = set().union(*map(processes, lender.keepers().values()))
        return pids if resident_bytes(pids) > 64 << 20 else None

    try:
        wait_for("another machine", other.status_if_it_runs)
        other.say("pause")
        wait_for("its pause", lambda: "paused" in [
            m["yield"] for m in market.get("/v1/machines", token).json["items"]])
        spec = {"name": "stubborn", "num_nodes": 1, "runtime": "command", "run": STUBBORN,
                "resources": {"cpus": "0.1+", "memory": "0.2+"},
                "market": {"max_run_time": "1h", "expected_run_time": "20s"}}
        answer = market.post("/v1/jobs", spec, token)
        assert answer.status == 201, answer
        job = answer.json["id"]
        pids = wait_for("its memory", held)
        lender.say("pause")
        wait_for_level(lender, "frozen")
        other.say("resume")
        lender.machine.put("proc/meminfo", "MemAvailable: 1000 kB\n")
        wait_for_memory(lender, pids)
        work = wait_for("its second start", lambda: list(tmp_path.glob("other/leases/*/lease/work")))[0]
        (work / "stop").touch()
        done = assert_ends_and_is_paid(market, token, job, "succeeded")
    finally:
        other.stop()
        lender.machine.put("proc/meminfo", "MemAvailable: 8000000 kB\n")
        lender.say("resume")
    assert [x["outcome"] for x in done["leases"]] == ["reclaimed", "succeeded"], done
    held = market.get(f"/v1/jobs/{job}/artifacts/rank0-held", token)
    assert held.body == str(64 << 20).encode(), held


def test_the_owners_word_holds_without_a_market_and_over_a_restart(laptop):
    market, token, _, lender = laptop
    assert "paused" in lender.say("pause", "1h").lower()
    wait_for("the market knows", lambda: machine_of(market, token)["yield"] == "paused")
    lender.stop(signal.SIGKILL)
    lender.start()
    status = wait_for("the daemon", lender.status_if_it_runs)
    assert status["paused"] and status["level"] == "frozen", status
    market.kill()
    assert "Resumed" in lender.say("resume")
    assert lender.status()["level"] == "full"
    wait_for("the link's end", lambda: not lender.status()["linked"])
    assert re.search(r" in all( \(.* withheld\))?, as of ", " ".join(lender.say("status").split()))
    market.start()
    wait_for("the link", lambda: lender.status()["linked"])


def test_draining_takes_nothing_new_and_stop_ends_in_good_order(laptop):
    market, token, lender_token, lender = laptop
    assert "No new leases" in lender.say("drain")
    wait_for("the market knows", lambda: machine_of(market, lender_token)["yield"] == "draining")
    job = submit_endless(market, token, 1)
    assert market.get(f"/v1/jobs/{job}", token).json["state"] == "pending"
    lender.say("resume")
    wait_for_work(market, token, job)
    assert "1 runs" in lender.say("drain")
    before = worker_of(market, token, job)["commits"]
    wait_for("more commits", lambda: worker_of(market, token, job)["commits"] > before + 2)
    assert "Stopped; 1 lease" in lender.say("stop")
    assert lender.process.wait(HUNG_S) == 0
    assert "no \"souk lend\" runs" in lender.say("status", code=3)
    wait_for("the lease's end", lambda: worker_of(market, token, job)["outcome"] == "reclaimed")
    cancel(market, token, job)
    lender.start()
    wait_for("the daemon", lender.status_if_it_runs)
    lender.say("resume")


def test_one_button_on_the_page_reaches_the_machine(laptop):
    market, token, lender_token, lender = laptop
    machine = machine_of(market, token)["id"]
    refused = market.post(f"/v1/machines/{machine}/pause", {}, token)
    assert refused.status == 403, refused
    assert market.post(f"/v1/machines/{machine}/pause", {"for_ms": 600000}, lender_token).status == 200
    wait_for("the pause", lambda: machine_of(market, lender_token)["yield"] == "paused_remotely", step=0.02)
    assert "paused from the page until" in lender.say("status")
    assert lender.status()["paused_until_ms"] > 0
    assert market.post(f"/v1/machines/{machine}/resume", {}, lender_token).status == 200
    wait_for("the end of it", lambda: machine_of(market, token)["yield"] == "none", step=0.02)
    bad = market.post(f"/v1/machines/{machine}/pause", {"for_ms": 5}, lender_token)
    assert bad.status == 400 or bad.status == 422, bad


def test_the_market_does_not_undo_what_was_said_at_the_machine(laptop):
    market, token, lender_token, lender = laptop
    machine = machine_of(market, token)["id"]

    def heard(word):
        return pathlib.Path(lender.log_path).read_text().count(f"where=market word={word}")

    def resume_by_market():
        before = heard("resume")
        refused = market.post(f"/v1/machines/{machine}/resume", {}, lender_token)
        assert refused.status == 409 and "souk lend resume" in refused.json["detail"], refused
        # The command has reached the daemon, despite the market's refusal.
        wait_for("the word", lambda: heard("resume") > before)

    lender.say("pause")
    wait_for("the market knows", lambda: machine_of(market, token)["yield"] == "paused")
    resume_by_market()
    assert "paused here until" in lender.say("status")
    assert machine_of(market, token)["yield"] == "paused"
    # A shorter pause through the market does not replace the lender's own.
    assert market.post(f"/v1/machines/{machine}/pause", {"for_ms": 1000}, lender_token).status == 200
    wait_for("the pause", lambda: heard("pause"))
    assert lender.status()["paused_until_ms"] == 0 and lender.status()["paused_from"] == "here"

    assert "No new leases; those here are paused" in lender.say("drain")
    assert "paused here, and takes no new leases, until" in lender.say("status")
    assert "Resumed" in lender.say("resume")
    wait_for("the end of it", lambda: machine_of(market, token)["yield"] == "none")
    lender.say("drain")
    wait_for("the market knows", lambda: machine_of(market, lender_token)["yield"] == "draining")
    resume_by_market()
    assert lender.status()["draining"]
    lender.say("resume")


def test_without_a_daemon_the_commands_say_so(souk, tmp_path):
    for verb in ("status", "pause", "resume", "drain", "stop"):
        told = souk("lend", verb, "--state-dir", tmp_path, code=3).stderr
        assert "no \"souk lend\" runs" in told, told
    assert "--freeze-cpu must not be less" in souk(
        "lend", "--yield-cpu", "50%", "--freeze-cpu", "10%", "--state-dir", tmp_path, code=2).stderr
