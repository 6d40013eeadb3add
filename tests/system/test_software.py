"""Software of lenders (souk lend --software): jobs that ask for its label use it, read-only, and no others see it.

covers peer/software.c, server/job_software.c
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from ranks import Place as Ranks
from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


@pytest.fixture
def folder():
    """Where a sandbox has nothing of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
    (folder / "bin").mkdir()
    (folder / "bin" / "greet").write_text("#!/bin/sh\necho greetings from $0\n")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for path, mode in ((folder, 0o755), (folder / "bin", 0o755), (folder / "bin" / "greet", 0o755),
                       (folder / "pyvenv.cfg", 0o644)):
        path.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def run(market, token, tmp_path, script, *more):
    """Without its standard error, which would come between its lines in any order."""
    return subprocess.run([PROGRAM, "run", "-y", "-n", "1", "--cpus", "0.2", "--memory", "0.1", *more,
                           "--server", market.url, "--config-dir", str(tmp_path / "config"), "--", "sh", "-c", f"exec 2>/dev/null; {script}"],
                          capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def test_who_asks_for_it_finds_it_and_cannot_change_it(folder, tmp_path):
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, tmp_path / "first", "first", options=("--software", f"greeter={folder}"))
    try:
        machine = wait_for("the lender", lambda: next(
            (m for m in market.get("/v1/machines", token).json["items"]
             if m["name"] == "first" and m["state"] == "online"), None))
        assert "greeter" in machine["probe"]["labels"].split(","), machine
        assert str(folder) not in str(machine), machine
        done = run(market, token, tmp_path, f"greet; echo of $VIRTUAL_ENV; echo more >> {folder}/bin/greet; "
                   f"touch {folder}/own; ls {folder} | sed s/^/there:/", "--labels", "greeter")
        assert done.returncode == 0, done
        assert f"greetings from {folder}/bin/greet" in done.stdout and f"of {folder}" in done.stdout, done
        assert re.findall(r"there:(\S+)", done.stdout) == ["bin", "pyvenv.cfg"], done
        assert "more" not in (folder / "bin" / "greet").read_text()
        done = run(market, token, tmp_path, f"greet; ls {folder}; echo $PATH of $VIRTUAL_ENV.")
        assert done.returncode == 0 and "greetings" not in done.stdout and "/usr/bin:/bin of ." in done.stdout, done
    finally:
        lender.stop()
        market.stop()


@pytest.mark.parametrize("item, why", [
    ("greeter", "is not LABEL=DIR"), ("greeter=/", "is too much"), ("greeter=/usr/bin/..", 'is "/usr": name that'),
    ("greeter=/dev/shm", "a lease has a /dev of its own"), ("greeter=/usr/bin/env", "is no folder")])
def test_what_cannot_be_lent_is_refused_at_the_start(item, why, tmp_path):
    done = subprocess.run([PROGRAM, "lend", "--state-dir", str(tmp_path / "state"), "--server", "http://127.0.0.1:1",
                           "--software", item], capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and "--software" in done.stderr and why in done.stderr, done


class Place(Ranks):
    def lender_of(self, name):
        return {"options": ("--network", "job", *(("--labels", "openmpi") if name == "with" else ("--hide-labels", "openmpi")))}


def test_who_starts_a_framework_is_told_that_machines_lack_it(tmp_path):
    place = Place(tmp_path, ())
    try:
        place.lend("without")
        path = tmp_path / "job.yaml"

        def told(*command, **fields):
            job = {"name": "ring", "run": "sleep 600", "num_nodes": 1, "runtime": "mpi",
                   "resources": {"cpus": 0.4, "memory": 0.1}, **fields}
            path.write_text(json.dumps(job))
            done = subprocess.run([PROGRAM, *command, "--server", place.market.url, "--config-dir", str(tmp_path / "config")],
                                  capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                                  env={**os.environ, "SOUK_TOKEN": place.token, "NO_COLOR": "1", "COLUMNS": "400"})
            return " ".join((done.stdout + done.stderr).split())

        plan = ("job", "submit", str(path))
        none = "Warning the only machine that it could have now lacks mpirun (label openmpi), which runtime mpi runs on: bring it"
        assert none in told(*plan)
        assert "Warning" not in told(*plan, runtime="command")
        # Who asks for it by its label is told why it waits, as of any label; who brings it nothing.
        asked = told(*plan, resources={"cpus": 0.4, "memory": 0.1, "labels": ["openmpi"]})
        assert "mpirun" not in asked and "without its wish for labels it would start now" in asked, asked
        (tmp_path / "requirements.txt").write_text("mpi4py\n")
        quote = place.market.post("/v1/quotes", {"name": "ring", "run": "true", "runtime": "mpi", "requirements": "mpi4py",
                                                 "resources": {"install": "wheels"}}, place.token)
        assert quote.status == 200 and quote.json["warning"] == "", quote
        place.lend("with")
        assert "Warning only 1 of the 2 machines that it could have now has mpirun (label openmpi), which runtime mpi runs on: " \
            "ask for it by resources: {labels: [openmpi]}" in told(*plan)
        told("job", "submit", "-y", "--detach", str(path), runtime="command", num_nodes=2)  # takes both
        wait_for("that job", lambda: place.job()["state"] == "running")
        told("job", "submit", "-y", "--detach", str(path))
        waiting = place.job()
        assert waiting["state"] == "pending", waiting
        assert "Warning: only 1 of the 2 machines" in told("job", "explain", str(waiting["id"]))
        assert place.market.get(f"/v1/jobs/{waiting['id']}/explain", place.token).json["warning"].startswith("only 1 of the 2")
    finally:
        place.stop()
