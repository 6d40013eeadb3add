"""How chunks get to a lender: packed, in pieces over a bad line, once for all leases, within a quota.

covers blob/blob_partial.c, blob/blob_pins.c, blob/blob_coding.c, peer/fetch.c, peer/chunk_call.c
covers peer/shard.c, peer/cache.c, server/handle_blob.c
"""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import threading
import urllib.parse

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for
from zstd_frame import packed, unpacked

MIB = 1 << 20


def name_of(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


class Relay:
    """HTTP between a lender and the market, byte by byte, with the faults a line can have."""

    def __init__(self, market_url, cut=None, drip=None):
        where = urllib.parse.urlsplit(market_url)
        self.market = (where.hostname, where.port)
        self.cut = cut  # how many bytes of answers the next connection carries; None: all
        self.drip = drip  # a function of the request's head: seconds between single bytes, or None
        self.cut_count, self.bytes_down, self.heads = 0, 0, []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.is_open, self.stopped, self.gate = True, threading.Event(), threading.Event()
        self.gate.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        with contextlib.ExitStack() as ends:
            ends.callback(client.close)
            self.gate.wait(HUNG_S)
            if not self.is_open:
                return
            try:
                server = socket.create_connection(self.market, timeout=HUNG_S)
            except OSError:
                return
            ends.callback(server.close)
            state = {"drip": None}
            threading.Thread(target=self.carry_up, args=(client, server, state), daemon=True).start()
            with contextlib.suppress(OSError):
                self.carry_down(client, server, state)
            for end in (client, server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def carry_up(self, client, server, state):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                head = re.match(rb"(GET|PUT) /v1/chunks/([0-9a-f]+) .*?\r\n\r\n", data, re.S)
                if head:
                    with self.lock:
                        self.heads.append(head.group(0).decode())
                    state["drip"] = self.drip and self.drip(head.group(0).decode())
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def carry_down(self, client, server, state):
        with self.lock:
            left = self.cut() if self.cut else 1 << 60
        while left > 0:
            data = server.recv(min(left, 65536))
            if not data:
                return
            if state["drip"]:
                for i in range(len(data)):
                    client.sendall(data[i:i + 1])
                    if self.stopped.wait(state["drip"]):
                        return
            else:
                client.sendall(data)
            left -= len(data)
            with self.lock:
                self.bytes_down += len(data)
        with self.lock:
            self.cut_count += 1

    def gets(self):
        """Chunks asked for, each with how often and from which bytes."""
        found = {}
        with self.lock:
            for head in self.heads:
                if head.startswith("GET"):
                    found.setdefault(head.split("/")[3].split()[0], []).append(
                        (re.search(r"(?im)^range: *bytes=(\d+)-", head) or [0, "0"])[1])
        return found

    def close(self):
        self.stopped.set()
        self.listener.close()


class Place:
    def __init__(self, folder, *lend_options, **relay_options):
        self.folder = folder
        self.ends = contextlib.ExitStack()
        self.market = Market(folder / "market", "--no-local-lender")
        self.ends.callback(self.market.stop)
        self.token = self.market.sign_up("borrower")
        lender_token = self.market.sign_up("lender")
        self.relay = Relay(self.market.url, **relay_options)
        self.ends.callback(self.relay.close)
        code = self.market.post("/v1/machines/codes", {}, lender_token).json["code"]
        self.lender = Lender.__new__(Lender)
        self.lender.command = [PROGRAM, "lend", "--state-dir", str(folder / "lender"), "--server", self.relay.url,
                               "--name", "lender", "--cores", "0.5", "--no-watch", *lend_options]
        self.lender.log_path = f"{folder / 'lender'}.log"
        self.lender.start({**os.environ, "SOUK_LEND_CODE": code})
        self.ends.callback(self.lender.stop)

    def wait_until_free(self):
        wait_for("the machine", lambda: any(
            m["name"] == "lender" and m["state"] == "online"
            for m in self.market.get("/v1/machines", self.token).json["items"]), step=0.05)

    def start(self, files, *arguments):
        """What it sends itself would not come through the relay."""
        return subprocess.Popen(
            [PROGRAM, "run", "-y", "--server", self.market.url, "--config-dir", str(self.folder / "config"),
             "--no-direct", "--cpus", "0.1", "--memory", "0.1", "--files", str(files), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})

    def run(self, files, *arguments):
        started = self.start(files, *arguments)
        out, err = started.communicate(timeout=HUNG_S)
        assert started.returncode == 0, (out, err, pathlib.Path(self.lender.log_path).read_text()[-3000:])
        return out

    def log(self):
        return pathlib.Path(self.lender.log_path).read_text()

    def cached(self):
        """The blobs in the lender's cache, by name."""
        root = self.folder / "lender" / "blobs"
        return {path.parent.name + path.name: path.stat().st_size
                for path in root.glob("[0-9a-f][0-9a-f]/*")}


@pytest.fixture
def made(tmp_path):
    with contextlib.ExitStack() as open_places:
        def make(*lend_options, **relay_options):
            place = Place(tmp_path, *lend_options, **relay_options)
            open_places.callback(place.ends.close)
            place.wait_until_free()
            return place
        yield make


def files_of(folder, size, seed):
    """A folder with bytes that no packing makes fewer, and what they hash to."""
    folder.mkdir(parents=True)
    data = random.Random(seed).randbytes(size)
    (folder / "data").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def test_chunks_are_packed_once_and_sent_as_the_caller_takes_them(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    try:
        token = market.sign_up("borrower")
        data = b"a lamp and its oil, " * 5000
        name, frame = name_of(data), packed(data)
        path = f"/v1/chunks/{name}"
        put = lambda body, **headers: market.call("PUT", path, body, token, headers=headers)

        # What is no frame, not this chunk, too much, or in another coding is refused.
        assert put(data, **{"Content-Encoding": "zstd"}).status == 400
        assert put(packed(data + b"!"), **{"Content-Encoding": "zstd"}).status == 400
        bomb = packed(bytes(5 * MIB))
        assert len(bomb) < 1000
        assert put(bomb, **{"Content-Encoding": "zstd"}).status == 400
        assert put(data, **{"Content-Encoding": "gzip"}).status == 415
        assert market.get(path, token).status == 404
        assert put(frame, **{"Content-Encoding": "zstd"}).status == 201
        stored = next((tmp_path / "market" / "blobs" / name[:2]).iterdir())
        assert stored.name == name[2:] + ".zst" and stored.read_bytes() == frame

        plain = market.get(path, token)
        assert plain.body == data and "Content-Encoding" not in plain.headers
        taken = market.get(path, token, headers={"Accept-Encoding": "gzip, zstd"})
        assert taken.headers["Content-Encoding"] == "zstd" and unpacked(taken.body, len(data)) == data
        assert taken.headers["ETag"] != plain.headers["ETag"] and taken.headers["Vary"] == "Accept-Encoding"

        # Parts of either, but never of the one for the other.
        for whole, more in ((plain, {}), (taken, {"Accept-Encoding": "zstd"})):
            asked = {"Range": "bytes=7-", "If-Range": whole.headers["ETag"], **more}
            part = market.get(path, token, headers=asked)
            assert part.status == 206 and part.body == whole.body[7:]
            assert part.headers["Content-Range"] == f"bytes 7-{len(whole.body) - 1}/{len(whole.body)}"
            other = (taken if whole is plain else plain).headers["ETag"]
            assert market.get(path, token, headers={**asked, "If-Range": other}).status == 200
            past = market.get(path, token, headers={**more, "Range": f"bytes={len(whole.body)}-"})
            assert past.status == 416 and past.headers["Content-Range"] == f"bytes */{len(whole.body)}"
    finally:
        market.stop()


def test_a_line_that_is_cut_again_and_again_costs_only_what_was_under_way(made, tmp_path):
    chance = random.Random(5)
    place = made(cut=lambda: chance.randrange(20000, 500000))
    digest = files_of(tmp_path / "files", 3 * MIB, 1)
    out = place.run(tmp_path / "files", "--", "sha256sum", "data")
    assert digest in out
    assert place.relay.cut_count >= 5
    assert place.relay.bytes_down < 3 * MIB + 600000, "what had come was sent again"
    starts = max(place.relay.gets().values(), key=len)
    assert len(starts) >= 5 and sorted(map(int, starts)) == list(map(int, starts)) and int(starts[-1]) > MIB
    assert not list((tmp_path / "lender" / "blobs" / "partial").iterdir())


def test_a_market_that_is_away_is_waited_for(made, tmp_path):
    place = made()
    files_of(tmp_path / "files", 100000, 2)
    place.relay.is_open = False
    started = place.start(tmp_path / "files", "--", "echo", "here")
    wait_for("five tries", lambda: place.log().count("chunk_waits") >= 5, step=0.05)
    assert place.relay.url in re.search(r"chunk_waits .*", place.log()).group(0)
    place.relay.is_open = True
    out, err = started.communicate(timeout=HUNG_S)
    assert started.returncode == 0 and "here" in out, (out, err)


def test_a_source_that_hardly_sends_is_named_when_the_lease_ends(made, tmp_path):
    place = made(drip=lambda head: 0.2 if head.startswith("GET") else None)
    files_of(tmp_path / "files", 100000, 3)
    started = place.start(tmp_path / "files", "--", "true")
    wait_for("the first byte", lambda: place.relay.gets(), step=0.05)
    job = place.market.get("/v1/jobs", place.token).json["items"][0]["id"]
    assert place.market.post(f"/v1/jobs/{job}/cancel", {}, place.token).status in (200, 202)
    said = wait_for("the lease's end", lambda: re.search(r'lease_state .* reason="(.*data was not there.*)"',
                                                         place.log()), step=0.05).group(1)
    assert place.relay.url in said and "bytes of it have come so far" in said
    started.communicate(timeout=HUNG_S)
    assert started.returncode != 0


def test_two_leases_that_want_the_same_chunk_fetch_it_once(made, tmp_path):
    place = made()
    files_of(tmp_path / "files", MIB, 4)
    place.relay.gate.clear()  # connections wait: both leases are there before the first byte
    both = [place.start(tmp_path / "files", "--", "sleep", "0") for _ in range(2)]
    wait_for("two leases", lambda: len(place.lender.keepers()) == 2, step=0.05)
    place.relay.gate.set()
    for started in both:
        out, err = started.communicate(timeout=HUNG_S)
        assert started.returncode == 0, (out, err)
    gets = place.relay.gets()
    assert gets and all(len(starts) == 1 for starts in gets.values()), gets


def test_the_cache_keeps_its_quota_and_what_was_used_last(made, tmp_path):
    place = made("--cache", "64MiB")
    digests = [files_of(tmp_path / f"files{i}", 24 * MIB, 10 + i) for i in range(3)]
    for i in range(3):
        assert digests[i] in place.run(tmp_path / f"files{i}", "--", "sha256sum", "data")
        assert sum(place.cached().values()) <= 64 * MIB
    before = {name: len(starts) for name, starts in place.relay.gets().items()}
    place.run(tmp_path / "files2", "--", "true")
    assert {name: len(starts) for name, starts in place.relay.gets().items()} == before
    status = subprocess.run([PROGRAM, "lend", "status", "--state-dir", str(tmp_path / "lender"), "--json"],
                            capture_output=True, text=True, timeout=HUNG_S)
    told = json.loads(status.stdout)
    assert told["cache_bytes_max"] == 64 * MIB and told["cache_bytes"] == sum(place.cached().values())


def test_what_a_power_cut_tore_in_the_cache_is_fetched_anew(made, tmp_path):
    place = made()
    digest = files_of(tmp_path / "files", MIB, 5)
    assert digest in place.run(tmp_path / "files", "--", "sha256sum", "data")
    before = sum(len(starts) for starts in place.relay.gets().values())
    largest = max((tmp_path / "lender" / "blobs").glob("[0-9a-f][0-9a-f]/*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(bytes(largest.stat().st_size))
    assert digest in place.run(tmp_path / "files", "--", "sha256sum", "data")
    assert sum(len(starts) for starts in place.relay.gets().values()) == before + 1
    assert hashlib.blake2b(largest.read_bytes(), digest_size=32).hexdigest() == largest.parent.name + largest.name
