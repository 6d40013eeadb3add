"""A job's whole way through a real market: real lenders in their sandboxes, links, relayed streams,
verified ticks, metrics, logs, artifacts and the bill; also across a restart of the market.

covers server/hub.c, server/hub_command.c, server/connection.c, server/stream.c, server/dispatch.c, server/tick.c
covers server/order.c, server/live.c, server/logs.c, server/local_lender.c, server/handle_credit.c
"""
import os

import pytest

from serving import own_addresses
from training import cancel, running, submit, submit_endless, wait_for, wait_for_end


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with running(tmp_path_factory.mktemp("place"), *own_addresses()) as made:
        yield made


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def assert_books(market, token, job):
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    assert bill["ledger_sum_microcredits"] == 0 and bill["held_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(line["posted_microcredits"] for line in bill["lines"])
    spent = sum(each["spent_microcredits"] for each in market.get("/v1/jobs", token).json["items"])
    account = market.get("/v1/account", token).json
    assert account["spent_microcredits"] == spent
    assert account["available_microcredits"] == 10_000_000 - spent
    return bill


def wait_for_commits(market, token, job):
    wait_for("both workers' commits", lambda: 2 == sum(
        lease["role"] == "worker" and lease["commits"] > 0
        for lease in job_of(market, token, job)["leases"]))


def give_earned_credits_away(market, lender_token, earned):
    friend_token = market.sign_up("friend")

    def give(amount, to="friend", token=lender_token, key=None, **more):
        return market.post("/v1/transfers", {"to": to, "amount_microcredits": amount, **more},
                           token, key=key)

    refused = [(give(earned + 1), 402), (give(0), 400), (give(2**63), 400), (give(1.5), 400),
               (give(1, to="nobody"), 404), (give(1, to="mint"), 404), (give(1, extra=1), 400),
               (give(1, memo="x" * 64), 400), (give(1, to="lender"), 400), (give(1, token=None), 401)]
    for answer, status in refused:
        assert answer.status == status, answer
    assert give(2, token=friend_token, to="lender").status == 402  # it has only what was granted
    account = market.get("/v1/account", lender_token).json
    free = earned - account["withheld_microcredits"]  # the machines are new: a part waits for proof
    assert 0 < free < earned and account["transferable_microcredits"] == free
    assert give(free + 1).status == 402

    made = [give(2, key="one-gift", memo="thanks") for _ in range(3)]
    assert {(answer.status, answer.body) for answer in made} == {(201, made[0].body)}
    assert made[0].json["kind"] == "transfer" and made[0].json["amount_microcredits"] == -2
    assert give(3, key="one-gift").status == 409
    statement = market.get("/v1/account/entries", friend_token).json["items"]
    assert [(e["kind"], e["amount_microcredits"], e["memo"]) for e in statement[:1]] == [
        ("transfer", 2, "thanks")]
    account = market.get("/v1/account", lender_token).json
    assert account["transferable_microcredits"] == free - 2
    assert account["earned_microcredits"] == earned  # what lending brought, over all time


def test_a_job_is_trained_metered_billed_and_fetched(place):
    market, token, lender_token, _ = place
    job = submit(market, token, 2, min_time="3s")
    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    assert done["test_accuracy"] >= 0.5 and done["first_step_ms"] >= done["created_ms"]
    assert {lease["role"] for lease in done["leases"]} == {"worker", "server"}
    assert all(lease["ticks"] >= 3 for lease in done["leases"]), done["leases"]

    bill = assert_books(market, token, job)
    assert bill["spent_microcredits"] > 0 and len(bill["lines"]) == 3
    earned = market.get("/v1/account", lender_token).json["earned_microcredits"]
    workers = [line for line in bill["lines"] if line["role"] == "worker"]
    assert earned == sum(line["earned_microcredits"] for line in workers) > 0
    machines = market.get("/v1/machines", token).json["items"]
    assert sum(m["earned_microcredits"] for m in machines) == sum(
        line["earned_microcredits"] for line in bill["lines"])
    assert next(m for m in machines if m["name"] == "market")["offer"]["roles"] == ["server"]

    metrics = market.get(f"/v1/jobs/{job}/metrics", token).json
    # Measured before the first step, and more often than gamma at first.
    assert len(metrics["curve"]) >= 3 and metrics["curve"][0]["samples"] < metrics["curve"][-1]["samples"]
    assert metrics["curve"][0]["loss"] > metrics["curve"][-1]["loss"] and metrics["curve"][0]["test_accuracy"] is None
    assert len([w for w in metrics["workers"] if w["role"] == "worker"]) == 2
    assert all(w["commits"] > 0 for w in metrics["workers"])
    names = {a["name"]: a for a in market.get(f"/v1/jobs/{job}/artifacts", token).json["items"]}
    assert "model.safetensors" in names and "card.json" in names, names
    card = market.get(f"/v1/jobs/{job}/artifacts/card.json", token)
    assert card.status == 200 and len(card.body) == names["card.json"]["size"] and card.json
    log = market.get(f"/v1/jobs/{job}/logs?rank=0", token).json
    assert log["next_offset"] == len(log["text"].encode())

    mine = market.get("/v1/machines?mine=true", lender_token).json["items"]
    for machine in mine:
        entries = market.get(f"/v1/account/entries?machine={machine['id']}&limit=500", lender_token)
        assert sum(e["amount_microcredits"] for e in entries.json["items"]) == machine[
            "earned_microcredits"]
    give_earned_credits_away(market, lender_token, earned)


def test_a_job_outlives_a_market_that_is_killed(place):
    market, token, _, _ = place
    job = submit(market, token, 2, min_time="3s")
    wait_for_commits(market, token, job)
    market.kill()
    market.start()
    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    assert_books(market, token, job)


def test_a_cancelled_job_pays_for_what_was_used(place):
    market, token, _, _ = place
    job = submit_endless(market, token, 2)
    wait_for("a bill", lambda: job_of(market, token, job)["spent_microcredits"] > 0)
    cancel(market, token, job)
    assert assert_books(market, token, job)["spent_microcredits"] > 0


def test_what_runs_for_a_frozen_account_is_settled_and_earns_the_lenders_grant(place):
    market, token, lender_token, _ = place
    operator = market.operator_token()
    job = submit(market, token, 2, min_time="2s")
    wait_for_commits(market, token, job)
    account = market.get("/v1/account", token).json
    where = f"/v1/accounts/{account['id']}"
    assert market.post(f"{where}/freeze", {"reason": "a test"}, operator).status == 200
    settings = market.call("PUT", "/v1/settings", {"grace_ms": 31000, "silence_ms": 7000}, operator)
    assert settings.status == 200, settings
    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    assert_books(market, token, job)
    assert market.post(f"{where}/unfreeze", {}, operator).status == 200

    lender = market.get("/v1/account", lender_token).json
    earned = lender["earned_microcredits"]
    assert earned > 0 and lender["granted_microcredits"] == 10_000_000 + earned
    assert lender["to_earn_microcredits"] == 40_000_000 - earned
    entries = market.get("/v1/account/entries?limit=200", lender_token).json["items"]
    assert sum(e["amount_microcredits"] for e in entries
               if e["kind"] == "grant" and e["memo"].startswith("grant earned")) == earned


def test_a_job_goes_on_without_a_lost_worker(place):
    market, token, _, lenders = place
    settings = market.call("PUT", "/v1/settings", {"lost_ms": 500}, market.operator_token())
    assert settings.status == 200, settings
    job = submit(market, token, 2, min_time="3s")
    wait_for_commits(market, token, job)
    left = lenders[0].die()
    wait_for("silence", lambda: any(
        m["state"] != "online" for m in market.get("/v1/machines", token).json["items"]))
    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    assert_books(market, token, job)

    # A daemon that restarts on its folder clears the old leases.
    lenders[0].start()
    wait_for("the lender's return", lambda: all(
        m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
    assert not [path for path in left if os.path.exists(path)]


def test_a_market_that_moves_to_other_ports_has_its_curves_and_its_own_lender(place):
    """Must run last: the other lenders still dial the old address."""
    market, token, _, _ = place
    done = market.get("/v1/jobs", token).json["items"][0]["id"]
    metrics = market.get(f"/v1/jobs/{done}/metrics", token).json
    market.kill()
    market.options = ()
    market.start()
    again = market.get(f"/v1/jobs/{done}/metrics", token).json
    assert again["curve"] and again["test_accuracy"] == metrics["test_accuracy"]
    # The market's own lender must reconnect as the same machine.
    wait_for("the market's own lender",
             lambda: b"\nsouk_machine_links 1\n" in market.get("/metrics").body)
    assert len(market.get("/v1/machines", token).json["items"]) == 3
