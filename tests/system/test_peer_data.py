"""Data that lie at lenders: jobs come to them, and they stay.

covers peer/own_data.c, worker/peer_data.c, train/import_columns.c
"""
import json
import os
import random
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

CENTRES = {"well": (0, 0), "ill": (4, 0), "odd": (0, 4)}


def write_rows(path, kinds, rows, seed, shift=0):
    chance = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        file.write("pulse,heat,state\n")
        for _ in range(rows):
            kind = chance.choice(kinds)
            file.write(f"{60 + shift + 10 * (CENTRES[kind][0] + chance.gauss(0, 0.5)):.3f},"
                       f"{37 + 0.2 * (CENTRES[kind][1] + chance.gauss(0, 0.5)):.4f},{kind}\n")
    path.chmod(0o644)


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    wards = tmp_path / "kept-apart"
    wards.mkdir()
    wards.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder) not in ("/", "/tmp"):
            folder.chmod(folder.stat().st_mode | 0o111)
    # Neither has all three states, and one none but one.
    write_rows(wards / "north.csv", ["well"], 150, 1)
    write_rows(wards / "south.csv", ["ill", "odd"], 300, 2)
    (wards / "torn.csv").write_text("pulse,heat,state\n" + "60,37,well\n" * 20 + "confidential-71,37,ill\n")
    lenders = [Lender(market, lender_token, tmp_path / name, name, options=["--data", f"ward={wards}/{name}.csv", *more])
               for name, more in (("north", []), ("south", ["--data", f"torn={wards}/torn.csv"]))]
    lenders.append(Lender(market, lender_token, tmp_path / "none", "none"))
    try:
        wait_for("four machines", lambda: 4 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, tmp_path
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()


def submit(place, *more, nodes=2, **fields):
    market, token, folder = place
    job = {"name": "wards", "num_nodes": nodes, "resources": {"cpus": "0.1+", "memory": "0.1+"},
           "train": {"model": "logistic", "label": "state", "batch": 16, "epochs": 30, "optimizer": {"lr": 0.1},
                     "test": str(folder / "own.csv"), **fields},
           "sync": {"policy": "bsp", "local_steps": 2}, "market": {"max_run_time": "60s"}}
    (folder / "job.yaml").write_text(json.dumps(job))
    return subprocess.run([PROGRAM, "job", "submit", "-y", "--json", *more, str(folder / "job.yaml"), "--server", market.url,
                           "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def test_jobs_come_to_the_data_and_the_data_stay(place):
    market, token, folder = place
    write_rows(folder / "own.csv", list(CENTRES), 120, 3)
    labels = {m["name"]: m["probe"]["labels"] for m in market.get("/v1/machines", token).json["items"] if m.get("probe")}
    done = submit(place, data="peer://ward")
    assert done.returncode == 0, done
    job = json.loads(done.stdout)
    assert job["state"] == "succeeded" and job["test_accuracy"] > 0.95, job
    assert {lease["machine_name"] for lease in job["leases"] if lease["role"] == "worker"} == {"north", "south"}
    assert job["samples"] >= 29 * 450, job
    assert job["spec"]["train"]["data"] == "peer://ward" and job["spec"]["train"]["test"] == "own.csv"
    told = done.stdout + json.dumps(labels) + json.dumps(market.get("/v1/machines", token).json) + open(f"{market.folder}.log").read()
    assert "kept-apart" not in told and "north.csv" not in told

    # Of what is wrong with it the borrower hears where, not what.
    done = submit(place, nodes=1, data="peer://torn")
    assert done.returncode != 0
    failed = market.get("/v1/jobs", token).json["items"][0]
    assert failed["state"] == "failed" and "peer://torn of this lender" in failed["reason"], failed
    assert "line 22" in failed["reason"] and "confidential" not in done.stdout + done.stderr + failed["reason"], failed


def test_what_is_not_offered_or_not_described_is_said(place):
    market, token, folder = place
    write_rows(folder / "own.csv", list(CENTRES), 120, 3)
    done = submit(place, "--expect-room", data="peer://nowhere")
    assert done.returncode != 0 and "peer-nowhere" in done.stderr, done
    done = submit(place, data="peer://ward", test="")
    assert done.returncode != 0 and "train.test: is missing" in done.stderr, done
    done = submit(place, data="rows.csv")
    assert done.returncode != 0 and "goes with data that lie at lenders" in done.stderr, done
