"""souk.tensorflow beside one process that trains alone: ranks are processes here, over loopback; and on lent machines.

TensorFlow comes from PyPI into a venv (tests/frameworks/venv).
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


@pytest.fixture(scope="session")
def python():
    venv = subprocess.run([HERE / "venv", "tensorflow"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{venv}/bin/python"


@pytest.fixture
def start(python, request):
    """Starts a script as one rank of three, or of one."""
    number = os.getpid() * 64 + zlib.crc32(request.node.name.encode()) % 64
    peers = f"127.{2 + (number >> 16) % 250}.{number >> 8 & 255}.{1 + (number & 255) % 254}"
    running = []

    def run(rank, world, *script):
        environment = {**os.environ, "SOUK_RANK": str(rank), "SOUK_WORLD_SIZE": str(world), "SOUK_PEERS": peers,
                       "SOUK_SYNC_KEY": "of this test", "SOUK_SYNC_JOIN_MS": "600000", "SOUK_SYNC_LOST_MS": "120000",
                       "SOUK_LIBRARY": str(BUILT / "libsouk.so.0"), "PYTHONPATH": str(ROOT / "python"),
                       "TF_CPP_MIN_LOG_LEVEL": "1", "CUDA_VISIBLE_DEVICES": ""}
        running.append(subprocess.Popen([python, *map(str, script)], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def train(start):
    """Trains by all ranks; returns what each says: the loss before and after, and the sum of weights."""
    def run(how, *more):
        world = 1 if how == "alone" else 3
        ranks = [start(rank, world, HERE / "souk_tensorflow_train.py", how, *more) for rank in range(world)]
        says = [rank.communicate(timeout=HUNG_JOB_S)[0] for rank in ranks]
        assert all(rank.returncode == 0 for rank in ranks), says
        return [tuple(map(float, re.search(r"before (\S+) after (\S+) weights (\S+)", text).groups())) for text in says]
    return run


def test_adsp_comes_to_the_loss_of_one_process(train):
    """Both come far below where they began; statistics of a layer that are not trained are the same everywhere, too."""
    by_souk, alone = train("adsp", 600, "norm"), train("alone", 600, "norm")
    assert len(set(by_souk)) == 1, by_souk  # all ranks have the same model
    before, after, _ = by_souk[0]
    assert alone[0][0] == pytest.approx(before)
    assert after < 0.3 * before and after < alone[0][1] + 0.15 * before, (by_souk, alone)


def test_bsp_is_one_process_with_the_whole_batch(train):
    by_souk, alone = train("bsp", 50), train("alone", 50)
    assert len(set(by_souk)) == 1, by_souk
    before, after, _ = by_souk[0]
    assert after < before and after < alone[0][1] + 0.02 * before, (by_souk, alone)


def test_mistakes_are_told_and_any_model_is_trained(start):
    process = start(0, 1, HERE / "souk_tensorflow_check.py")
    said = process.communicate(timeout=HUNG_JOB_S)[0]
    assert process.returncode == 0, said


def test_ranks_on_lent_machines_train_with_nothing_brought(python, tmp_path):
    venv = pathlib.Path(python).parent.parent

    class Lending(Place):
        def lender_of(self, name):
            return {"options": ("--network", "job", "--software", f"tensorflow={venv}")}

    place = Lending(tmp_path, ("first", "second", "third"))
    try:
        done = place.run((HERE / "souk_tensorflow_train.py").read_text(),
                         {"runtime": "tensorflow", "num_nodes": 3, "run": "exec python3 script.py bsp 50",
                          "envs": {"TF_CPP_MIN_LOG_LEVEL": "1"},
                          "resources": {"cpus": 0.5, "memory": 1, "labels": ["tensorflow"]}})
        said = [place.log(rank) for rank in range(3)]
        assert done.returncode == 0, (done.out, done.err, said)
        told = [re.search(r"before (\S+) after (\S+) weights (\S+)", text).groups() for text in said]
        assert len(set(told)) == 1 and float(told[0][1]) < float(told[0][0]), said
    finally:
        place.stop()
