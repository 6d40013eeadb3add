"""libsouk and the Python package over it, on a real market with a lender.

covers library/handle.c, library/souk_client.c, library/souk_follow.c, library/souk_job.c
"""
import asyncio
import contextlib
import http.server
import io
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from checkpoints import processes_with
from program import ROOT
from scripted_market import ScriptedMarket
from serving import HUNG_S, PROGRAM, Market, is_built_with, own_addresses
from training import Lender, submit, wait_for

LIBRARY = pathlib.Path(PROGRAM).resolve().parent / "libsouk.so.0"
if is_built_with("libasan") or is_built_with("libtsan"):
    pytest.skip("a sanitizer has to be loaded before Python itself", allow_module_level=True)
os.environ["SOUK_LIBRARY"] = str(LIBRARY)
sys.path.insert(0, str(ROOT / "python"))

import souk as sdk  # noqa: E402
from souk.progress import Progress  # noqa: E402

HELLO = """\
name: hello
num_nodes: 1
resources: {cpus: 0.1, memory: 0.1}
run: |
  for i in 1 2 3; do echo line $i; done
  echo 42 > $SOUK_OUTPUT_DIR/answer.txt
"""
ENDLESS = HELLO.replace("name: hello", "name: endless").replace("for i in", "sleep 3600\n  for i in")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdk")
    market = Market(folder / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, folder / "lender", "heron")
    try:
        wait_for("a machine", lambda: any(m["state"] == "online" and m["name"] == "heron"
                                          for m in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        lender.stop()
        market.stop()


@pytest.fixture
def client(place, tmp_path):
    market, token = place
    with sdk.Client(market.url, token, config_dir=tmp_path) as made:
        yield made


def environment(place, folder):
    market, token = place
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "SOUK_SERVER": market.url, "SOUK_TOKEN": token,
            "SOUK_LIBRARY": str(LIBRARY), "LD_LIBRARY_PATH": str(LIBRARY.parent), "PYTHONDONTWRITEBYTECODE": "1"}


def test_only_what_the_headers_declare_can_be_seen():
    declared = set()
    for header in (ROOT / "include" / "souk").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        statements = [statement for statement in text.split(";") if "typedef" not in statement]
        declared |= {name for statement in statements for name in re.findall(r"\b(souk_\w+)\(", statement)}
    listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in listed.splitlines()} == declared
    dynamic = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert "soname: [libsouk.so.0]" in dynamic


