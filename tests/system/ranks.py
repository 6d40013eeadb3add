"""A market with lenders whose machines permit job networks, for jobs whose ranks talk to one another."""
import json
import os
import subprocess

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

HUNG_JOB_S = 500  # less than CTest's TIMEOUT; a framework's job that runs this long has hung: Java and TensorFlow start slowly


class Place:
    """A market with lenders whose machines permit job networks."""

    def __init__(self, folder, names, market_options=()):
        self.folder, self.lenders, self.dead, self.before = folder, {}, [], []
        self.market = Market(folder / "market", "--no-local-lender", *market_options)
        # Of all at one address the first gets the first credits.
        self.token, self.lender_token = self.market.sign_up("borrower"), self.market.sign_up("lender")
        for name in names:
            self.lend(name)

    def lend(self, name):
        self.lenders[name] = Lender(self.market, self.lender_token, self.folder / name, name, **self.lender_of(name))
        wait_for(name, lambda: name in self.online())

    def lender_of(self, name):
        """How it lends; `within`: words that start its program elsewhere."""
        return {"options": ("--network", "job")}

    def online(self):
        return [m["name"] for m in self.market.get("/v1/machines", self.token).json["items"] if m["state"] == "online"]

    def die(self, name):
        """As a machine does in a power cut."""
        self.lenders[name].die()
        self.dead.append(name)

    def revive(self):
        """Restarts the dead lenders, which clear their old leases. All are online afterwards."""
        for name in self.dead:
            wait_for("the market to notice", lambda: name not in self.online())
            self.lenders[name].start()
        self.dead.clear()
        wait_for("all lenders", lambda: self.lenders.keys() <= set(self.online()))

    def stop(self):
        self.revive()
        for lender in self.lenders.values():
            lender.stop()
        self.market.stop()

    def settings(self, values):
        answer = self.market.call("PUT", "/v1/settings", values, self.market.operator_token())
        assert answer.status == 200, answer

    def start(self, script, job):
        files = self.folder / "files"
        files.mkdir(exist_ok=True)
        (files / "script.py").write_text(script)
        job = {"name": "framework", "resources": {"cpus": 0.2, "memory": 0.2}, "workdir": str(files),
               "run": "exec /usr/bin/python3 script.py", "market": {"max_run_time": "5m"}, **job}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.before = self.jobs()
        return subprocess.Popen(
            [PROGRAM, "job", "submit", "-y", str(self.folder / "job.yaml"), "--server", self.market.url,
             "--config-dir", str(self.folder / "config")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})

    def run(self, script, job):
        process = self.start(script, job)
        process.out, process.err = process.communicate(timeout=HUNG_S)
        return process

    def jobs(self):
        return [job["id"] for job in self.market.get("/v1/jobs", self.token).json["items"]]

    def has_begun(self):
        """True once the market has the job from the last start()."""
        return self.jobs() != self.before

    def job(self):
        return self.market.get(f"/v1/jobs/{self.jobs()[0]}", self.token).json

    def log(self, rank):
        """What the rank's newest lease said."""
        text, offset, job = "", -1, self.job()["id"]
        while offset != len(text.encode()):
            offset = len(text.encode())
            text += self.market.get(f"/v1/jobs/{job}/logs?rank={rank}&offset={offset}", self.token).json.get("text", "")
        return text
