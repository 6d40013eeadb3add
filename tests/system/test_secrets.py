"""A job's secrets reach its ranks, and nothing else has them.

covers runtime/job_secrets.c, server/secrets.c, server/sealed.c, client/secrets.c
"""
import json
import os
import subprocess
import uuid

import pytest

from checkpoints import Place
from hidden import Hush, is_in_memory, submit, where_it_is
from serving import HUNG_S, PROGRAM
from training import wait_for


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    try:
        yield place
    finally:
        place.stop()


def test_ranks_have_them_and_nothing_else_does(place):
    place.lend("first")
    hush = Hush(place)
    spec = place.job(hush.id)["spec"]
    assert spec["secret_names"] == ["API_TOKEN", "GIVEN", "RENAMED", "WRITTEN"] and "secrets" not in spec
    sealed = list((place.folder / "market" / "secrets").iterdir())
    assert [path.stat().st_mode & 0o777 for path in sealed] == [0o600]

    wait_for("the rank", lambda: f"found {hush.digest}" in place.log(hush.id))
    shown = [hush.done.stdout, hush.done.stderr]
    for path in ("/v1/jobs", f"/v1/jobs/{hush.id}", f"/v1/jobs/{hush.id}/logs?rank=0&offset=0",
                 f"/v1/jobs/{hush.id}/file", f"/v1/jobs/{hush.id}/artifacts", "/v1/machines"):
        answer = place.market.get(path, place.token)
        assert answer.status == 200, (path, answer)
        shown.append(answer.body.decode())
    shown += [place.souk("job", "show", str(hush.id), *more).stdout for more in ((), ("--json",))]
    assert not [word for word in hush.words if word in "".join(shown)]
    assert where_it_is(place.folder, hush.words) == []
    (keeper,) = place.lenders["first"].keepers().values()
    assert not is_in_memory(keeper, hush.words)  # its rank has them, and it was the last to need them
    place.souk("job", "cancel", "-y", str(hush.id))
    wait_for("its secrets to go", lambda: not list((place.folder / "market" / "secrets").iterdir()))


def test_what_is_refused_leaves_nothing_behind(place):
    secrets = place.folder / "market" / "secrets"
    job = {"name": "hush", "run": "true", "market": {"max_run_time": "1m"}}
    missing = submit(place, {**job, "secrets": {"NOWHERE_SET": None}}, code=2)
    assert '"NOWHERE_SET" has no value' in missing.stderr
    assert "SOUK_" in submit(place, job, "--secret", "SOUK_RANK=1", code=2).stderr

    word = uuid.uuid4().hex
    body = {**job, "market": {"max_run_time": "1000h"}, "num_nodes": 900, "secrets": {"TOKEN": word}}  # costs more than there is
    refused = place.market.post("/v1/jobs", body, place.token)
    assert refused.status not in (200, 201) and b"holds" not in refused.body, refused
    for wrong, sentence in (
            ({"secrets": {"TOKEN": None}}, b"has no value"),
            ({"secret_names": ["TOKEN"]}, b"values are needed again"),
            ({"secret_file": "0" * 32}, b"the market's to fill in"),
            ({"secrets": {"A B": "x"}}, b"no name of a variable"),
            ({"secrets": {f"N{i}": "x" * 4000 for i in range(9)}}, b"longer than 32768 bytes together")):
        answer = place.market.post("/v1/jobs", {**job, **wrong}, place.token)
        assert answer.status == 400 and sentence in answer.body, (wrong, answer)
    checked = place.market.call("POST", "/v1/jobs/check", json.dumps({**job, "secrets": {"T": word}}), place.token)
    assert b"sent with the job alone" in checked.body and word.encode() not in checked.body

    first = place.market.post("/v1/jobs", {**job, "secrets": {"TOKEN": word}}, place.token, key="once")
    again = place.market.post("/v1/jobs", {**job, "secrets": {"TOKEN": word}}, place.token, key="once")
    assert first.status == again.status == 201 and first.json["id"] == again.json["id"]
    other = place.market.post("/v1/jobs", {**job, "secrets": {"TOKEN": word + "x"}}, place.token, key="once")
    assert other.status == 409, other
    assert len(list(secrets.iterdir())) == 1
    (secrets / ("f" * 32)).write_bytes(b"of a job that never came to be")
    place.market.kill()
    place.market.start()
    assert len(list(secrets.iterdir())) == 1
    assert place.market.post(f"/v1/jobs/{first.json['id']}/cancel", {}, place.token).status == 200
    wait_for("its secrets to go", lambda: not list(secrets.iterdir()))
    assert where_it_is(place.folder, [word]) == []


def test_the_plan_says_which_variable_is_sent(place):
    path = place.folder / "job.yaml"
    path.write_text("name: hush\nrun: 'true'\nsecrets:\n  LOG_LEVEL: ${ELSEWHERE}\n  TOKEN:\n")
    word = uuid.uuid4().hex
    asked = subprocess.run(
        [PROGRAM, "job", "submit", str(path), "--server", place.market.url, "--config-dir", str(place.folder / "config")],
        capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
        env={**os.environ, "SOUK_TOKEN": place.token, "NO_COLOR": "1", "ELSEWHERE": word, "TOKEN": word})
    assert asked.returncode == 2 and word not in asked.stderr, asked
    assert "secrets   LOG_LEVEL from $ELSEWHERE, TOKEN, for every rank" in asked.stderr, asked
