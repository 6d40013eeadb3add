"""A lender who says as much as it can, and one who only holds connections: others do not notice.

The link is spoken by openssl, with the key of a machine that was enrolled as any other.

covers server/pace.c, server/link_budget.c, server/admission.c, server/connection.c, server/live_stream.c
"""
import contextlib
import json
import pathlib
import re
import select
import socket
import struct
import subprocess
import threading
import time

import pytest

from serving import HUNG_S, Follower, Market
from training import Lender, wait_for

HELLO, HEARTBEAT, YIELD = 1, 2, 12
UNTIL_RESUMED = bytes(8)
MESSAGES = pathlib.Path(__file__).resolve().parents[2] / "src/runtime/lease_message.h"
YIELDS = ("none", "low", "frozen", "paused", "draining", "paused_remotely")
VERSION = int(re.search(r"LEASE_MESSAGE_VERSION = (\d+)", MESSAGES.read_text())[1])
GIB = 1 << 30
MIB = 1 << 20
ASKED = 60  # another user's changes during the flood


def frame(kind, payload):
    return struct.pack("<IHH", len(payload), kind, 0) + payload


def hello(machine):
    return frame(HELLO, struct.pack("<IQ16s5qI", VERSION, machine, b"0123456789abcdef", 500, GIB, 0, GIB, 0, 0))


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")  # nothing else is told of
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    market.lender_token = lender_token
    lender = Lender(market, lender_token, tmp_path / "lender", "hostile")

    def machine(asker=lender_token):
        return next((m for m in market.get("/v1/machines", asker).json["items"] if m["name"] == "hostile"), {})

    try:
        wait_for("the machine", lambda: machine().get("state") == "online")
        lender.stop()
        wait_for("its going", lambda: machine().get("state") != "online")
        key = json.loads((tmp_path / "lender" / "enrolment.json").read_text())
        yield market, token, key, machine
    finally:
        market.stop()


def is_stuck(sent, looks=10):
    """True if no byte could be written for a while."""
    before = sent[0]
    time.sleep(0.1 * looks)  # clock: only time shows that nothing happens
    return 0 < before == sent[0]


@contextlib.contextmanager
def linked(market, key):
    host, port = market.ready["link_address"].rsplit(":", 1)
    link = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"{host}:{port}", "-quiet", "-tls1_3", "-ciphersuites",
         "TLS_AES_128_GCM_SHA256", "-groups", "X25519", "-psk_identity",
         f"machine:{key['machine']}:{key['generation']}", "-psk", key["link_key"]],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        link.stdin.write(hello(key["machine"]))
        link.stdin.flush()
        yield link
    finally:
        link.kill()
        link.wait()


def resident_bytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024


def metric(market, name):
    return next(int(line.split()[1]) for line in market.get("/metrics").body.decode().splitlines()
                if line.startswith(name + " "))


def test_what_the_owner_does_is_told_to_the_owner_alone(place):
    market, token, key, machine = place
    steps = (("low", "none"), ("frozen", "paused"), ("paused", "paused"), ("draining", "paused"),
             ("paused_remotely", "paused"), ("low", "none"))
    with linked(market, key) as link:
        wait_for("the link", lambda: machine()["state"] == "online")
        stranger, owner = Follower(market, token), Follower(market, market.lender_token)
        for told, shown in steps:
            link.stdin.write(frame(YIELD, bytes([YIELDS.index(told)]) + UNTIL_RESUMED))
            link.stdin.flush()
            wait_for(told, lambda: machine()["yield"] == told, step=0.02)
            assert machine(token)["yield"] == shown
            one = market.get(f"/v1/machines/{key['machine']}", token).json
            assert one["yield"] == shown and set(one.get("live", {})) <= {"heard_ms", "rtt_us", "near"}, one
        # The link's end is the last they hear of it: the stranger of one pause before, and of its end.
    heard = [follower.until(lambda data: data["machine"] == key["machine"] and data["state"] != "online")
             for follower in (stranger, owner)]
    assert [len(events) for events in heard] == [2 + 1, len(steps) + 1], heard
    assert [event[0] for event in heard[0]] == [1, 2, 3]  # nor are there gaps to count


def test_a_lender_who_floods_is_read_slowly(place):
    market, token, key, machine = place
    with linked(market, key) as link:
        wait_for("the link", lambda: machine()["state"] == "online")
        link.stdin.write(frame(YIELD, b"\x02" + UNTIL_RESUMED))
        link.stdin.flush()
        wait_for("the first one", lambda: machine()["yield"] == "frozen", step=0.02)
        memory, events = resident_bytes(market.process), metric(market, "souk_events_total")
        flood = frame(YIELD, b"\x00" + UNTIL_RESUMED) + frame(YIELD, b"\x02" + UNTIL_RESUMED)
        sent = [0]

        def pour():
            with contextlib.suppress(OSError):
                while True:
                    link.stdin.write(flood * 1000)
                    sent[0] += 2000

        pourer = threading.Thread(target=pour)
        pourer.start()
        # The pourer writes until the reader stops: then every buffer on the way is full.
        wait_for("a pourer that waits", lambda: is_stuck(sent))
        begun = time.monotonic()
        for _ in range(ASKED):
            made = market.post("/v1/machines/codes", {}, token)  # a change: the core decides it
            assert made.status == 201, made
        took = time.monotonic() - begun
        assert machine()["state"] == "online"  # it is heard, as far as it may be
        assert metric(market, "souk_events_total") - events <= 2 * ASKED + 4 * (took + 2)
        assert resident_bytes(market.process) - memory < 64 * MIB
        # What waits, waits at its sender: in the buffers of two sockets and a pipe.
        assert sent[0] * len(flood) / 2 < 32 * MIB, sent
        link.kill()
        pourer.join(HUNG_S)
        assert not pourer.is_alive()


def test_connections_that_say_nothing_keep_nobody_out(place):
    market, _, key, machine = place
    host, port = market.ready["link_address"].rsplit(":", 1)
    crowd = []
    is_over = threading.Event()

    def hold():
        """Of another address block; dials anew as soon as one is closed, or refused."""
        while not is_over.is_set():
            while len(crowd) < 400:
                crowd.append(socket.create_connection((host, int(port)), source_address=("127.0.1.1", 0)))
            for closed in select.select(crowd, [], [], 0.1)[0]:  # clock: interval between checks of is_over
                crowd.remove(closed)
                closed.close()
            is_over.wait(0.02)  # clock: 400 new connections each time are enough

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        wait_for("a crowd", lambda: len(crowd) == 400)
        with linked(market, key):
            wait_for("the link", lambda: machine()["state"] == "online")
    finally:
        is_over.set()
        holder.join(HUNG_S)
        for connection in crowd:
            connection.close()
