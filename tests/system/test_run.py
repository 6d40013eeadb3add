"""souk run and runtime command: a program of the borrower's own, on every machine it leases.

covers cli/command_run.c, cli/submit.c, client/submission.c, client/upload.c, worker/role_command.c, server/tick.c
"""
import json
import os
import re
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, audit
from training import Lender, needs_cgroups, wait_for


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    market = Market(folder / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, folder / name, name) for name in ("first", "second")]
    try:
        wait_for("two machines", lambda: 2 == sum(
            m["state"] == "online" and m["name"] != "market"
            for m in market.get("/v1/machines", token).json["items"]))
        market.lender_token = lender_token
        yield market, token
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    for lender in lenders:  # what ends as it should is nothing to warn of
        assert "keeper_ended" not in open(lender.log_path, encoding="utf-8").read()
    status, text = audit(market.folder)
    assert status == 0, text


@pytest.fixture
def place(shared, tmp_path):
    """Waits until both machines are free."""
    market, token = shared
    wait_for("the machines", lambda: 2 == sum(
        m["availability"] == "free" and m["name"] != "market"
        for m in market.get("/v1/machines", token).json["items"]))
    return market, token, tmp_path


def command(market, folder, *arguments):
    return [PROGRAM, "run", "--server", market.url, "--config-dir", str(folder / "config"),
            "--cpus", "0.1", "--memory", "0.1", *arguments]


