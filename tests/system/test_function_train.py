"""Jobs trained on functions: here and on a host, to the end, out of money, resumed and with functions killed.

covers function/driver.c, function/invoker_http.c, cli/command_function_train.c, cli/function_job.c, cli/function_training.c, cli/function_training_view.c
"""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import pytest
from functions import BATCHES, RECORDS, Host, few_records, instances, with_few_records, write_job
from ranks import HUNG_JOB_S
from serving import HUNG_S, is_built_with, own_port

PLAIN_USER = 65533


@pytest.fixture
def souk(souk):
    return with_few_records(souk)


def parcel(path):
    """The head and the floats of an object of the store."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == b"SOUKPARC"
    size = struct.unpack("<I", data[12:16])[0]
    values = data[16 + size:-32]
    return json.loads(data[16:16 + size]), struct.unpack(f"<{len(values) // 4}f", values)


def train(souk, *options, code=0):
    return json.loads(souk("function", "train", *options, "--json", code=code).stdout)


def store_of(souk):
    return souk.home / ".local/state/souk/function/train/store"


def assert_covered_once(store, job, epochs, batches):
    """Of the updates that are kept, every batch of each epoch is in one."""
    for epoch in range(epochs):
        covered = []
        for path in (store / "updates" / job).glob(f"{epoch}-*"):
            head, _ = parcel(path)
            covered += range(head["first_batch"], head["first_batch"] + head["batches"])
        assert sorted(covered) == list(range(batches))


def test_a_job_is_trained_here_and_each_update_is_in_the_model(souk, tmp_path):
    # The first model plus the kept updates gives the last model.
    result = train(souk, write_job(tmp_path), "-o", tmp_path / "model", "--functions", 3, "--keep-updates", "--cpus", "1")
    assert result["end"] == "epochs" and result["epochs_done"] == 2
    assert result["samples"] == 2 * RECORDS and result["failures"] == 0
    assert result["test_accuracy"] > 0.7
    assert sum(epoch["calls"] for epoch in result["epochs"]) == result["calls"]
    assert sum(epoch["cost_micro"] for epoch in result["epochs"]) == result["spent_micro"] > 0
    assert all(epoch["staleness"] <= 6 for epoch in result["epochs"])
    store = store_of(souk)
    assert_covered_once(store, result["job"], 2, BATCHES)
    sums = None
    for path in (store / "updates" / result["job"]).glob("[0-9]*"):
        values = parcel(path)[1]
        sums = values if sums is None else [a + b for a, b in zip(sums, values)]
    newest = json.loads((store / "models" / result["job"] / "newest").read_text())["version"]
    assert newest == result["updates"]
    head, last = parcel(store / "models" / result["job"] / str(newest))
    assert head["epoch"] == 2 and head["spans"] == []
    # A third of each was added, of three functions. The first model is not kept, but a second job of the same
    # seed begins at it, and has no credits to go on.
    refused = souk("function", "train", write_job(tmp_path), "-o", tmp_path / "other", "--functions", 1, "--budget",
                   "0.000001", "--keep-updates", code=6)
    assert "too small for one call" in refused.stderr and "256 MB for 60 s" in refused.stderr
    assert not (tmp_path / "other/model.safetensors").exists()
    again, = (path.name for path in (store / "models").iterdir() if path.name != result["job"])
    first = parcel(store / "models" / again / "0")[1]
    assert max(abs(a + b / 3 - c) for a, b, c in zip(first, sums, last)) < 1e-4
    assert (tmp_path / "model/model.safetensors").exists() and (tmp_path / "model/card.json").exists()
    assert json.loads((tmp_path / "model/card.json").read_text())["policy"] == "hsp"


def test_one_function_and_one_epoch_are_one(souk, tmp_path):
    told = souk("function", "train", write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 1, "--span", BATCHES)
    assert "1 function of 256 MB" in told.stderr and "1 call, " in told.stderr
    assert "the epoch is done" in told.stdout


def files_of(store):
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())


def test_a_job_that_is_done_leaves_nothing_in_the_store(souk, tmp_path):
    train(souk, write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 2)
    assert files_of(store_of(souk)) == []


def test_a_job_that_may_go_on_says_so_and_is_forgotten_on_demand(souk, tmp_path):
    job = write_job(tmp_path, epochs=50)
    told = souk("function", "train", job, "-o", tmp_path / "model", "--functions", 2, "--budget", "0.12",
                "--core-price", "200", "--ram-price", "20", "--span", 20, "--timeout", "2s").stderr
    name = told.split("Job ")[1].split()[0]
    assert f"To go on: souk function train {job} --resume {name}" in told
    assert f"to delete them: souk function forget {name}" in told
    left = files_of(store_of(souk))
    assert f"jobs/{name}" in left and f"models/{name}/newest" in left
    # All updates that came back are in the model, which is there, and which alone.
    assert not [path for path in left if path.startswith("updates/")] and len(left) == 5
    souk("function", "forget", name)
    assert files_of(store_of(souk)) == []
    assert name in souk("function", "forget", name, code=3).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.skipif(is_built_with("libasan"), reason="without a cgroup, address space is limited, which the address sanitizer cannot be")
def test_functions_of_a_plain_user_learn(souk, tmp_path):
    """Without cgroups, sandboxes refuse memory files."""
    with tempfile.TemporaryDirectory(prefix="souk-plain-") as name:
        folder = pathlib.Path(name)
        shutil.copy(souk.program, folder / "souk")
        shutil.copytree(few_records().name, folder / "records")
        write_job(folder, epochs=1)
        for path in (folder, folder / "records"):
            path.chmod(0o755)
        os.chown(folder, PLAIN_USER, PLAIN_USER)
        done = subprocess.run(
            [folder / "souk", "function", "train", "job.yaml", "-o", "model", "--functions", "2", "--json",
             "--dataset-dir", "records"], cwd=folder, env={"HOME": name, "PATH": os.environ["PATH"]}, capture_output=True,
            text=True, timeout=HUNG_S, user=PLAIN_USER, group=PLAIN_USER, extra_groups=[])
    assert done.returncode == 0, done
    result = json.loads(done.stdout)
    assert result["samples"] == RECORDS and result["failures"] == 0, result


def test_the_number_of_functions_decays_from_epoch_to_epoch(souk, tmp_path):
    result = train(souk, write_job(tmp_path, epochs=3), "-o", tmp_path / "model", "--functions", 5, "--schedule",
                   "decay", "--functions-last", 1, "--memory", 128, "--memory-last", 256)
    assert [epoch["functions"] for epoch in result["epochs"]] == [5, 3, 1]
    assert [epoch["memory_mb"] for epoch in result["epochs"]] == [128, 192, 256]
    assert result["test_accuracy"] > 0.6


def test_the_budget_ends_a_job_with_its_best_model(souk, tmp_path):
    # Of a call 12 s are held for, about 0.113 credits, and it takes some hundredths of a second.
    result = train(souk, write_job(tmp_path, epochs=50), "-o", tmp_path / "model", "--functions", 4, "--budget",
                   "0.12", "--core-price", "200", "--ram-price", "20", "--span", 20, "--timeout", "2s")
    assert result["end"] == "budget"
    assert 0 < result["spent_micro"] <= 120000
    # The busier the machine, the dearer a call, and the fewer there are.
    assert result["epochs_done"] < 50
    assert result["test_loss"] == min([result["test_loss_start"], *(epoch["test_loss"] for epoch in result["epochs"])])
    assert result["spent_micro"] == sum(epoch["cost_micro"] for epoch in result["epochs"])
    assert (tmp_path / "model/model.safetensors").exists()


def test_a_job_on_a_host_survives_functions_that_are_killed(souk, tmp_path):
    with Host(souk, "--memory", "128", "--cpus", "0.2", "--keep-warm", "1s") as host:
        stop = threading.Event()
        killed = []

        def kill_some():
            while len(killed) < 5 and not stop.wait(0.1 if killed else 0):  # clock: lets some calls finish between kills
                for pid in instances(host)[:1]:
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)
                    except ProcessLookupError:
                        pass

        thread = threading.Thread(target=kill_some)
        thread.start()
        try:
            result = train(souk, write_job(tmp_path, epochs=2), "-o", tmp_path / "model", "--url", host.ready["url"],
                           "--store", host.ready["store"], "--functions", 4, "--memory", 128, "--span", 10,
                           "--keep-updates")
        finally:
            stop.set()
            thread.join()
        assert killed and result["end"] == "epochs"
        assert result["samples"] == 2 * RECORDS
        assert_covered_once(pathlib.Path(host.ready["store"]), result["job"], 2, BATCHES)


def test_a_job_whose_lead_was_killed_goes_on(souk, tmp_path):
    job = write_job(tmp_path, epochs=3)
    process = souk.start("function", "train", job, "-o", tmp_path / "model", "--functions", 2, "--cpus", "0.05",
                         "--span", 10, "--keep-updates")
    line = process.stderr.readline()
    while not line.startswith("Job "):
        line = process.stderr.readline()
    name = line.split()[1]
    models = store_of(souk) / "models" / name
    while not (models / "newest").exists() or json.loads((models / "newest").read_text())["version"] < 4:
        assert process.poll() is None
        time.sleep(0.01)  # clock: poll interval
    process.kill()
    process.wait(HUNG_S)
    result = train(souk, job, "-o", tmp_path / "model", "--functions", 2, "--resume", name, "--keep-updates")
    assert result["end"] == "epochs" and result["job"] == name
    assert result["samples"] == 3 * RECORDS
    other = write_job(tmp_path, batch=50)
    assert "another job" in souk("function", "train", other, "--resume", name, "-o", tmp_path / "x", code=4).stderr


def test_a_size_that_stays_is_configured_once(souk, tmp_path):
    """Lambda ends all instances of a function that is configured."""
    with Host(souk, "--memory", "128") as host:
        puts, looks = [], []

        class Api(http.server.BaseHTTPRequestHandler):
            def answer(self):
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, reply = host.ask(self.path, sent or None, self.command, {
                    name: value for name, value in self.headers.items() if name.startswith("X-Amz-")})
                if self.command == "PUT":
                    puts.append(json.loads(sent))
                looks.append(self.command)
                self.send_response(status)
                for name, value in headers.items():
                    if name.startswith("X-Am"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *words):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as api:
            thread = threading.Thread(target=api.serve_forever)
            thread.start()
            try:
                result = json.loads(souk(
                    "function", "train", write_job(tmp_path, batch=RECORDS // 30, epochs=5), "-o", tmp_path / "model", "--json",
                    "--functions", 2, "--store", host.ready["store"], "--url", f"http://127.0.0.1:{api.server_port}",
                    "--timeout", "1s", "--token-file", host.ready["token_file"]).stdout)
            finally:
                api.shutdown()
                thread.join()
    assert result["end"] == "epochs"
    assert puts == [{"MemorySize": 256, "Timeout": 1}] and looks.count("GET") == 4


@contextlib.contextmanager
def scripted_host(folder, answers):
    """A host's API that answers as `answers(method, body)` says: a status and JSON. Yields the options for it."""
    class Api(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            status, told = answers(self.command, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT

        def log_message(self, *words):
            pass

    (folder / "store").mkdir()
    (folder / "token").write_text("a" * 64 + "\n")
    (folder / "token").chmod(0o600)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api) as api:
        thread = threading.Thread(target=api.serve_forever)
        thread.start()
        try:
            yield ("--store", folder / "store", "--url", f"http://127.0.0.1:{api.server_port}", "--token-file",
                   folder / "token")
        finally:
            api.shutdown()
            thread.join()


def test_a_configuration_that_is_given_up_is_told_with_its_reason(souk, tmp_path):
    told = {"MemorySize": 128, "LastUpdateStatus": "Failed", "LastUpdateStatusReason": "the role is gone"}
    with scripted_host(tmp_path, lambda method, body: (200, told)) as options:
        done = souk("function", "train", write_job(tmp_path), "-o", tmp_path / "model", *options, code=7)
    assert "the function's configuration was not taken: the role is gone" in done.stderr


def test_a_configuration_that_is_refused_for_now_is_given_again(souk, tmp_path):
    """As Lambda does while it takes another: 409, then under way, then as somebody else wanted it."""
    asked = []

    def answers(method, body):
        asked.append(method)
        if asked.count("PUT") < 3:
            return 409, {}
        return 200, {"MemorySize": json.loads(body)["MemorySize"] if body else 4096,
                     "LastUpdateStatus": "InProgress" if method == "PUT" else "Successful"}

    with scripted_host(tmp_path, answers) as options:
        told = souk("function", "train", write_job(tmp_path), "-o", tmp_path / "model", *options, code=4).stderr
    assert asked == ["PUT", "PUT", "PUT", "GET"]
    assert "4096 MB, not the 256 MB" in told


def test_two_jobs_at_once_leave_each_other_alone(souk, tmp_path):
    job = write_job(tmp_path, epochs=10)
    first = souk.start("function", "train", job, "-o", tmp_path / "first", "--functions", 2, "--cpus", "0.05", "--json")
    while not first.stderr.readline().startswith("epoch 1:"):
        assert first.poll() is None
    second = train(souk, write_job(tmp_path, epochs=1), "-o", tmp_path / "second", "--functions", 2)
    result = json.loads(first.communicate()[0])
    assert result["failures"] == 0 and result["samples"] == 10 * RECORDS
    assert second["failures"] == 0 and second["samples"] == RECORDS


def test_what_cannot_be_is_refused(souk, tmp_path):
    job = write_job(tmp_path)
    assert "--store" in souk("function", "train", job, "--lambda", "-o", tmp_path, code=2).stderr
    assert "--store: the folder of the host, which it prints when it starts" in souk(
        "function", "train", job, "--url", "http://127.0.0.1:1", "-o", tmp_path, code=2).stderr
    assert "--functions" in souk("function", "train", job, "--functions", 0, "-o", tmp_path, code=2).stderr
    small = tmp_path / "none"
    small.mkdir()
    assert "token" in souk("function", "train", job, "--url", "http://127.0.0.1:1", "--store", small, "-o", tmp_path,
                           "--token-file", tmp_path / "no-token", code=3).stderr


def test_what_would_mean_something_else_is_refused_and_leaves_nothing(souk, tmp_path):
    job = write_job(tmp_path, epochs=1)

    def refused(*options, code=2):
        return souk("function", "train", job, "-o", tmp_path / "model", *options, code=code).stderr

    for option in ("--budget", "--core-price", "--ram-price"):
        for value in ("0", "-1"):
            assert "must be from 0.000001 credits to 1000000.000000 credits" in refused(option, value)
    assert "must be from 0.1 % to" in refused("--rate", "0")
    assert "above --memory, which is 256" in refused("--memory-least", 512)
    assert 'there is no job "nope-1234" in the store' in refused("--resume", "nope-1234", code=3)
    assert "the budget is too small for one call" in refused("--budget", "0.000002", code=6)
    assert not [path for path in store_of(souk).rglob("*") if path.is_file()]


def test_short_calls_cost_what_they_come_to_together(souk, tmp_path):
    result = train(souk, write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 2, "--span", 2, "--memory", 128)
    assert result["calls"] >= 300
    # At the market's first prices: 0.02 credits for a core-hour, 0.002 for a GiB-hour.
    worth = result["billed_ms"] / 3.6e6 * (128 / 1769 * 20000 + 128 / 1024 * 2000)
    assert abs(result["spent_micro"] - worth) <= 1.01, worth
    assert result["spent_micro"] < result["calls"]


def test_a_host_that_starts_anew_is_waited_for_and_costs_nothing_meanwhile(souk, tmp_path):
    """Where nobody listens nothing was called."""
    address = f"127.0.0.1:{own_port()}"
    first = Host(souk, "--memory", "128", "--listen", address)
    lead = souk.start("function", "train", write_job(tmp_path, epochs=20), "--url", first.ready["url"], "--store",
                      first.ready["store"], "--memory", 128, "--functions", 2, "-o", tmp_path / "model", "--json")
    while instances(first) == []:
        assert lead.poll() is None, lead.stderr.read()
        time.sleep(0.01)  # clock: poll interval
    first.process.kill()
    first.process.wait(HUNG_S)  # not for its output: a bubblewrap that was about to start may keep that open
    while "calls_throttled" not in (line := lead.stderr.readline()):
        assert line, lead.returncode
    with Host(souk, "--memory", "128", "--listen", address):
        out, told = lead.communicate(timeout=HUNG_JOB_S)
    assert lead.returncode == 0, told
    result = json.loads(out)
    assert result["end"] == "epochs" and result["samples"] == 20 * RECORDS
    assert result["throttled"] > 0
