"""An emulated EC2: moto, which checks signatures, behind a proxy that turns each launch into a real
lender on this machine, and can fail in every way."""
import base64
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from serving import HUNG_S, own_port
from training import keepers

SET_UP = """
import json, sys, boto3, urllib.request
url = sys.argv[1]
anyone = dict(endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
iam = boto3.client("iam", **anyone)
iam.create_user(UserName="me")
iam.put_user_policy(UserName="me", PolicyName="all", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
key = iam.create_access_key(UserName="me")["AccessKey"]
image = boto3.client("ec2", **anyone).describe_images(Owners=["099720109477"])["Images"][0]["ImageId"]
# From now on every request is authenticated, its signature too.
urllib.request.urlopen(urllib.request.Request(url + "/moto-api/reset-auth", data=b"0", method="POST",
                       headers={"Content-Type": "text/plain"}))
json.dump([key["AccessKeyId"], key["SecretAccessKey"], image], sys.stdout)
"""

CALL = """
import json, sys, boto3
url, key, secret, code = sys.argv[1:]
ec2 = boto3.client("ec2", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret)
json.dump(eval(code), sys.stdout, default=str)
"""


def refusal(status, code):
    body = f"<Response><Errors><Error><Code>{code}</Code><Message>by the test</Message></Error></Errors></Response>"
    return status, body.encode()


class Instance:
    """What boots: the launch's own script, with a `shutdown` that only notes when."""

    def __init__(self, cloud, identity, script):
        self.id, self.script, self.folder = identity, script, cloud.folder / identity
        self.folder.mkdir()
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "souk").symlink_to(cloud.program)
        (tools / "shutdown").write_text('#!/bin/sh\necho "$*" >> "$HOME/shutdown"\n')
        (tools / "shutdown").chmod(0o755)
        self.log = open(self.folder / "lend.log", "wb")
        environment = {"HOME": str(self.folder), "PATH": f"{tools}:{os.environ['PATH']}"}
        environment.update({name: os.environ[name] for name in os.environ if name.endswith("SAN_OPTIONS")})
        self.process = subprocess.Popen(["sh", "-c", script], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)

    def end(self):
        """As a machine does that is switched off: at once, and all in it."""
        for keeper in keepers(self.folder / "lend.log").values():
            os.kill(keeper, signal.SIGKILL)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(HUNG_S)
        self.log.close()

    def shutdowns(self):
        noted = self.folder / "shutdown"
        return noted.read_text().split("\n") if noted.exists() else []


class Moto:
    """The server itself, for all tests, with the keys it takes: markets tell their instances apart by tags."""

    def __init__(self, venv, folder):
        self.port = own_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.python = venv / "bin/python"
        log = pathlib.Path(folder) / "moto.log"
        with open(log, "w") as out:
            self.server = subprocess.Popen([venv / "bin/moto_server", "-H", "127.0.0.1", "-p", str(self.port)],
                                           stdout=out, stderr=out)
        end = time.monotonic() + HUNG_S
        while True:
            assert self.server.poll() is None and time.monotonic() < end, log.read_text()[-2000:]
            try:
                urllib.request.urlopen(self.url + "/moto-api/data.json", timeout=HUNG_S).read()
                break
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)  # clock: retry interval
        self.key, self.secret, self.image = json.loads(self.run(SET_UP, self.url))

    def run(self, code, *arguments):
        return subprocess.run([self.python, "-c", code, *arguments], text=True, capture_output=True, check=True).stdout

    def close(self):
        self.server.terminate()
        self.server.wait(HUNG_S)


class Cloud:
    """`faults`: by action, a list of what to answer instead, first come first: a (status, body); "after" for
    500 after it was done; "cut" for half of the answer; "hang up". `boots`: whether a launch becomes a lender."""

    def __init__(self, moto, folder, program):
        self.moto, self.folder = moto, pathlib.Path(folder)
        self.key, self.secret, self.image = moto.key, moto.secret, moto.image
        self.program = str(pathlib.Path(shutil.which(program) or program).resolve())
        self.folder.mkdir(parents=True)
        self.faults, self.asked, self.instances, self.boots = {}, [], {}, True
        self.launches = {}  # by token, as moto knows none: what was asked for, and its answer
        self.lock = threading.Lock()
        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.proxy.server_port}/"
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()

    def call(self, code):
        """Asks moto itself, as somebody who looks at the console does."""
        return json.loads(self.moto.run(CALL, self.moto.url, self.key, self.secret, code))

    def alive(self):
        found = self.call("[i for r in ec2.describe_instances()['Reservations'] for i in r['Instances']]")
        return [i["InstanceId"] for i in found if i["State"]["Name"] in ("pending", "running")]

    def close(self):
        self.proxy.shutdown()
        self.proxy.server_close()
        for instance in self.instances.values():
            instance.end()

    # ---- What is asked through the proxy ----

    def forward(self, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.moto.port, timeout=HUNG_S)
        try:
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def launch(self, headers, body, form):
        """As EC2 does: what is asked for again by its token is done once, and has to be the same."""
        before = self.launches.get(form["ClientToken"])
        if before:
            return before[1] if before[0] == form else refusal(400, "IdempotentParameterMismatch")
        answer = self.forward(headers, body)
        if answer[0] == 200:
            self.launches[form["ClientToken"]] = form, answer
        return answer

    def take(self, action, form, answer):
        """What was done becomes real."""
        if action == "RunInstances" and self.boots:
            identity = re.search(rb"<instanceId>(i-\w+)</instanceId>", answer)[1].decode()
            with self.lock:
                if identity not in self.instances:
                    script = base64.b64decode(form["UserData"]).decode()
                    self.instances[identity] = Instance(self, identity, script)
        elif action == "TerminateInstances":
            with self.lock:
                instance = self.instances.get(form["InstanceId.1"])
            if instance:
                instance.end()

    def answer(self, headers, body):
        form = dict(urllib.parse.parse_qsl(body.decode()))
        action = form["Action"]
        with self.lock:
            self.asked.append((action, form))
            waiting = self.faults.get(action, [])
            fault = waiting.pop(0) if waiting else None
        if isinstance(fault, tuple):
            return fault
        if fault == "hang up":
            return None
        status, answer = self.launch(headers, body, form) if action == "RunInstances" else self.forward(headers, body)
        if status == 200:
            self.take(action, form, answer)
        if fault == "after":
            return refusal(500, "InternalError")
        return status, answer[:len(answer) // 2] if fault == "cut" else answer

    def handler(self):
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = cloud.answer(dict(self.headers.items()), body)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            def log_message(self, *_):
                pass

        return Handler