def environment(token):
    return {**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"}


def run(place, *arguments, timeout=HUNG_S):
    market, token, folder = place
    return subprocess.run(command(market, folder, *arguments), capture_output=True, text=True,
                          timeout=timeout, env=environment(token), stdin=subprocess.DEVNULL)


def last_job(market, token):
    return market.get("/v1/jobs", token).json["items"][0]


def test_every_rank_runs_the_command_in_its_folder(place):
    market, token, folder = place
    files = folder / "files"
    (files / "inner").mkdir(parents=True)
    (files / "inner" / "grüße ☃.txt").write_text("hello\n")
    (files / "go.sh").write_text("#!/bin/sh\n"
                                 "echo \"$GREETING $(cat inner/*.txt) from $SOUK_RANK of $SOUK_WORLD_SIZE\"\n"
                                 "echo result-$SOUK_RANK > $SOUK_OUTPUT_DIR/result.txt\n")
    (files / "go.sh").chmod(0o755)
    done = run(place, "-y", "-n", "2", "--files", str(files), "-e", "GREETING=well, then", "--", "./go.sh")
    assert done.returncode == 0, done
    lines = sorted(line for line in done.stdout.splitlines() if "from" in line)
    assert lines == ["rank 0 | well, then hello from 0 of 2", "rank 1 | well, then hello from 1 of 2"], done

    job = last_job(market, token)
    assert job["state"] == "succeeded" and job["name"] == "go.sh"
    bill = market.get(f"/v1/jobs/{job['id']}/bill", token).json
    assert bill["held_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    assert sorted(line["machine_name"] for line in bill["lines"]) == ["first", "second"]
    fetched = subprocess.run([PROGRAM, "job", "fetch", str(job["id"]), "-o", str(folder / "got"), "--server",
                              market.url, "--config-dir", str(folder / "config")],
                             capture_output=True, text=True, timeout=HUNG_S, env=environment(token))
    assert fetched.returncode == 0, fetched
    assert (folder / "got" / "rank0-result.txt").read_text() == "result-0\n"
    assert (folder / "got" / "rank1-result.txt").read_text() == "result-1\n"


def test_arguments_reach_the_command_as_they_are(place):
    words = ["a b", "it's", "$HOME", "*", ""]
    done = run(place, "-y", "--json", "--", "/usr/bin/python3", "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["state"] == "succeeded"
    assert json.dumps(words) in done.stderr


def test_one_that_fails_ends_the_others_and_says_why(place):
    market, token, _ = place
    done = run(place, "-y", "-n", "2", "--", "if [ $SOUK_RANK = 1 ]; then echo oh no >&2; exit 3; fi; sleep 600")
    assert done.returncode == 3, done
    assert "rank 1 | oh no" in done.stdout and "rank 1 failed: exit status 3" in done.stderr, done
    job = market.get(f"/v1/jobs/{last_job(market, token)['id']}", token).json
    assert job["state"] == "failed" and len(job["leases"]) == 2
    assert sorted(lease["outcome"] for lease in job["leases"]) == ["failed", "stopped"]
    assert {lease["rank"]: lease["exit_code"] for lease in job["leases"]} == {0: 128 + signal.SIGTERM, 1: 3}
    shown = subprocess.run([PROGRAM, "job", "show", str(job["id"]), "--server", market.url],
                           capture_output=True, text=True, timeout=HUNG_S, env=environment(token))
    assert "Runs:     a command of your own on 2 workers" in shown.stdout, shown
    rows = [line.split() for line in shown.stdout.splitlines() if " stopped " in line or " failed " in line]
    assert sorted((row[2], row[3], row[4]) for row in rows) == [("0", "stopped", "143"), ("1", "failed", "3")], shown


def test_its_exit_status_is_the_commands(place):
    market, token, _ = place
    assert run(place, "-y", "--", "exit 42").returncode == 42
    done = run(place, "-y", "--json", "--", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL, done
    assert [lease["exit_code"] for lease in json.loads(done.stdout)["leases"]] == [128 + signal.SIGKILL]
    done = run(place, "-y", "-n", "2", "--", "exit 7")
    assert done.returncode == 7, done


def test_quiet_it_still_says_why_it_failed(place):
    failed = run(place, "-q", "-y", "--", "exit 3")
    assert failed.returncode == 3 and failed.stdout == "", failed
    [line] = failed.stderr.splitlines()
    assert re.match(r"Job \d+ failed: .*3.*; it cost ", line), line
    done = run(place, "-q", "-y", "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


@pytest.mark.parametrize("script, name", [
    ("for i in 1 2; do echo $i; done", "command"), ("i=0; echo $i", "command"),
    ("trap '' TERM; sleep 1", "command"), ("  sleep 1; echo for", "sleep"),  # clock: the plan names it; nothing runs
    ("/usr/bin/env | sort", "env"), ("(true)", "command")])
def test_a_script_is_called_by_its_first_program(place, script, name):
    assert f'Plan for "{name}" at' in run(place, "--", script).stderr


def test_gpus_may_be_a_plain_count(place):
    refused = run(place, "-y", "--gpus", "32", "--", "true")
    assert refused.returncode == 7 and "32 GPUs" in refused.stderr, refused
    assert "until others come" not in refused.stderr, refused


def test_one_that_is_cut_off_has_not_succeeded(place):
    done = run(place, "-y", "--max-run-time", "2s", "--", "echo up; sleep 600")
    assert done.returncode == 1 and "max_run_time reached" in done.stderr and done.stdout == "up\n", done


@needs_cgroups
def test_one_that_takes_too_much_memory_is_told_so(place):
    done = run(place, "-y", "--", "/usr/bin/python3", "-c", "x = bytearray(400 << 20); x[::4096] = b'x' * len(x[::4096])")
    assert done.returncode == 128 + signal.SIGKILL and "than the 102 MiB it was given: raise resources.memory" in done.stderr, done


def test_a_script_that_copes_with_a_child_that_took_too_much_has_succeeded(place):
    done = run(place, "-y", "--", "/usr/bin/python3 -c 'x = bytearray(400 << 20); x[::4096] = b\"x\" * len(x[::4096])' "
               "|| echo coped")
    assert done.returncode == 0 and done.stdout.endswith("coped\n"), done


def test_interrupted_it_stops_every_copy(place):
    market, token, folder = place
    script = "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done"  # clock: the shell traps between two sleeps
    process = subprocess.Popen(command(market, folder, "-y", "-n", "2", "--", script),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(token))
    seen = [process.stdout.readline(), process.stdout.readline()]
    assert sorted(seen) == ["rank 0 | up\n", "rank 1 | up\n"], seen
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HUNG_S)
    assert process.returncode == 1 and "Stopping job" in err, (out, err)
    assert sorted(out.splitlines()) == ["rank 0 | bye", "rank 1 | bye"], (out, err)
    assert last_job(market, token)["state"] == "cancelled"


def test_a_rank_that_is_moved_says_so(place):
    market, token, folder = place
    process = subprocess.Popen(command(market, folder, "-y", "--", "echo up; sleep 600"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(token))
    assert process.stdout.readline() == "up\n"
    lease = market.get(f"/v1/jobs/{last_job(market, token)['id']}", token).json["leases"][0]
    ended = market.post(f"/v1/leases/{lease['id']}/end", {}, market.lender_token)
    assert ended.status == 200, ended
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HUNG_S)
    other = {"first": "second", "second": "first"}[lease["machine_name"]]
    assert f'rank 0 on "{lease["machine_name"]}" was reclaimed' in err and f'it starts again on "{other}"' in err, err
    assert "cancelled: its borrower wanted it so" in err, err


def test_advice_names_the_commands_own_flags(place):
    done = run(place, "-y", "-n", "3", "--", "true")
    assert done.returncode == 7 and "num_nodes" not in done.stderr, done
    done = run(place, "-y", "--max-total-cost", "0.000001", "--max-run-time", "10h", "--", "true")
    assert done.returncode == 6 and "--max-total-cost" in done.stderr and "max_total_cost" not in done.stderr, done


def fetch(place, job, *names):
    market, token, folder = place
    return subprocess.run([PROGRAM, "job", "fetch", str(job), *names, "-o", str(folder / "got"), "--server", market.url,
                           "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, env=environment(token))


def test_a_job_that_left_nothing_says_so(place):
    market, token, _ = place
    assert run(place, "-y", "--", "true").returncode == 0
    done = fetch(place, last_job(market, token)["id"])
    assert done.returncode == 3 and "has ended (succeeded) and left no files" in done.stderr, done
    assert run(place, "-y", "--", "echo 1 > $SOUK_OUTPUT_DIR/one").returncode == 0
    done = fetch(place, last_job(market, token)["id"], "two")
    assert done.returncode == 3 and 'left no file of that name; it has "rank0-one"' in done.stderr, done


def test_it_starts_now_or_not_at_all(place):
    market, token, _ = place
    before = market.get("/v1/jobs", token).json["items"]
    done = run(place, "-y", "-n", "3", "--", "true")
    assert done.returncode == 7 and "nothing was sent" in done.stderr, done
    assert market.get("/v1/jobs", token).json["items"] == before
    done = run(place, "-n", "1", "--", "true")
    assert done.returncode == 2 and "runs      true" in done.stderr and "add -y" in done.stderr, done
    done = run(place, "/usr/bin/sort -u < in > $SOUK_OUTPUT_DIR/out")
    assert 'Plan for "sort"' in done.stderr, done
    for wrong, said in ((["--files", "/no/such/folder"], "souk: --files: \"/no/such/folder\": No such file"), (["-e", "X"], "NAME=VALUE"),
                        (["-e", "SOUK_RANK=1"], "Souk's own"), (["--cpus", "many"], "--cpus"),
                        (["--max-rtt", "0.5ms"], "--max-rtt: must be from 1 ms")):
        done = run(place, "-y", *wrong, "--", "true")
        assert done.returncode != 0 and said in done.stderr, (wrong, done)


def test_a_job_file_runs_commands_too(place):
    market, token, folder = place
    (folder / "job.yaml").write_text("""\
name: sums
num_nodes: 2
resources: {cpus: 0.1, memory: 0.1}
envs: {N: 5}
setup: echo $((N * 2)) > ten
run: |
  echo "ten is $(cat ten)"
market: {max_run_time: 60s}
""")
    done = subprocess.run([PROGRAM, "job", "submit", "-y", str(folder / "job.yaml"), "--server", market.url,
                           "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, env=environment(token))
    assert done.returncode == 0, done
    job = last_job(market, token)
    assert f"souk job logs {job['id']} --rank all" in done.stderr and "job fetch" not in done.stderr, done
    for rank in (0, 1):
        log = market.get(f"/v1/jobs/{job['id']}/logs?rank={rank}", token).json
        assert "ten is 10\n" in log["text"], log


def read_until(stream, words):
    """Of notes, which break between words."""
    said = ""
    while words not in " ".join(said.split()):
        line = stream.readline()
        assert line, said
        said += line


def test_a_run_says_what_it_waits_for(place):
    market, token, folder = place
    waiting = subprocess.Popen(command(market, folder, "-y", "--wait", "-n", "3", "--", "true"), stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True, env=environment(token))
    read_until(waiting.stderr, "waits: ")
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=HUNG_S)

    held = subprocess.Popen(command(market, folder, "-y", "--", "sleep 600"), stderr=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, text=True, env=environment(token))
    lease = wait_for("the lease", lambda: next((lease for lease in market.get(
        f"/v1/jobs/{last_job(market, token)['id']}", token).json["leases"] if lease["state"] == "running"), None))
    name, machine = lease["machine_name"], lease["machine"]
    assert market.post(f"/v1/machines/{machine}/pause", {"for_ms": 600000}, market.lender_token).status == 200
    read_until(held.stderr, f'rank 0 on "{name}" is held still')
    assert market.post(f"/v1/machines/{machine}/resume", None, market.lender_token).status == 200
    held.send_signal(signal.SIGINT)
    held.communicate(timeout=HUNG_S)
