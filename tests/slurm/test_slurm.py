"""A Slurm partition that lends its idle nodes: slurmctld and several slurmd on this machine, a market, and real jobs.
As root, where Slurm and munge are installed; `make test-slurm` installs them.

covers cli/lend_slurm.c, cli/lend_slurm_market.c, cli/command_slurm_node.c
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from cluster import Cluster, lacks  # noqa: E402
from serving import HUNG_S, PROGRAM, Market, audit, own_addresses  # noqa: E402
from training import keepers, submit, wait_for  # noqa: E402

LACKING = lacks() + ([] if os.geteuid() == 0 else ["root"])
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"no {', '.join(LACKING)}: make test-slurm installs Slurm")

PLAIN_USER = 65534


class Head:
    """`souk lend --slurm lab`."""

    def __init__(self, place, *options, partition="lab", program=PROGRAM, **process):
        self.place = place
        self.process_options = process
        self.folder = place.folder / "head"
        self.log_path = place.folder / "head.log"
        self.command = [program, "lend", "--slurm", partition, "--server", place.market.url, "--state-dir", self.folder,
                        "--cores", "0.5", "--memory", "256MiB", "--disk", "1GiB", *map(str, options)]
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, env={**self.place.cluster.environment, "SOUK_TOKEN": self.place.lab},
                                            stdin=subprocess.DEVNULL, stderr=log, **self.process_options)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HUNG_S)

    def kill(self):
        self.process.kill()
        self.process.wait(HUNG_S)

    def log(self):
        return self.log_path.read_text()


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.cluster = Cluster(folder / "cluster", 4)
        self.cluster.start()
        self.market = Market(folder / "market", *own_addresses())
        self.lab, self.borrower = self.market.sign_up("lab"), self.market.sign_up("borrower")
        self.heads = []

    def lend(self, *options, **more):
        self.heads.append(Head(self, *options, **more))
        return self.heads[-1]

    def online(self):
        """Names of nodes that the market has, not its own machine."""
        return sorted(m["name"] for m in self.market.get("/v1/machines", self.lab).json["items"]
                      if m["state"] == "online" and m["name"] != "market")

    def job(self, number):
        return self.market.get(f"/v1/jobs/{number}", self.borrower).json

    def workers(self, number):
        """Machines whose leases of the job run now."""
        return sorted(lease["machine_name"] for lease in self.job(number)["leases"]
                      if lease["role"] == "worker" and lease["state"] == "running")

    def wait_workers(self, number, count):
        return wait_for(f"{count} workers", lambda: len(self.workers(number)) == count and self.workers(number))

    def finish(self, number):
        state = wait_for("the job's end", lambda: self.job(number)["state"] in ("succeeded", "failed", "cancelled") and
                         self.job(number))
        assert state["state"] == "succeeded", state
        return self.market.get(f"/v1/jobs/{number}/bill", self.borrower).json

    def left(self):
        """Processes of ours on the nodes."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = pathlib.Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it has just ended
            if str(self.folder / "head" / "slurm") in words:
                found.append(words)
        for node in self.cluster.nodes:
            found += keepers(self.folder / "head" / "slurm" / node / "lend.log")
        return found

    def stop(self):
        for head in self.heads:
            if head.process.poll() is None:
                assert head.stop() == 0, head.log()
        wait_for("no job of ours", lambda: not self.cluster.lent())
        wait_for("no process of ours", lambda: not self.left())
        self.cluster.stop()
        assert self.market.stop() == 0
        status, text = audit(self.market.folder)
        assert status == 0, text


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.stop()


# ---- Lending ----------------------------------------------------------------------------------------


