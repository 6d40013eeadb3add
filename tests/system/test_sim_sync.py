"""souk sim sync: policies in virtual time, the same for the same seed.

covers cli/command_sim_sync.c, cli/sim_sync_data.c, cli/sim_sync_report.c, bench/hetero.py
"""
import json
import os
import subprocess
import xml.dom.minidom

import pytest
from functions import few_records
from ranks import HUNG_JOB_S

PROGRAM = os.environ["SOUK_PROGRAM"]
QUICK = ["--model", "logistic", "--batch", "8", "--max-time", "150s", "--target-loss", "0.9"]


def sim(*arguments, environment=None):
    return subprocess.run([PROGRAM, "sim", "sync", *arguments], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})}, timeout=HUNG_JOB_S)


def test_a_seed_gives_the_same_curves_on_any_number_of_threads(tmp_path):
    asked = [*QUICK, "--policy", "bsp,tap,adsp", "--profile", "testbed-h2.0", "--rate", "0.02,0.05",
             "--seed", "3", "--jitter", "0.2", "--stay", "40s", "--absence", "10s", "--json", "--curve"]
    first = sim(*asked)
    again = sim(*asked, "--threads", "2", "--svg", str(tmp_path / "curves.svg"))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    answer = json.loads(first.stdout)
    assert answer["machines"] == 18 and abs(answer["heterogeneity"] - 2) < 1e-6
    assert [run["policy"] for run in answer["runs"]] == 2 * ["bsp", "tap", "adsp"]
    for run in answer["runs"]:
        assert run["leaves"] > 0 and run["steps"] > 0
        assert run["end"] == "target" and 0 < run["target_s"] <= run["elapsed_s"] <= 150
        losses = [loss for _, loss in run["curve"]]
        assert losses[-1] <= 0.9 < losses[0]
    waiting = {run["policy"]: run["waiting_share"] for run in answer["runs"]}
    assert waiting["adsp"] < 0.1 < waiting["bsp"]
    picture = xml.dom.minidom.parse(str(tmp_path / "curves.svg"))
    assert len(picture.getElementsByTagName("polyline")) == 3  # the best rate of each


def test_a_file_gives_the_machines_and_a_policy_its_steps(tmp_path):
    profile = tmp_path / "two.json"
    profile.write_text(json.dumps({"name": "two", "machines": [
        {"kind": "fast", "step_ms": 500, "commit_ms": 100},
        {"kind": "slow", "step_ms": 2000, "commit_ms": 100, "mbit": 8}]}))
    done = sim(*QUICK, "--policy", "bsp,bsp:5", "--profile", str(profile), "--target-loss", "0")
    assert done.returncode == 0, done.stderr
    assert "two: 2 machines" in done.stdout and "bsp:5" in done.stdout
    assert "> 150" in done.stdout


