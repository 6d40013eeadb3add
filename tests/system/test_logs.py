"""What jobs print survives the market: every line once and in order, however often it is killed.

covers peer/logbook.c, peer/tenancy_log.c, server/logs.c, cli/run_follow.c, cli/command_logs.c
"""
import os
import random
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, own_addresses
from training import Lender, wait_for

KILLS = int(os.environ.get("SOUK_KILL_ROUNDS", "4"))
SEED = int(os.environ.get("SOUK_KILL_SEED", "1"))


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", *own_addresses())
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, tmp_path / name, name) for name in ("first", "second")]
    wait_for("two machines", lambda: 2 == sum(
        m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
    try:
        yield market, token, tmp_path, lenders
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()


def souk(place, verb, *arguments, out):
    market, token, folder, _ = place
    return subprocess.Popen([PROGRAM, *verb.split(), "--server", market.url, "--config-dir", str(folder / "config"), *arguments],
                            stdin=subprocess.DEVNULL, stdout=open(out, "wb"), stderr=open(f"{out}.err", "wb"),
                            env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def lines_of(path, prefix=""):
    return [line.removeprefix(prefix) for line in path.read_text().splitlines() if line.startswith(prefix)]


def kill_and_start(market):
    market.kill()
    market.start()


def say_stop(folder):
    """A file for the commands that run; returns how many there are."""
    works = list(folder.glob("*/leases/*/lease/work"))
    for work in works:
        (work / "stop").touch()
    return len(works)


def test_no_line_is_lost_or_told_twice_when_the_market_is_killed(place):
    market, token, folder, _ = place
    chance = random.Random(SEED)
    # At a rate that fills several parts between two kills, and until all of them are over.
    script = ("i=0; while [ ! -e stop ] && [ $i -lt 100000 ]; do i=$((i+1)); echo $SOUK_RANK line $i of many; "
              "[ $((i % 40)) = 0 ] && sleep 0.02; done; echo the end")  # clock: sets the rate of the lines
    run = souk(place, "run", "-y", "-n", "2", "--cpus", "0.2", "--memory", "0.1", "--", script, out=folder / "run")
    wait_for("the first lines", lambda: len(lines_of(folder / "run", "rank 1 | ")) > 10, step=0.02)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    follower = souk(place, "job logs", str(job), "--rank", "1", "-f", out=folder / "logs")
    for _ in range(KILLS):
        wanted = len(lines_of(folder / "run")) + chance.randrange(1, 2000)
        wait_for("more lines", lambda: len(lines_of(folder / "run")) > wanted, step=0.02)
        assert run.poll() is None, "the job is over before the last kill"
        kill_and_start(market)
    assert say_stop(folder) == 2
    assert run.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    assert follower.wait(HUNG_S) == 0, (folder / "logs.err").read_text()
    for rank in (0, 1):
        said = lines_of(folder / "run", f"rank {rank} | ")
        assert said == [f"{rank} line {i} of many" for i in range(1, len(said))] + ["the end"], f"seed {SEED}"
        assert len(said) > 1000, len(said)
    assert lines_of(folder / "logs") == said, f"seed {SEED}"


def test_the_last_line_is_kept_when_the_market_is_killed_at_the_end(place):
    market, token, folder, lenders = place
    run = souk(place, "run", "-y", "--cpus", "0.2", "--memory", "0.1", "--",
               "echo up; while [ ! -e stop ]; do sleep 0.1; done; echo last",  # clock: the job's own poll interval
               out=folder / "run")
    wait_for("its first line", lambda: lines_of(folder / "run"), step=0.02)
    market.kill()
    (keeper,) = [pid for lender in lenders for pid in lender.keepers().values()]
    assert say_stop(folder) == 1  # the process ends while nobody is there to be told
    wait_for("the end of the process", lambda: subprocess.run(["pgrep", "-P", str(keeper)], stdout=subprocess.DEVNULL).returncode == 1)
    market.start()
    assert run.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    assert lines_of(folder / "run") == ["up", "last"]
    kill_and_start(market)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    assert market.get(f"/v1/jobs/{job}/logs?rank=0", token).json["text"] == "up\nlast\n"


def test_a_job_that_prints_more_than_is_kept_waits_for_the_market(place):
    market, _, folder, _ = place
    run = souk(place, "run", "-y", "--cpus", "0.2", "--memory", "0.1", "--",
               "head -c 6000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo done", out=folder / "run")
    wait_for("its first lines", lambda: lines_of(folder / "run"), step=0.02)
    kill_and_start(market)
    assert run.wait(HUNG_S) == 0, (folder / "run.err").read_text()
    lines = lines_of(folder / "run")
    assert lines[-1] == "done" and sum(map(len, lines[:-1])) == 6000000