def test_a_job_on_two_nodes_trains_and_is_billed(place):
    head = place.lend()
    cluster = place.cluster
    assert wait_for("the standby", place.online) == ["n1"]
    assert place.market.get("/v1/market").json["waiting_machines"] == 0
    (agent,) = cluster.jobs()
    assert (agent["name"], agent["nodes"], agent["limit"]) == ("souk-lend", "n1", "8:00:00") and int(agent["nice"]) > 10 ** 9
    number = submit(place.market, place.borrower, 2)
    assert place.wait_workers(number, 2) == ["n1", "n2"]
    assert cluster.lent()[:2] == ["n1", "n2"]  # the next standby may run already
    bill = place.finish(number)
    workers = [line for line in bill["lines"] if line["role"] == "worker"]
    assert sorted(line["machine_name"] for line in workers) == ["n1", "n2"]
    assert all(line["ticks"] > 0 and line["earned_microcredits"] > 0 for line in workers), bill
    assert bill["ledger_sum_microcredits"] == 0
    assert place.market.get("/v1/market").json["waiting_machines"] == 0
    assert head.stop() == 0
    assert not cluster.jobs() and place.online() == []
    assert "node_failed" not in head.log()


def test_what_a_node_is_told_is_its_own_and_the_code_is_gone(place):
    place.lend("--labels", "infiniband", "--name", "hpc")
    assert wait_for("the standby", place.online) == ["hpc-n1"]
    folder = place.folder / "head" / "slurm" / "n1"
    assert folder.stat().st_mode & 0o077 == 0
    wait_for("the code's end", lambda: not (folder / "secrets").exists())
    script = place.cluster.says("scontrol", "write", "batch_script", place.cluster.jobs()[0]["id"], "-")
    assert "slurm-node" in script and "code" not in script
    (machine,) = [m for m in place.market.get("/v1/machines", place.lab).json["items"] if m["name"] == "hpc-n1"]
    assert "infiniband" in machine["probe"]["labels"] and machine["offer"]["cores_milli"] == 500
    (offer,) = [o for o in place.market.get("/v1/offers", place.lab).json["items"] if o["machine"] == machine["id"]]
    assert offer["zone"] == "UTC" and " - " in offer["when"]


def test_without_a_standby_nodes_come_for_jobs_alone(place):
    place.lend("--slurm-standby", 0)
    wait_for("that it is said", lambda: "no job of the market's waits" in place.heads[0].log())
    assert place.cluster.jobs() == []
    number = submit(place.market, place.borrower, 2)
    wait_for("that they are missed", lambda: place.market.get("/v1/market").json["waiting_machines"] == 2)
    assert place.wait_workers(number, 2) == ["n1", "n2"]
    place.finish(number)
    assert place.cluster.lent() == ["n1", "n2"]  # no more than were wanted; they go after a minute


def test_the_most_nodes_are_kept_to(place):
    place.lend("--slurm-standby", 3, "--slurm-nodes", 2)
    wait_for("two nodes", lambda: place.online() == ["n1", "n2"])
    number = submit(place.market, place.borrower, 2)
    place.finish(number)
    assert place.cluster.lent() == ["n1", "n2"]


