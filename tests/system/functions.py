"""What tests of functions share: a host, a job, and calls by its API."""
import base64
import contextlib
import functools
import gzip
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import training
from serving import HUNG_S, PROGRAM
from training import Lender, descendants, job_spec

JOB = """
name: clothes
runtime: native
train:
  model: logistic
  data: fashion-mnist
  batch: {batch}
  optimizer: {{name: sgd, lr: 0.01, momentum: 0}}
  epochs: {epochs}
  seed: 3
"""


FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
RECORDS, TEST_RECORDS = 6000, 1000
BATCHES = 600  # batches of an epoch in write_job


@functools.cache
def few_records():
    """A temporary folder with the first records of Fashion-MNIST, deleted after the tests."""
    folder = tempfile.TemporaryDirectory(prefix="souk-few-records-")
    for split, count in (("train", RECORDS), ("t10k", TEST_RECORDS)):
        for part, head, size in (("images-idx3", 16, 28 * 28), ("labels-idx1", 8, 1)):
            name = f"{split}-{part}-ubyte.gz"
            with gzip.open(FASHION / name) as file:
                data = file.read(head + size * count)
            data = data[:4] + struct.pack(">I", count) + data[8:]
            pathlib.Path(folder.name, name).write_bytes(gzip.compress(data, 1))
    return folder


def with_few_records(souk):
    """Makes the program train functions on the few records."""
    souk.variables["SOUK_FUNCTION_TRAIN_DATASET_DIR"] = few_records().name
    return souk


def write_job(folder, batch=RECORDS // BATCHES, epochs=2):
    path = folder / "job.yaml"
    path.write_text(JOB.format(batch=batch, epochs=epochs))
    return path


class Host:
    """A `souk function host`, and its Invoke API."""

    def __init__(self, souk, *options):
        self.process = souk.start("function", "host", "--listen", "127.0.0.1:0", "--json", *options)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.ready = json.loads(line)
        with open(self.ready["token_file"]) as file:
            self.token = file.read().strip()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        try:
            self.process.communicate(timeout=HUNG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert self.process.returncode == 0

    def ask(self, path, body=None, method=None, headers=None, token=None):
        """Status, headers and body of an exchange."""
        sent = {"Authorization": f"Bearer {token or self.token}", **(headers or {})}
        request = urllib.request.Request(self.ready["url"] + path, data=body, headers=sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=HUNG_S) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def path_of(self, *parts):
        """In its store."""
        return pathlib.Path(self.ready["store"], *parts)

    def path(self, call, name="souk-train"):
        return f"/2015-03-31/functions/{name}/{call}"

    def invoke(self, request, **headers):
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask(self.path("invocations"), body, "POST", sent)


def wait_for(condition):
    deadline = time.monotonic() + HUNG_S
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)  # clock: poll interval
    return found


def log_of(headers):
    return base64.b64decode(headers["X-Amz-Log-Result"]).decode()


def instances(host):
    """The processes of a host's functions."""
    return instances_below(host.process.pid)


def instances_below(pid):
    """Of a process's descendants those that are our program and not bubblewrap."""
    found = []
    for each in descendants(pid):
        with contextlib.suppress(OSError):  # it has just ended
            words = pathlib.Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")
            if b"function-instance" in words and b"bwrap" not in words[0]:
                found.append(each)
    return found


def ancestors(pid):
    found = []
    while pid > 1:
        stat_line = pathlib.Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat_line.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


class FunctionLender(Lender):
    """What it lends is said by its functions."""

    def __init__(self, market, token, folder, *options, name="functions", variables=None):
        self.folder, self.variables = folder, variables or {}
        super().__init__(market, token, folder, name,
                         options=("--functions", "2", *map(str, options or ("--function-memory", "256"))))

    def start(self, environment=None):
        for flag in ("--cores", "--roles"):
            if flag in self.command:
                at = self.command.index(flag)
                del self.command[at:at + 2]
        super().start({**(environment or os.environ), **self.variables})

    def functions(self):
        """The processes of all its leases' functions."""
        return [pid for keeper in self.keepers().values() for pid in instances_below(keeper)]

    def say(self, *words):
        done = subprocess.run([PROGRAM, "lend", *words, "--state-dir", str(self.folder)],
                              capture_output=True, text=True, timeout=HUNG_S)
        assert done.returncode == 0, done.stderr


def submit(market, token, nodes=2, **changes):
    """On all that two functions of 256 MB are lent with, which is a third more for the lease's process."""
    spec = job_spec(market, token, nodes)
    spec["resources"] = {"cpus": "0.2+", "memory": "683MiB", **changes.pop("resources", {})}
    for part, values in changes.items():
        spec[part] = {**spec[part], **values}
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def running_lease(market, token, job, machine="functions"):
    """That of the functions, once there is one that runs."""
    return next((lease for lease in job_of(market, token, job)["leases"]
                 if lease["machine_name"] == machine and lease["state"] == "running"), None)


def wait_for_end(market, token, job):
    done = training.wait_for("the job's end", lambda: (
        lambda j: j if j["state"] in ("succeeded", "failed", "cancelled") else None)(job_of(market, token, job)))
    assert done["state"] == "succeeded", done
    return done


def log_of_rank(market, token, job, rank):
    text, offset = "", 0
    while True:
        part = market.get(f"/v1/jobs/{job}/logs?rank={rank}&offset={offset}", token).json
        if not part["text"]:
            return text
        text, offset = text + part["text"], part["next_offset"]
