"""Ranks of a job talk to one another over its private network, and reach nothing else.

covers server/network.c, peer/tenancy_network.c
"""
import os
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, needs_tun, wait_for

TALK = """
import os, socket, sys, time
rank, master = int(os.environ["SOUK_RANK"]), os.environ["MASTER_ADDR"]
assert os.environ["SKYPILOT_NODE_IPS"].split() == ["10.77.0.1", "10.77.0.2"]
assert os.environ["SOUK_ADDRESS"] == "10.77.0.%d" % (rank + 1)
if rank == 0:
    server = socket.create_server(("", 5000))
    connection, address = server.accept()
    assert address[0] == "10.77.0.2", address
    size = 0
    while True:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        size += len(piece)
    connection.sendall(b"%d" % size)
    print("took", size, flush=True)
else:
    end = time.monotonic() + 60  # clock: a hung rank in a sandbox
    while True:
        try:
            connection = socket.create_connection((master, 5000), timeout=1)  # clock: one of many tries
            break
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.1)  # clock: retry interval until rank 0 listens
    connection.settimeout(60)  # clock: a hung rank in a sandbox
    for _ in range(64):
        connection.sendall(bytes(1 << 16))
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(64) == b"%d" % (64 << 16)
    for name, target in {"metadata": "169.254.169.254", "home": "192.168.1.1", "internet": "8.8.8.8",
                         "localhost": "127.0.0.1"}.items():
        try:
            socket.create_connection((target, int(sys.argv[1])), timeout=2)  # clock: a blocked address never answers
            print(name, "reached", flush=True)
        except OSError as error:
            print(name, type(error).__name__, error.errno, flush=True)
"""


def place_of(tmp_path, *options):
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, tmp_path / name, name, options=options)
               for name in ("first", "second")]
    wait_for("two machines", lambda: 2 == sum(
        m["state"] == "online" and m["name"] != "market"
        for m in market.get("/v1/machines", token).json["items"]))
    for offer in market.get("/v1/offers", lender_token).json["items"]:
        changed = market.call("PATCH", f"/v1/offers/{offer['id']}", {"network": "job"}, lender_token)
        assert changed.status in (200, 403), changed  # the market's own machine is not theirs
    return market, token, lenders


@needs_tun
@pytest.mark.parametrize("way, options", [("direct", ()), ("relay", ("--no-direct",))])
def test_two_ranks_talk_and_reach_nothing_else(tmp_path, way, options):
    market, token, lenders = place_of(tmp_path, *options)
    try:
        files = tmp_path / "files"
        files.mkdir()
        (files / "talk.py").write_text(TALK)
        port = market.url.rsplit(":", 1)[1]
        done = subprocess.run(
            [PROGRAM, "run", "--server", market.url, "--config-dir", str(tmp_path / "config"), "--cpus", "0.2",
             "--memory", "0.2", "-y", "-n", "2", "--network", "job", "--files", str(files), "--",
             "/usr/bin/python3", "talk.py", port],
            capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
            env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
        assert f"rank 0 | took {64 << 16}" in lines, done
        assert "rank 1 | localhost ConnectionRefusedError 111" in lines, done  # its own, empty one
        for name in ("metadata", "home", "internet"):
            assert f"rank 1 | {name} OSError 101" in lines, done  # network is unreachable
        logs = "".join(open(lender.log_path).read() for lender in lenders)
        assert logs.count(f"way={way}") == 2 and logs.count("rank_linked") == 2, logs
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
