"""Jobs with secrets, and where those are found that should be nowhere."""
import hashlib
import json
import os
import pathlib
import subprocess
import uuid

from serving import HUNG_S, PROGRAM

# The first of its rank waits for the end of its machine; whoever comes after it is done.
SCRIPT = r"""
import hashlib, os, signal
values = [os.environ[name] for name in ("API_TOKEN", "RENAMED", "GIVEN", "WRITTEN")]
print("found", hashlib.sha256("\n".join(values).encode()).hexdigest(), flush=True)
if not os.path.exists(os.path.join(os.environ["SOUK_CHECKPOINT_DIR"], "seen")):
    open(os.path.join(os.environ["SOUK_CHECKPOINT_DIR"], "seen"), "w").write("x")
    signal.pause()
"""



NAMES = ("API_TOKEN", "RENAMED", "GIVEN", "WRITTEN")


def where_it_is(folder, words):
    """Every file below the folder, and every process's arguments, that has one of the words."""
    found = []
    below = [pathlib.Path(at, name) for at, _, names in os.walk(folder) for name in names]  # folders may go meanwhile
    for path in [*below, *pathlib.Path("/proc").glob("[0-9]*/cmdline")]:
        try:
            if path.is_file() and any(word.encode() in path.read_bytes() for word in words):
                found.append(str(path))
        except OSError:
            continue  # it ended, or went
    return found


SPAN_MOST = 1 << 30  # bytes


def holds(memory, start, end, words):
    memory.seek(start)
    held = memory.read(end - start)
    return any(word.encode() in held for word in words)


def is_in_memory(pid, words):
    """Whether anything that the process can write to, freed or not, has one of the words.

    A sanitizer's own tables, terabytes of mostly nothing, are passed over.
    """
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "w" not in rights:
                continue
            start, end = (int(number, 16) for number in span.split("-"))
            if end - start < SPAN_MOST and holds(memory, start, end, words):
                return True
    return False


def submit(place, job, *options, environment=None, code=0):
    path = place.folder / "job.yaml"
    path.write_text(json.dumps(job))
    done = subprocess.run(
        [PROGRAM, "job", "submit", "-y", "--detach", "--json", str(path), *options, "--server", place.market.url,
         "--config-dir", str(place.folder / "config")], capture_output=True, text=True, timeout=HUNG_S,
        stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": place.token, "NO_COLOR": "1", **(environment or {})})
    assert done.returncode == code, done
    return done


class Hush:
    """A job with a secret of each kind, submitted; prints a hash of all."""

    def __init__(self, place):
        self.words = [uuid.uuid4().hex for _ in NAMES]
        self.digest = hashlib.sha256("\n".join(self.words).encode()).hexdigest()
        token, renamed, given, written = self.words
        files = place.folder / "files"
        files.mkdir()
        (files / "script.py").write_text(SCRIPT)
        job = {"name": "hush", "resources": {"cpus": 0.2, "memory": 0.2, "disk_size": "64MiB"}, "workdir": str(files),
               "checkpoint_interval": "1s", "run": "exec /usr/bin/python3 script.py",
               "market": {"max_run_time": "5m"},
               "secrets": {"API_TOKEN": None, "RENAMED": "${ELSEWHERE}", "WRITTEN": written}}
        self.done = submit(place, job, "--secret", f"GIVEN={given}",
                           environment={"API_TOKEN": token, "ELSEWHERE": renamed})
        (place.folder / "job.yaml").unlink()  # the borrower's own, which has one
        self.id = json.loads(self.done.stdout)["id"]
