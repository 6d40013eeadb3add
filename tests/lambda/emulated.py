"""An emulated Lambda. Its control plane is moto, as is the S3 of the store; its instances are processes of AWS's own
Runtime Interface Emulator, which starts the zip's bootstrap, has it take calls and ends it when its time is up.

S3's moto checks signatures. That of Lambda is asked by a front that does: once moto 5 checks them it takes no GET
of the function's, not even boto3's."""
import base64
import http.client
import http.server
import json
import os
import pathlib
import platform
import socket
import subprocess
import threading
import time
import zipfile

from serving import HUNG_S, own_port
from signatures import is_signed

FOLDER = pathlib.Path(os.environ.get("SOUK_LAMBDA", "/nonexistent"))
EMULATOR = FOLDER / f"aws-lambda-rie-{platform.machine()}"
NAME = "souk-train"
BUCKET = "souk-data"

SET_UP_STORE = """
import json, sys, boto3, urllib.request
url, bucket = sys.argv[1:]
anyone = dict(endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
iam = boto3.client("iam", **anyone)
iam.create_user(UserName="me")
iam.put_user_policy(UserName="me", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="me")["AccessKey"]
boto3.client("s3", **anyone).create_bucket(Bucket=bucket)
# From now on every request is authenticated, its signature too.
urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST",
                       headers={"Content-Type": "text/plain"}))
json.dump([key["AccessKeyId"], key["SecretAccessKey"]], sys.stdout)
"""

SET_UP_FUNCTION = """
import json, sys, boto3
name, code, architecture, store_url = sys.argv[1:]
role = boto3.client("iam").create_role(RoleName="function", AssumeRolePolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}]}))
boto3.client("lambda").create_function(
    FunctionName=name, Runtime="provided.al2023", Role=role["Role"]["Arn"], Handler="bootstrap", MemorySize=128, Timeout=3,
    Architectures=[architecture], Code={"ZipFile": open(code, "rb").read()},
    Environment={"Variables": {"AWS_ENDPOINT_URL": store_url}})
"""

LOOK = """
import json, sys, boto3
service, code = sys.argv[1:]
client = boto3.client(service)
json.dump(eval(code), sys.stdout, default=str)
"""


def wait_for_port(port, process, log):
    end = time.monotonic() + HUNG_S
    while True:
        assert process.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.02)  # clock: retry interval


def unpack(archive, folder):
    assert archive.stat().st_size <= 50_000_000
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
        for entry in file.infolist():
            (folder / entry.filename).chmod(entry.external_attr >> 16)
    return folder


