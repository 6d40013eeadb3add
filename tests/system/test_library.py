"""libsouk called from C, on a real market with a lender: also under the sanitizers, unlike test_sdk.py.

covers library/handle.c, library/souk_client.c, library/souk_follow.c, library/souk_job.c
"""
import os
import pathlib
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

FOLDER = pathlib.Path(PROGRAM).resolve().parent
HELLO = """\
name: hello
resources: {cpus: 0.1, memory: 0.1}
run: |
  for i in 1 2 3; do echo line $i; done
  echo 42 > $SOUK_OUTPUT_DIR/answer.txt
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    market = Market(folder / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, folder / "lender", "heron")
    try:
        wait_for("a machine", lambda: any(m["state"] == "online" and m["name"] == "heron"
                                          for m in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        lender.stop()
        market.stop()


def run(place, folder, program, *arguments):
    market, token = place
    (folder / "hello.yaml").write_text(HELLO)
    (folder / "endless.yaml").write_text(HELLO.replace("for i in", "sleep 3600\n  for i in"))
    done = subprocess.run([FOLDER / program, *arguments], cwd=folder, capture_output=True, text=True, timeout=HUNG_S,
                          env={**os.environ, "HOME": str(folder), "SOUK_SERVER": market.url, "SOUK_TOKEN": token})
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done


def test_the_example_runs_a_job(place, tmp_path):
    done = run(place, tmp_path, "submit_example", "hello.yaml")
    assert "line 1\n" in done.stdout and "line 3\n" in done.stdout and ": succeeded" in done.stdout
    (answer,) = (tmp_path / "result").iterdir()
    assert answer.read_text() == "42\n" and answer.name in done.stdout


def test_every_call_does_what_it_says_and_leaves_nothing_behind(place, tmp_path):
    done = run(place, tmp_path, "library_calls", "hello.yaml", "endless.yaml")
    assert done.stdout == "all well\n" and done.stderr == "", (done.stdout, done.stderr)
