"""What a job left is sent from the store a chunk at a time: whoever asks for much, and reads none of
it, takes no memory and no time from others.

covers server/download.c, server/handle_result.c, net/http_reply.c
"""
import hashlib
import http.client
import os
import pathlib
import subprocess
import urllib.parse

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

ACCOUNT_MAX = 8  # DOWNLOAD_ACCOUNT_MAX
MIB = 1 << 20
SIZE = 64 * MIB


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market")
    lender = Lender(market, market.sign_up("lender"), tmp_path / "lender", "lender")
    token = market.sign_up("borrower")
    try:
        wait_for("the machine", lambda: any(
            m["state"] == "online" and m["name"] != "market"
            for m in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        lender.stop()
        market.stop()


def leave(place, script):
    """A job whose command leaves files; its id."""
    market, token = place
    done = subprocess.run(
        [PROGRAM, "run", "-y", "--server", market.url, "--config-dir", str(market.folder) + "-config",
         "--cpus", "0.5", "--memory", "0.1", "--disk", "0.5", "--", script],
        capture_output=True, text=True, timeout=HUNG_S, env={**os.environ, "SOUK_TOKEN": token},
        stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    return market.get("/v1/jobs", token).json["items"][0]["id"], done.stdout


def ask(market, token, path):
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return connection, connection.getresponse()


def memory_bytes(process):
    """Its own, and what it keeps in files without a name."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    own = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024
    unnamed = 0
    for entry in os.scandir(f"/proc/{process.pid}/fd"):
        try:
            if os.readlink(entry.path).startswith("/memfd:"):
                unnamed += os.stat(entry.path).st_blocks * 512
        except FileNotFoundError:
            pass  # it was closed meanwhile
    return own + unnamed


def test_downloads_that_nobody_reads_cost_others_nothing(place):
    market, token = place
    job, printed = leave(place, f"cd $SOUK_OUTPUT_DIR && head -c 9M /dev/urandom > big && truncate -s {SIZE} big && "
                                "sha256sum < big")
    path = f"/v1/jobs/{job}/artifacts/rank0-big"
    before = memory_bytes(market.process)
    open_ones = [ask(market, token, path) for _ in range(ACCOUNT_MAX)]
    assert [answer.status for _, answer in open_ones] == [200] * ACCOUNT_MAX
    assert {answer.getheader("Content-Length") for _, answer in open_ones} == {str(SIZE)}

    assert market.get("/healthz").status == 200  # nobody ever reads: who waited for them would wait for ever
    # A chunk of 4 MiB each, and what the allocator keeps of it.
    assert memory_bytes(market.process) - before < ACCOUNT_MAX * 12 * MIB

    refused = market.get(path, token)
    assert refused.status == 429 and refused.json["code"] == "rate_limited", refused
    assert int(refused.headers["Retry-After"]) > 0 and "downloads" in refused.json["detail"]
    assert market.get("/v1/account", token).status == 200  # only downloads are refused

    connection, answer = open_ones.pop()  # what was begun is sent whole
    assert hashlib.sha256(answer.read()).hexdigest() in printed
    connection.close()
    for connection, _ in open_ones:
        connection.close()
    again = wait_for("room for one more", lambda: (lambda a: a if a.status == 200 else None)(market.get(path, token)))
    assert hashlib.sha256(again.body).hexdigest() in printed


def test_a_file_whose_chunks_are_gone_is_cut_off_or_refused(place):
    market, token = place
    job, _ = leave(place, "cd $SOUK_OUTPUT_DIR && head -c 40M /dev/urandom > big")
    path = f"/v1/jobs/{job}/artifacts/rank0-big"
    connection, answer = ask(market, token, path)
    assert answer.status == 200
    kept = [file for file in (market.folder / "blobs").glob("??/*") if file.is_file()]
    assert sum(file.stat().st_size for file in kept) > 40 * MIB
    for file in kept:
        file.unlink()
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    connection.close()
    assert market.get(path, token).status == 404
    assert market.get("/healthz").status == 200
