"""Leases get a job's files from who submits it, where that one can be reached, and from the market otherwise.

covers client/source.c, server/borrower.c, server/handle_source.c, peer/tenancy_source.c
"""
import os
import re
import signal
import socket
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from test_fetch import MIB, Relay, files_of
from training import Lender, wait_for

SIZE = 20 * MIB


class Place:
    """A market, a lender that comes when it is told to, behind a relay that counts, and a borrower."""

    def __init__(self, folder):
        self.folder = folder
        self.market = Market(folder / "market", "--no-local-lender")
        self.token, self.lender_token = self.market.sign_up("borrower"), self.market.sign_up("lender")
        self.relay = Relay(self.market.url)
        self.lenders, self.runs = [], []

    def lend(self, *options):
        name = f"lender{len(self.lenders)}"
        code = self.market.post("/v1/machines/codes", {}, self.lender_token).json["code"]
        lender = Lender.__new__(Lender)
        lender.command = [PROGRAM, "lend", "--state-dir", str(self.folder / name), "--server", self.relay.url, "--name", name,
                          "--cores", "1", "--no-watch", *options]
        lender.log_path = f"{self.folder}/{name}.log"
        lender.start({**os.environ, "SOUK_LEND_CODE": code})
        self.lenders.append(lender)
        wait_for("the machine", lambda: len(self.lenders) == sum(
            m["state"] == "online" for m in self.market.get("/v1/machines", self.token).json["items"]), step=0.05)

    def run(self, *options):
        self.runs.append(subprocess.Popen(
            [PROGRAM, "run", "-y", "--wait", "--server", self.market.url, "--config-dir", str(self.folder / "config"),
             "--cpus", "0.5", "--memory", "0.2", "--files", str(self.folder / "files"), *options, "--", "sha256sum", "data"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"}))
        return self.runs[-1]

    def is_waiting(self):
        return self.reached() == 1 and self.market.get("/v1/jobs", self.token).json["items"]

    def reached(self):
        return self.market_log().count("info borrower_reached ")

    def market_log(self):
        with open(self.market.log.name, encoding="utf-8") as log:
            return log.read()

    def fetched(self):
        """What each lease got from the market and from others, in bytes."""
        text = "".join(open(lender.log_path, encoding="utf-8").read() for lender in self.lenders)
        return [tuple(map(int, found)) for found in re.findall(r"data_fetched .*market_bytes=(\d+) direct_bytes=(\d+)", text)]

    def close(self):
        for process in self.runs:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for lender in self.lenders:
            lender.stop()
        self.relay.close()
        self.market.stop()


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.close()


def expect_end(process, digest, ranks=1):
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0 and out.count(digest) == ranks, (out, err)


def test_leases_get_the_files_from_who_submits(place, tmp_path):
    digest = files_of(tmp_path / "files", SIZE, seed=11)
    place.lend()
    place.lend()
    expect_end(place.run("-n", "2"), digest, ranks=2)
    assert place.reached() == 1
    assert len(place.fetched()) == 2
    for market, direct in place.fetched():
        assert market < MIB / 4 and direct >= SIZE, place.fetched()
    assert place.relay.bytes_down < SIZE / 4


def test_a_machine_that_comes_later_is_told_too(place, tmp_path):
    digest = files_of(tmp_path / "files", SIZE, seed=12)
    process = place.run()
    wait_for("the job and the market's link", place.is_waiting, step=0.02)
    place.lend()
    expect_end(process, digest)
    [(market, direct)] = place.fetched()
    assert market < MIB / 4 and direct >= SIZE


def test_one_that_does_not_answer_costs_a_moment(place, tmp_path):
    digest = files_of(tmp_path / "files", SIZE, seed=13)
    process = place.run()
    wait_for("the job and the market's link", place.is_waiting, step=0.02)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        place.lend()
        wait_for("the data", place.fetched, step=0.02)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    expect_end(process, digest)
    [(market, direct)] = place.fetched()
    assert market >= SIZE and direct == 0


def test_one_that_left_is_not_asked(place, tmp_path):
    files_of(tmp_path / "files", SIZE, seed=14)
    process = place.run()
    wait_for("the job and the market's link", place.is_waiting, step=0.02)
    process.kill()
    process.wait()
    place.lend()
    wait_for("the data", place.fetched, step=0.02)
    [(market, direct)] = place.fetched()
    assert market >= SIZE and direct == 0
    wait_for("the job's end", lambda: place.market.get("/v1/jobs", place.token).json["items"][0]["state"] == "succeeded")


@pytest.mark.parametrize("who", ["borrower", "lender"])
def test_no_direct_at_either_end_is_the_market(place, tmp_path, who):
    digest = files_of(tmp_path / "files", SIZE, seed=15)
    place.lend(*["--no-direct"] if who == "lender" else [])
    expect_end(place.run(*["--no-direct"] if who == "borrower" else []), digest)
    [(market, direct)] = place.fetched()
    assert market >= SIZE and direct == 0
    assert place.reached() == (1 if who == "lender" else 0)


def test_the_market_links_to_the_caller_alone_and_believes_no_address(place):
    offer = {"manifest": "1" * 64, "key": "2" * 64, "port": 2000, "addresses": []}
    with socket.socket() as closed, socket.socket() as mute:
        closed.bind(("127.0.0.1", 0))
        offer["port"] = closed.getsockname()[1]
        assert place.market.post("/v1/sources", offer, place.token).json == {"is_reached": False}
        # Somebody listens, but has not the key: what it is told to say is not believed.
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with socket.create_server(("192.0.2.2", 0)) if has_address("192.0.2.2") else socket.create_server(("127.0.0.2", 0)) as other:
            host, port = other.getsockname()
            offer.update(port=mute.getsockname()[1], addresses=[f"{host}:{port}"])
            assert place.market.post("/v1/sources", offer, place.token).json == {"is_reached": False}
            other.settimeout(0)
            with pytest.raises(BlockingIOError):
                other.accept()
    assert place.reached() == 0
    assert place.market.post("/v1/sources", offer).status == 401
    for wrong in ({"port": 80}, {"port": 70000}, {"key": "2" * 63}, {"manifest": "x" * 64}, {"addresses": ["1.2.3.4:5000"] * 8}):
        assert place.market.post("/v1/sources", {**offer, **wrong}, place.token).status == 400, wrong
    assert "2" * 64 not in place.market_log()


def has_address(host):
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
        return True
