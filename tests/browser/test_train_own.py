"""The wizard "Train a model" in a real browser, with what is one's own: tables, a network, data at lenders."""
import random

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from training import Lender, running, wait_for, wait_for_end


def write_table(path):
    chance = random.Random(1)
    kinds = {"cold": -2, "mild": 0, "warm": 2}
    lines = ["height,weight,kind"]
    for _ in range(300):
        kind = chance.choice(list(kinds))
        lines.append(f"{chance.gauss(kinds[kind], 0.5) * 100 + 5000:.3f},{chance.gauss(-kinds[kind], 0.5):.4f},{kind}")
    path.write_text("\n".join(lines) + "\n")


def write_homes(path):
    chance = random.Random(2)
    towns = {"north": -1.0, "south, by the sea": 3.0, "west": 0.5}
    lines = ["price;town;area;rooms"]
    for number in range(400):
        town, area, rooms = chance.choice(list(towns)), chance.uniform(20, 200), chance.randrange(1, 7)
        price = 50 * towns[town] + 2 * area + chance.gauss(0, 5) + 1000
        lines.append(f'{price:.2f};"{town}";{area:.1f};{"" if number % 40 == 7 else rooms}')
    path.write_text("\r\n".join(lines) + "\r\n")


def test_what_is_ones_own_is_trained_through_the_wizard(tmp_path):
    table = tmp_path / "rows.csv"
    homes = tmp_path / "homes.csv"
    write_table(table)
    write_homes(homes)
    with running(tmp_path) as (market, token, lender_token, lenders):
        lenders.append(Lender(market, lender_token, tmp_path / "ward", "ward", options=["--data", f"ward={table}"]))
        wait_for("the lender with data", lambda: 4 == sum(
            one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_own.mjs", code["url"], tmp_path, table, homes) as walk:
            seen = walk.end()
        jobs = {seen[name]: wait_for_end(market, token, seen[name]) for name in ("table", "layers", "number", "peer")}
        columns = market.call("GET", f"/v1/jobs/{seen['table']}/artifacts/columns.json", None, token)
        of_homes = market.call("GET", f"/v1/jobs/{seen['number']}/artifacts/columns.json", None, token).json
    assert "tall" in seen["wrongRow"] and "line 3" in seen["wrongRow"]
    for name in ("table", "layers", "number", "peer"):
        assert jobs[seen[name]]["state"] == "succeeded", (name, jobs[seen[name]]["reason"])
        assert jobs[seen[name]]["test_accuracy"] > 0.9, (name, jobs[seen[name]]["test_accuracy"])
    assert seen["again"] == ["logistic-rows", "30", True, "#/train"]
    assert "kernel of 50 does not fit" in seen["layerWrong"]
    assert [layer["type"] for layer in jobs[seen["layers"]]["spec"]["train"]["layers"]] == ["dense", "relu", "dense"]
    assert jobs[seen["peer"]]["spec"]["train"]["data"] == "peer://ward"
    assert columns.status == 200 and columns.json["classes"] == ["cold", "mild", "warm"]
    assert [one["name"] for one in of_homes["features"]] == [
        "area", "rooms", "town=north", "town=south, by the sea", "town=west"]
    assert of_homes["target"] == "number" and 900 < of_homes["target_mean"] < 1500
    assert_clean(seen)
