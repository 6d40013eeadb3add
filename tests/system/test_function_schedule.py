"""How many functions a job has in every epoch: planned, chosen by an agent, and held to what did better before.

covers cli/function_schedule.c, cli/agent_store.c
"""
import json

from functions import write_job

FEW = ("--functions", 6, "--memory", 128, "--cpus", "1")


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
    # Numbers that differ come first: a quarter, a half and an eighth.
    assert [epoch["functions"] for epoch in result["epochs"]][:3] == [2, 3, 1]
    assert result["test_loss_start"] > result["epochs"][0]["test_loss"]


def test_without_them_the_number_stays(souk, tmp_path):
    told = souk("function", "train", write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 2,
                "--budget", "0.05").stderr
    assert "Schedule auto: 2 functions of 256 MB in every epoch." in told


def test_an_earlier_constant_is_what_auto_keeps_and_an_agent_is_held_to(souk, tmp_path):
    job = job_to(tmp_path, 0.65)
    first = souk("function", "train", job, "-o", tmp_path / "model", "--schedule", "constant", *FEW, "--json").stdout
    (tmp_path / "first.json").write_text(first)
    earlier = json.loads(first)
    assert earlier["end"] == "target" and earlier["schedule"] == "constant"
    result = train(souk, job, "-o", tmp_path / "model", "--budget", "0.01", "--earlier", tmp_path / "first.json")
    assert "6 functions of 128 MB in every epoch, which of 1 earlier run took the least" in result["plan"]
    assert result["end"] == "target" and {epoch["functions"] for epoch in result["epochs"]} == {6}
    assert_within(result, 10000)

    # A run that no other is as soon as: whatever the agent chooses first is late, and from then on it is the constant.
    sample = earlier["epochs"][0] | {"seconds": 1e-4, "functions": 5, "cost_micro": 1}
    earlier["epochs"] = [sample | {"epoch": i, "test_loss": 2 * 0.6 ** (i + 1)} for i in range(6)]
    (tmp_path / "first.json").write_text(json.dumps(earlier))
    job = job_to(tmp_path, 0.1, epochs=4)
    options = (job, "-o", tmp_path / "model", "--budget", "0.01", "--earlier", tmp_path / "first.json")
    result = train(souk, *options, "--schedule", "agent")
    assert "from 6 epochs of earlier runs, held to 5 functions" in result["plan"]
    assert "more than 5 % later" in result["plan"]
    assert [epoch["functions"] for epoch in result["epochs"]][1:] == [5, 5, 5]
    assert "held to" not in train(souk, *options, "--schedule", "planner")["plan"]


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

    for schedule in ("planner", "agent"):
        assert "needs train.target.loss, and --budget" in refused("--schedule", schedule)
    assert "with --schedule agent" in refused("--save-agent", tmp_path / "a")
    (tmp_path / "odd").write_text("[]")
    assert "--agent: " in refused("--schedule", "agent", "--budget", "1", "--agent", tmp_path / "odd")
    assert "--earlier: " in refused("--budget", "1", "--earlier", tmp_path / "odd")
    assert "--earlier: " in refused("--budget", "1", "--earlier", tmp_path / "none", code=3)