def test_the_spot_profile_follows_recorded_absences():
    traces = os.environ.get("SOUK_DATA")
    if not traces or not os.path.isdir(os.path.join(traces, "spot-traces")):
        pytest.skip("no spot-traces in SOUK_DATA")
    done = sim(*QUICK, "--policy", "tap", "--profile", "spot", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["leaves"] > 0
    assert done.stderr == ""


def test_cifar_is_read_from_its_binary_version(tmp_path):
    """A record is a label and 3072 pixels; here the label tells which of them are bright."""
    for name, count in [("data_batch_1.bin", 360), ("test_batch.bin", 60)]:
        records = [bytes([n % 10]) + (n % 10 * bytes(300) + bytes([255]) * 300).ljust(3072, b"\0")
                   for n in range(count)]
        (tmp_path / name).write_bytes(b"".join(records))
    asked = [*QUICK, "--policy", "bsp", "--data", "cifar10", "--json", "--rate", "0.01",
             "--target-loss", "1"]
    done = sim(*asked, "--folder", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["end"] == "target"
    (tmp_path / "test_batch.bin").unlink()
    for arguments, words in [([], "--folder"), (["--folder", str(tmp_path)], "no test records")]:
        done = sim(*asked, *arguments)
        assert done.returncode != 0 and words in done.stderr, done.stderr


def test_wrong_requests_are_said_before_anything_is_computed():
    for arguments, words in [
            (["--policy", "nothing"], "nothing"),
            (["--policy", "bsp:0"], "bsp:0"),
            (["--profile", "nowhere"], "testbed-h3.2"),
            (["--target-loss", "low"], "--target-loss"),
            (["--rate", "-1"], "--rate"),
            (["--skew", "2"], "--skew"),
            (["--nesterov"], "--momentum"),
            (["--stay", "10s"], "absence"),
            (["--data", "none"], "none")]:
        done = sim(*QUICK, "--folder", few_records().name, *arguments)
        assert done.returncode != 0 and done.stdout == "", arguments
        assert words in done.stderr, done.stderr
    done = sim(*QUICK, "--profile", "spot", environment={"SOUK_DATA": ""})
    assert done.returncode != 0 and "SOUK_DATA" in done.stderr


def kept_run(policy, rate, seed, seconds, limit=20000):
    return json.dumps({"key": f"mlp H=3.2 O=5 | {policy} | {rate} | {seed}", "limit": limit,
                       "target_s": seconds, "end": "target" if seconds else "time", "commits": 10,
                       "waiting_share": 0.5, "chosen": policy})


def hetero(*arguments, program="/bin/false"):
    script = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "hetero.py")
    done = subprocess.run([script, "--json", "--program", program, *arguments], capture_output=True,
                          text=True, timeout=HUNG_JOB_S, check=True)
    return json.loads(done.stdout)


def test_the_bench_does_not_run_again_what_is_kept(tmp_path):
    kept = tmp_path / "runs"
    lines = [kept_run("bsp", rate, 1, seconds)
             for rate, seconds in [("0.1", 2000), ("0.05", None), ("0.2", 1600), ("0.4", None)]]
    lines += [kept_run("adsp", rate, 1, seconds)
              for rate, seconds in [("0.1", 400), ("0.05", 500), ("0.2", None), ("0.4", None)]]
    lines += [kept_run("bsp", "0.2", 2, 2000), kept_run("adsp", "0.1", 2, 500)]
    kept.write_text("\n".join(lines) + "\n")
    answer = hetero("--resume", str(kept), "--policies", "bsp,adsp", "--seeds", "1,2")
    assert answer["not_run"] == []
    rows = {row["policy"]: row for row in answer["results"][0]["rows"]}
    assert rows["bsp"]["rate"] == 0.2 and rows["bsp"]["seconds"] == 1800  # its own best rate
    assert rows["adsp"]["rate"] == 0.1 and rows["adsp"]["seconds"] == 450
    assert answer["adsp_vs_bsp"] == pytest.approx(0.75) and answer["adsp_waiting_share"] == 0.5

    # What is missing is run; where that fails, the cell says so.
    kept.write_text("\n".join(lines[:-1]) + "\n")
    answer = hetero("--resume", str(kept), "--policies", "bsp,adsp", "--seeds", "1,2")
    assert answer["not_run"] == ["mlp H=3.2 O=5"]
    assert answer["adsp_vs_bsp"] is None


def test_on_unequal_machines_auto_leads_adsp_and_adsp_leads_bsp():
    """Checks the direction of the bench's claims on two cells, with one seed and a near target."""
    answer = hetero("--cells", "ci", "--quick", "--seeds", "1", "--policies", "bsp,adsp,auto", "--jobs", "1",
                    program=PROGRAM)
    assert answer["not_run"] == []
    seconds = {cell["cell"]: {row["policy"]: row["seconds"] for row in cell["rows"]} for cell in answer["results"]}
    assert len(seconds) == 2
    for cell, of in seconds.items():
        assert of["adsp"] and of["adsp"] < 0.6 * of["bsp"], (cell, of)
        # A momentum of the workers' own outweighs the policy: near the start adsp and auto are much alike.
        other, most = ("bsp", 0.6) if "momentum" in cell else ("adsp", 0.85)
        assert of["auto"] and of["auto"] < most * of[other], (cell, of)
    for cell in answer["results"]:
        waiting = {row["policy"]: row["waiting_share"] for row in cell["rows"]}
        assert waiting["adsp"] <= 0.01 < 0.3 < waiting["bsp"], (cell["cell"], waiting)
        assert [row["chosen"] for row in cell["rows"] if row["policy"] == "auto"] == ["pace"]
