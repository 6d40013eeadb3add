"""libsouk's sync engine between processes: the C example on loopback, ranks killed and started again."""
import os
import pathlib
import socket
import subprocess
import threading
import zlib

import pytest
from serving import HUNG_S

PROGRAM = pathlib.Path(os.environ["SOUK_PROGRAM"]).resolve()
EXAMPLE = PROGRAM.parent / "sync_example"
WORLD = 3
PORT = 7078
AIM = (3, -2, 1)
PATIENT_MS, SHORT_MS = 60000, 8000  # for a rank that is away


class Rank:
    """One rank's process, and what it says."""

    def __init__(self, rank, peers, *arguments, lost_ms=PATIENT_MS):
        environment = {**os.environ, "SOUK_RANK": str(rank), "SOUK_WORLD_SIZE": str(WORLD),
                       "SOUK_PEERS": peers, "SOUK_SYNC_KEY": "of this test",
                       "SOUK_SYNC_LOST_MS": str(lost_ms)}
        self.process = subprocess.Popen([str(EXAMPLE), *map(str, arguments)], env=environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.has_begun = threading.Event()
        self.has_learnt = threading.Event()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if " begins at " in line:
                self.has_begun.set()
            if " learns from the others " in line:
                self.has_learnt.set()
        self.has_begun.set()
        self.has_learnt.set()

    def begun(self):
        assert self.has_begun.wait(HUNG_S), self.lines
        assert self.lines and " begins at " in self.lines[0], self.lines

    def learnt(self):
        assert self.has_learnt.wait(HUNG_S), self.lines
        assert len(self.lines) > 1, self.lines

    def ended(self):
        status = self.process.wait(HUNG_S)
        self.reader.join(HUNG_S)
        assert status == 0, self.lines
        return self.lines[-1].split(" at ")[1]

    def kill(self):
        self.process.kill()
        self.process.wait(HUNG_S)
        self.reader.join(HUNG_S)


class Gate:
    """A way to rank 0's port that can be cut, for one rank after another."""

    def __init__(self, address):
        self.address = address
        self.listener = socket.create_server((address, 0))
        self.peers = f"{address}:{self.listener.getsockname()[1]}"
        self.ways = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((self.address, PORT))
            except OSError:
                near.close()
                continue
            self.ways.append((near, far))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    @staticmethod
    def _carry(one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for ends in self.ways:
            for end in ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


@pytest.fixture
def address(request):
    """Of this test alone."""
    number = os.getpid() * 64 + zlib.crc32(request.node.name.encode()) % 64
    return f"127.{2 + (number >> 16) % 250}.{number >> 8 & 255}.{1 + (number & 255) % 254}"


@pytest.fixture
def gate(address):
    gate = Gate(address)
    yield gate
    gate.close()


@pytest.fixture
def start(address):
    """Starts ranks at an address of this test's own; what is left of them ends with it."""
    ranks = []

    def start_rank(rank, *arguments, peers=address, **options):
        ranks.append(Rank(rank, peers, *arguments, **options))
        return ranks[-1]

    yield start_rank
    for rank in ranks:
        if rank.process.poll() is None:
            rank.kill()


def all_same(ranks):
    """And far nearer to the aim than at the start: how near depends on when ranks came to run."""
    ends = {rank.ended() for rank in ranks}
    assert len(ends) == 1, ends
    weights = [float(weight) for weight in ends.pop().split()]
    for weight, aim in zip(weights, AIM, strict=True):
        assert abs(weight - aim) < abs(aim) / 2, weights


@pytest.mark.parametrize("policy", ["adsp", "bsp"])
def test_three_ranks_end_with_one_model(start, policy):
    all_same([start(rank, policy, 400, 2) for rank in range(WORLD)])


def test_the_others_go_on_when_a_rank_is_killed(start):
    ranks = [start(rank, "bsp", 300, 2, lost_ms=SHORT_MS) for rank in range(2)]
    victim = start(2, "bsp", 1000000, 2, lost_ms=SHORT_MS)
    for rank in [*ranks, victim]:
        rank.begun()
    victim.kill()
    all_same(ranks)


def test_a_rank_that_was_killed_comes_back(start):
    ranks = [start(rank, "adsp", 300, 2) for rank in range(2)]
    victim = start(2, "adsp", 1000000, 2)
    for rank in [*ranks, victim]:
        rank.begun()
    victim.kill()
    all_same([*ranks, start(2, "adsp", 100, 2)])


def test_the_others_find_the_successor_of_rank0(start):
    victim = start(0, "adsp", 1000000, 2)
    ranks = [start(rank, "adsp", 1200, 2) for rank in (1, 2)]
    for rank in ranks:
        rank.learnt()
    victim.kill()
    successor = start(0, "adsp", 200, 2)
    successor.begun()
    all_same([successor, *ranks])
    # The others' model: they had trained before it came.
    assert " begins at 0.000 0.000 0.000" not in successor.lines[0]


def test_training_does_not_notice_a_broken_link(start, gate):
    """Rank 0 tells of its server again on the new link, while the stream to it stands: no push is lost."""
    ranks = [start(0, "bsp", 600, 2), start(1, "bsp", 600, 2, peers=gate.peers), start(2, "bsp", 600, 2)]
    for rank in ranks:
        rank.learnt()
    gate.cut()
    all_same(ranks)
    for rank in ranks:
        assert rank.lines[-2].endswith(" made 600 steps and 600 commits"), rank.lines
