"""souk.torch beside torch's own DistributedDataParallel: ranks are processes here, over loopback; and on lent machines.

Needs Debian's python3-torch, which `make test-frameworks` installs.
"""
import os
import pathlib
import re
import subprocess
import sys
import zlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "system"))

from ranks import HUNG_JOB_S, Place  # noqa: E402

BUILT = pathlib.Path(os.environ.get("SOUK_PROGRAM", ROOT / "build" / "release" / "souk")).resolve().parent


@pytest.fixture
def train(tmp_path, request):
    """Trains by all ranks; returns what each says: the loss before and after, and the sum of weights."""
    number = os.getpid() * 64 + zlib.crc32(request.node.name.encode()) % 64
    peers = f"127.{2 + (number >> 16) % 250}.{number >> 8 & 255}.{1 + (number & 255) % 254}"
    running = []

    def run(how, steps):
        environment = {**os.environ, "SOUK_WORLD_SIZE": "3", "SOUK_PEERS": peers, "SOUK_SYNC_KEY": "of this test",
                       "SOUK_LIBRARY": str(BUILT / "libsouk.so.0"), "PYTHONPATH": str(ROOT / "python"),
                       "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, str(HERE / "souk_torch_train.py"), how, str(steps), str(tmp_path / f"store-{how}")]
        ranks = [subprocess.Popen(command, env={**environment, "SOUK_RANK": str(rank)}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for rank in range(1 if how == "alone" else 3)]
        running.extend(ranks)
        says = [rank.communicate(timeout=HUNG_JOB_S)[0] for rank in ranks]
        assert all(rank.returncode == 0 for rank in ranks), says
        return [tuple(map(float, re.search(r"before (\S+) after (\S+) weights (\S+)", text).groups())) for text in says]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_adsp_and_ddp_train_the_same_model_to_the_same_loss(train):
    """Both come far below where they began, and are near each other: what is left is a small part of that."""
    by_souk, by_ddp = train("adsp", 600), train("ddp", 600)
    assert len(set(by_souk)) == 1, by_souk  # all ranks have the same model
    before, of_souk, _ = by_souk[0]
    assert by_ddp[0][0] == pytest.approx(before)
    assert of_souk < 0.2 * before, (by_souk, by_ddp)
    assert by_ddp[0][1] < 0.2 * before, (by_souk, by_ddp)
    assert abs(of_souk - by_ddp[0][1]) < 0.1 * before, (by_souk, by_ddp)


def test_bsp_is_one_process_with_the_whole_batch(train):
    by_souk, alone = train("bsp", 50), train("alone", 50)
    assert len(set(by_souk)) == 1, by_souk
    assert by_souk[0] == pytest.approx(alone[0], rel=1e-3, abs=1e-3)


def test_ranks_on_lent_machines_train_with_nothing_brought(tmp_path):
    place = Place(tmp_path, ("first", "second", "third"))
    try:
        done = place.run((HERE / "souk_torch_train.py").read_text(),
                         {"runtime": "torch", "num_nodes": 3, "run": "exec /usr/bin/python3 script.py adsp 600 none",
                          "resources": {"cpus": 0.3, "memory": 0.8, "labels": ["python3-torch"]}})
        said = [place.log(rank) for rank in range(3)]
        assert done.returncode == 0, (done.out, done.err, said)
        told = [re.search(r"before (\S+) after (\S+) weights (\S+)", text).groups() for text in said]
        assert len(set(told)) == 1 and float(told[0][1]) < 0.3 * float(told[0][0]), said
    finally:
        place.stop()


def test_mistakes_are_told():
    environment = {**os.environ, "SOUK_LIBRARY": str(BUILT / "libsouk.so.0"), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, HERE / "souk_torch_check.py"], env=environment, capture_output=True, text=True,
                          timeout=HUNG_JOB_S)
    assert done.returncode == 0, done.stderr
