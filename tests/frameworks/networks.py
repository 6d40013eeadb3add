"""Lenders at home: three machines in networks of their own, two of them behind routers that translate addresses.

    open ──────────────── the Internet: market, borrower
    heron ── its router ────┤      a router forwards what its home began, and nothing that comes from outside
    wren ─── its router ────┘      both homes count their addresses from 192.168.1.0, as homes do

This process is the Internet: it moves to a network of its own for the while. Everything else lives in namespaces that end
with the processes that hold them.
"""
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))

from internet import CLONE_NEWNET, check, tun_for_everyone  # noqa: E402
from ranks import Place  # noqa: E402
from training import wait_for  # noqa: E402

MARKET = "192.0.2.1"
MASQUERADE = """
table ip home {
    chain out { type nat hook postrouting priority 100; oifname "wan" masquerade; }
    chain through {
        type filter hook forward priority 0; policy drop;
        iifname "lan" accept
        ct state established,related accept
    }
}
"""


class Network:
    """A network namespace, held by a process that does nothing else."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "up\n"
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]
        self.ip("link set lo up")

    def ip(self, words):
        subprocess.run([*self.enter, "ip", *words.split()], check=True)

    def forward(self):
        subprocess.run([*self.enter, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"], check=True)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Internet:
    """Who is connected how: `where[name]` is the network of a lender."""

    def __init__(self):
        self.networks, self.where, self.cables = [], {}, 0

    def network(self):
        self.networks.append(Network())
        return self.networks[-1]

    def cable(self, network, end):
        """From here to that network, whose end gets a public address; returns the name of our end."""
        self.cables += 1
        ours, base = f"wan{self.cables}", f"198.51.100.{4 * self.cables}"
        prefix, last = base.rsplit(".", 1)
        local(f"link add {ours} type veth peer name {end} netns {network.holder.pid}")
        local(f"addr add {prefix}.{int(last) + 1}/30 dev {ours}")
        local(f"link set {ours} up")
        network.ip(f"addr add {prefix}.{int(last) + 2}/30 dev {end}")
        network.ip(f"link set {end} up")
        network.ip(f"route add default via {prefix}.{int(last) + 1}")
        return ours

    def connect_open(self, name):
        network = self.network()
        self.where[name] = (network, self.cable(network, "wan"))

    def connect_home(self, name):
        router, home = self.network(), self.network()
        cable = self.cable(router, "wan")
        router.ip(f"link add lan type veth peer name home netns {home.holder.pid}")
        router.ip("addr add 192.168.1.1/24 dev lan")
        router.ip("link set lan up")
        home.ip("addr add 192.168.1.2/24 dev home")
        home.ip("link set home up")
        home.ip("route add default via 192.168.1.1")
        router.forward()
        subprocess.run([*router.enter, "nft", "-f", "-"], input=MASQUERADE, text=True, check=True)
        self.where[name] = (home, cable)

    def close(self):
        for network in self.networks:
            network.close()


def local(words):
    subprocess.run(["ip", *words.split()], check=True)


@contextlib.contextmanager
def internet():
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    with tun_for_everyone():
        check(libc.unshare(CLONE_NEWNET))
        made = Internet()
        try:
            local("link set lo up")
            local(f"addr add {MARKET}/32 dev lo")
            pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
            yield made
        finally:
            made.close()
            check(libc.setns(before, CLONE_NEWNET))
            os.close(before)


class Homes(Place):
    """A market on that Internet. `heron` and `wren` are behind routers, any other lender is not."""

    def __init__(self, folder, net, names=("open", "heron", "wren"), options=()):
        self.net, self.lend_options, self.unplugged = net, options, []
        super().__init__(folder, names, market_options=("--listen", f"{MARKET}:0", "--link-listen", f"{MARKET}:0"))

    def lender_of(self, name):
        os.environ["SOUK_FINGERPRINT"] = self.market.ready["fingerprint"]  # of lenders, and of who submits
        if name not in self.net.where:
            (self.net.connect_home if name in ("heron", "wren") else self.net.connect_open)(name)
        return {"within": self.net.where[name][0].enter, "options": ("--network", "job", *self.lend_options)}

    def unplug(self, name):
        """The machine goes on; nobody hears of it, and it hears of nobody."""
        local(f"link set {self.net.where[name][1]} down")
        self.unplugged.append(name)

    def machine_of(self, rank):
        return next(lease["machine_name"] for lease in self.job()["leases"]
                    if lease["rank"] == rank and lease["state"] not in ("lost", "released", "failed"))

    def stop(self):
        for name in self.unplugged:
            local(f"link set {self.net.where[name][1]} up")
        for name in self.unplugged:
            wait_for(f"the return of {name}", lambda: name in self.online())
        super().stop()

    def logs(self, ranks=3):
        if not self.market.get("/v1/jobs", self.token).json["items"]:
            return "no job"
        return "".join(f"-- rank {rank}\n{self.log(rank)}" for rank in range(ranks))


@pytest.fixture
def homes(tmp_path):
    """Makes one, of the options given to its lenders."""
    made = []
    with internet() as net:
        def make(**more):
            made.append(Homes(tmp_path, net, **more))
            return made[-1]
        try:
            yield make
        finally:
            for place in made:
                place.stop()
            os.environ.pop("SOUK_FINGERPRINT", None)
