"""A market with lenders, and a small model that tells kinds of plants."""
import contextlib
import os
import random
import subprocess

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


@contextlib.contextmanager
def open_market(folder, *names):
    market = Market(folder / "market")
    market.token, lending = market.sign_up("borrower"), market.sign_up("lender")
    market.folder = folder
    market.lenders = {name: Lender(market, lending, folder / name, name) for name in names}
    try:
        wait_for("the machines", lambda: len(names) == sum(
            machine["state"] == "online" and machine["name"] in names
            for machine in market.get("/v1/machines", market.token).json["items"]))
        yield market
    finally:
        for lender in market.lenders.values():
            lender.stop()
        market.stop()


def start(market, *arguments, **more):
    return subprocess.Popen(
        [PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **more, env={**os.environ, "SOUK_SERVER": market.url, "SOUK_TOKEN": market.token, "NO_COLOR": "1",
                                "SOUK_CONFIG_DIR": str(market.folder / "config")})


def souk(market, *arguments, code=0, **more):
    process = start(market, *arguments, **more)
    process.out, process.err = process.communicate(timeout=HUNG_S)
    assert process.returncode == code, (process.out, process.err)
    return process


def write_rows(path, count):
    pick = random.Random(3)
    with path.open("w") as file:
        file.write("id,height,soil,kind\n")
        for i in range(count):
            soil, tall = pick.choice(["clay", "sand"]), pick.uniform(0, 100)
            kind = '"reed, ""common"""' if soil == "clay" and tall > 50 else "-moss"
            file.write(f"{i},{tall:.3f},{soil},{kind}\n")
    return path


def train(market, folder):
    write_rows(folder / "learnt.csv", 300)
    (folder / "job.yaml").write_text(
        "name: plants\ntrain:\n  data: learnt.csv\n  epochs: 20\n  batch: 20\n  seed: 1\n  label: kind\n"
        "  read: {categories: one-hot, skip: id}\n  model: logistic\n  optimizer: {lr: 0.3}\n")
    souk(market, "train", folder / "job.yaml", "--dataset-dir", folder, "-o", folder / "model")
    return folder / "model"


LEAST = ("--cpus", "0.1+", "--memory", "0.1")
