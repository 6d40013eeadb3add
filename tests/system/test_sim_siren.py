"""souk sim siren: schedulers of elastic training in virtual time, the same for the same seed.

covers cli/command_sim_siren.c, cli/sim_siren_inspect.c, cli/sim_siren_report.c, cli/sim_siren_serve.c
"""
import json
import os
import subprocess

import pytest
from ranks import HUNG_JOB_S

PROGRAM = os.environ["SOUK_PROGRAM"]


def sim(*arguments, text=None):
    return subprocess.run([PROGRAM, "sim", "siren", *arguments], capture_output=True, text=True, input=text, timeout=HUNG_JOB_S)


def rows(cell):
    return {row["scheduler"]: row for row in cell["schedulers"]}


def test_all_schedulers_stand_beside_each_other_and_a_seed_says_all():
    asked = ["--budget", "300", "--seed", "9", "--episodes", "40", "--rehearsals", "10", "--json"]
    first, again = sim(*asked), sim(*asked)
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    cell, = json.loads(first.stdout)["results"]
    found = rows(cell)
    assert list(found) == ["constant", "bound", "decay", "growth", "agent", "planner", "auto"]
    for name in ("constant", "decay", "growth", "agent", "planner", "auto"):
        assert found[name]["reached"] == 1 and found[name]["cost"] <= 300 and not found[name]["passed_budget"]
        assert found[name]["time_s"] >= found["bound"]["time_s"]
    assert found["auto"]["share_of_bound"] > 0.9
    assert found["agent"]["reduction"] > 0


def test_in_the_paper_s_world_nothing_can_be_gained():
    done = sim("--mode", "paper", "--budget", "300", "--scheduler", "decay,planner,auto", "--json")
    found = rows(json.loads(done.stdout)["results"][0])
    assert all(row["reduction"] < 0.001 for row in found.values())
    assert found["constant"]["functions_min"] == found["constant"]["functions_max"] == 833
    table = sim("--mode", "paper", "--budget", "300,50", "--scheduler", "planner").stdout
    assert len(json.loads(done.stdout)["published_table_3"]) == 4
    assert "Table III" in table and "652-892" in table and "no constant reaches the target" in table


def test_with_noise_fresh_runs_count():
    done = sim("--noise", "--budget", "200", "--seed", "9", "--evaluations", "6", "--scheduler", "auto", "--json")
    cell, = json.loads(done.stdout)["results"]
    found = rows(cell)
    assert cell["runs"] == 6
    assert found["auto"]["reached"] == 6 and found["auto"]["reduction"] > 0
    assert found["auto"]["share_of_bound"] is None  # luck may pass the bound


def test_with_noise_no_row_depends_on_who_stands_beside_it():
    asked = ["--noise", "--budget", "300", "--seed", "9", "--evaluations", "3", "--episodes", "20", "--json", "--scheduler"]
    alone, both = (rows(json.loads(sim(*asked, names).stdout)["results"][0]) for names in ("auto", "agent,auto"))
    assert alone["auto"] == both["auto"]


def test_an_agent_is_kept_used_again_and_shown(tmp_path):
    kept = tmp_path / "agent"
    asked = ["--budget", "300", "--seed", "9", "--scheduler", "agent", "--json"]
    trained = sim(*asked, "--episodes", "40", "--save", str(kept))
    assert trained.returncode == 0, trained.stderr
    used = sim(*asked, "--agent", str(kept))
    ends = [rows(json.loads(done.stdout)["results"][0])["agent"]["time_s"] for done in (trained, used)]
    assert ends[0] == ends[1]
    shown = sim("--inspect", str(kept))
    assert "trained on 40 runs" in shown.stdout and "layers 9 64 64 4" in shown.stdout
    read = json.loads(sim("--inspect", str(kept), "--json").stdout)
    assert read["episodes"] == 40 and read["layers"] == [9, 64, 64, 4] and len(read["choices"]) == 6
    larger = tmp_path / "larger"  # of a job whose functions have more memory than the simulator's
    larger.write_text(kept.read_text().replace(f"centre {read['centre_functions']} {read['centre_memory_mb']}",
                                               f"centre {read['centre_functions']} 10240", 1))
    assert json.loads(sim("--inspect", str(larger), "--json").stdout)["choices"][0]["memory_mb"] > 8000
    kept.write_text(kept.read_text().replace("souk-agent 1", "souk-agent 7", 1))
    refused = sim("--inspect", str(kept))
    assert refused.returncode == 2 and "version 7" in refused.stderr


@pytest.mark.parametrize("asked, reason", [
    (["--scheduler", "best"], "none of constant"),
    (["--budget", "0"], "from 1 to 1000000"),
    (["--budget", "many"], "--budget"),
    (["--seed", "one"], "--seed"),
    (["--episodes", "5"], "0, or from 20"),
    (["--save", "agent"], "one seed and budget"),
    (["--agent", "/nowhere/agent"], "/nowhere/agent"),
    (["--serve"], "one --budget"),
    (["--seed", ",".join(map(str, range(100)))], "1 to 256"),
    (["--mode", "sgd", "--folder", "/nowhere"], "/nowhere"),
])
def test_what_is_wrong_is_told(asked, reason):
    done = sim(*asked)
    assert done.returncode != 0 and reason in done.stderr, done.stderr


def test_the_world_is_served_epoch_by_epoch():
    lines = ['{"command": "step", "functions": 1, "memory_mb": 128}', '{"command": "reset", "seed": 7, "episode": 1}',
             '{"command": "step", "functions": 3001, "memory_mb": 1536}', "not JSON", '{"command": "dance"}',
             '{"command": "reset", "more": 1}', *['{"command": "step", "functions": 1200, "memory_mb": 1536}'] * 400]
    done = sim("--serve", "--budget", "50", text="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(lines)
    assert "reset first" in answers[0]["error"] and answers[1]["observation"][1] == 1
    assert all("error" in answer for answer in answers[2:6])
    steps = [answer for answer in answers[6:] if "error" not in answer]
    assert all(-1 <= value <= 20 for step in steps for value in step["observation"])
    assert steps[-1]["terminated"] and steps[-1]["reward"] < -99 and steps[-1]["spent"] == 50
    assert not any(step["terminated"] or step["truncated"] for step in steps[:-1])
    assert "reset first" in answers[-1]["error"]


def test_a_model_is_trained_epoch_by_epoch():
    lines = ['{"command": "reset", "seed": 7, "episode": 1}',
             *['{"command": "step", "functions": 2, "memory_mb": 1792}'] * 3, '{"command": "reset", "seed": 7, "episode": 1}',
             *['{"command": "step", "functions": 64, "memory_mb": 1792}'] * 3]
    asked = ["--mode", "sgd", "--serve", "--budget", "100"]
    first, again = (sim(*asked, text="\n".join(lines) + "\n") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    losses = [json.loads(line)["loss"] for line in first.stdout.splitlines()]
    assert losses[0] == losses[4] > 2 and losses[3] < losses[7] < losses[0]
    times = [json.loads(line)["elapsed_s"] for line in first.stdout.splitlines()]
    assert times[3] > 4 * times[7]


def test_a_line_without_end_is_refused():
    done = sim("--serve", "--budget", "300", text='{"command": "' + "x" * 10000)
    assert done.returncode == 2 and "at most 4096 bytes" in done.stderr
