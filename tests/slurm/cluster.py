"""A Slurm cluster of several nodes on one machine, on loopback alone: munged, slurmctld and a slurmd for each node."""
import os
import shutil
import signal
import socket
import subprocess
import time

from serving import HUNG_S, own_port

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
PATH = os.environ["PATH"] + ":/usr/sbin"
CONFIGURATION = """
ClusterName=souk
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=15
MinJobAge=10
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/basic
{nodes}
PartitionName=lab Nodes={lab} Default=YES MaxTime=INFINITE State=UP
PartitionName=all Nodes={all} MaxTime=INFINITE State=UP
"""


def lacks():
    """What is not installed of it; empty when all is."""
    return [program for program in PROGRAMS if not shutil.which(program, path=PATH)]


class Cluster:
    """Partition `lab` has all nodes but the last, `all` every one."""

    def __init__(self, folder, count):
        self.folder = folder
        self.nodes = [f"n{i + 1}" for i in range(count)]
        self.processes = {}
        self.environment = {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf"), "HOME": str(folder)}
        # Sanitizers take their settings from the environment.
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        folder.mkdir(mode=0o755, parents=True)
        (folder / "state").mkdir()
        for node in self.nodes:
            (folder / f"spool-{node}").mkdir()
        self.write_configuration()

    def write_configuration(self):
        host = socket.gethostname()
        ports = [own_port() for _ in range(len(self.nodes) + 1)]  # Slurm's daemons set SO_REUSEADDR
        lines = [f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=1024"
                 for node, port in zip(self.nodes, ports[1:])]
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=host, port=ports[0], folder=self.folder, nodes="\n".join(lines),
            lab=",".join(self.nodes[:-1]), all=",".join(self.nodes)))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    # ---- Its daemons ----------------------------------------------------------------------------

    def start_one(self, name, *command):
        with open(self.folder / f"{name}.out", "ab") as output:
            self.processes[name] = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                                    stdout=output, stderr=output)

    def stop_one(self, name, by=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(by)
        process.wait(HUNG_S)

    def start(self):
        subprocess.run(["mungekey", "--create", f"--keyfile={self.folder}/munge.key"], env=self.environment, check=True)
        self.start_one("munged", "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
                       f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munge.pid",
                       f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed")
        self.wait("munged answers", lambda: self.tries("munge", "-n", f"--socket={self.folder}/munge.socket"))
        self.start_controller()
        for node in self.nodes:
            self.start_one(node, "slurmd", "-D", "-N", node)
        self.wait("every node is idle", lambda: all(state == "idle" for state in self.states().values()))

    def start_controller(self):
        self.start_one("slurmctld", "slurmctld", "-D")
        self.wait("slurmctld answers", lambda: self.tries("scontrol", "ping") and self.states())

    def stop(self):
        """Its jobs first, so that nothing of them is left."""
        if "slurmctld" in self.processes:
            self.tries("scancel", "--state=PENDING", "--user=root")
            self.tries("scancel", "--user=root")
            self.wait("no job is left", lambda: not self.jobs())
        for name in reversed(list(self.processes)):
            self.stop_one(name)

    # ---- Asking it ------------------------------------------------------------------------------

    def wait(self, what, condition):
        end = time.monotonic() + HUNG_S
        while not condition():
            for name, process in self.processes.items():
                assert process.poll() is None, f"{name} ended: {(self.folder / f'{name}.out').read_text()[-1500:]}"
            assert time.monotonic() < end, f"{what}: not within {HUNG_S} s; {self.states()}, {self.jobs()}"
            time.sleep(0.1)  # clock: poll interval

    def tries(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=HUNG_S).returncode == 0

    def says(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=HUNG_S,
                              check=True).stdout

    def states(self):
        """{"n1": "idle"}; empty while it does not answer."""
        answer = subprocess.run(["sinfo", "-h", "-N", "-p", "all", "-o", "%N %t"], env=self.environment,
                                capture_output=True, text=True, timeout=HUNG_S)
        return dict(line.split() for line in answer.stdout.splitlines())

    def jobs(self, *options):
        """[{"id": "4", "name": ..., "state": "R", "nodes": "n1"}] of those that are not over."""
        answer = subprocess.run(["squeue", "-h", "-o", "%i|%j|%t|%N|%l|%y", *options], env=self.environment,
                                capture_output=True, text=True, timeout=HUNG_S)
        fields = ("id", "name", "state", "nodes", "limit", "nice")
        return [dict(zip(fields, line.split("|"))) for line in answer.stdout.splitlines()]

    def lent(self):
        """The nodes that a job of Souk's runs on."""
        return sorted(job["nodes"] for job in self.jobs() if job["name"] == "souk-lend" and job["state"] == "R")

    def submit(self, *options, script="#!/bin/sh\nexec sleep 600\n"):
        """A job of somebody else's; its number."""
        path = self.folder / "job.sh"
        path.write_text(script)
        return self.says("sbatch", "--parsable", "--output=/dev/null", *options, str(path)).strip()

    def is_running(self, number):
        return any(job["id"] == number and job["state"] == "R" for job in self.jobs())
