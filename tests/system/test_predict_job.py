"""A model asked about a whole file on several lent machines.

covers cli/predict_job.c, cli/run_spec.c, cli/command_model_predict.c
"""
import pytest

from predicting import LEAST, open_market, souk, train, write_rows


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    with open_market(tmp_path_factory.mktemp("predict"), "first", "second") as opened:
        yield opened


def test_the_parts_come_back_as_one_file_in_the_datas_order(market, tmp_path):
    model, rows = train(market, tmp_path), write_rows(tmp_path / "new rows.csv", 1001)
    here = souk(market, "model", "predict", model, "--data", rows, "--probabilities").out
    done = souk(market, "model", "predict", model, "--data", rows, "--probabilities", "-n", 2, "-y", *LEAST,
                "-o", tmp_path / "told.csv")
    assert done.out == "" and (tmp_path / "told.csv").read_text() == here
    assert "1001 records by 2 machines in" in done.err and "it cost" in done.err, done.err
    job = market.get("/v1/jobs", market.token).json["items"][0]
    job = market.get(f"/v1/jobs/{job['id']}", market.token).json
    assert job["state"] == "succeeded" and job["num_nodes"] == 2 and job["name"] == "predict"
    assert sorted(lease["machine_name"] for lease in job["leases"]) == ["first", "second"], job["leases"]
    # As objects, on standard output, which has nothing else; by a checkpoint's or a model's own file, too.
    few = write_rows(tmp_path / "few.csv", 1)
    here = souk(market, "model", "predict", model / "model.safetensors", "--data", few, "--json").out
    done = souk(market, "model", "predict", model / "model.safetensors", "--data", few, "--json", "-n", 2, "-y", *LEAST)
    assert done.out == here and here.startswith('{"index":0,'), (done.out, here)


def test_nothing_is_spent_before_it_is_asked_or_known_to_be_possible(market, tmp_path):
    model, rows = train(market, tmp_path), write_rows(tmp_path / "rows.csv", 10)
    jobs = len(market.get("/v1/jobs", market.token).json["items"])
    ask = ("model", "predict", model, "--data", rows, *LEAST, "-o", tmp_path / "told.csv")
    plan = souk(market, *ask, "-n", 2, code=2)
    assert 'Plan for "predict"' in plan.err and "-y" in plan.err, plan.err
    assert "more than its" in souk(market, *ask, "-n", 2, "-y", "--max-total-cost", "0.000001", "--max-run-time", "10h",
                                   code=6).err
    assert "could not start now" in " ".join(souk(market, *ask, "-n", 3, "-y", code=7).err.split())
    for wrong, why in [(("-n", 2, "--shard", "0/2"), "--shard: with --nodes"),
                       (("--max-total-cost", "1"), "--nodes: say on how many")]:
        assert why in " ".join(souk(market, *ask, *wrong, code=2).err.split())
    (tmp_path / "none").mkdir()
    souk(market, "model", "predict", tmp_path / "none", "--data", rows, "-n", 2, "-y", code=3)
    assert len(market.get("/v1/jobs", market.token).json["items"]) == jobs
    assert list(tmp_path.glob("told.csv*")) == []


def test_what_cannot_be_told_ends_it_with_its_place_and_leaves_no_file(market, tmp_path):
    model = train(market, tmp_path)
    (tmp_path / "rows.csv").write_text("height,soil\n1,clay\n2,peat\n")
    done = souk(market, "model", "predict", model, "--data", tmp_path / "rows.csv", "-n", 2, "-y", *LEAST,
                "-o", tmp_path / "told.csv", code=2)
    assert 'record 1 (line 3): column "soil": "peat"' in " ".join(done.err.split()), done.err
    assert list(tmp_path.glob("told.csv*")) == []
