"""Machines that are far from the market and near each other: tried with one another, and taken.

covers server/trial.c, server/seek.c, peer/trial.c
"""
import asyncio
import contextlib
import os
import pathlib
import re
import subprocess
import threading

import pytest

from serving import HUNG_S, PROGRAM, Market, audit, is_built_with, own_port
from training import Lender, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="sandboxes cannot run it")

DELAY_S = 0.1  # each way, so that two machines are 400 ms apart through the market


class Lines:
    """Connections carried byte by byte: slowly, from another address, or with words replaced."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def open(self, target, delay_s=0.0, source=None, replaced=None):
        """A port of 127.0.0.1; `target` is a port there, or a function that knows it later."""
        async def listen():
            async def carry(reader, writer):
                with contextlib.suppress(OSError):
                    port = target() if callable(target) else target
                    far_reader, far_writer = await asyncio.open_connection(
                        "127.0.0.1", port, local_addr=source and (source, 0))
                    await asyncio.gather(self.pump(reader, far_writer, delay_s, None),
                                         self.pump(far_reader, writer, delay_s, replaced))
            return await asyncio.start_server(carry, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(listen(), self.loop).result(HUNG_S)
        return server.sockets[0].getsockname()[1]

    async def pump(self, reader, writer, delay_s, replaced):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if replaced:
                    data = data.replace(*replaced)
                self.loop.call_later(delay_s, self.write, writer, data)
        self.loop.call_later(delay_s, writer.close)

    def write(self, writer, data):
        with contextlib.suppress(OSError, RuntimeError):
            writer.write(data)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(HUNG_S)


class Place:
    """heron and wren, near each other; owl, whom the market sees at another address, is not."""

    def __init__(self, folder):
        self.folder = folder
        self.ends = contextlib.ExitStack()
        lines = Lines()
        self.ends.callback(lines.close)
        link_port = own_port()
        near = lines.open(link_port, DELAY_S)
        far = lines.open(link_port, DELAY_S, source="127.0.0.9")
        self.market = Market(folder / "market", "--link-listen", f"127.0.0.1:{link_port}", "--link-address",
                             f"127.0.0.1:{near}", "--no-local-lender")
        self.ends.callback(self.market.stop)
        api_port = int(self.market.url.rsplit(":", 1)[1])
        assert len(str(near)) == len(str(far)), "answers keep their length"
        elsewhere = lines.open(api_port, replaced=(f"127.0.0.1:{near}".encode(), f"127.0.0.1:{far}".encode()))
        self.owner, self.token = self.market.sign_up("owner"), self.market.sign_up("borrower")
        for name in ("heron", "wren", "owl"):
            self.lend(name, f"http://127.0.0.1:{elsewhere}" if name == "owl" else self.market.url)
        wait_for("the round trips of three machines", lambda: 3 == len(
            [m for m in self.machines() if m["state"] == "online" and m["probe"]["rtt_us"] > 2e6 * DELAY_S]))

    def lend(self, name, url):
        code = self.market.post("/v1/machines/codes", {}, self.owner).json["code"]
        lender = Lender.__new__(Lender)
        lender.command = [PROGRAM, "lend", "--state-dir", str(self.folder / name), "--server", url, "--name",
                          name, "--cores", "0.5", "--roles", "worker", "--no-watch"]
        lender.log_path = f"{self.folder / name}.log"
        lender.start({**os.environ, "SOUK_LEND_CODE": code})
        self.ends.callback(lender.stop)

    def machines(self):
        return self.market.get("/v1/machines", self.token).json["items"]

    def souk(self, *words):
        return subprocess.run([PROGRAM, *words, "--server", self.market.url], capture_output=True, text=True,
                              timeout=HUNG_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1",
                                   "XDG_CONFIG_HOME": str(self.folder / "config")})

    def run(self, *words):
        done = subprocess.run([PROGRAM, "run", "--server", self.market.url, "--cpus", "0.1", "--memory", "0.1",
                               "-y", *words], capture_output=True, text=True, timeout=HUNG_S,
                              stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1",
                                                             "XDG_CONFIG_HOME": str(self.folder / "config")})
        return done

    def log(self):
        return pathlib.Path(f"{self.market.folder}.log").read_text()

    def last_job(self):
        return self.market.get("/v1/jobs", self.token).json["items"][0]


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    with place.ends:
        yield place


def test_two_that_are_near_each_other_are_taken_though_the_market_is_far_from_both(place):
    assert "pair_tried" not in place.log(), "nobody asked for it"
    done = place.run("-n", "2", "--max-rtt", "200ms", "--", "true")
    assert done.returncode == 0, done
    bill = place.market.get(f"/v1/jobs/{place.last_job()['id']}/bill", place.token).json
    assert sorted(line["machine_name"] for line in bill["lines"]) == ["heron", "wren"]
    ids = {machine["name"]: machine["id"] for machine in place.machines()}
    tried = {(int(low), int(high)): int(rtt_us) for low, high, rtt_us in re.findall(
        r"pair_tried low=(\d+) high=(\d+) rtt_us=(\d+)", place.log())}
    near = tuple(sorted((ids["heron"], ids["wren"])))
    assert list(tried) == [near], "owl can be told nowhere to dial"
    assert 0 < tried[near] < 200000

    shown = place.souk("machines", "show", "heron").stdout
    assert re.search(r"^Near: +wren [\d.]+ ms, directly and back$", shown, re.M), shown

    # What was found serves the next job, and replays.
    before = place.log().count("pair_tried")
    assert place.run("-n", "2", "--max-rtt", "200ms", "--", "true").returncode == 0
    assert place.log().count("pair_tried") == before
    place.market.stop()
    status, text = audit(place.market.folder)
    assert status == 0, text


def test_a_job_that_waits_says_which_two_are_too_far_apart(place):
    refused = place.run("-n", "3", "--max-rtt", "200ms", "--", "true")
    assert refused.returncode == 7 and "ms apart through the market; nothing was sent" in refused.stderr, refused
    done = place.run("-n", "3", "--max-rtt", "200ms", "--wait", "--detach", "--", "true")
    assert done.returncode == 0, done
    job = place.last_job()["id"]
    wait_for("heron and wren to be tried", lambda: "pair_tried" in place.log())
    explained = " ".join(place.souk("job", "explain", str(job)).stdout.split())
    said = re.search(r"too few are within max_rtt 200 ms: (\w+) and (\w+) are ([\d.]+) ms apart through the market",
                     explained)
    assert said, explained
    assert "owl" in said.groups() and float(said[3]) > 4e3 * DELAY_S
    assert place.last_job()["state"] == "pending"
