"""Jobs that bring an OCI image, and images that mean harm.

covers peer/tenancy_image.c, worker/image_main.c, client/upload.c, sandbox/launch_root.c
"""
import io
import os
import subprocess
import tarfile

import pytest

import oci
from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

if not os.path.exists(oci.BUSYBOX) or b"/ld-linux" in open(oci.BUSYBOX, "rb").read():
    pytest.skip("needs Debian's busybox-static", allow_module_level=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    market = Market(folder / "market", "--no-local-lender")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, folder / "first", "first", options=("--images", "yes", "--cache", "64MiB"))
    try:
        wait_for("the machine", lambda: any(
            m["state"] == "online" and m["name"] == "first" and m["probe"]["images"]
            for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, folder, lender
    finally:
        lender.stop()
        market.stop()


def run(place, *arguments, timeout=HUNG_S):
    market, token, folder, _ = place
    return subprocess.run(
        [PROGRAM, "run", "--server", market.url, "--config-dir", str(folder / "config"), "--cpus",
         "0.2", "--memory", "0.2", "-y", *arguments],
        capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL,
        env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


@pytest.mark.parametrize("how", ["gzip", "zstd", ""])
def test_a_command_runs_in_the_image_and_sees_nothing_of_the_machine(place, tmp_path, how):
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), oci.layer(
        oci.entry("etc/motd", b"from the image", mode=0o600), oci.entry("bin/suid", b"x", mode=0o6755))],
        {"Env": ["PATH=/bin", "FROM=image", "HOME=/root"]}, how=how)
    done = run(place, "--image", str(image), "-e", "OWN=mine", "--", """
        cat /etc/motd; echo; echo $FROM $OWN $HOME; pwd; id -u; ls /; stat -c %a /bin/suid
        ls /home /root /usr /var 2>/dev/null; touch /etc/x 2>/dev/null || echo read-only
        touch /lease/x /tmp/x && echo writable; cat /etc/hosts""")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[:4] == ["from the image", "image mine /lease/work", "/lease/work", "65534"], done
    assert lines[4:lines.index("755")] == ["bin", "data", "dev", "etc", "lease", "proc", "souk", "sys", "tmp"]
    assert lines[lines.index("755") + 1:] == ["read-only", "writable", "127.0.0.1 localhost souk",
                                              "::1 localhost"], done


def test_without_a_command_the_image_says_what_runs_and_where(place, tmp_path):
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), oci.layer(oci.folder("work"))], {
        "Env": ["PATH=/bin"], "Entrypoint": ["sh", "-c", 'pwd; echo "$0 $1"'], "Cmd": ["one", "two"],
        "WorkingDir": "/work", "User": "1000:1000"})
    done = run(place, "--image", str(image))
    assert (done.returncode, done.stdout) == (0, "/work\none two\n"), done
    files = tmp_path / "files"
    files.mkdir()
    (files / "brought").write_text("x")
    done = run(place, "--image", str(image), "--files", str(files), "--", "pwd; ls")
    assert (done.returncode, done.stdout) == (0, "/lease/work\nbrought\n"), done
    silent = oci.write_layout(tmp_path / "silent", [oci.busybox()])
    done = run(place, "--image", str(silent))
    assert done.returncode != 0 and "names no command" in done.stderr, done


def test_the_archive_its_layers_and_its_files_have_one_room(place, tmp_path):
    def image(name, mebibytes):
        return oci.write_layout(tmp_path / name, [oci.busybox(), *(oci.layer(oci.entry(
            f"data-{name}-{i}", os.urandom(mebibytes << 20))) for i in range(2))], {"Env": ["PATH=/bin"]}, how="")

    # Twice 10 MiB, three times over, do not fit into 64 MiB; but layers go as their files come.
    done = run(place, "--image", str(image("fits", 10)), "--", "ls /data-fits-1")
    assert (done.returncode, done.stdout) == (0, "/data-fits-1\n"), done
    done = run(place, "--image", str(image("large", 17)), "--", "true")
    words = " ".join(done.stderr.split())
    assert done.returncode != 0 and "its archive, its layers and its files have 64 MiB here" in words, done


def test_docker_save_and_whiteouts(place, tmp_path):
    image = oci.write_save(tmp_path / "image.tar", [
        oci.busybox(),
        oci.layer(oci.folder("a"), oci.entry("a/old", b"1"), oci.folder("b"), oci.entry("b/gone", b"1"),
                  oci.entry("b/stays", b"1"), oci.link("to", "a"), oci.entry("c", b"file")),
        oci.layer(oci.entry("a/.wh..wh..opq", b""), oci.entry("a/new", b"2"), oci.entry("b/.wh.gone", b""),
                  oci.entry("to/through", b"3"), oci.folder("c"), oci.entry("c/in", b"4"),
                  oci.hardlink("b/hard", "a/new"), oci.entry("dev/null", kind=tarfile.CHRTYPE))],
        {"Env": ["PATH=/bin"]})
    done = run(place, "--image", str(image), "--", "ls /a /b /c; cat /b/hard; readlink /to")
    assert done.returncode == 0, done
    assert done.stdout.split() == ["/a:", "new", "through", "/b:", "hard", "stays", "/c:", "in", "2a"], done


def test_a_second_lease_of_an_image_finds_it_unpacked(place, tmp_path):
    _, _, folder, lender = place
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), oci.layer(oci.entry("mark", b"second"))],
                             {"Env": ["PATH=/bin"]})
    before = open(lender.log_path).read().count("image_unpacked")
    for _ in range(2):
        done = run(place, "--image", str(image), "--", "cat /mark")
        assert (done.returncode, done.stdout.strip()) == (0, "second"), done
    assert open(lender.log_path).read().count("image_unpacked") == before + 1
    kept = os.listdir(folder / "first" / "images")
    assert kept and all(len(name.split("-")[0]) == 64 for name in kept), kept


