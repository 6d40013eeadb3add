"""Workers of one job get its files from each other, and from the market about once.

covers peer/chunk_source.c, peer/chunk_peers.c, peer/chunk_server.c, peer/tenancy_source.c, server/sources.c
"""
import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest

from serving import HUNG_S, PROGRAM, Market
from test_fetch import MIB, Relay, files_of
from training import Lender, wait_for

RANKS = 4
BUNDLE_MIB = int(os.environ.get("SOUK_EXCHANGE_MIB", "32"))


class NarrowRelay(Relay):
    """A market whose line carries so many bytes a second, all lenders together."""

    def __init__(self, market_url, bytes_per_s):
        self.bytes_per_s, self.free_at = bytes_per_s, time.monotonic()
        super().__init__(market_url)

    def carry_down(self, client, server, state):
        while data := server.recv(65536):
            with self.lock:
                self.free_at = max(self.free_at, time.monotonic()) + len(data) / self.bytes_per_s
                wait, self.bytes_down = self.free_at - time.monotonic(), self.bytes_down + len(data)
            if self.stopped.wait(max(wait, 0)):
                return
            client.sendall(data)


class Place:
    def __init__(self, folder, *lend_options):
        self.folder, self.ends = folder, contextlib.ExitStack()
        self.market = Market(folder / "market", "--no-local-lender")
        self.ends.callback(self.market.stop)
        self.token, lender_token = self.market.sign_up("borrower"), self.market.sign_up("lender")
        self.relay = NarrowRelay(self.market.url, 12 * MIB)
        self.ends.callback(self.relay.close)
        self.lenders = []
        for number in range(RANKS):
            code = self.market.post("/v1/machines/codes", {}, lender_token).json["code"]
            lender = Lender.__new__(Lender)
            lender.command = [PROGRAM, "lend", "--state-dir", str(folder / f"lender{number}"), "--server", self.relay.url,
                              "--name", f"lender{number}", "--cores", "0.5", "--no-watch", *lend_options]
            lender.log_path = f"{folder}/lender{number}.log"
            lender.start({**os.environ, "SOUK_LEND_CODE": code})
            self.ends.callback(lender.stop)
            self.lenders.append(lender)
        wait_for("the machines", lambda: RANKS == sum(
            m["state"] == "online" for m in self.market.get("/v1/machines", self.token).json["items"]), step=0.05)

    def run(self, files, *command, options=()):
        began, before = time.monotonic(), self.relay.bytes_down
        done = subprocess.run(
            [PROGRAM, "run", "-y", "-n", str(RANKS), "--server", self.market.url, "--config-dir", str(self.folder / "config"),
             "--cpus", "0.1", "--memory", "0.2", "--files", str(files), *options, "--", *command],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=HUNG_S,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})
        assert done.returncode == 0, (done, [pathlib.Path(l.log_path).read_text()[-2000:] for l in self.lenders])
        return done.stdout, self.relay.bytes_down - before, time.monotonic() - began

    def fetched(self):
        """What each lender's leases got from the market and from others, in bytes."""
        text = "".join(pathlib.Path(lender.log_path).read_text() for lender in self.lenders)
        return [tuple(map(int, found)) for found in re.findall(r"data_fetched .*market_bytes=(\d+) direct_bytes=(\d+)", text)]


@pytest.fixture
def made(tmp_path):
    with contextlib.ExitStack() as open_places:
        def make(*lend_options):
            place = Place(tmp_path, *lend_options)
            open_places.callback(place.ends.close)
            return place
        yield make


def test_the_market_sends_a_bundle_about_once(made, tmp_path):
    place = made()
    size = BUNDLE_MIB * MIB
    digest = files_of(tmp_path / "files", size, seed=1)
    out, down, seconds = place.run(tmp_path / "files", "sha256sum", "data", options=["--no-direct"])  # no borrower to ask
    assert out.count(digest) == RANKS, out
    fetched = place.fetched()
    assert len(fetched) == RANKS
    market, direct = sum(m for m, _ in fetched), sum(d for _, d in fetched)
    print(f"{RANKS} ranks, {BUNDLE_MIB} MiB: {market / size:.2f} times from the market, {direct / size:.2f} directly, {seconds:.1f} s")
    assert market + direct >= RANKS * size
    assert down < 2 * size and market < 2 * size, fetched  # each for itself: 4


def test_where_nobody_may_connect_all_comes_from_the_market(made, tmp_path):
    place = made("--no-direct")
    digest = files_of(tmp_path / "files", 10 * MIB, seed=2)
    out, _, _ = place.run(tmp_path / "files", "sha256sum", "data")
    assert out.count(digest) == RANKS, out
    assert all(market >= 10 * MIB and direct == 0 for market, direct in place.fetched())
