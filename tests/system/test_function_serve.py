"""The function as Lambda runs it: by the Runtime API, and from the zip that is uploaded there.

The API is played as AWS documents it (2018-06-01): /invocation/next, /response, /error. tests/lambda has AWS's own
emulator.

covers function/runtime_client.c, cli/command_function_serve.c
"""
import contextlib
import http.server
import json
import pathlib
import queue
import subprocess
import threading
import time
import zipfile

import pytest
from functions import with_few_records, write_job
from serving import HUNG_S

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class RuntimeApi(http.server.ThreadingHTTPServer):
    """Calls go in by `invoke`; a runtime takes and answers them."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls, self.answers = queue.Queue(), queue.Queue()
        self.api = f"127.0.0.1:{self.server_port}"
        self.number = 0

    def invoke(self, request, seconds=HUNG_S):
        self.number += 1
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        self.calls.put((f"call-{self.number}", body, time.time() + seconds))
        name, kind, answer = self.answers.get(timeout=HUNG_S)
        assert name == f"call-{self.number}"
        return kind, json.loads(answer)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        assert self.path == "/2018-06-01/runtime/invocation/next"
        call = self.server.calls.get()
        if call is None:
            self.reply(410)
            return
        name, body, deadline = call
        self.reply(200, body, Lambda_Runtime_Aws_Request_Id=name, Content_Type="application/json",
                   Lambda_Runtime_Deadline_Ms=str(int(1000 * deadline)))

    def do_POST(self):
        _, _, _, _, name, kind = self.path.split("/")
        self.server.answers.put((name, kind, self.rfile.read(int(self.headers["Content-Length"]))))
        self.reply(202)


@pytest.fixture
def souk(souk):
    return with_few_records(souk)


@contextlib.contextmanager
def runtime(command, variables):
    """A runtime with calls for it; it ends when the API says that there are none any more."""
    server = RuntimeApi()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    process = subprocess.Popen(command, env={**variables, "AWS_LAMBDA_RUNTIME_API": server.api,
                                             "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256"},
                               stderr=subprocess.PIPE, text=True)
    try:
        yield server, process
    finally:
        server.calls.put(None)
        try:
            process.communicate(timeout=HUNG_S)
        finally:
            process.kill()
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def store(souk, tmp_path):
    result = json.loads(souk("function", "train", write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--json",
                             "--functions", 1, "--store", tmp_path / "store", "--keep-updates").stdout)
    return tmp_path / "store", result


def request_of(done, **changes):
    return {"job": done["job"], "epoch": 7, "run": 9, "first_batch": 0, "batch_count": 5, "version": done["updates"],
            **changes}


def test_calls_of_the_runtime_api_are_answered(souk, store):
    folder, done = store
    with runtime([souk.program, "function", "serve", "--store", folder], souk.variables) as (api, process):
        kind, answer = api.invoke(request_of(done))
        assert (kind, answer["batches_done"], answer["end"]) == ("response", 5, "done")
        assert (folder / "updates" / done["job"] / "7-9-0").exists()
        kind, answer = api.invoke(b"nonsense")
        assert kind == "error" and set(answer) == {"errorType", "errorMessage"}
        # One whose time has all but passed does nothing, and says so.
        kind, answer = api.invoke(request_of(done, first_batch=10), seconds=0.01)  # clock: tests the deadline
        assert (kind, answer["batches_done"], answer["end"]) == ("response", 0, "time")
        kind, answer = api.invoke(request_of(done, first_batch=10))
        assert (kind, answer["batches_done"]) == ("response", 5)
        # What stays warm remembers nothing.
        assert api.invoke(request_of(done))[1]["is_repeated"]
    assert process.returncode == 7  # there was no API any more


def unpack(souk, folder):
    archive = folder / "function.zip"
    subprocess.run([ROOT / "tools/lambda_zip.py", souk.program, archive], check=True, capture_output=True)
    assert archive.stat().st_size <= 50_000_000
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder / "task")
        for entry in file.infolist():
            (folder / "task" / entry.filename).chmod(entry.external_attr >> 16)
    return folder / "task"


def test_the_zip_brings_all_it_needs(souk, tmp_path, store):
    folder, done = store
    task = unpack(souk, tmp_path)
    variables = {"PATH": "/usr/bin:/bin", "SOUK_FUNCTION_SERVE_STORE": str(folder)}
    with runtime([task / "bootstrap"], variables) as (api, process):
        kind, answer = api.invoke(request_of(done, first_batch=30))
        assert (kind, answer["batches_done"]) == ("response", 5)
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        libraries = {line.split()[-1] for line in maps if ".so" in line}
        assert libraries and all(path.startswith(str(task)) for path in libraries)