def spoil_layer(blobs, index):
    name = max(blobs, key=lambda one: len(blobs[one]))
    blobs[name] = blobs[name][:-1] + bytes([blobs[name][-1] ^ 1])


# src/blob/image_layer_test.c has every way out.
OUTSIDE = {
    "dots": [oci.entry("../../outside", b"x")],
    "hardlink": [oci.hardlink("stolen", "../../../../etc/passwd")],
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_layer_that_leads_outside_is_refused(place, tmp_path, name):
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), oci.layer(*OUTSIDE[name])])
    done = run(place, "--image", str(image), "--", "echo ran")
    assert done.returncode != 0 and "ran" not in done.stdout, done
    assert "layer 2 of the image" in done.stderr, done


def test_links_lead_nowhere_but_into_the_image(place, tmp_path):
    mark = tmp_path / "mark"
    mark.mkdir()
    mark.chmod(0o777)
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), oci.layer(
        oci.folder("mnt/souk"), oci.link("absolute", "/mnt/souk"), oci.link("relative", "../" * 20 + "mnt/souk"),
        oci.link("tmp", "/oldroot/tmp"), oci.link("lease", "/"), oci.link(".souk", "/oldroot")), oci.layer(
        oci.entry("absolute/one", b"x"), oci.entry("relative/two", b"x"))], {"Env": ["PATH=/bin"]})
    done = run(place, "--image", str(image), "--", "ls /mnt/souk; ls -d /oldroot 2>/dev/null; readlink /absolute; touch /tmp/souk-image-x")
    assert (done.returncode, done.stdout.split()) == (0, ["one", "two", "/mnt/souk"]), done
    assert not os.path.exists("/mnt/souk") and not os.path.exists("/tmp/souk-image-x")
    image = oci.write_layout(tmp_path / "dangling", [oci.busybox(), oci.layer(oci.link("out", str(mark))),
                                                     oci.layer(oci.entry("out/one", b"x"))])
    done = run(place, "--image", str(image), "--", "echo ran")
    assert done.returncode != 0 and "layer 3 of the image" in done.stderr and os.listdir(mark) == [], done


@pytest.mark.parametrize("words, make", [
    ("not what its digest says", lambda path: oci.write_layout(path, [oci.busybox()], change=spoil_layer)),
    ("this machine is linux on", lambda path: oci.write_layout(path, [oci.busybox()], architecture="s390x")),
    ("names no manifest", lambda path: oci.write_layout(path, [], change=lambda _, i: i["manifests"].clear())),
    ("is not there", lambda path: oci.write_layout(path, [oci.busybox()], change=lambda b, _: b.popitem())),
    ("layers: more than 127", lambda path: oci.write_layout(path, [oci.layer(oci.folder(str(n))) for n in range(128)])),
])
def test_an_image_that_is_not_what_it_says_is_refused(place, tmp_path, words, make):
    done = run(place, "--image", str(make(tmp_path / "layout")), "--", "echo ran")
    assert done.returncode != 0 and "ran" not in done.stdout and words in done.stderr, done


def test_a_bomb_is_refused(place, tmp_path):
    bomb = io.BytesIO()
    with tarfile.open(fileobj=bomb, mode="w") as archive:
        info = tarfile.TarInfo("zeros")
        info.size = 40 << 20
        archive.addfile(info, open("/dev/zero", "rb"))
    image = oci.write_layout(tmp_path / "layout", [oci.busybox(), bomb.getvalue(), bomb.getvalue()])
    done = run(place, "--image", str(image), "--", "echo ran")
    assert done.returncode != 0 and "ran" not in done.stdout and "than there is room" in done.stderr, done
    many = oci.write_layout(tmp_path / "deep", [oci.layer(oci.folder("/".join("a" * 101)))])
    done = run(place, "--image", str(many), "--", "echo ran")
    assert done.returncode != 0 and "too deep" in done.stderr, done


def test_what_is_no_image_is_said_before_anything_is_sent(place, tmp_path):
    done = run(place, "--image", str(tmp_path / "none"), "--", "true")
    assert done.returncode != 0 and "image: " in done.stderr, done
    done = run(place, "--image", str(tmp_path), "--", "true")
    assert done.returncode != 0 and "no index.json" in done.stderr, done
    (tmp_path / "text").write_text("hello")
    done = run(place, "--image", str(tmp_path / "text"), "--", "echo ran")
    assert done.returncode != 0 and "ran" not in done.stdout and "image" in done.stderr, done


def test_a_machine_that_permits_no_images_gets_none(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, tmp_path / "first", "first")
    try:
        wait_for("the machine", lambda: any(m["state"] == "online" and m["name"] == "first" for m in
                                            market.get("/v1/machines", token).json["items"]))
        image = oci.write_layout(tmp_path / "layout", [oci.busybox()], {"Env": ["PATH=/bin"]})
        place = market, token, tmp_path, lender
        done = run(place, "--image", str(image), "--", "echo ran")
        assert done.returncode == 7 and "allows images" in done.stderr, done
        done = run(place, "--wait", "-d", "--image", str(image), "--", "echo ran")
        assert done.returncode == 0, done
        job = done.stdout.strip()
        explained = subprocess.run(
            [PROGRAM, "job", "explain", job, "--server", market.url, "--config-dir", str(tmp_path / "config")],
            capture_output=True, text=True, timeout=HUNG_S, env={**os.environ, "SOUK_TOKEN": token})
        assert "allows images" in explained.stdout, explained
    finally:
        lender.stop()
        market.stop()
