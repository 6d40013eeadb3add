"""souk recommend from the first question to the job's end: a trial, the job as recommended, and what was foretold of it.

covers cli/command_recommend.c
"""
import json

import pytest

from test_recommend import commands, spec_of
from training import running


@pytest.fixture
def place(tmp_path):
    with running(tmp_path) as made:
        yield made


def test_the_command_tries_recommends_submits_and_remembers(place, tmp_path):
    market, token, _, _ = place
    souk = commands(market, token, tmp_path)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec_of(market, token)))
    first = souk("recommend", path).stdout
    for words in ("CHOSEN", "WORKERS", "nothing of this job yet", "--trial runs it for", "num_nodes: "):
        assert words in first, first
    asked = souk("recommend", path, "--trial", code=2)  # nobody there to say yes
    assert "digits-trial" in asked.stderr
    assert market.get("/v1/jobs", token).json["items"] == []

    tried = souk("recommend", path, "--trial", "-y").stdout
    assert "1 run of this model on these data" in tried and "a trial tells more" not in tried
    trial = market.get("/v1/jobs", token).json["items"][0]
    assert trial["name"] == "digits-trial" and trial["state"] == "succeeded"

    done = souk("recommend", path, "--budget", "1/h", "--wish", "fastest", "--submit", "-y").stdout
    assert "the fastest of" in done and "State:    succeeded" in done
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    shown = souk("job", "show", job, "--profile").stdout
    assert "Foretold:" in shown and "by auto" in shown and "It was:" in shown, shown
    explained = souk("recommend", path, "--explain").stdout
    for words in ("Step:", "of this model showed there", "Speed:", "Samples:", "Work:", "In all:", "the server's + the workers'"):
        assert words in explained, explained
    last = json.loads(souk("recommend", path, "--json", "--explain").stdout)
    assert last["observations"] == 2 and last["error"]["count"] == 1
    assert "1 prediction of such jobs" in souk("recommend", path).stdout
