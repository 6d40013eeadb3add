"""The choice of what a failed test leaves behind."""
import os
import shutil

from kept import BYTES_MAX, keep


def test_a_file_that_goes_meanwhile_does_not_keep_the_others_from_being_kept(tmp_path, monkeypatch):
    def copy(path, to):
        if path.name in ("a.log", "c.log"):
            raise FileNotFoundError(path) if path.name == "a.log" else PermissionError(path)
        to.write_bytes(path.read_bytes())

    folder, kept = tmp_path / "folder", tmp_path / "kept"
    (folder / "below").mkdir(parents=True)
    for name in ("a.log", "below/b.log", "c.log", "d.log"):
        (folder / name).write_text(name)
    monkeypatch.setattr(shutil, "copyfile", copy)
    keep(folder, kept)
    assert sorted(path.relative_to(kept).as_posix() for path in kept.rglob("*.log")) == ["below/b.log", "d.log"]


def test_only_files_of_ordinary_size_are_kept(tmp_path):
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    folder.mkdir()
    (folder / "plain").write_text("plain")
    (folder / "link").symlink_to("plain")
    (folder / "above").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    with open(folder / "large", "wb") as file:
        file.truncate(BYTES_MAX + 1)
    keep(folder, kept)
    assert [path.name for path in kept.iterdir()] == ["plain"]
