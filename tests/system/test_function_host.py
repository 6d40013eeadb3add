"""A function host: Lambda's Invoke API over real sandboxes, and what becomes of calls that go wrong.

covers function/host.c, function/instance_main.c, function/instance_message.c, function/invoke_server.c
covers function/invoker_http.c, cli/command_function_host.c, cli/function_here.c, cli/function_token.c, cli/listen.c
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import stat

import pytest
from program import Souk
from functions import BATCHES, RECORDS, Host, ancestors, instances, log_of, wait_for, with_few_records, write_job
from serving import HUNG_S
from training import needs_cgroups

RUN = 9


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A host, and a job whose data and last model lie in its store."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "home").mkdir()
    souk = with_few_records(Souk(folder / "home"))
    with Host(souk, "--memory", "128", "--concurrency", "3", "--timeout", "20s") as host:
        result = souk("function", "train", write_job(folder, epochs=1), "--url", host.ready["url"], "--store",
                      host.ready["store"], "--functions", 2, "--memory", 128, "--json", "-o", folder / "model",
                      "--keep-updates")
        yield host, json.loads(result.stdout)


@pytest.fixture
def job(trained):
    host, done = trained
    host.ask(host.path("configuration"), b'{"MemorySize": 128, "Timeout": 20}', "PUT")
    host.invoke(request_of(done, first=590))  # so that one is warm
    return host, done


def request_of(done, first=0, count=5, **changes):
    return {"job": done["job"], "epoch": 7, "run": RUN, "first_batch": first, "batch_count": count,
            "version": done["updates"], **changes}


def test_a_call_is_answered_and_the_next_is_warm(job):
    host, done = job
    status, headers, body = host.invoke(request_of(done), X_Amz_Log_Type="Tail")
    assert status == 200 and "X-Amz-Function-Error" not in headers
    answer = json.loads(body)
    assert (answer["batches_done"], answer["samples"], answer["end"]) == (5, 5 * RECORDS // BATCHES, "done")
    assert answer["compute_us"] > 0 and answer["memory_bytes"] > 0
    assert (pathlib.Path(host.ready["store"]) / "updates" / done["job"] / f"7-{RUN}-0").exists()
    log = log_of(headers)
    assert "REPORT RequestId: " + headers["X-Amzn-Requestid"] in log and "Memory Size: 128 MB" in log
    # The job's own calls left instances that are warm.
    assert "Init Duration" not in log
    # The same again is answered by what lies there.
    again = json.loads(host.invoke(request_of(done))[2])
    assert again["is_repeated"] and again["loss"] == answer["loss"]


def test_who_has_no_token_is_refused(job):
    host, done = job
    for token in ("wrong", host.token[:-1], host.token + "0"):
        status, headers, _ = host.ask(host.path("invocations"), b"{}", "POST", token=token)
        assert (status, headers["X-Amzn-Errortype"]) == (403, "AccessDeniedException")
    assert stat.S_IMODE(os.stat(host.ready["token_file"]).st_mode) == 0o600


def test_bad_requests_are_told_apart(job):
    host, done = job
    status, headers, _ = host.ask(host.path("invocations", "another"), b"{}", "POST")
    assert (status, headers["X-Amzn-Errortype"]) == (404, "ResourceNotFoundException")
    status, headers, _ = host.invoke(b"x" * 70000)
    assert (status, headers["X-Amzn-Errortype"]) == (413, "RequestTooLargeException")
    # One that does not say beforehand how long it is, too: it is sent in chunks.
    for call, method in (("invocations", "POST"), ("configuration", "PUT")):
        status, headers, _ = host.ask(host.path(call), iter([b"x" * 7000] * 10), method)
        assert (status, headers["X-Amzn-Errortype"]) == (413, "RequestTooLargeException")
    status, headers, _ = host.invoke({}, X_Amz_Invocation_Type="Sometimes")
    assert (status, headers["X-Amzn-Errortype"]) == (400, "InvalidParameterValueException")
    assert host.invoke({}, X_Amz_Invocation_Type="DryRun")[0] == 204
    assert host.invoke(request_of(done, first=20), X_Amz_Invocation_Type="Event")[0] == 202
    # The function's own errors are a status of 200.
    for wrong in (b"", b"nonsense", b'{"job":"../x"}', json.dumps(request_of(done, count=0)).encode(),
                  json.dumps(request_of(done, version=999)).encode(),
                  json.dumps(request_of(done, store="/etc")).encode()):
        status, headers, body = host.invoke(wrong)
        assert (status, headers["X-Amz-Function-Error"]) == (200, "Unhandled"), wrong
        assert set(json.loads(body)) == {"errorType", "errorMessage"}
    status, headers, _ = host.ask("/", None, "GET")
    assert status == 404


def test_memory_and_timeout_are_configured(job):
    host, done = job
    assert json.loads(host.ask(host.path("configuration"))[2])["MemorySize"] == 128
    assert host.ask(host.path("configuration"), b'{"MemorySize": 64}', "PUT")[0] == 400
    assert host.ask(host.path("configuration"), b'{"Timeout": 901}', "PUT")[0] == 400
    status, _, body = host.ask(host.path("configuration"), b'{"MemorySize": 192, "Timeout": 5}', "PUT")
    assert status == 200 and json.loads(body)["Timeout"] == 5
    log = log_of(host.invoke(request_of(done), X_Amz_Log_Type="Tail")[1])
    assert "Memory Size: 192 MB" in log and "Init Duration" in log
    wait_for(lambda: len(instances(host)) == 1)  # those of the old size have ended


def held_call(host, pool, done, first):
    """A call whose process is held still; the process too."""
    for pid in (before := wait_for(lambda: instances(host))):
        os.kill(pid, signal.SIGSTOP)
    call = pool.submit(host.invoke, request_of(done, first=first))
    return call, before


def test_a_call_out_of_time_fails_alone(job):
    host, done = job
    host.ask(host.path("configuration"), b'{"Timeout": 1}', "PUT")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        call, held = held_call(host, pool, done, 30)
        status, headers, body = call.result(timeout=HUNG_S)
        assert (status, headers["X-Amz-Function-Error"]) == (200, "Unhandled")
        assert "timed out after 1.00 seconds" in json.loads(body)["errorMessage"]
        for pid in set(held) & set(instances(host)):
            os.kill(pid, signal.SIGCONT)
    assert json.loads(host.invoke(request_of(done, first=30))[2])["batches_done"] == 5


def test_a_call_whose_process_dies_fails_alone(job):
    host, done = job
    with concurrent.futures.ThreadPoolExecutor() as pool:
        call, held = held_call(host, pool, done, 40)
        wait_for(lambda: call.running())
        for pid in held:
            os.kill(pid, signal.SIGKILL)
        status, headers, body = call.result(timeout=HUNG_S)
    # It went to a held one and was lost with it, or came later and found another.
    if "X-Amz-Function-Error" in headers:
        assert json.loads(body)["errorType"] == "Runtime.ExitError"
    assert json.loads(host.invoke(request_of(done, first=40))[2])["batches_done"] == 5


def has_ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_an_idle_process_that_died_is_passed_over(job):
    host, done = job
    watches = []
    try:
        for pid in wait_for(lambda: instances(host)):
            # The sandbox is still there: only the closed socket shows the death.
            above = ancestors(pid)
            for other in above[:above.index(host.process.pid)]:
                watches.append(os.pidfd_open(other))
                signal.pidfd_send_signal(watches[-1], signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: has_ended(pid))
        status, _, body = host.invoke(request_of(done, first=60))
        assert (status, json.loads(body).get("batches_done")) == (200, 5), body
    finally:
        for watch in watches:  # a stopped process without a cgroup would never end
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(watch, signal.SIGCONT)
            os.close(watch)


@needs_cgroups
def test_a_call_out_of_memory_fails_alone(job):
    host, done = job
    larger = json.loads(host.path_of("jobs", done["job"]).read_text())
    larger.update(name="larger")
    larger["work"]["train"].update(
        model="layers", layers=[{"type": "dense", "outputs": 50000}, {"type": "dense", "outputs": 10}])
    host.path_of("jobs", "larger").write_text(json.dumps(larger))
    status, headers, body = host.invoke({**request_of(done, first=50), "job": "larger"})
    assert (status, headers["X-Amz-Function-Error"]) == (200, "Unhandled")
    assert json.loads(body)["errorType"] == "Runtime.OutOfMemory", body
    assert json.loads(host.invoke(request_of(done, first=50))[2])["batches_done"] == 5


def test_a_model_that_is_too_long_for_the_job_is_not_read(job):
    host, done = job
    with open(host.path_of("models", done["job"], "5000"), "wb") as file:
        file.truncate(400 << 20)
    status, headers, body = host.invoke(request_of(done, first=50, version=5000))
    assert (status, headers["X-Amz-Function-Error"]) == (200, "Unhandled")
    assert json.loads(body)["errorType"] == "exhausted" and "is longer than" in json.loads(body)["errorMessage"]
    assert json.loads(host.invoke(request_of(done, first=50))[2])["batches_done"] == 5


def test_calls_beyond_the_limit_are_throttled(job):
    host, done = job
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for pid in wait_for(lambda: instances(host)):
            os.kill(pid, signal.SIGSTOP)
        held = set(instances(host))
        calls = [pool.submit(host.invoke, request_of(done, first=100 + 10 * i)) for i in range(8)]
        refused = wait_for(lambda: [call for call in calls if call.done() and call.result()[0] == 429])
        assert refused[0].result()[1]["X-Amzn-Errortype"] == "TooManyRequestsException"
        assert refused[0].result()[1]["Retry-After"] == "1"
        for pid in held & set(instances(host)):
            os.kill(pid, signal.SIGCONT)
        assert all(call.result()[0] in (200, 429) for call in calls)
        assert any(call.result()[0] == 200 for call in calls)


def test_functions_see_their_store_and_nothing_else_of_it_can_be_changed(job):
    host, done = job
    pid = wait_for(lambda: instances(host))[0]
    root = pathlib.Path(f"/proc/{pid}/root")
    if os.geteuid() != 0:
        pytest.skip("only root looks into another's root")
    assert (root / "store" / "jobs" / done["job"]).exists()
    mounts = {line.split()[4]: line.split()[5] for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()}
    assert "ro" in mounts["/store"].split(",") and "rw" in mounts["/store/updates"].split(",")
    assert not (root / "root").exists() and not (root / "home").exists()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    assert "Uid:\t65534" in status and "Seccomp:\t2" in status


def test_addresses_of_others_need_tls(souk):
    result = souk("function", "host", "--listen", "0.0.0.0:0", code=2)
    assert "--tls-cert" in result.stderr
    assert "--name" in souk("function", "host", "--name", "a b", code=2).stderr


def test_a_token_is_not_sent_where_it_could_be_read(souk, tmp_path):
    token = tmp_path / "token"
    token.write_text("a" * 43 + "\n")
    token.chmod(0o600)
    (tmp_path / "store").mkdir()
    done = souk("function", "train", write_job(tmp_path, epochs=1), "--url", "http://192.0.2.1:9001", "--store",
                tmp_path / "store", "--token-file", token, "-o", tmp_path / "model", code=2)
    assert "a token goes to https:// alone" in done.stderr
