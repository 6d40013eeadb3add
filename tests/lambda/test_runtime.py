"""What `make lambda` packs, under AWS's own Runtime Interface Emulator, with a store in moto's S3, which checks
signatures. `make test-lambda` prepares them and sets SOUK_LAMBDA.

covers function/runtime_client.c, function/handler.c, function/object_store_s3.c, cli/command_function_serve.c
"""
import contextlib
import json
import pathlib
import platform
import re
import shutil
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from program import ROOT, Souk  # noqa: E402
from emulated import BUCKET, EMULATOR, Instance, Lambda, unpack  # noqa: E402
from functions import write_job  # noqa: E402

STORE = f"s3://{BUCKET}/souk"
pytestmark = pytest.mark.skipif(not EMULATOR.exists(), reason="SOUK_LAMBDA is not set")


def archive(machine):
    return ROOT / "build" / f"souk-lambda-{machine}.zip"


@pytest.fixture
def souk(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Souk(home)


@pytest.fixture
def lambda_api(souk, tmp_path):
    api = Lambda(archive(platform.machine()), tmp_path, platform.machine().replace("aarch64", "arm64"))
    souk.variables.update(api.keys())
    yield api
    api.close()


@pytest.fixture
def job(souk, lambda_api, tmp_path):
    """A real one, in the store: its description, its records and a model; what trained it here says."""
    path = write_job(tmp_path, batch=100, epochs=1)
    return json.loads(souk("function", "train", path, "--store", STORE, "--keep-updates", "--functions", 1, "--memory", 512, "--span", 100,
                           "--json", "-o", tmp_path / "model").stdout)


def request_of(done, **changes):
    return {"job": done["job"], "epoch": 7, "run": 9, "first_batch": 0, "batch_count": 5, "version": done["updates"],
            "store": STORE, **changes}


def test_a_call_fetches_its_batches_and_puts_its_update(lambda_api, job, tmp_path):
    with Instance(lambda_api.task, tmp_path / "one", lambda_api.keys(), 512, 30) as instance:
        status, body, report = instance.call(request_of(job))
        answer = json.loads(body)
        assert (status, answer["batches_done"], answer["samples"], answer["end"]) == (200, 5, 500, "done"), body
        assert all(answer[name] > 0 for name in ("fetch_us", "compute_us", "update_us", "loss"))
        assert 1 << 20 < answer["memory_bytes"] < 512 << 20
        assert f"souk/updates/{job['job']}/7-9-0" in lambda_api.objects()
        assert "Init Duration" in report and "Memory Size: 512 MB" in report
        # Warm: the same process, which knows the job, and remembers nothing of calls.
        (first,) = instance.runtimes()
        status, body, report = instance.call(request_of(job, first_batch=5))
        again = json.loads(body)
        assert (status, again["batches_done"], again["is_repeated"]) == (200, 5, False)
        assert "Init Duration" not in report and again["fetch_us"] < answer["fetch_us"]
        assert json.loads(instance.call(request_of(job))[1])["is_repeated"]
        assert instance.runtimes() == [first]


def test_bad_input_is_refused_and_the_next_call_answered(lambda_api, job, tmp_path):
    with Instance(lambda_api.task, tmp_path / "one", lambda_api.keys(), 512, 30) as instance:
        for request, kind, words in [
                (b"nonsense", "invalid", "JSON"), ({}, "invalid", "request.job"), (b"[]", "invalid", "request"),
                (b"", "invalid", "JSON"),
                (request_of(job, batch_count=100000), "invalid", "batches"),
                (request_of(job, version=999), "not_found", "model 999"),
                (request_of(job, job="another-0a1b2c3d"), "not_found", "the job"),
                (request_of(job, store="/etc"), "refused", "s3://"),
                (request_of(job, store="s3://not-there/souk"), "not_found", "the job")]:
            status, body, _ = instance.call(request)
            answer = json.loads(body)
            assert status == 200 and set(answer) == {"errorType", "errorMessage"}
            assert answer["errorType"] == kind and words in answer["errorMessage"], (request, answer)
        assert json.loads(instance.call(request_of(job))[1])["batches_done"] == 5
        assert len(instance.runtimes()) == 1


def test_keys_that_are_refused_are_said(lambda_api, job, tmp_path):
    keys = {**lambda_api.keys(), "AWS_SECRET_ACCESS_KEY": "wrong"}
    with Instance(lambda_api.task, tmp_path / "one", keys, 512, 30) as instance:
        answer = json.loads(instance.call(request_of(job))[1])
        assert answer["errorType"] == "refused" and "AWS_SECRET_ACCESS_KEY" in answer["errorMessage"]


def test_a_call_ends_before_its_time_does(souk, lambda_api, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(write_job(tmp_path, batch=100, epochs=1).read_text().replace("logistic", "lenet5"))
    job = json.loads(souk("function", "train", path, "--store", STORE, "--keep-updates", "--functions", 2, "--memory", 1769, "--json",
                          "-o", tmp_path / "model").stdout)
    with Instance(lambda_api.task, tmp_path / "one", lambda_api.keys(), 512, 1) as instance:
        status, body, report = instance.call(request_of(job, batch_count=600))
        answer = json.loads(body)
        assert status == 200 and answer["end"] == "time" and 0 < answer["batches_done"] < 600, body
        assert float(re.search(r"\tDuration: ([\d.]+) ms", report)[1]) < 1300
        # The rest is another call's.
        done = answer["batches_done"]
        answer = json.loads(instance.call(request_of(job, first_batch=done, batch_count=5))[1])
        assert answer["batches_done"] == 5


@contextlib.contextmanager
def deaf_store():
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_call_that_hangs_is_ended_by_the_emulator(lambda_api, job, tmp_path):
    with deaf_store() as url, Instance(lambda_api.task, tmp_path / "one", {**lambda_api.keys(), "AWS_ENDPOINT_URL": url},
                                       512, 1) as instance:
        status, body, _ = instance.call(request_of(job))
        assert b"timed out" in body, (status, body)


@pytest.mark.skipif(not shutil.which("qemu-aarch64-static"), reason="qemu-user-static is not installed")
def test_the_zip_for_arm64_takes_a_call(lambda_api, job, tmp_path):
    task = unpack(archive("aarch64"), tmp_path / "arm64")
    # This machine does not start programs of that architecture by itself.
    bootstrap = (task / "bootstrap").read_text()
    assert bootstrap.count("exec ./lib/ld-linux-aarch64.so.1") == 1
    (task / "bootstrap").write_text(bootstrap.replace("exec ./lib", "exec qemu-aarch64-static ./lib"))
    with Instance(task, tmp_path / "one", lambda_api.keys(), 512, 120) as instance:
        for first in (20, 25):
            status, body, _ = instance.call(request_of(job, first_batch=first))
            answer = json.loads(body)
            assert (status, answer["batches_done"], answer["end"]) == (200, 5, "done"), body
        assert {f"souk/updates/{job['job']}/7-9-{first}" for first in (20, 25)} <= set(lambda_api.objects())
