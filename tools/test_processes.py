"""Processes that tests start and leave behind: none outlives the program that ran them, however it ends."""
import contextlib
import ctypes
import os
import pathlib
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
HUNG_S = 30  # what has not ended by then has hung


def cores():
    """How many cores this process may use; a container or taskset may leave fewer than the machine has."""
    return len(os.sched_getaffinity(0))


def adopt(is_wanted):
    """Makes this process the parent of all orphans among its descendants, or no longer."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(is_wanted), 0, 0, 0)


def reap_until(pid):
    """The exit status of this child. Orphans are reaped meanwhile: none may stay a zombie, which a test would take for alive."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return []


def descendants(pid):
    return [each for child in children(pid) for each in (child, *descendants(child))]


def reap_ended():
    """Reaps one child that has ended. ChildProcessError: there is none left, which the list of children cannot tell: the kernel
    misses some in it while others end."""
    if os.waitpid(-1, os.WNOHANG) == (0, 0):
        time.sleep(0.01)  # clock: between two looks


def signal_all(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def thaw(pid):
    """Cgroup v1 keeps every signal from a frozen process: a lease may be frozen when its test is ended."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "freezer" and path != "/":
                pathlib.Path(f"/sys/fs/cgroup/freezer{path}/freezer.state").write_text("THAWED")


def end_children():
    """At once, and orphans of orphans too."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pids = children(os.getpid())
            signal_all(pids, signal.SIGKILL)
            for pid in pids:
                thaw(pid)
            reap_ended()


def ask_to_end():
    """All descendants, which clean up behind them; whoever hangs is killed."""
    told = set()
    end = time.monotonic() + HUNG_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < end:
            new = set(descendants(os.getpid())) - told
            signal_all(new, signal.SIGTERM)
            told |= new
            reap_ended()
    end_children()
