"""A new machine, by real work, until it is proven."""
from training import running, submit, wait_for


def entries_of(market, token, kind):
    return market.get(f"/v1/account/entries?kind={kind}&order=oldest&limit=500", token).json["items"]


def test_what_is_withheld_of_a_new_machine_is_released_once_its_work_has_proven_it(tmp_path):
    with running(tmp_path) as (market, token, lender_token, _):
        def machines():
            listed = market.get("/v1/machines?mine=true", lender_token).json["items"]
            return {machine["name"]: machine["reputation"] for machine in listed}

        def withheld():
            return market.get("/v1/account", lender_token).json["withheld_microcredits"]

        # A few seconds of half a core: each works longer than that.
        changed = market.call("PUT", "/v1/settings", {"proving_microcredits": 8},
                              market.operator_token())
        assert changed.status == 200, changed
        assert [machine["is_proven"] for machine in machines().values()] == [False, False]
        job = submit(market, token, 2)
        wait_for("something that is withheld", lambda: withheld() > 0, step=0.05)
        assert entries_of(market, lender_token, "release") == []
        wait_for("two proven machines",
                 lambda: all(machine["is_proven"] for machine in machines().values()))
        wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", token).json["state"] ==
                 "succeeded")

        assert withheld() == 0
        assert all(machine["verified_microcredits"] >= 8 and machine["withheld_microcredits"] == 0
                   for machine in machines().values())
        released = entries_of(market, lender_token, "release")
        assert {entry["machine_name"] for entry in released} == set(machines())
        posted = entries_of(market, lender_token, "post")
        assert sum(entry["withheld_microcredits"] for entry in posted) == \
            sum(entry["amount_microcredits"] for entry in released) > 0
        # Afterwards nothing is withheld any more.
        for entry in released:
            after = [post for post in posted
                     if post["machine"] == entry["machine"] and post["id"] > entry["id"]]
            assert after and all(post["withheld_microcredits"] == 0 for post in after)
        account = market.get("/v1/account", lender_token).json
        assert account["transferable_microcredits"] == account["earned_microcredits"]
