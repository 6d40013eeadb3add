"""A market for jobs whose programs leave checkpoints."""
import json
import os
import pathlib
import subprocess

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


def processes_with(word):
    """This machine's pids of Python processes with the word as their last argument."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # the process has just ended
        if arguments[-2:-1] == [word.encode()] and b"python" in arguments[0]:
            found.append(int(folder.name))
    return found


class Place:
    """A market with lenders, for programs that leave checkpoints."""

    def __init__(self, folder):
        self.folder = folder
        self.market = Market(folder / "market", "--no-local-lender")
        self.lender_token, self.token = self.market.sign_up("lender"), self.market.sign_up("borrower")
        self.lenders = {}

    def settings(self, values):
        assert self.market.call("PUT", "/v1/settings", values, self.market.operator_token()).status == 200

    def is_online(self, name):
        return any(m["name"] == name and m["state"] == "online" for m in
                   self.market.get("/v1/machines", self.token).json["items"])

    def lend(self, name):
        self.lenders[name] = Lender(self.market, self.lender_token, self.folder / name, name)
        wait_for(name, lambda: self.is_online(name))

    def souk(self, *arguments, code=0):
        done = subprocess.run(
            [PROGRAM, *arguments, "--server", self.market.url, "--config-dir", str(self.folder / "config")],
            capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL, cwd=self.folder,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})
        assert done.returncode == code, done
        return done

    def submit(self, script, *options, **fields):
        files = self.folder / "files"
        files.mkdir(exist_ok=True)
        (files / "script.py").write_text(script)
        job = {"name": "counts", "runtime": "command", "resources": {"cpus": 0.2, "memory": 0.2},
               "workdir": str(files), "run": "exec /usr/bin/python3 script.py",
               "checkpoint_interval": "1s", "market": {"max_run_time": "5m"}, **fields}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.souk("job", "submit", "-y", "--detach", str(self.folder / "job.yaml"), *options)
        return self.market.get("/v1/jobs", self.token).json["items"][0]["id"]

    def job(self, job):
        return self.market.get(f"/v1/jobs/{job}", self.token).json

    def ended(self, job):
        return wait_for("the job's end", lambda: (lambda j: j if j["state"] in ("succeeded", "failed", "cancelled")
                                                  else None)(self.job(job)))

    def artifacts(self, job):
        return {a["name"]: a for a in self.market.get(f"/v1/jobs/{job}/artifacts", self.token).json["items"]}

    def log(self, job, rank=0):
        return self.market.get(f"/v1/jobs/{job}/logs?rank={rank}&offset=0", self.token).json.get("text", "")

    def stop(self):
        for lender in self.lenders.values():
            lender.stop()
        self.market.stop()
