"""souk sim: figures from made-up traces, the same for the same seed.

covers cli/command_sim.c
"""
import json
import os
import subprocess
from ranks import HUNG_JOB_S

PROGRAM = os.environ["SOUK_PROGRAM"]


def sim(*arguments, environment=None):
    return subprocess.run([PROGRAM, "sim", "market", *arguments], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})}, timeout=HUNG_JOB_S)


def test_a_seed_gives_the_same_figures():
    asked = ["--invented", "--experiment", "gain", "--rows", "nasa-1.5,synthetic-0.8", "--days", "2",
             "--seed", "7", "--json"]
    first, again = sim(*asked), sim(*asked)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    answer = json.loads(first.stdout)
    assert answer["seed"] == 7
    assert 0.3 < answer["figures"]["mean_gain"] < 1.2
    gains = next(table for table in answer["tables"] if table["name"] == "gain")
    assert gains["rows"][0]["nasa_1_5"] == 1
    assert gains["rows"][0]["nasa_0_8"] is None
    assert "nasa-1.5" in first.stderr


def test_tables_are_for_people_and_quiet_is_quiet():
    done = sim("--invented", "--experiment", "herding", "--days", "2", "--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "counted evenly (souk)" in done.stdout
    assert "herding_move" in done.stdout and "met" in done.stdout


def test_wrong_rows_and_missing_traces_are_said():
    done = sim("--invented", "--rows", "nasa-9")
    assert done.returncode == 2
    assert "nasa-9" in done.stderr
    done = sim("--experiment", "gain", "--data", "/nonexistent")
    assert done.returncode != 0
    assert "/nonexistent" in done.stderr
    done = sim("--experiment", "gain", environment={"SOUK_DATA": ""})
    assert done.returncode != 0
