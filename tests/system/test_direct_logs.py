"""What ranks print, read from the lenders' machines without the market between.

covers peer/log_server.c, peer/tenancy_direct.c, server/direct.c, server/handle_direct.c, client/direct.c, cli/rank_log.c,
cli/run_follow.c, client/follow.c
"""
import os
import pathlib
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


def open_place(folder, *options):
    market = Market(folder / "market", "--no-local-lender")
    port, link_port = market.ready["http_port"], market.ready["link_port"]
    market.options += ("--listen", f"127.0.0.1:{port}", "--link-listen", f"127.0.0.1:{link_port}")
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


SCRIPT = "i=0; while [ $i -lt 120 ]; do i=$((i+1)); echo $SOUK_RANK line $i; sleep 0.05; done; echo the end"


def expected(rank):
    return [f"{rank} line {i}" for i in range(1, 121)] + ["the end"]


def test_lines_come_while_the_market_does_nothing(place):
    market, _, folder, lenders = place
    process = run(place, "-n", "2", "--", SCRIPT)
    wait_for("a reader at each machine", lambda: readers(lenders) == 2, step=0.02)
    os.kill(market.process.pid, signal.SIGSTOP)
    try:
        had = len(lines_of(folder))
        assert had < 200
        wait_for("the last line of both", lambda: lines_of(folder).count("rank 0 | the end")
                 + lines_of(folder).count("rank 1 | the end") == 2, step=0.05)
    finally:
        os.kill(market.process.pid, signal.SIGCONT)
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    for rank in (0, 1):
        assert lines_of(folder, f"rank {rank} | ") == expected(rank)
    assert "2 ranks read directly" in (folder / "run.err").read_text()


def test_lines_go_on_when_the_market_is_killed(place):
    market, _, folder, lenders = place
    process = run(place, "-n", "2", "--", SCRIPT)
    wait_for("a reader at each machine", lambda: readers(lenders) == 2, step=0.02)
    market.kill()
    had = len(lines_of(folder))
    wait_for("more lines", lambda: len(lines_of(folder)) > had + 60, step=0.02)
    market.start()
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    for rank in (0, 1):
        assert lines_of(folder, f"rank {rank} | ") == expected(rank)


def test_bytes_that_are_no_text_are_counted_alike_by_both(place):
    """The market's text has three bytes for each of them, and comes again for all that was read directly."""
    market, _, folder, lenders = place
    script = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); printf '\\377\\303 %d\\n' $i; sleep 0.05; done; sleep 1; echo the end"
    process = run(place, "--", script)
    wait_for("a reader", lambda: readers(lenders) == 1, step=0.02)
    os.kill(market.process.pid, signal.SIGSTOP)
    try:
        wait_for("a line as it was printed", lambda: b"\xff\xc3 60\n" in (folder / "run").read_bytes(), step=0.02)
    finally:
        os.kill(market.process.pid, signal.SIGCONT)
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    said = (folder / "run").read_bytes().splitlines()
    assert [line.split()[-1] for line in said] == [b"%d" % i for i in range(1, 61)] + [b"end"]
    assert {line.split()[0] for line in said[:-1]} <= {b"\xff\xc3", "\ufffd\ufffd".encode()}


def test_no_direct_reads_from_the_market_alone(place):
    market, _, folder, lenders = place
    process = run(place, "-n", "2", "--no-direct", "--", SCRIPT)
    wait_for("the first lines", lambda: len(lines_of(folder)) > 20, step=0.02)
    market.kill()
    market.start()
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    for rank in (0, 1):
        assert lines_of(folder, f"rank {rank} | ") == expected(rank)
    assert readers(lenders) == 0
    assert "read directly" not in (folder / "run.err").read_text()


@pytest.mark.parametrize("place", [("--no-direct",)], indirect=True)
def test_a_lender_that_lets_nobody_connect_is_read_through_the_market(place):
    market, token, folder, lenders = place
    process = run(place, "-n", "2", "--", SCRIPT)
    wait_for("the first lines", lambda: len(lines_of(folder)) > 20, step=0.02)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    assert market.post(f"/v1/jobs/{job}/direct", {}, token).json == {"items": []}
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    for rank in (0, 1):
        assert lines_of(folder, f"rank {rank} | ") == expected(rank)
    assert readers(lenders) == 0


def test_only_the_jobs_own_account_is_told_where(place):
    market, token, folder, lenders = place
    process = run(place, "-n", "2", "--", SCRIPT)
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
    assert process.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    assert market.post(f"/v1/jobs/{job}/direct", {}, token).json == {"items": []}
