"""A home with a router behind which there is an Internet of its own: two network namespaces and a cable."""
import contextlib
import ctypes
import os
import stat
import subprocess
import sys
import tempfile

from serving import HUNG_S

CLONE_NEWNET, CLONE_NEWNS, CLONE_FS = 0x40000000, 0x00020000, 0x00000200
TUN = "/dev/net/tun"
ROUTER, HOME, METADATA = "192.168.1.1", "192.168.1.2", "169.254.169.254"
SERVICE, RESOLVER, LATER = "93.184.216.34", "9.9.9.9", "141.2.3.4"
CAMPUS_HOST, CAMPUS_OWN = "130.75.1.1", "130.75.1.2"  # public addresses, on a cable of the machine's
CLOSED = "45.90.1.1"

# Answers at every address of its network: TCP and UDP port 80 say who was called, UDP port 53 is a name
# server that has one name. It prints each call it gets, by any way.
ANSWERING = r"""
import selectors, socket, struct, sys
chosen = selectors.DefaultSelector()
tcp = socket.create_server(("", 80), backlog=512)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("", 80))
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("", 53))
for one in (udp, names):
    one.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO: to which address
pings = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for one in (tcp, udp, names, pings):
    chosen.register(one, selectors.EVENT_READ)
print("up", flush=True)

def received(one):
    data, control, _, peer = one.recvmsg(4096, 64)
    local = socket.inet_ntoa(control[0][2][8:12])
    return data, local, peer

def answer(one, data, local, peer):
    info = struct.pack("=I4s4s", 0, socket.inet_aton(local), bytes(4))
    one.sendmsg([data], [(socket.IPPROTO_IP, 8, info)], 0, peer)

while True:
    for key, _ in chosen.select():
        one = key.fileobj
        if one is tcp:
            connection, _ = tcp.accept()
            local = connection.getsockname()[0]
            print("tcp", local, flush=True)
            connection.sendall(local.encode() + b"\n")
            connection.close()
        elif one is udp:
            data, local, peer = received(udp)
            print("udp", local, flush=True)
            answer(udp, local.encode(), local, peer)
        elif one is names:
            data, local, peer = received(names)
            end = data.index(0, 12) + 5
            question = data[12:end]
            is_known = b"\x07service\x07example\x00\x00\x01" in question
            print("dns", local, flush=True)
            body = b"\xc0\x0c\x00\x01\x00\x01" + struct.pack(">IH", 60, 4) + socket.inet_aton("93.184.216.34")
            answer(names, data[:2] + b"\x81\x80\x00\x01" + (b"\x00\x01" if is_known else b"\x00\x00") + bytes(4)
                   + question + (body if is_known else b""), local, peer)
        else:
            data = pings.recv(4096)
            if data[20] == 8:
                print("ping", socket.inet_ntoa(data[16:20]), flush=True)
"""


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Internet:
    """`host` prints a line for each call; `calls` takes those so far, up to one that it makes itself."""

    def __init__(self, host):
        self.host = host

    def ip(self, words):
        subprocess.run(["nsenter", f"--net=/proc/{self.host.pid}/ns/net", "ip", *words.split()], check=True)

    def calls(self):
        import socket
        socket.create_connection((ROUTER, 80), timeout=HUNG_S).close()
        found = []
        while (line := self.host.stdout.readline().strip()) != f"tcp {ROUTER}":
            assert line, "the Internet ended"
            found.append(line)
        return found


@contextlib.contextmanager
def tun_for_everyone():
    """Every user may open the tunnel device, as udev has it; where a machine without udev keeps it to root, this
    process, and what it starts, sees a node of its own in its place."""
    if not os.path.exists(TUN) or os.stat(TUN).st_mode & 0o006 == 0o006:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    folder = os.getcwd()
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    with tempfile.TemporaryDirectory(prefix="souk-tun-") as made:
        node = os.path.join(made, "tun")
        os.mknod(node, stat.S_IFCHR, os.stat(TUN).st_rdev)
        os.chmod(node, 0o666)
        check(libc.unshare(CLONE_NEWNS))
        try:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            subprocess.run(["mount", "--bind", node, TUN], check=True)
            yield
        finally:
            check(libc.unshare(CLONE_FS))  # setns refuses while pytest's watchdog thread shares it
            check(libc.setns(before, CLONE_NEWNS))
            os.close(before)
            os.chdir(folder)


@contextlib.contextmanager
def home_apart(answering):
    """This process, and what it starts, in a network of its own, `home`, with a cable to a host: `lan`. The host
    runs the program `answering`, which says "up" when it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    check(libc.unshare(CLONE_NEWNET))
    host = None
    try:
        host = subprocess.Popen(["unshare", "--net", sys.executable, "-c", answering],
                                stdout=subprocess.PIPE, text=True)
        assert host.stdout.readline() == "up\n"
        for words in ("link set lo up", f"link add home type veth peer name lan netns {host.pid}"):
            subprocess.run(["ip", *words.split()], check=True)
        yield Internet(host)
    finally:
        check(libc.setns(before, CLONE_NEWNET))
        os.close(before)
        if host:
            host.kill()
            host.wait()


@contextlib.contextmanager
def home_with_internet():
    with tun_for_everyone(), home_apart(ANSWERING) as internet:
        for words in (f"addr add {HOME}/24 dev home", f"addr add {CAMPUS_OWN}/24 dev home", "link set home up",
                      f"route add {METADATA} dev home", f"route add default via {ROUTER} src {HOME}"):
            subprocess.run(["ip", *words.split()], check=True)
        for words in ("link set lo up", f"addr add {ROUTER}/24 dev lan", f"addr add {METADATA}/32 dev lan",
                      f"addr add {CAMPUS_HOST}/24 dev lan", "link set lan up", f"addr add {SERVICE}/32 dev lo",
                      f"addr add {RESOLVER}/32 dev lo", f"addr add {LATER}/32 dev lo", f"addr add {CLOSED}/32 dev lo"):
            internet.ip(words)
        yield internet
