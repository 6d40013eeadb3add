"""Processes of a bench: started, asked, and what they cost so far."""
import json
import os
import pathlib
import subprocess


def start(program, *arguments, environment=None, stdout=None,
          stderr=subprocess.DEVNULL):
    """Starts `souk` and waits until it is ready. Returns the process and what it said then."""
    read_end, write_end = os.pipe()
    process = subprocess.Popen([program, *arguments, "--ready-fd", str(write_end)],
                               pass_fds=[write_end], stderr=stderr, stdout=stdout,
                               env={**os.environ, **(environment or {})})
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        line = ready.readline()
    if not line:
        raise SystemExit(f"{' '.join(arguments[:2])} did not start: exit {process.wait()}")
    return process, json.loads(line)


def souk(program, config, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "SOUK_CONFIG_DIR": str(config), "SOUK_JSON": "true"})
    if done.returncode:
        raise SystemExit(f"souk {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def end(*processes):
    for process in processes:
        process.terminate()
        process.wait(30)


def cpu_s(pid):
    """Of all its threads, to the nanosecond; what ended threads used is not in it."""
    return sum(int(path.read_text().split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def resident_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise ValueError(f"process {pid} has no memory")