def test_an_ordinary_user_lends():
    """Who owns the folder, as on any cluster; the checkout and pytest's folder may be where only root gets to."""
    with tempfile.TemporaryDirectory(prefix="souk-slurm-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        place = Place(folder)
        try:
            program = shutil.copy(PROGRAM, folder / "souk")
            (folder / "head").mkdir(mode=0o700)
            os.chown(folder / "head", PLAIN_USER, PLAIN_USER)
            place.lend(program=program, user=PLAIN_USER, group=PLAIN_USER, extra_groups=[])
            number = submit(place.market, place.borrower, 2)
            assert place.wait_workers(number, 2) == ["n1", "n2"]
            assert place.cluster.jobs("--user", str(PLAIN_USER))
            place.finish(number)
        finally:
            place.stop()


# ---- Making way -------------------------------------------------------------------------------------


def test_a_waiting_job_gets_its_node_and_ours_goes_on_elsewhere(place):
    place.lend()
    number = submit(place.market, place.borrower, 2, min_time="20s", max_run_time="10m", max_total_cost=1)
    assert place.wait_workers(number, 2) == ["n1", "n2"]
    began = time.monotonic()
    theirs = place.cluster.submit("--partition=all", "--nodelist=n1")
    place.cluster.wait("the other's job runs", lambda: place.cluster.is_running(theirs))
    print(f"made way in {time.monotonic() - began:.1f} s")
    assert wait_for("a successor", lambda: place.workers(number) == ["n2", "n3"])
    bill = place.finish(number)
    assert {"n1", "n2", "n3"} <= {line["machine_name"] for line in bill["lines"]}
    (lease,) = [lease for lease in place.job(number)["leases"] if lease["machine_name"] == "n1"]
    assert lease["outcome"] == "reclaimed", lease
    assert place.cluster.is_running(theirs)


def test_all_nodes_are_given_up_and_taken_again(place):
    place.lend()
    number = submit(place.market, place.borrower, 2, min_time="30s", max_run_time="10m", max_total_cost=1)
    place.wait_workers(number, 2)
    theirs = place.cluster.submit("--partition=lab", "--nodes=3")
    place.cluster.wait("the other's job runs", lambda: place.cluster.is_running(theirs))
    assert place.cluster.lent() == [] and place.job(number)["state"] == "running"
    assert wait_for("that it is said", lambda: "no node of the partition is idle" in place.heads[0].log())
    place.cluster.says("scancel", theirs)
    place.wait_workers(number, 2)
    place.finish(number)


def test_reserved_and_drained_nodes_are_left_alone(place):
    cluster = place.cluster
    cluster.says("scontrol", "create", "reservation", "ReservationName=course", "StartTime=now", "Duration=60", "Users=nobody",
                 "Nodes=n1")
    cluster.says("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=repair")
    place.lend("--slurm-standby", 3)
    assert wait_for("the only node that is free", place.online) == ["n3"]
    cluster.says("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=repair")
    cluster.wait("the drained node is free", lambda: not cluster.lent())
    cluster.says("scontrol", "update", "NodeName=n2", "State=RESUME")
    assert wait_for("the node that came back", place.online) == ["n2"]
    cluster.says("scontrol", "delete", "ReservationName=course")
    wait_for("the node that is no longer reserved", lambda: place.online() == ["n1", "n2"])


# ---- Faults -----------------------------------------------------------------------------------------


def test_a_restart_of_slurmctld_changes_nothing(place):
    head = place.lend("--slurm-standby", 0)  # nothing is just being started
    number = submit(place.market, place.borrower, 2, min_time="20s", max_run_time="10m", max_total_cost=1)
    place.wait_workers(number, 2)
    jobs = place.cluster.jobs()
    place.cluster.stop_one("slurmctld")
    wait_for("that it is missed", lambda: "slurm_away" in head.log())
    place.cluster.start_controller()
    wait_for("that it is back", lambda: "slurm_back" in head.log())
    assert [(job["id"], job["nodes"]) for job in place.cluster.jobs()] == [(job["id"], job["nodes"]) for job in jobs]
    bill = place.finish(number)
    assert sum(line["role"] == "worker" for line in bill["lines"]) == 2, bill


def test_a_market_that_hangs_keeps_nobody_waiting(place):
    place.lend("--slurm-standby", 3)
    wait_for("three nodes", lambda: place.online() == ["n1", "n2", "n3"])
    place.market.process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        theirs = place.cluster.submit("--partition=lab", "--nodes=3")
        place.cluster.wait("the other's job runs", lambda: place.cluster.is_running(theirs))
        print(f"made way in {time.monotonic() - began:.1f} s")
        assert place.cluster.lent() == []
        place.cluster.says("scancel", theirs)
    finally:
        place.market.process.send_signal(signal.SIGCONT)
    wait_for("three nodes again", lambda: place.cluster.lent() == ["n1", "n2", "n3"] == place.online())


def test_a_market_that_is_away_is_missed_and_found_again(place):
    head = place.lend()
    wait_for("the standby", place.online)
    place.market.kill()
    wait_for("that it is missed", lambda: "market_away" in head.log())
    assert place.cluster.lent() == ["n1"]
    place.market.start()
    wait_for("that it is found", lambda: "market_back" in head.log())
    assert wait_for("the node", place.online) == ["n1"]


def test_a_daemon_that_was_killed_finds_its_nodes_again(place):
    head = place.lend()
    number = submit(place.market, place.borrower, 2, min_time="25s", max_run_time="10m", max_total_cost=1)
    place.wait_workers(number, 2)
    jobs = sorted(job["id"] for job in place.cluster.jobs())
    head.kill()
    head.start()
    theirs = place.cluster.submit("--partition=all", "--nodelist=n2")
    place.cluster.wait("the other's job runs", lambda: place.cluster.is_running(theirs))
    assert wait_for("a successor", lambda: place.workers(number) == ["n1", "n3"])
    assert jobs[0] in [job["id"] for job in place.cluster.jobs()]
    place.finish(number)
    assert place.cluster.lent() in (["n1", "n3"], ["n1"])


def test_nodes_end_by_themselves_when_the_daemon_does_not_come_back(place):
    head = place.lend("--slurm-standby", 2)
    wait_for("two nodes", lambda: place.online() == ["n1", "n2"])
    head.kill()
    place.cluster.wait("the end of all jobs", lambda: not place.cluster.jobs())
    assert place.left() == [] and place.online() == []


def test_a_lender_that_crashes_takes_its_job_along(place):
    head = place.lend()
    number = submit(place.market, place.borrower, 1, min_time="15s", max_run_time="10m", max_total_cost=1)
    (node,) = place.wait_workers(number, 1)
    log_path = place.folder / "head" / "slurm" / node / "lend.log"
    old = keepers(log_path)
    assert old
    (lender,) = [int(name) for name in filter(str.isdigit, os.listdir("/proc"))
                 if lender_words(name, place.folder / "head" / "slurm" / node)]
    (agent,) = [job["id"] for job in place.cluster.jobs() if job["nodes"] == node]
    os.kill(lender, signal.SIGKILL)
    wait_for("the end of its job", lambda: "JobState=FAILED" in place.cluster.says("scontrol", "show", "job", agent))
    wait_for("the end of its keepers", lambda: not set(old) & set(keepers(log_path)))
    wait_for("that it is said", lambda: "node_failed" in head.log() or "node_started node=n2" in head.log())
    place.finish(number)


def lender_words(process, folder):
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"lend" in words[1:2] and str(folder).encode() in words


# ---- Said plainly -----------------------------------------------------------------------------------


def refused(place, *options, code, environment=None):
    result = subprocess.run([PROGRAM, "lend", "--server", place.market.url, "--state-dir", place.folder / "refused", *options],
                            env={**place.cluster.environment, "SOUK_TOKEN": place.lab, **(environment or {})},
                            capture_output=True, text=True, timeout=HUNG_S)
    assert result.returncode == code, result
    return result.stderr


def test_what_is_wrong_is_said_plainly(place):
    assert 'Slurm has no partition "labb"; it has: lab, all' in refused(place, "--slurm", "labb", code=3)
    assert "--when is for one machine" in refused(place, "--slurm", "lab", "--when", "always", code=2)
    nowhere = {"SLURM_CONF": str(place.folder / "nowhere.conf")}
    assert "nowhere.conf" in refused(place, "--slurm", "lab", code=7, environment=nowhere)
    assert "account" in refused(place, "--slurm", "lab", code=5, environment={"SOUK_TOKEN": ""})
    place.cluster.stop_one("slurmctld")
    assert "Unable to contact slurm controller" in refused(place, "--slurm", "lab", code=7)
    place.cluster.start_controller()


def test_two_daemons_do_not_share_a_folder(place):
    place.lend()
    wait_for("the standby", place.online)
    again = subprocess.run(place.heads[0].command, env={**place.cluster.environment, "SOUK_TOKEN": place.lab},
                           capture_output=True, text=True, timeout=HUNG_S)
    assert again.returncode != 0 and "another daemon lends a partition" in again.stderr
    assert json.dumps(place.cluster.lent()) == '["n1"]'
