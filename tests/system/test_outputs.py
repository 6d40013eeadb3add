"""What a program leaves in $SOUK_OUTPUT_DIR: names, folders and limits, and what is said of the rest.

covers worker/command_output.c, runtime/result_name.c, peer/upload.c, client/artifact.c, cli/job_results.c
"""
import os
import urllib.parse

import pytest

from checkpoints import Place

ORDINARY = ("epoch=3-loss=0.1.ckpt", "two words", "perché.txt", "x" * 240, "checkpoint-100/model/weights.bin", 'quo"te\\d 100%')

SCRIPT = f"""
import os
os.chdir(os.environ["SOUK_OUTPUT_DIR"])
for name in {ORDINARY!r}:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "w").write(name)
os.symlink("/etc/passwd", "link")
os.mkdir("outside")
os.symlink("/etc", "outside/etc")
open("line\\nend", "w").write("1")
open(".hidden", "w").write("1")
os.mkfifo("pipe")
"""

MANY = """
import os
os.chdir(os.environ["SOUK_OUTPUT_DIR"])
for i in range(130):
    open(f"file-{i:03}", "w").write(str(i))
for i in range(30):
    open(f".file-{i:03}", "w").write(str(i))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("left"))
    try:
        place.lend("first")
        yield place
    finally:
        place.stop()


@pytest.fixture(scope="module")
def job(place):
    job = place.submit(SCRIPT)
    assert place.ended(job)["state"] == "succeeded", place.log(job)
    return job


def test_ordinary_names_and_folders_are_fetched_as_they_were(place, job):
    place.souk("job", "fetch", str(job), "-o", "got")
    for name in ORDINARY:
        assert (place.folder / "got" / f"rank0-{name}").read_text() == name
    escaped = urllib.parse.quote('rank0-quo"te\\d 100%', safe="")
    answer = place.market.get(f"/v1/jobs/{job}/artifacts/{escaped}", place.token)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="rank0-quo_te_d 100_"; filename*=UTF-8\'\'{escaped}'


def test_what_is_left_out_is_named(place, job):
    lines = ("link: it is a link", "outside/etc: it is a link", ".hidden: its name begins with a dot",
             "pipe: it is no plain file", "line?end: its name has a character that no terminal shows")
    log = place.log(job)
    assert 'output_left file="pipe" reason="it is no plain file"' in log and "etc/passwd" not in log, log
    fetched = place.souk("job", "fetch", str(job), "-o", "left")
    shown = place.souk("job", "show", str(job))
    for line in lines:
        assert f"Left out: {line}\n" in fetched.stderr and f"Left out: {line}\n" in shown.stderr, (fetched, shown)
    assert (place.folder / "left" / "rank0-souk-left-out.txt").read_text().splitlines() == sorted(lines)
    assert "The results (6 files, " in shown.stderr and f"souk job fetch {job}" in shown.stderr, shown


def test_no_link_in_the_folder_is_followed(place, job):
    got, other = place.folder / "linked", place.folder / "other"
    got.mkdir()
    other.mkdir()
    os.symlink(other, got / "rank0-checkpoint-100")
    done = place.souk("job", "fetch", str(job), "rank0-checkpoint-100/model/weights.bin", "-o", "linked", code=4)
    assert '"rank0-checkpoint-100" is here already, and no folder' in done.stderr and not list(other.iterdir()), done


def test_many_files_are_kept_and_many_left_out_are_listed(place):
    job = place.submit(MANY)
    assert place.ended(job)["state"] == "succeeded", place.log(job)
    done = place.souk("job", "fetch", str(job), "-o", "many")
    got = place.folder / "many"
    assert {path.name: path.read_text() for path in got.glob("rank0-file-*")} == {f"rank0-file-{i:03}": str(i) for i in range(130)}
    left = (got / "rank0-souk-left-out.txt").read_text().splitlines()
    assert left == [f".file-{i:03}: its name begins with a dot" for i in range(30)]
    assert done.stderr.count("Left out: .file-") == 10, done
    assert f"... and more: souk job fetch {job} rank0-souk-left-out.txt" in done.stderr, done
    assert 'more=10 list="souk-left-out.txt"' in place.log(job)