def test_the_example_in_c_runs_a_job(place, tmp_path):
    (tmp_path / "job.yaml").write_text(HELLO)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "-o", tmp_path / "submit",
                    ROOT / "examples" / "submit.c", LIBRARY], check=True)
    done = subprocess.run([tmp_path / "submit", "job.yaml"], cwd=tmp_path, env=environment(place, tmp_path),
                          capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 0, done
    assert "line 1\n" in done.stdout and "line 3\n" in done.stdout and ": succeeded" in done.stdout
    (answer,) = (tmp_path / "result").iterdir()
    assert answer.read_text() == "42\n" and answer.name in done.stdout


def test_a_task_from_its_file_to_its_result(client, tmp_path, capsys):
    (tmp_path / "job.yaml").write_text(HELLO)
    task = sdk.Task.from_yaml(tmp_path / "job.yaml")
    assert sdk.Task.from_yaml(task.to_yaml()).to_yaml() == task.to_yaml()
    assert client.quote(task)["max_run_ms"] > 0
    task.run(client)
    assert "".join(event.text for event in task.logs() if event.rank == 0 and event.source == "0") == "line 1\nline 2\nline 3\n"
    assert task.wait(progress=True)["state"] == "succeeded" == task.state
    assert f"job {task.id}: succeeded" in capsys.readouterr().err
    (answer,) = task.result(tmp_path / "result")
    assert answer.read_text() == "42\n"
    assert client.jobs(1)[0]["id"] == task.id and client.get("/v1/account")["name"] == "borrower"
    with pytest.raises(sdk.NotFound):
        client.fetch(task.id, tmp_path / "result", "no-such-file")


def test_metrics_say_whose_they_are_and_when(place, client):
    market, token = place
    job = submit(market, token, 1)
    seen = set()
    with client.follow(job, sdk.client.METRIC) as follow:
        while not {(0, "0", False), (None, "server", True)} <= seen:
            event = follow.next(HUNG_S)
            assert event is not None and event.at_ms > 0, seen
            seen.add((event.rank, event.source, event.is_server))
    assert len(seen) == 2, seen
    client.cancel(job)


class AwayMarket(ScriptedMarket):
    """Cuts its events once. A rank prints its last line after the client read the job and before events resume."""

    def __init__(self):
        super().__init__()
        self.streams, self.has_told, self.has_said_more, self.is_over = 0, threading.Event(), False, threading.Event()
        self.on("GET", "/v1/account", {"id": 1, "name": "borrower"})
        self.on("GET", "/v1/jobs/7", {"id": 7, "name": "talk", "state": "running", "leases": [
            {"id": 2, "fence": 1, "role": "worker", "rank": 0, "state": "running"}]})
        self.say(0, "line 1\n")

    def say(self, offset, text):
        for start, part in ((offset, text), (offset + len(text), "")):
            self.on("GET", f"/v1/jobs/7/logs?lease=2&offset={start}", {
                "job": 7, "lease": 2, "offset": start, "next_offset": start + len(part), "text": part, "is_end": False})

    def answer(self, handler, body):
        if handler.path.endswith("/events"):
            self.tell_events(handler)
            return
        if handler.path == "/v1/jobs/7" and self.has_said_more:
            self.is_over.wait()
        super().answer(handler, body)
        if "/logs?" in handler.path:
            self.has_told.set()

    def tell_events(self, handler):
        self.streams += 1
        if self.streams >= 2:
            self.has_told.wait()
            self.has_said_more = True
            self.say(len("line 1\n"), "line 2\n")
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(b": here\n\n")
        handler.wfile.flush()
        handler.close_connection = True
        if self.streams >= 2:
            self.is_over.wait()
        self.has_told.clear()


def test_lines_that_came_while_there_were_no_events_come_with_the_next(tmp_path):
    market = AwayMarket()
    with sdk.Client(market.url, "token", config_dir=tmp_path) as client, client.follow(7, sdk.client.LOG) as follow:
        try:
            assert [follow.next(HUNG_S).text for _ in range(2)] == ["line 1\n", "line 2\n"]
        finally:
            market.is_over.set()
    market.stop()


def test_a_cancelled_job_is_an_exception_with_the_job(client):
    task = sdk.Task(ENDLESS).run(client)
    with pytest.raises(sdk.TimedOut):
        task.wait(0.01)  # clock: tests the deadline
    task.cancel()
    with pytest.raises(sdk.JobFailed) as caught:
        task.wait()
    assert caught.value.job["state"] == "cancelled"


def test_coroutines_follow_and_are_cancelled(place, tmp_path):
    market, token = place

    async def go():
        async with await sdk.AsyncClient.connect(market.url, token, config_dir=tmp_path) as client:
            endless = await client.submit(sdk.Task(ENDLESS))
            waiting = asyncio.create_task(client.wait(endless))
            first = await client.follow(endless).__anext__()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert first.kind == "state"
            await client.cancel(endless)
            assert (await client.wait(endless))["state"] == "cancelled"
            job = await client.submit(HELLO)
            return "".join([event.text async for event in client.logs(job)]), (await client.job(job))["state"]

    told, state = asyncio.run(go())
    assert told == "line 1\nline 2\nline 3\n" and state == "succeeded"


def test_ctrl_c_ends_the_waiting_and_not_the_job(place, client, tmp_path):
    task = sdk.Task(ENDLESS).run(client)
    script = (f"import souk\nclient = souk.Client()\nprint('waiting', flush=True)\n"
              f"try:\n    client.wait({task.id})\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    waiting = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                               env={**environment(place, tmp_path), "PYTHONPATH": str(ROOT / "python")})
    assert waiting.stdout.readline() == "waiting\n"
    waiting.send_signal(signal.SIGINT)
    assert "interrupted" in waiting.communicate(timeout=HUNG_S)[0] or waiting.returncode == -signal.SIGINT
    assert task.state not in ("cancelled", "failed")
    task.cancel()


def test_who_waits_is_told_that_the_market_is_away_and_back(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", *own_addresses())
    notes, shown, ended = queue.Queue(), io.StringIO(), []
    try:
        with sdk.Client(market.url, market.sign_up("borrower"), config_dir=tmp_path) as client:
            job = client.submit(sdk.Task(HELLO))  # nobody lends: it waits
            waiting = [threading.Thread(target=lambda: ended.append(client.wait(job, HUNG_S, notes.put))),
                       threading.Thread(target=lambda: ended.append(Progress(client, job, shown).run(HUNG_S)))]
            for thread in waiting:
                thread.start()
            wait_for("the follower", lambda: f"job {job}: " in shown.getvalue())
            market.kill()
            away = notes.get(timeout=HUNG_S)
            assert re.match(r"market not reached since \d\d:\d\d:\d\d, still trying: .", away), away
            wait_for("the same on the screen", lambda: "still trying" in shown.getvalue())
            market.start()
            back = notes.get(timeout=HUNG_S)
            assert re.match(r"market reached again after \d+ s$", back), back
            wait_for("the same on the screen", lambda: "reached again" in shown.getvalue())
            client.cancel(job)
            for thread in waiting:
                thread.join(HUNG_S)
            assert [one["state"] for one in ended] == ["cancelled"] * 2
            assert notes.empty() and shown.getvalue().count("still trying") == 1
    finally:
        market.stop()


def test_what_is_wrong_is_said_with_its_place_and_the_markets_words(place, client, tmp_path):
    market, token = place
    with pytest.raises(sdk.Invalid) as caught:
        sdk.Task.from_yaml("name: x\nnum_nodes: many\nrun: echo\n")
    assert (caught.value.line, caught.value.column) == (2, 12) and "num_nodes" in str(caught.value)
    assert caught.value.mistakes == []
    with pytest.raises(sdk.Invalid) as caught:
        sdk.validate("name: x\nnum_nodes: many\nresources: {cpus: lots, memori: 1}\nrun: echo\n")
    assert caught.value.line == 2 and [(one.line, one.column, one.field) for one in caught.value.mistakes] == [
        (2, 12, "num_nodes"), (3, 19, "resources.cpus"), (3, 25, "resources")]
    assert str(caught.value).count("\n") == 2 and 'unknown field "memori"; did you mean "memory"?' in str(caught.value)
    with pytest.raises(sdk.Invalid) as caught:  # as many as there is room for
        sdk.validate("name: x\nrun: echo\n" + "".join(f"unknown{i}: 1\n" for i in range(200)))
    assert 20 < len(caught.value.mistakes) < 200 and caught.value.mistakes[0].line == 3
    with pytest.raises(sdk.Invalid, match="num_nodes"):
        sdk.Task({"name": "x", "num_nodes": "many", "run": "echo"})
    with pytest.raises(sdk.Refused) as caught:
        sdk.Client(market.url, "wrong-token", config_dir=tmp_path)
    assert caught.value.status == 401 and caught.value.problem["status"] == 401
    with pytest.raises(sdk.NotFound) as caught:
        client.job(999999)
    assert caught.value.status == 404 and caught.value.problem["code"] == "not_found"
    with socket.socket() as closed, pytest.raises(sdk.Unavailable) as caught:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        sdk.Client(f"http://127.0.0.1:{closed.getsockname()[1]}", token, config_dir=tmp_path)
    assert caught.value.status == 0 and caught.value.problem is None
    with pytest.raises(sdk.Invalid, match="no market is known"):
        sdk.Client(config_dir=tmp_path)


@contextlib.contextmanager
def listener(answer=lambda path: (200, {})):
    """Another market: its URL, and the Authorization of every request that came."""
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append(self.headers["Authorization"])
            status, body = answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", heard
        finally:
            server.shutdown()
            thread.join()


def test_no_market_is_sent_anothers_token(place, tmp_path, monkeypatch):
    market, token = place
    (tmp_path / "config").write_text(f"server = {market.url}\n\n[lend]\ncores = 50%\n")
    (tmp_path / "secrets").touch(0o600)
    (tmp_path / "secrets").write_text(f"token = {token}\n")

    def connect(*arguments):
        with sdk.Client(*arguments, config_dir=tmp_path) as client:
            return client.server

    for name in ("SOUK_SERVER", "SOUK_TOKEN", "SOUK_FINGERPRINT"):
        monkeypatch.delenv(name, raising=False)
    for known in ((), (f"{market.url}/",)):
        with sdk.Client(*known, config_dir=tmp_path) as client:
            assert client.get("/v1/account")["name"] == "borrower"
    with listener() as (url, heard):
        connect(url)
        monkeypatch.setenv("SOUK_SERVER", url)
        assert connect() == url
        monkeypatch.setenv("SOUK_TOKEN", "of-this")
        connect()
        monkeypatch.setenv("SOUK_SERVER", market.url)
        connect(url)
        connect(url, "told")
        monkeypatch.delenv("SOUK_SERVER")
        connect(url)
        assert heard == [None, None, "Bearer of-this", None, "Bearer told", "Bearer of-this"]
        monkeypatch.delenv("SOUK_TOKEN")
        (tmp_path / "markets").touch(0o600)  # signed in at it before, as the command line keeps it
        (tmp_path / "markets").write_text(json.dumps({"markets": [{"server": url, "token": "kept"}]}))
        connect(url + "/")
        assert heard[6:] == ["Bearer kept"]


def test_a_log_that_breaks_off_is_asked_for_again_and_is_no_good_end(tmp_path):
    asked = []

    def answer(path):
        if not path.startswith("/v1/jobs/7/logs"):
            return 200, {"id": 7, "name": "x", "state": "succeeded", "leases": [
                {"id": 1, "role": "worker", "rank": 0}, {"id": 2, "role": "worker", "rank": 1}]}
        offset = int(path.rpartition("=")[2])
        if "lease=1" in path:
            asked.append(offset)
            if len(asked) <= failures:
                return 500, {"status": 500, "code": "internal", "title": "broken"}
        return 200, {"text": "whole\n"[offset:], "next_offset": 6, "is_end": True}

    with listener(answer) as (url, _), sdk.Client(url, "token", config_dir=tmp_path) as client:
        failures = 3
        assert sorted((event.rank, event.text) for event in client.logs(7)) == [(0, "whole\n"), (1, "whole\n")]
        asked.clear()
        failures = 1000
        told = []
        with pytest.raises(sdk.SoukError, match="the end of the log did not come"):
            told.extend(event.rank for event in client.logs(7))
        assert 0 not in told


def test_pip_is_ended_with_the_call_that_waits_for_it(place, tmp_path):
    market, token = place

    async def go():
        with socket.create_server(("127.0.0.1", 0)) as index:  # it takes calls and says nothing
            index.setblocking(False)
            address = f"http://127.0.0.1:{index.getsockname()[1]}"
            (tmp_path / "requirements.txt").write_text(f"--index-url {address}\nnothing-there\n")
            async with await sdk.AsyncClient.connect(market.url, token, config_dir=tmp_path) as client:
                sending = asyncio.create_task(client.submit(f"{HELLO}requirements: {tmp_path}/requirements.txt\n"))
                calling = asyncio.create_task(asyncio.get_running_loop().sock_accept(index))
                await asyncio.wait({sending, calling}, return_when=asyncio.FIRST_COMPLETED)
                assert not sending.done(), sending.result()
                with calling.result()[0] as caller:
                    pip, = processes_with(f"{tmp_path}/requirements.txt")
                    folder = re.search(r"/var/tmp/souk-wheels-\w+", pathlib.Path(f"/proc/{pip}/cmdline").read_text())[0]
                    assert os.path.isdir(folder)
                    sending.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await sending
                    await client.close()  # once the call has ended, and pip before it
                    while await asyncio.get_running_loop().sock_recv(caller, 65536):
                        pass
        return folder

    assert not os.path.exists(asyncio.run(asyncio.wait_for(go(), HUNG_S)))
