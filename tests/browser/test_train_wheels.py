"""The wizard "Train a model" in a real browser, with packages of one's own: wheels that a lender installs."""
import tarfile

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from training import Lender, wait_for
from wheels import wheel

MAIN = """
import os, pathlib
import one, two
pathlib.Path(os.environ["SOUK_OUTPUT_DIR"], "said").write_text(f"{one.NAME} {two.NAME} {one.WHERE}")
"""


def write_project(folder):
    folder.mkdir()
    (folder / "main.py").write_text(MAIN)
    (folder / "requirements.txt").write_text("one\ntwo\n")
    return folder


def pack(path, project, wheels):
    """As who has all of it in one folder packs it."""
    with tarfile.open(path, "w:gz") as archive:
        archive.add(project, ".")
        for each in wheels:
            archive.add(each, f"./vendor/{each.name}")
    return path


def are_online(market, token, count):
    return count == sum(one["state"] == "online" for one in market.get("/v1/machines", token).json["items"])


def test_dropped_wheels_are_installed_for_the_job(tmp_path):
    project = write_project(tmp_path / "project")
    odd = tmp_path / "mine.whl"
    odd.write_bytes(b"no wheel")
    made = [wheel(tmp_path / "wheels", name) for name in ("one", "two")]
    archive = pack(tmp_path / "project.tar.gz", project, made)
    market = Market(tmp_path / "market", "--no-local-lender")
    lenders = []
    try:
        lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
        for name, options in (("heron", ()), ("wren", ("--install", "wheels", "--cache", "64MiB"))):
            lenders.append(Lender(market, lender_token, tmp_path / name, name, options=options))
        wait_for("both lenders", lambda: are_online(market, token, 2))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_wheels.mjs", code["url"], tmp_path, project, odd, archive, *made) as walk:
            seen = walk.end()
        job = market.get(f"/v1/jobs/{seen['first']}", token).json
        said = market.call("GET", f"/v1/jobs/{seen['first']}/artifacts/rank0-said", None, token).body
        packed = market.get(f"/v1/jobs/{seen['second']}", token).json
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    assert job["state"] == "succeeded", job["reason"]
    assert said.startswith(b"one two /packages/lib/python3"), said
    # The files and the packages, each in an archive of its own; the machine is the one that installs.
    assert sorted(each["split"] for each in job["spec"]["inputs"]) == ["files", "wheels"]
    assert job["spec"]["resources"]["install"] == "wheels"
    assert {lease["machine_name"] for lease in job["leases"]} == {"wren"}
    assert seen["fetch"].startswith("python3 -m pip download") and seen["main"] == "main.py"
    # The packages from inside an archive are the same ones.
    assert packed["state"] == "succeeded", packed["reason"]
    first, second = ({each["split"]: each["manifest"] for each in one["spec"]["inputs"]} for one in (job, packed))
    assert first["wheels"] == second["wheels"] and first["files"] != second["files"]
    assert "wheels" not in seen["before"] and "wheels" not in seen["without"]
    assert "name: wheels, split: wheels" in seen["yaml"] and "name: wheels, split: wheels" in seen["again"]
    assert seen["listed"] == [path.name for path in made]
    assert "install" in seen["lacking"], seen["lacking"]
    assert_clean(seen)