class Instance:
    """One of a function's: the emulator, and in it what the zip has. It serves one call at a time."""

    def __init__(self, task, folder, variables, memory_mb, timeout_s):
        folder.mkdir(parents=True)
        self.log = folder / "emulator.log"
        self.port = own_port()
        self.read = 0
        environment = {"PATH": "/usr/bin:/bin", **variables, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
                       "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_s)}
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(
                [EMULATOR, "--runtime-interface-emulator-address", f"127.0.0.1:{self.port}", "--runtime-api-address",
                 f"127.0.0.1:{own_port()}", task / "bootstrap"], env=environment, cwd=folder, stdout=out, stderr=out)
        wait_for_port(self.port, self.process, self.log)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()

    def end(self):
        self.process.terminate()
        self.process.wait(HUNG_S)

    def call(self, request):
        """Its status, its answer and the REPORT line."""
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HUNG_S)
        try:
            connection.request("POST", "/2015-03-31/functions/function/invocations", body)
            answer = connection.getresponse()
            return answer.status, answer.read(), self.report()
        finally:
            connection.close()

    def report(self):
        end = time.monotonic() + HUNG_S
        while True:
            written = self.log.read_text()[self.read:]
            found = [line for line in written.split("\n")[:-1] if line.startswith("REPORT ")]
            if found:
                self.read += len(written)
                return found[-1]
            assert time.monotonic() < end, written
            time.sleep(0.01)  # clock: poll interval

    def runtimes(self):
        """The processes that took calls: the emulator's children."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for path in children for pid in path.read_text().split()]


class Moto:
    def __init__(self, log):
        self.port = own_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with open(log, "w") as out:
            self.process = subprocess.Popen([FOLDER / "moto/bin/moto_server", "-H", "127.0.0.1", "-p", str(self.port)],
                                            stdout=out, stderr=out)
        wait_for_port(self.port, self.process, log)

    def run(self, code, *arguments, key="x", secret="x"):
        variables = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_DEFAULT_REGION": "us-east-1",
                     "AWS_ENDPOINT_URL": self.url}
        return subprocess.run([FOLDER / "moto/bin/python", "-c", code, *map(str, arguments)], text=True,
                              env={**os.environ, **variables}, capture_output=True, check=True).stdout

    def close(self):
        self.process.terminate()
        self.process.wait(HUNG_S)


class Lambda(http.server.ThreadingHTTPServer):
    """Lambda's API: what is signed and about the function goes to moto as it came; calls go to instances of the memory
    and time that moto has for it. `concurrency`: 429 beyond."""

    def __init__(self, archive, folder, architecture, concurrency=4):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.concurrency = folder, concurrency
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.idle, self.busy, self.started, self.throttled, self.refused, self.most = [], 0, 0, 0, 0, 0
        self.sizes, self.puts = set(), []
        self.task = unpack(archive, folder / "task")
        self.store, self.moto = Moto(folder / "store.log"), Moto(folder / "moto.log")
        self.key, self.secret = json.loads(self.store.run(SET_UP_STORE, self.store.url, BUCKET))
        self.moto.run(SET_UP_FUNCTION, NAME, archive, architecture, self.store.url)
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def keys(self):
        """The environment of who has the account's keys."""
        return {"AWS_ACCESS_KEY_ID": self.key, "AWS_SECRET_ACCESS_KEY": self.secret, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": self.store.url}

    def configuration(self):
        """By boto3, as somebody at the console sees it."""
        return json.loads(self.moto.run(LOOK, "lambda", f"client.get_function_configuration(FunctionName='{NAME}')"))

    def give_variables(self, **variables):
        self.moto.run(LOOK, "lambda", f"client.update_function_configuration(FunctionName='{NAME}', "
                                      f"Environment={{'Variables': {variables}}})")

    def objects(self):
        code = (f"[o['Key'] for p in client.get_paginator('list_objects_v2').paginate(Bucket='{BUCKET}')"
                " for o in p.get('Contents', [])]")
        return json.loads(self.store.run(LOOK, "s3", code, key=self.key, secret=self.secret))

    def close(self):
        self.shutdown()
        self.thread.join()
        self.server_close()
        self.retire()
        self.store.close()
        self.moto.close()

    # ---- What is asked ----

    def retire(self):
        """A function that is configured anew has new instances."""
        with self.lock:
            idle, self.idle = self.idle, []
        for instance in idle:
            instance.end()

    def control(self, method, path, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.moto.port, timeout=HUNG_S)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            status, reply = answer.status, answer.read()
        finally:
            connection.close()
        if status == 200 and method == "PUT":
            self.puts.append(json.loads(body))
            self.retire()
        return status, {}, reply

    def start(self):
        with self.lock:
            if self.idle:
                return self.idle.pop()
            self.started += 1
            number = self.started
        configured = self.configuration()
        size = configured["MemorySize"], configured["Timeout"]
        self.sizes.add(size)
        # Its role's keys, and what the function is configured with.
        variables = {**self.keys(), **configured["Environment"]["Variables"]}
        return Instance(self.task, self.folder / f"instance-{number}", variables, *size)

    def invoke(self, body):
        with self.lock:
            if self.busy >= self.concurrency:
                self.throttled += 1
                return 429, {}, b'{"Reason":"ConcurrentInvocationLimitExceeded","message":"Rate Exceeded."}'
            self.busy += 1
            self.most = max(self.most, self.busy)
        try:
            instance = self.start()
            status, reply, report = instance.call(body)
            # An instance that did not end in time, or broke, is not called again.
            is_kept = status == 200 and instance.process.poll() is None
            headers = {"X-Amz-Log-Result": base64.b64encode(report.encode() + b"\n").decode()}
            if b'"errorType"' in reply or reply.startswith(b"Task timed out"):
                headers["X-Amz-Function-Error"] = "Unhandled"
            with self.lock:
                if is_kept:
                    self.idle.append(instance)
            if not is_kept:
                instance.end()
            return status, headers, reply
        finally:
            with self.lock:
                self.busy -= 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self):
        api = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not is_signed(self, body, api.key, api.secret, "lambda"):
            api.refused += 1
            status, headers, reply = 403, {}, b'{"message":"The request signature we calculated does not match"}'
        elif self.path == f"/2015-03-31/functions/{NAME}/invocations":
            status, headers, reply = api.invoke(body)
        else:
            status, headers, reply = api.control(self.command, self.path, dict(self.headers), body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_POST = do_PUT = answer
