"""The wizard "Train a model" in a real browser, with code of one's own: a script, and a folder for a framework."""
import hashlib
import random
import zipfile

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from training import Lender, wait_for, wait_for_end

MAIN = """
import hashlib, os, pathlib
from lib import words
data = pathlib.Path("data/numbers.bin").read_bytes()
said = f"{words.TOLD} {os.environ['RANK']} of {os.environ['WORLD_SIZE']} {hashlib.sha256(data).hexdigest()}"
pathlib.Path(os.environ["SOUK_OUTPUT_DIR"], "said").write_text(said)
"""


def write_project(folder):
    """Of 12 MiB: three chunks of 4 MiB and what the archive adds. Returns what lies in its data."""
    for part in ("lib", "data", ".git"):
        (folder / part).mkdir(parents=True)
    (folder / "main.py").write_text(MAIN)
    (folder / "lib" / "words.py").write_text('TOLD = "rank"\n')
    (folder / ".git" / "config").write_text("not to be sent\n")
    data = random.Random(3).randbytes(12 << 20)
    (folder / "data" / "numbers.bin").write_bytes(data)
    return data


def write_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("main.sh", "cat words.txt > $SOUK_OUTPUT_DIR/said; echo $GREETING >> $SOUK_OUTPUT_DIR/said\n")
        archive.writestr("words.txt", "hello from a page\n" + "and again\n" * 1000, compress_type=zipfile.ZIP_DEFLATED)


def are_online(market, token, count):
    return count == sum(one["state"] == "online" for one in market.get("/v1/machines", token).json["items"])


def test_code_of_ones_own_runs_through_the_wizard(tmp_path):
    data = write_project(tmp_path / "project")
    write_archive(tmp_path / "hello.zip")
    market = Market(tmp_path / "market", "--no-local-lender", "--listen", f"127.0.0.1:{own_port()}")
    lenders = []
    try:
        lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
        for name in ("heron", "wren"):
            lenders.append(Lender(market, lender_token, tmp_path / name, name, options=("--network", "job")))
        wait_for("both lenders", lambda: are_online(market, token, 2))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_code.mjs", code["url"], tmp_path, tmp_path / "hello.zip", tmp_path / "project") as walk:
            walk.expect("stop")
            market.stop()
            walk.answer()
            walk.expect("start")
            market.start()
            wait_for("the lenders again", lambda: are_online(market, token, 2))
            walk.answer()
            seen = walk.end()
        jobs = {name: wait_for_end(market, token, seen[name]) for name in ("command", "torch")}
        said = [market.call("GET", f"/v1/jobs/{seen[name]}/artifacts/rank{rank}-said", None, token).body
                for name, rank in (("command", 0), ("torch", 0), ("torch", 1))]
        files = market.get(f"/v1/jobs/{seen['torch']}", token).json["spec"]["inputs"]
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    assert {job["state"] for job in jobs.values()} == {"succeeded"}, [job["reason"] for job in jobs.values()]
    assert jobs["command"]["spec"]["run"] == "sh main.sh" and seen["likelyMain"] == "main.sh"
    assert "<i>other</i>.sh" in seen["noMain"] and not seen["canSubmit"]
    assert said[0] == b"hello from a page\n" + b"and again\n" * 1000 + b"<b>hi</b>\n"
    assert {"command", "torch", "tensorflow"} <= set(seen["runtimes"]) and "native" not in seen["runtimes"]
    assert jobs["torch"]["spec"]["runtime"] == "torch" and seen["main"] == "main.py"
    assert len(files) == 1 and files[0]["split"] == "files"
    told = [line.decode().split() for line in said[1:]]
    digest = hashlib.sha256(data).hexdigest()
    assert told == [["rank", str(rank), "of", "2", digest] for rank in range(2)]
    # Three chunks and a fourth of what the archive adds, and the manifest: each was taken once, and then none but that.
    assert (seen["takenOnce"], seen["taken"]) == (5, 6)
    assert_clean(seen)
