"""What ranks print, read from the lenders' machines without the market between.

covers peer/log_server.c, peer/tenancy_direct.c, server/direct.c, server/handle_direct.c, client/direct.c, cli/rank_log.c,
cli/run_follow.c, client/follow.c
"""
import os
import pathlib
import signal
import subprocess
import uuid

import pytest

from checkpoints import processes_with
from serving import HUNG_S, PROGRAM, Market, own_addresses
from training import Lender, wait_for


def open_place(folder, *options):
    market = Market(folder / "market", "--no-local-lender", *own_addresses())
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, folder / name, name, options=options) for name in ("first", "second")]
    wait_for("two machines", lambda: 2 == sum(
        m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
    return market, token, folder, lenders


@pytest.fixture
def place(tmp_path, request):
    place = open_place(tmp_path, *getattr(request, "param", ()))
    try:
        yield place
    finally:
        for lender in place[3]:
            lender.stop()
        place[0].stop()


def run(place, *arguments):
    market, token, folder, _ = place
    return subprocess.Popen([PROGRAM, "run", "-y", "--server", market.url, "--config-dir", str(folder / "config"),
                             "--cpus", "0.2", "--memory", "0.1", *arguments],
                            stdin=subprocess.DEVNULL, stdout=open(folder / "run", "wb"),
                            stderr=open(folder / "run.err", "wb"),
                            env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def lines_of(folder, prefix=""):
    return [line.removeprefix(prefix) for line in (folder / "run").read_text().splitlines() if line.startswith(prefix)]


def readers(lenders):
    return sum(pathlib.Path(lender.log_path).read_text().count("info log_reader ") for lender in lenders)


# Prints half of its lines, then waits for a signal; does so twice.
SCRIPT = """exec /usr/bin/python3 -c '
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def say(first, last):
    for i in range(first, last + 1):
        os.write(1, LINE)
    signal.sigwait([signal.SIGUSR1])
say(1, 60)
say(61, 120)
print("the end")
' """


class Ranks:
    """A job of `count` ranks, each of which prints lines like `line`."""

    def __init__(self, place, count, *options, line='("%s line %d" % (os.environ["SOUK_RANK"], i)).encode() + bytes([10])'):
        self.count, self.word, self.told = count, uuid.uuid4().hex, 0
        self.path = place[2] / "run"
        self.process = run(place, "-n", str(count), *options, "--", SCRIPT.replace("LINE", line) + self.word)

    def read(self):
        return self.path.read_bytes().splitlines()

    def wait_until_read(self, number):
        """Waits until line `number` of every rank has arrived."""
        wait_for(f"line {number} of every rank", lambda: self.count == sum(
            line.split()[-1] == b"%d" % number for line in self.read() if line), step=0.02)

    def go_on(self):
        pids = processes_with(self.word)
        assert len(pids) == self.count
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)

    def wait_for_end(self):
        assert self.process.wait(HUNG_S) == 0, self.path.with_name("run.err").read_text()

    def assert_said(self):
        for rank in range(self.count):
            assert lines_of(self.path.parent, f"rank {rank} | ") == [f"{rank} line {i}" for i in range(1, 121)] + ["the end"]


def test_lines_come_while_the_market_does_nothing(place):
    market, _, folder, lenders = place
    ranks = Ranks(place, 2)
    wait_for("a reader at each machine", lambda: readers(lenders) == 2, step=0.02)
    ranks.wait_until_read(60)
    os.kill(market.process.pid, signal.SIGSTOP)
    try:
        ranks.go_on()
        ranks.wait_until_read(120)
    finally:
        os.kill(market.process.pid, signal.SIGCONT)
    ranks.go_on()
    ranks.wait_for_end()
    ranks.assert_said()
    assert "2 ranks read directly" in (folder / "run.err").read_text()


def test_lines_go_on_when_the_market_is_killed(place):
    market, _, _, lenders = place
    ranks = Ranks(place, 2)
    wait_for("a reader at each machine", lambda: readers(lenders) == 2, step=0.02)
    ranks.wait_until_read(60)
    market.kill()
    ranks.go_on()
    ranks.wait_until_read(120)
    market.start()
    ranks.go_on()
    ranks.wait_for_end()
    ranks.assert_said()


def test_bytes_that_are_no_text_are_counted_alike_by_both(place):
    """The market's text has three bytes for each of them, and comes again for all that was read directly."""
    market, _, _, lenders = place
    ranks = Ranks(place, 1, line="bytes([255, 195]) + b\" %d\" % i + bytes([10])")
    wait_for("a reader", lambda: readers(lenders) == 1, step=0.02)
    ranks.wait_until_read(60)
    os.kill(market.process.pid, signal.SIGSTOP)
    try:
        ranks.go_on()
        wait_for("a line as it was printed", lambda: b"\xff\xc3 120" in ranks.read(), step=0.02)
    finally:
        os.kill(market.process.pid, signal.SIGCONT)
    ranks.go_on()
    ranks.wait_for_end()
    said = ranks.read()
    assert [line.split()[-1] for line in said] == [b"%d" % i for i in range(1, 121)] + [b"end"]
    assert {line.split()[0] for line in said[:-1]} <= {b"\xff\xc3", "\ufffd\ufffd".encode()}


def test_no_direct_reads_from_the_market_alone(place):
    market, _, folder, lenders = place
    ranks = Ranks(place, 2, "--no-direct")
    ranks.wait_until_read(60)
    market.kill()
    ranks.go_on()
    market.start()
    ranks.wait_until_read(120)
    ranks.go_on()
    ranks.wait_for_end()
    ranks.assert_said()
    assert readers(lenders) == 0
    assert "read directly" not in (folder / "run.err").read_text()


@pytest.mark.parametrize("place", [("--no-direct",)], indirect=True)
def test_a_lender_that_lets_nobody_connect_is_read_through_the_market(place):
    market, token, _, lenders = place
    ranks = Ranks(place, 2)
    ranks.wait_until_read(60)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    assert market.post(f"/v1/jobs/{job}/direct", {}, token).json == {"items": []}
    ranks.go_on()
    ranks.wait_until_read(120)
    ranks.go_on()
    ranks.wait_for_end()
    ranks.assert_said()
    assert readers(lenders) == 0


def test_only_the_jobs_own_account_is_told_where(place):
    market, token, _, lenders = place
    ranks = Ranks(place, 2)
    wait_for("a reader at each machine", lambda: readers(lenders) == 2, step=0.02)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    stranger = market.sign_up("stranger")
    assert market.post(f"/v1/jobs/{job}/direct", {}, stranger).status == 404
    assert market.post(f"/v1/jobs/{job}/direct", {}).status == 401
    reading = market.post("/v1/tokens", {"name": "reads", "scopes": ["read"]}, token).json["token"]
    first, second = (market.post(f"/v1/jobs/{job}/direct", {}, reading).json["items"] for _ in range(2))
    assert sorted(item["rank"] for item in first) == ["0", "1"]
    keys = [item["key"] for item in first + second]
    assert len(set(keys)) == 4 and all(len(key) == 64 for key in keys)
    assert all(item["addresses"] for item in first)
    for path in [*(lender.log_path for lender in lenders), market.log.name]:
        text = pathlib.Path(path).read_text()
        assert not any(key in text for key in keys)
    for number in (60, 120):
        ranks.wait_until_read(number)
        ranks.go_on()
    ranks.wait_for_end()
    assert market.post(f"/v1/jobs/{job}/direct", {}, token).json == {"items": []}
