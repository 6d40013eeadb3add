#!/usr/bin/env python3
"""Push and pull of large vectors between a worker and its parameter server, beside iperf3 and gloo.

    bench/exchange.py [--json] [--rounds N] [--seconds S] [--mb 4 16 64] [--workers 1] [--program build/souk]
                      [--congestion reno]

In every round and for every size, one after the other: iperf3 over loopback, one stream, one
direction; `souk bench exchange` over the links that jobs use (sealed), in TLS records, and without
encryption (plain); iperf3 again, and ratios are to the mean of the two; gloo's all-reduce of the
same vector between two processes (Debian's python3-torch), which is not encrypted.

All of them have TCP as the system sets it. With --congestion, which takes root, all of them run in
a network namespace of their own, where the congestion control is that one: bbr paces what it sends,
which on loopback decides more than anything else.

A worker pushes, then pulls: its bytes travel in one direction at a time, so their sum over the time
stands beside iperf3's one direction. A push and pull of n bytes leaves both ends with the same
vector and moves 2 n bytes, as an all-reduce of n bytes between two does: CPU is compared by bytes
moved. Ratios are taken within a round and a size; figures are medians of the rounds, and those
named in the goals are of the worst size, with the lowest and the highest round of it.
"""
import argparse
import json
import os
import pathlib
import resource
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"goodput_ratio_plain": ">= 0.8", "goodput_ratio_tls": ">= 0.6"}
PYTHON = "/usr/bin/python3"  # whose torch is Debian's


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_s(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def measure_iperf3(seconds):
    port = str(free_port())
    server = subprocess.Popen(["iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush"],
                              stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if "listening" in line:
                break
        done = subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", port, "-t", str(seconds), "-J"],
                              check=True, capture_output=True)
        server.communicate()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    end = json.loads(done.stdout)["end"]
    gb_per_s = end["sum_received"]["bits_per_second"] / 8e9
    cpu = end["cpu_utilization_percent"]
    return {"mb_per_s": gb_per_s * 1e3, "sender_cpu": cpu["host_total"] / 100,
            "receiver_cpu": cpu["remote_total"] / 100,
            "cpu_s_per_gb": (cpu["host_total"] + cpu["remote_total"]) / 100 / gb_per_s}


def measure_souk(program, mb, workers, seconds):
    command = [program, "bench", "exchange", "--mb", str(mb), "--workers", str(workers), "--rounds", "1",
               "--round", f"{seconds}s", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def be_gloo_rank(rank, port, mb, seconds):
    """One of the two processes: prints the bytes moved by both, its time and its CPU."""
    import torch
    import torch.distributed as distributed
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    vector = torch.rand(mb * 1000000 // 4)
    more = torch.ones(1)
    for _ in range(2):
        distributed.all_reduce(vector)
    count, cpu, begin = 0, cpu_s(), time.monotonic()
    while more.item():
        distributed.all_reduce(vector)
        vector.mul_(0.5)  # or the sum grows without end
        count += 1
        if rank == 0 and time.monotonic() - begin > seconds:
            more.zero_()
        distributed.broadcast(more, 0)
    print(json.dumps({"bytes": 2 * 4 * vector.numel() * count, "seconds": time.monotonic() - begin,
                      "cpu_s": cpu_s() - cpu}))


def measure_gloo(mb, seconds):
    port = free_port()
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([PYTHON, __file__, "--gloo-rank", str(rank), str(port), "--mb", str(mb),
                               "--seconds", str(seconds)], stdout=subprocess.PIPE, env=environment)
             for rank in range(2)]
    ends = [json.loads(rank.communicate()[0]) for rank in ranks]
    gb = ends[0]["bytes"] / 1e9
    return {"mb_per_s": 1e3 * gb / ends[0]["seconds"], "cpu_s_per_gb": sum(end["cpu_s"] for end in ends) / gb}


def measure_round(wanted, mb):
    before = measure_iperf3(wanted.seconds)
    souk = measure_souk(wanted.program, mb, wanted.workers, wanted.seconds)
    after = measure_iperf3(wanted.seconds)
    iperf3 = {name: (before[name] + after[name]) / 2 for name in before}
    gloo = measure_gloo(mb, wanted.seconds)
    return {**souk, **{f"iperf3_{name}": value for name, value in iperf3.items()},
            "gloo_mb_per_s": gloo["mb_per_s"], "gloo_cpu_s_per_gb": gloo["cpu_s_per_gb"],
            "goodput_ratio_plain": souk["plain_mb_per_s"] / iperf3["mb_per_s"],
            "goodput_ratio_tls": souk["sealed_mb_per_s"] / iperf3["mb_per_s"],
            "goodput_ratio_tls_records": souk["tls_mb_per_s"] / iperf3["mb_per_s"],
            "goodput_vs_gloo": souk["sealed_mb_per_s"] / gloo["mb_per_s"],
            "goodput_plain_vs_gloo": souk["plain_mb_per_s"] / gloo["mb_per_s"],
            "cpu_per_gb_vs_gloo": souk["sealed_cpu_s_per_gb"] / gloo["cpu_s_per_gb"],
            "cpu_per_gb_plain_vs_gloo": souk["plain_cpu_s_per_gb"] / gloo["cpu_s_per_gb"]}


def congestion():
    return pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def begin_again_with(name):
    """In a network namespace of its own, where that is the congestion control."""
    script = 'ip link set lo up && echo "$0" > /proc/sys/net/ipv4/tcp_congestion_control && exec "$@"'
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", script, name, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--mb", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    parser.add_argument("--congestion", metavar="NAME", help="congestion control of all, for example reno")
    parser.add_argument("--gloo-rank", type=int, nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.gloo_rank:
        be_gloo_rank(*wanted.gloo_rank, wanted.mb[0], wanted.seconds)
        return
    if wanted.congestion and wanted.congestion != congestion():
        begin_again_with(wanted.congestion)
    rounds = [{mb: measure_round(wanted, mb) for mb in wanted.mb} for _ in range(wanted.rounds)]
    by_size = {mb: {name: statistics.median(one[mb][name] for one in rounds) for name in rounds[0][mb]}
               for mb in wanted.mb}
    figures = {}
    for name in GOALS:
        worst = min(wanted.mb, key=lambda mb: by_size[mb][name])
        values = [one[worst][name] for one in rounds]
        figures |= {name: by_size[worst][name], f"{name}_low": min(values), f"{name}_high": max(values)}
    figures |= {"cpu_per_gb_vs_gloo": max(by_size[mb]["cpu_per_gb_vs_gloo"] for mb in wanted.mb),
                "workers": wanted.workers, "load_average": os.getloadavg()[0]}
    if wanted.json:
        print(json.dumps({**figures, "congestion": congestion(), "sizes": {f"{mb}mb": by_size[mb] for mb in wanted.mb}}))
        return
    print(f"{'congestion':28} {congestion():>10}")
    for name, value in figures.items():
        print(f"{name:28} {value:10.3f}  {GOALS.get(name, '')}")
    print(f"\n{'':28}" + "".join(f"{mb:>7} MB" for mb in wanted.mb))
    for name in by_size[wanted.mb[0]]:
        print(f"{name:28}" + "".join(f"{by_size[mb][name]:10.3f}" for mb in wanted.mb))


if __name__ == "__main__":
    sys.exit(main())
