"""GPUs on an ordinary machine: a library that stands for the driver's, and device files of its own.

covers peer/daemon_gpu.c, peer/gpu_use.c, peer/nvml.c, peer/probe_gpu.c

The library is the fixture of the unit tests, which the daemon finds where it finds the driver's. It has
one GPU, and says who uses it as a file does that the test writes. The device file is there for the daemon
and its leases alone: theirs is a /dev over the machine's own.
"""
import json
import os
import pathlib
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Follower, is_built_with
from test_owner import OwnedLender, machine_of, owned
from training import descendants, wait_for

FIXTURE = pathlib.Path(PROGRAM).resolve().parent / "peer" / "libnvml_fixture.so"
MINOR = 3  # as the fixture numbers the device file of its first GPU

# A folder for what is new in /dev, as the first argument; then the command.
OWN_DEVICES = f"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay -o "lowerdir=/dev,upperdir=$1/upper,workdir=$1/work" none /dev
mknod -m 666 /dev/nvidia{MINOR} c 1 3
mknod -m 666 /dev/nvidia{MINOR + 1} c 1 3
shift
exec "$@"
"""


def with_devices(folder, *command):
    return ["unshare", "--mount", "sh", "-c", OWN_DEVICES, "sh", str(folder), *command]


def can_have_devices(folder):
    return subprocess.run(with_devices(folder, "test", "-c", f"/dev/nvidia{MINOR}"),
                          capture_output=True, timeout=HUNG_S).returncode == 0


class GpuLender(OwnedLender):
    def __init__(self, market, token, folder):
        self.devices = folder.with_name("devices")
        self.devices.mkdir()
        self.use_file = folder.with_name("gpu-use")
        self.use({})
        libraries = folder.with_name("libraries")
        libraries.mkdir()
        (libraries / "libnvidia-ml.so.1").symlink_to(FIXTURE)
        self.variables = {"LD_LIBRARY_PATH": str(libraries), "NVML_FIXTURE_COUNT": "1",
                          "NVML_FIXTURE_USE": str(self.use_file)}
        super().__init__(market, token, folder, "laptop")

    def start(self, environment=None):
        if self.command[0] == PROGRAM:
            self.command = with_devices(self.devices, *self.command)
        super().start({**(environment or os.environ), **self.variables})

    def use(self, percents):
        """Who uses the GPU from now on, as the driver tells it: percents by process."""
        fresh = self.use_file.with_name("gpu-use.new")
        fresh.write_text(",".join(f"{pid}:{percent}" for pid, percent in percents.items()))
        fresh.rename(self.use_file)


def souk(market, token, *words):
    done = subprocess.run([PROGRAM, *words, "--server", market.url], capture_output=True, text=True, timeout=HUNG_S,
                          env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})
    assert done.returncode == 0, done
    return done.stdout


def shown(market, token, job):
    return json.loads(souk(market, token, "job", "show", str(job), "--json"))


def lease_of(market, token, job):
    leases = shown(market, token, job)["leases"]
    return leases[0] if leases else {}


def inmost(pid):
    """The job's own process: the last that its keeper's sandbox started."""
    return descendants(pid)[-1]


@pytest.mark.skipif(is_built_with("libtsan"), reason="TSan cannot run in a sandbox")
def test_a_gpu_is_lent_metered_and_given_back_to_its_owner(tmp_path):
    probing = tmp_path / "probing"
    probing.mkdir()
    if not FIXTURE.exists() or not can_have_devices(probing):
        pytest.skip("needs the fixture, and to be allowed device files of its own")
    with owned(tmp_path, make=GpuLender) as (market, token, lender_token, lender):
        machine = machine_of(market, token)
        probe = machine["probe"]
        assert (probe["gpus_milli"], probe["gpu_ram_bytes"]) == (1000, 4 << 20), probe
        assert machine["free"]["gpus_milli"] == 0  # nothing is lent that no offer names
        offer = market.get("/v1/offers?mine=true", lender_token).json["items"][0]["id"]
        souk(market, lender_token, "offer", "change", str(offer), "--gpus", "1", "-y")
        assert machine_of(market, token)["free"]["gpus_milli"] == 1000
        assert [m["name"] for m in market.get("/v1/machines?min_gpus_milli=1000", token).json["items"]] == ["laptop"]

        answer = market.post("/v1/jobs", {
            "name": "spin", "num_nodes": 1, "runtime": "command", "run": "echo /dev/nvidia[0-9]*; while :; do :; done",
            "resources": {"cpus": "0.1", "memory": "0.1", "accelerators": "1"},
            "market": {"max_run_time": "10m", "expected_run_time": "20s"}}, token)
        assert answer.status == 201, answer
        job = answer.json["id"]
        printed = wait_for("what it prints", lambda: souk(market, token, "job", "logs", str(job)))
        assert printed.split() == [f"/dev/nvidia{MINOR}"], printed
        assert machine_of(market, token)["free"]["gpus_milli"] == 0
        follow(market, token, lender_token, lender, job)
        assert market.post(f"/v1/jobs/{job}/cancel", None, token).status == 200
        wait_for("its end", lambda: shown(market, token, job)["state"] == "cancelled")
        wait_for("the GPU", lambda: machine_of(market, token)["free"]["gpus_milli"] == 1000)

        # Enlisted again it offers what its owner made of the first offer.
        lender.stop()
        code = market.post("/v1/machines/codes", {}, lender_token).json["code"]
        lender.start({**os.environ, "SOUK_LEND_CODE": code})
        wait_for("the machine", lambda: machine_of(market, token)["state"] == "online")
        (kept,) = market.get("/v1/offers?mine=true", lender_token).json["items"]
        assert (kept["id"], kept["gpus_milli"], kept["cores_milli"]) == (offer, 1000, 500), kept
        assert pathlib.Path(lender.log_path).read_text().count(" enlisted ") == 2

def more_gpu_time(market, token, job):
    before = lease_of(market, token, job)["gpu_ms"]
    return wait_for("GPU time", lambda: lease_of(market, token, job)["gpu_ms"] > before)


def follow(market, token, lender_token, lender, job):
    (keeper,) = lender.keepers().values()
    assert lease_of(market, token, job)["gpu_ms"] == 0
    lender.use({inmost(keeper): 60})
    more_gpu_time(market, token, job)
    # A little of another program's is what the guard lets pass, and the lease's own load is not the owner's.
    lender.use({inmost(keeper): 60, os.getpid(): 10})
    more_gpu_time(market, token, job)
    more_gpu_time(market, token, job)
    assert lender.status()["level"] == "full", lender.status()
    lines = souk(market, token, "job", "show", str(job), "--wide").splitlines()
    heads = next(i for i, line in enumerate(lines) if {"LEASE", "GPU"} <= set(line.split()))
    end = lines[heads].index("GPU") + len("GPU")
    assert float(lines[heads + 1][:end].split()[-1].rstrip("s")) > 0, lines

    borrower, lease = Follower(market, token), lease_of(market, token, job)["id"]
    lender.use({inmost(keeper): 60, os.getpid(): 50})
    wait_for("the lease to be held still", lambda: lender.status()["level"] == "frozen", step=0.02)
    assert "GPU" in lender.status()["reason"], lender.status()
    wait_for("the market to know", lambda: lease_of(market, token, job)["yield"] == "frozen")
    assert machine_of(market, lender_token)["yield"] == "frozen"
    borrower.until(lambda data: "state" in data and data["lease"] == lease)
    lender.use({inmost(keeper): 60})
    wait_for("the lease to go on", lambda: lender.status()["level"] == "full", step=0.02)
    wait_for("the market to know", lambda: lease_of(market, token, job)["yield"] == "none")
    assert machine_of(market, lender_token)["yield"] == "none"
