"""How many functions a job has in every epoch: planned, chosen by an agent, and held to what did better before.

covers cli/function_schedule.c, cli/agent_store.c
"""
import json

import pytest
from functions import with_few_records, write_job

FEW = ("--functions", 6, "--memory", 128, "--cpus", "1")


@pytest.fixture
def souk(souk):
    return with_few_records(souk)


def job_to(folder, loss, epochs=6):
    job = write_job(folder, epochs=epochs)
    job.write_text(job.read_text() + f"  target: {{loss: {loss}}}\n")
    return job


def train(souk, *options):
    return json.loads(souk("function", "train", *options, *FEW, "--json").stdout)


def assert_within(result, budget_micro):
    assert result["end"] in ("epochs", "budget", "target")
    assert 0 < result["spent_micro"] <= budget_micro
    assert result["spent_micro"] == sum(epoch["cost_micro"] for epoch in result["epochs"])
    assert all(1 <= epoch["functions"] <= 6 and epoch["memory_mb"] == 128 for epoch in result["epochs"])


def test_a_job_with_a_budget_and_a_target_is_planned(souk, tmp_path):
    result = train(souk, job_to(tmp_path, 0.1), "-o", tmp_path / "model", "--budget", "0.01")
    assert result["schedule"] == "auto" and "at most 6 functions of 128 MB" in result["plan"]
    assert "a loss of 0.1 within 0.010000 credits" in result["plan"]
    assert_within(result, 10000)
    # Few come first, and never many more than were tried.
    counts = [epoch["functions"] for epoch in result["epochs"]]
    assert counts[0] == 1 and counts[1] <= 4
    assert result["test_loss_start"] > result["epochs"][0]["test_loss"]


def test_a_target_is_planned_for_without_a_budget(souk, tmp_path):
    result = train(souk, job_to(tmp_path, 0.55), "-o", tmp_path / "model")
    assert result["end"] == "target" and result["test_loss"] <= 0.55
    assert "to a loss of 0.55" in result["plan"] and "within" not in result["plan"]


def test_memory_is_chosen_where_it_may_be(souk, tmp_path):
    result = json.loads(souk("function", "train", job_to(tmp_path, 0.1, epochs=3), "-o", tmp_path / "model", "--functions", 6,
                             "--memory", 512, "--memory-least", 128, "--budget", "0.02", "--json").stdout)
    assert "at most 6 functions of 128 to 512 MB" in result["plan"]
    memories = [epoch["memory_mb"] for epoch in result["epochs"]]
    assert memories[:2] == [512, 256] and all(128 <= memory <= 512 for memory in memories)
    assert result["spent_micro"] <= 20000


def test_functions_double_from_epoch_to_epoch(souk, tmp_path):
    result = json.loads(souk("function", "train", write_job(tmp_path, epochs=5), "-o", tmp_path / "model", "--functions", 16,
                             "--memory", 128, "--schedule", "grow", "--json").stdout)
    assert [epoch["functions"] for epoch in result["epochs"]] == [2, 4, 8, 16, 16]
    assert result["plan"] == "2 functions of 128 MB in the first epoch, twice as many in every next, 16 at most"


def test_without_them_the_number_stays(souk, tmp_path):
    told = souk("function", "train", write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 2,
                "--budget", "0.05").stderr
    assert "Schedule auto: 2 functions of 256 MB in every epoch." in told


def test_an_earlier_constant_is_what_auto_and_an_agent_are_held_to(souk, tmp_path):
    job = job_to(tmp_path, 0.65)
    first = souk("function", "train", job, "-o", tmp_path / "model", "--schedule", "constant", *FEW, "--json").stdout
    (tmp_path / "first.json").write_text(first)
    earlier = json.loads(first)
    assert earlier["end"] == "target" and earlier["schedule"] == "constant"
    result = train(souk, job, "-o", tmp_path / "model", "--budget", "0.01", "--earlier", tmp_path / "first.json")
    assert f"from {len(earlier['epochs'])} epochs of earlier runs, held to 6 functions" in result["plan"]
    assert result["end"] == "target"
    assert_within(result, 10000)

    # A run that no other is as soon as: whatever the agent chooses first is late, and from then on it is the constant.
    sample = earlier["epochs"][0] | {"seconds": 1e-4, "functions": 5, "cost_micro": 1}
    earlier["epochs"] = [sample | {"epoch": i, "test_loss": 2 * 0.6 ** (i + 1)} for i in range(6)]
    (tmp_path / "first.json").write_text(json.dumps(earlier))
    job = job_to(tmp_path, 0.1, epochs=4)
    options = (job, "-o", tmp_path / "model", "--budget", "0.01", "--earlier", tmp_path / "first.json")
    for schedule in ("agent", "planner", "auto"):
        result = train(souk, *options, "--schedule", schedule)
        assert "from 6 epochs of earlier runs, held to 5 functions" in result["plan"]
        assert "more than 5 % later" in result["plan"]
        assert [epoch["functions"] for epoch in result["epochs"]][1:] == [5, 5, 5]


def test_an_agent_goes_on_learning_and_is_kept(souk, tmp_path):
    job, kept = job_to(tmp_path, 0.1), tmp_path / "kept.agent"
    result = train(souk, job, "-o", tmp_path / "model", "--budget", "0.01", "--schedule", "agent", "--save-agent", kept)
    assert "a new agent, refined on the job" in result["plan"]
    assert_within(result, 10000)
    shown = souk("sim", "siren", "--inspect", kept).stdout
    assert "128 MB" in shown
    before = kept.read_bytes()
    result = train(souk, job, "-o", tmp_path / "model", "--budget", "0.01", "--schedule", "agent", "--agent", kept,
                   "--save-agent", tmp_path / "again.agent")
    assert "the agent of the file" in result["plan"]
    assert_within(result, 10000)
    assert kept.read_bytes() == before != (tmp_path / "again.agent").read_bytes()


def test_an_agent_of_the_simulator_can_be_used(souk, tmp_path):
    agent = tmp_path / "sim.agent"
    souk("sim", "siren", "--budget", "300", "--scheduler", "agent", "--episodes", 20, "--save", agent)
    result = train(souk, job_to(tmp_path, 0.1, epochs=4), "-o", tmp_path / "model", "--budget", "0.01", "--schedule",
                   "agent", "--agent", agent)
    assert_within(result, 10000)


def test_what_a_schedule_lacks_is_refused(souk, tmp_path):
    job = job_to(tmp_path, 0.1)

    def refused(*options, code=2):
        return souk("function", "train", job, "-o", tmp_path / "model", *options, code=code).stderr

    assert "needs --budget" in refused("--schedule", "agent")
    (tmp_path / "aimless").mkdir()
    aimless = write_job(tmp_path / "aimless", epochs=1)
    for schedule in ("planner", "agent"):
        told = souk("function", "train", aimless, "-o", tmp_path / "model", "--schedule", schedule, code=2).stderr
        assert "needs train.target.loss" in told
    assert "with --schedule agent" in refused("--save-agent", tmp_path / "a")
    (tmp_path / "odd").write_text("[]")
    assert "--agent: " in refused("--schedule", "agent", "--budget", "1", "--agent", tmp_path / "odd")
    assert "--earlier: " in refused("--budget", "1", "--earlier", tmp_path / "odd")
    assert "--earlier: " in refused("--budget", "1", "--earlier", tmp_path / "none", code=3)
