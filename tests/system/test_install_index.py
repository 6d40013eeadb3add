"""Jobs whose packages the lender fetches from its own index, by hash.

covers worker/packages.c, worker/packages_fetch.c, worker/packages_main.c, peer/tenancy_packages.c, client/wheels.c
"""
import hashlib

import pytest

from training import Lender, wait_for
from wheels import Index, log_of, open_place, run, wheel, write_index

SHOW = """exec python3 -c '
import asked, needed, mine
print(asked.WHERE, needed.NAME, mine.NAME)'"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """What both the borrower's and the lender's index have."""
    folder = tmp_path_factory.mktemp("index")
    asked = wheel(folder / "made", "asked", requires=["needed>=1"])
    write_index(folder, [asked, wheel(folder / "made", "needed"), wheel(folder / "made", "needed", version="0.9"),
                         wheel(folder / "made", "spoilt")])
    index = Index(folder)
    yield folder, index
    index.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory, shelf):
    with open_place(tmp_path_factory.mktemp("install"), "--install", "index", "--index-url", shelf[1].url) as opened:
        yield opened


def requirements_of(index, folder, *lines):
    folder.mkdir(exist_ok=True)
    path = folder / "requirements.txt"
    path.write_text("\n".join([f"--index-url {index.url}", *lines, ""]))
    return str(path)


def downloads(index):
    return [path for path in index.asked if path.endswith(".whl")]


def test_what_the_index_has_is_fetched_by_the_lender_and_the_rest_is_brought(place, shelf, tmp_path):
    _, index = shelf
    mine = wheel(tmp_path, "mine")
    job = {"requirements": requirements_of(index, tmp_path, "asked"), "wheels": [str(mine)], "run": SHOW,
           "resources": {"cpus": 0.8, "memory": 0.2, "install": "index"}}
    before = log_of(place).count("packages_installed")
    done = run(place, tmp_path / "job", **job)
    assert done.returncode == 0, (done.out, done.err)
    assert "Resolving what the requirements name" in done.err, done.err
    assert "souk: fetching 2 packages from this machine's index" in done.log, done.log
    assert "souk: installing 3 packages" in done.log, done.log
    assert "/packages/lib/python3" in done.log and "asked.py needed mine" in done.log, done.log
    assert index.url not in done.log, done.log
    # The newest that fits, once by who resolves and once by the lender; and never again.
    wanted = ["/simple/asked/asked-1.0-py3-none-any.whl", "/simple/needed/needed-1.0-py3-none-any.whl"]
    fetched = downloads(index)
    assert sorted(fetched) == sorted(2 * wanted), fetched
    done = run(place, tmp_path / "again", **job)
    assert sorted(downloads(index)[len(fetched):]) == wanted, downloads(index)
    assert done.returncode == 0 and "fetching" not in done.log and "asked.py" in done.log, (done.words, done.log)
    assert log_of(place).count("packages_installed") == before + 1
    # Another list that names one of them has it from here: only who resolves asks the index for it.
    fetched = downloads(index)
    done = run(place, tmp_path / "other", requirements=requirements_of(index, tmp_path, "needed"),
               wheels=[str(mine)], run="exec python3 -c 'import needed, mine; print(needed.NAME, mine.NAME)'",
               resources={"cpus": 0.8, "memory": 0.2, "install": "index"})
    assert done.returncode == 0 and "needed mine" in done.log, (done.out, done.err, done.log)
    assert "souk: 1 package is on this machine already" in done.log and "fetching" not in done.log, done.log
    assert downloads(index)[len(fetched):] == wanted[1:], downloads(index)
    assert log_of(place).count("packages_installed") == before + 2


def test_another_file_in_the_lenders_index_fails_the_job_and_names_it(place, shelf, tmp_path):
    """The borrower's index has another build of the same version."""
    folder = tmp_path / "theirs"
    write_index(folder, [wheel(tmp_path / "made", "spoilt", {"spoilt.py": "HARM = 1"})])
    theirs = Index(folder)
    try:
        done = run(place, tmp_path / "job", requirements=requirements_of(theirs, tmp_path, "spoilt==1.0"),
                   resources={"cpus": 0.8, "memory": 0.2, "install": "index"}, run="echo ran")
    finally:
        theirs.stop()
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "the packages: spoilt==1.0: this machine's index has another file than the job names: its sha256 does not " \
        "match" in done.words, done.words


def test_what_the_lenders_index_lacks_fails_the_job_and_names_it(place, shelf, tmp_path):
    folder = tmp_path / "theirs"
    write_index(folder, [wheel(tmp_path / "made", "rare")])
    theirs = Index(folder)
    try:
        done = run(place, tmp_path / "job", requirements=requirements_of(theirs, tmp_path, "rare"),
                   resources={"cpus": 0.8, "memory": 0.2, "install": "index"}, run="echo ran")
    finally:
        theirs.stop()
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "the packages: rare==1.0: this machine's index has no wheel of it that fits" in done.words, done.words
    assert shelf[1].url not in done.words, done.words
    assert 'reason="ERROR: No matching distribution found for rare==1.0' in log_of(place)


def test_where_the_lenders_index_is_only_the_lender_is_told(place, shelf, tmp_path):
    """It sends pip to a server of its own, by a way that pip does not know."""
    made = wheel(tmp_path / "made", "elsewhere")
    write_index(tmp_path / "theirs", [made])
    inside = shelf[0] / "simple" / "elsewhere"
    inside.mkdir()
    (inside / "index.html").write_text(
        f'<!DOCTYPE html><html><body><a href="ftp://files.index.lan/{made.name}#sha256='
        f'{hashlib.sha256(made.read_bytes()).hexdigest()}">{made.name}</a></body></html>')
    theirs = Index(tmp_path / "theirs")
    try:
        done = run(place, tmp_path / "job", requirements=requirements_of(theirs, tmp_path, "elsewhere"),
                   resources={"cpus": 0.8, "memory": 0.2, "install": "index"}, run="echo ran")
    finally:
        theirs.stop()
    assert done.returncode != 0 and "ran" not in done.log.split(), (done.out, done.err)
    assert "the packages: this machine's index could not be read; its owner is told why" in done.words, done.words
    assert "index.lan" not in done.words + done.log, (done.words, done.log)
    assert "files.index.lan" in log_of(place)


def test_only_machines_that_say_so_are_taken(place, shelf, tmp_path):
    """A second machine with more room installs wheels alone."""
    market, token, folder, first = place
    second = Lender(market, market.sign_up("second"), folder / "second", "second",
                    options=("--cores", "2", "--install", "wheels"))
    try:
        wait_for("the second machine", lambda: any(
            m["name"] == "second" and m["state"] == "online"
            for m in market.get("/v1/machines", token).json["items"]))
        for install, nodes, can_start in [("wheels", 2, True), ("index", 1, True), ("index", 2, False)]:
            quote = market.post("/v1/quotes", {
                "name": "install", "run": "true", "num_nodes": nodes, "market": {"max_run_time": "1m"},
                "resources": {"cpus": 0.5, "memory": 0.2, "install": install}}, token).json
            assert quote["can_start"] is can_start, (install, nodes, quote.get("reason"))
        assert 'install "index"' in quote["reason"], quote
    finally:
        second.stop()
