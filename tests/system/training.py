"""A market with real lenders and a small job for them: what tests of a job's whole way share."""
import contextlib
import functools
import glob
import hashlib
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time

import pytest

from serving import HUNG_S, PROGRAM, Market, audit

RECORDS = 512
needs_cgroups = pytest.mark.usefixtures("cgroups")
needs_tun = pytest.mark.skipif(not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="no /dev/net/tun here")


def wait_for(what, condition, seconds=HUNG_S, step=0.2):
    """The first true value of `condition`, which is asked often at first and every `step` seconds in the end."""
    end, pause = time.monotonic() + seconds, min(0.01, step)
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)  # clock: between two looks at what tells nobody that it has changed
        pause = min(1.5 * pause, step)
    pytest.fail(f"waited {seconds} s for {what}")


def descendants(pid):
    """Processes below this one, children before theirs. The kernel may miss some while others end."""
    with contextlib.suppress(OSError):
        found = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                 for child in (task / "children").read_text().split()]
        return found + [below for child in found for below in descendants(child)]
    return []  # it has just ended


def keepers(log_path):
    """The keepers of leases, by "LEASE-FENCE", of the daemon that logs there, gone or not."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if words[:2] == [b"souk", b"keeper"] and os.readlink(f"/proc/{name}/fd/2") == str(log_path):
                found[words[2].decode()] = int(name)
        except OSError:
            pass  # it has just ended
    return found


def cgroups(keeper):
    """Of the sandbox that a keeper started."""
    return glob.glob(f"/sys/fs/cgroup/**/souk-lease-*-{keeper}-*", recursive=True)


class Lender:
    def __init__(self, market, token, folder, name, role="worker", options=(), within=(), program=PROGRAM):
        code = market.post("/v1/machines/codes", {}, token).json["code"]
        self.command = [*within, program, "lend", "--state-dir", str(folder), "--server", market.url,
                        "--name", name, "--cores", "0.5", "--roles", role, "--no-watch", *options]
        self.log_path = f"{folder}.log"
        self.start({**os.environ, "SOUK_LEND_CODE": code})

    def start(self, environment=None):
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(self.command, env=environment, stderr=self.log,
                                        stdin=subprocess.DEVNULL)

    def stop(self, by=signal.SIGTERM):
        """Told again of one that was killed before, it ends the leases that went on without it."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        else:
            for pid in self.keepers().values():
                os.kill(pid, signal.SIGTERM)
            wait_for("the end of all keepers", lambda: not self.keepers(), step=0.05)
        self.process.wait(HUNG_S)
        self.log.close()

    def keepers(self):
        return keepers(self.log_path)

    def die(self):
        """As the machine does in a power cut. Returns the cgroups left behind."""
        self.stop(signal.SIGKILL)
        pids = list(self.keepers().values())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for("the end of all keepers", lambda: not self.keepers(), step=0.02)
        return [path for pid in pids for path in cgroups(pid)]


def upload(market, token, data):
    name = hashlib.blake2b(data, digest_size=32).hexdigest()
    answer = market.call("PUT", f"/v1/chunks/{name}", data, token)
    assert answer.status in (200, 201), answer
    return name


def upload_file(market, token, header, record_bytes, records):
    data = header + records
    assert len(records) == record_bytes * RECORDS
    return upload(market, token, json.dumps({
        "media_type": "application/x-idx", "size": len(data), "header_bytes": len(header),
        "record_bytes": record_bytes, "record_count": RECORDS, "header": header.hex(),
        "chunks": [{"hash": upload(market, token, data), "size": len(data)}],
    }, separators=(",", ":")).encode())


@functools.cache
def digits():
    """Images and labels that a linear model can tell apart: class c is bright in its own rows."""
    chance = random.Random(1)
    images, labels = bytearray(), bytearray()
    for _ in range(RECORDS):
        label = chance.randrange(10)
        picture = bytearray(byte % 60 for byte in chance.randbytes(784))
        for i in range(label * 78, label * 78 + 78):
            picture[i] = 200 + picture[i] % 55
        images += picture
        labels.append(label)
    return bytes(images), bytes(labels)


def upload_digits(market, token):
    images, labels = digits()
    return (upload_file(market, token, struct.pack(">IIII", 0x803, RECORDS, 28, 28), 784, images),
            upload_file(market, token, struct.pack(">II", 0x801, RECORDS), 1, labels))


def job_spec(market, token, nodes, min_time="6s", **market_part):
    images, labels = upload_digits(market, token)
    return {
        "name": "digits", "num_nodes": nodes, "resources": {"cpus": "0.1+", "memory": "0.1+"},
        "runtime": "native",
        "train": {"model": "logistic", "data": "fashion-mnist", "batch": 16,
                  "optimizer": {"name": "sgd", "lr": 0.05}, "epochs": 1000000,
                  "target": {"accuracy": 0.5, "min_time": min_time}, "seed": 1},
        "sync": {"policy": "adsp", "gamma": "500ms", "tick": "500ms"},
        "market": {"max_run_time": "60s", "expected_run_time": "20s", **market_part},
        "inputs": [{"name": f"{split}-{part}", "split": split, "manifest": manifest,
                    "records": RECORDS}
                   for split in ("train", "test")
                   for part, manifest in (("images", images), ("labels", labels))],
    }


def submit(market, token, nodes, **market_part):
    answer = market.post("/v1/jobs", job_spec(market, token, nodes, **market_part), token)
    assert answer.status == 201, answer
    return answer.json["id"]


def submit_endless(market, token, nodes):
    """A job that trains until it is cancelled: it waits for the test, not the test for it."""
    spec = job_spec(market, token, nodes, min_time="1h", max_run_time="1h", expected_run_time="1h")
    spec["resources"]["cpus"] = "0.1"  # nothing depends on how fast
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def cancel(market, token, job):
    """The job once it has ended, paid for."""
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    done = wait_for_end(market, token, job)
    assert done["state"] == "cancelled", done
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    assert bill["ledger_sum_microcredits"] == 0 and bill["held_microcredits"] == 0, bill
    return done


def wait_for_end(market, token, job):
    return wait_for("the job's end", lambda: (
        lambda j: j if j["state"] in ("succeeded", "failed", "cancelled") else None)(
            market.get(f"/v1/jobs/{job}", token).json))


@contextlib.contextmanager
def running(tmp_path, *options):
    """A market with two workers' machines, and one for parameter servers: its own, or a third."""
    market = Market(tmp_path / "market", *options)
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = []
    try:
        for i in range(2):
            lenders.append(Lender(market, lender_token, tmp_path / f"lender-{i}", f"lender-{i}"))
        if "--no-local-lender" in options:
            lenders.append(Lender(market, lender_token, tmp_path / "server", "server", "server"))
        wait_for("three machines", lambda: 3 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, lender_token, lenders
    finally:
        for lender in lenders:
            lender.stop()
        stopped = market.stop()
    assert stopped == 0
    status, text = audit(market.folder)
    assert status == 0, text
