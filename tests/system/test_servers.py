"""Jobs with several parameter servers, each of a range of the model, and with a replica of the first:
one of them is killed, training goes on, and everybody is paid.

covers market/match_server.c, core/decide_worker.c, server/dispatch.c, server/stream.c, exchange/range_server.c,
exchange/replica.c, exchange/server_ranges.c, worker/role_range.c, worker/role_server.c, cli/command_logs.c
"""
import os
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM
from test_server_successor import job_of, keeper_of, servers, trained
from training import Lender, cancel, descendants, job_spec, running, wait_for, wait_for_end


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two workers' machines, and four that hold one parameter server each."""
    folder = tmp_path_factory.mktemp("place")
    with running(folder, "--no-local-lender") as (market, token, lender_token, lenders):
        for name in ("crane", "stork", "ibis"):
            lenders.append(Lender(market, lender_token, folder / name, name, "server"))
        wait_for("six machines", lambda: 6 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, dict(zip(("server", "crane", "stork", "ibis"), lenders[2:]))


def submit(market, token, **sync):
    """Submits a job that trains until cancelled."""
    spec = job_spec(market, token, 2, min_time="1h", max_run_time="1h")
    spec["resources"]["cpus"] = "0.1"
    spec["sync"].update(sync)
    spec["train"]["model"] = "mlp"  # of which each range is of several runs
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def wait_for_training(market, token, job, lead, steps=0):
    return wait_for("further steps", lambda: trained(market, token, job, lead) > steps)


def wait_for_pay(market, token, job):
    """Every lease has been billed a tick."""
    wait_for("pay", lambda: all(lease["posted_microcredits"] > 0
                                for lease in job_of(market, token, job)["leases"]))


def open_servers(market, token, job, count):
    """All of them, by rank, once they run."""
    def all_running():
        found = {s["rank"]: s for s in servers(market, token, job) if s["state"] == "running"}
        return found if len(found) == count else None
    return wait_for(f"{count} servers", all_running)


def assert_paid(market, token, done):
    bill = market.get(f"/v1/jobs/{done['id']}/bill", token).json
    assert bill["held_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(line["posted_microcredits"] for line in bill["lines"])
    for lease in done["leases"]:  # 0.2 s of a core cost about a microcredit
        assert lease["posted_microcredits"] > 0 or lease["billed_ms"] * lease["cores_milli"] < 200_000, lease


def assert_ends(market, token, job):
    done = cancel(market, token, job)
    assert_paid(market, token, done)
    return done


def start_souk(market, token, *words):
    return subprocess.Popen([PROGRAM, *words, "--server", market.url, "--config-dir", str(market.folder / "config")],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def souk(market, token, *words):
    return ended(start_souk(market, token, *words))


def ended(process):
    """What it printed."""
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 0, (out, err)
    return out, err


def test_a_server_of_a_range_that_is_killed_is_followed_by_another(place):
    market, token, lenders = place
    job = submit(market, token, servers=2)
    found = open_servers(market, token, job, 2)
    assert found[0]["machine_name"] != found[1]["machine_name"]
    wait_for_training(market, token, job, found[0])
    wait_for_pay(market, token, job)
    follower = start_souk(market, token, "job", "logs", str(job), "--rank", "server-1", "-f")
    assert "range_ready" in follower.stdout.readline()
    os.kill(descendants(keeper_of(lenders[found[1]["machine_name"]], found[1]))[-1], signal.SIGKILL)
    wait_for("its end", lambda: [s for s in servers(market, token, job)
                                 if s["id"] == found[1]["id"] and s["outcome"] == "failed"])
    after = open_servers(market, token, job, 2)
    assert after[0]["id"] == found[0]["id"] and after[1]["id"] > found[1]["id"]
    wait_for_training(market, token, job, found[0], trained(market, token, job, found[0]))
    assert_ends(market, token, job)
    # The log of a rank is of all who had it, each of which can be had alone.
    both, notes = souk(market, token, "job", "logs", str(job), "--rank", "server-1")
    alone = [souk(market, token, "job", "logs", str(job), "--lease", str(server["id"]))[0]
             for server in (found[1], after[1])]
    assert both == "".join(alone) and all("range_ready" in log for log in alone), (both, alone)
    assert f"Lease {found[1]['id']} on {found[1]['machine_name']}, failed" in notes and f"Lease {after[1]['id']} on" in notes
    rest, _ = ended(follower)
    assert "range_ready" in rest and both.endswith(rest), rest  # it went on with the successor
    shown, _ = souk(market, token, "job", "show", str(job))
    assert "on 2 workers, 2 parameter servers" in shown
    assert f"Lease {found[1]['id']}, parameter server 1 on {found[1]['machine_name']} failed: " in shown, shown


def test_a_replica_takes_the_lead_of_one_that_is_killed(place):
    market, token, lenders = place
    job = submit(market, token, replica=True)
    found = open_servers(market, token, job, 2)
    lead, replica = found[0], found[1]
    assert replica["replica"] and not lead["replica"]
    assert replica["machine_name"] != lead["machine_name"] and replica["fence"] > lead["fence"]
    wait_for_training(market, token, job, lead)
    wait_for_pay(market, token, job)
    # It is called what it is wherever it is told of.
    assert f"{replica['machine_name']} (replica)" in market.get(f"/v1/jobs/{job}/explain", token).json["text"]
    for path, list_name in (("metrics", "workers"), ("bill", "lines")):
        told = {line["lease"]: line["replica"] for line in market.get(f"/v1/jobs/{job}/{path}", token).json[list_name]}
        assert told[replica["id"]] and not told[lead["id"]], told
    assert "replica" in souk(market, token, "job", "show", str(job))[0]
    steps = trained(market, token, job, lead)
    os.kill(keeper_of(lenders[lead["machine_name"]], lead), signal.SIGKILL)
    promoted = wait_for("its promotion", lambda: next(
        (s for s in servers(market, token, job)
         if s["id"] == replica["id"] and s["rank"] == 0 and not s["replica"]), None))
    assert promoted["state"] == "running" and promoted["fence"] == replica["fence"]
    wait_for_training(market, token, job, promoted, steps)
    after = open_servers(market, token, job, 2)
    assert after[0]["id"] == replica["id"] and after[1]["replica"]
    assert after[1]["machine_name"] != promoted["machine_name"]
    done = assert_ends(market, token, job)
    assert next(s for s in done["leases"] if s["id"] == lead["id"])["outcome"] == "lost"
    # It went on from what it had, not from a checkpoint.
    log = market.get(f"/v1/jobs/{job}/logs?rank=server", token).body.decode()
    assert "checkpoint_restored" not in log
    # Why one did not end well is told.
    shown = souk(market, token, "job", "show", str(job))[0]
    assert f"Lease {lead['id']}, the parameter server on {lead['machine_name']} lost: " in shown, shown


def test_a_job_with_three_servers_outlives_one_of_a_range_and_then_its_lead(place):
    market, token, lenders = place
    job = submit(market, token, servers=3, replica=True, policy="bsp")
    found = open_servers(market, token, job, 4)
    lead, old = found[0], found[1]
    assert found[3]["replica"]
    wait_for_training(market, token, job, lead)
    os.kill(keeper_of(lenders[old["machine_name"]], old), signal.SIGKILL)
    successor = wait_for("a successor", lambda: next(
        (s for s in servers(market, token, job)
         if s["rank"] == 1 and s["id"] > old["id"] and s["state"] == "running"), None))
    wait_for_training(market, token, job, lead, trained(market, token, job, lead) + 1)

    open_servers(market, token, job, 4)
    steps = trained(market, token, job, lead)
    os.kill(keeper_of(lenders[lead["machine_name"]], lead), signal.SIGKILL)
    promoted = wait_for("its promotion", lambda: next(
        (s for s in servers(market, token, job)
         if s["rank"] == 0 and s["id"] > lead["id"] and s["state"] == "running"), None))
    assert promoted["id"] == found[3]["id"]
    wait_for_training(market, token, job, promoted, steps)
    done = assert_ends(market, token, job)
    outcomes = {s["id"]: s["outcome"] for s in done["leases"] if s["role"] == "server"}
    assert outcomes[old["id"]] == outcomes[lead["id"]] == "lost"
    assert outcomes[successor["id"]] == outcomes[promoted["id"]] == "succeeded", done
    assert "checkpoint_restored" not in market.get(f"/v1/jobs/{job}/logs?rank=server", token).body.decode()


def test_two_servers_beside_the_market_reach_the_target(tmp_path):
    with running(tmp_path) as (market, token, _, _):
        spec = job_spec(market, token, 2, min_time="2s")
        spec["sync"]["servers"] = 2  # its one core has room for two
        quote = market.post("/v1/quotes", {**spec, "sync": {**spec["sync"], "replica": True}}, token).json
        assert quote["can_start"] and quote["server_machines"] == 1 and not quote["has_replica_room"], quote
        answer = market.post("/v1/jobs", spec, token)
        assert answer.status == 201, answer
        done = wait_for_end(market, token, answer.json["id"])
        assert done["state"] == "succeeded", done
        assert_paid(market, token, done)
        assert [s["outcome"] for s in done["leases"] if s["role"] == "server"] == ["succeeded"] * 2
