"""Makes the wheel (PEP 517) of what is pure Python: an archive of its files, for which nothing has to be installed first."""
from __future__ import annotations

import base64
import hashlib
import pathlib
import tarfile
import tomllib
import zipfile
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
WHEEL = "Wheel-Version: 1.0\nGenerator: souk\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _metadata(project: dict[str, Any]) -> str:
    head = (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            f"Summary: {project['description']}\nLicense: {project['license']['text']}\n"
            f"Requires-Python: {project['requires-python']}\nDescription-Content-Type: text/markdown\n\n")
    return head + (HERE / str(project["readme"])).read_text(encoding="utf-8")


def _sources() -> list[pathlib.Path]:
    return sorted(path for path in (HERE / "souk").rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    project = _project()
    title = f"{project['name']}-{project['version']}"
    files = {str(path.relative_to(HERE)): path.read_bytes() for path in _sources()}
    files[f"{title}.dist-info/METADATA"] = _metadata(project).encode()
    files[f"{title}.dist-info/WHEEL"] = WHEEL.encode()
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{title}.dist-info/RECORD"] = f"{record}{title}.dist-info/RECORD,,\n".encode()
    name = f"{title}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    project = _project()
    title = f"{project['name']}-{project['version']}"
    with tarfile.open(pathlib.Path(sdist_directory) / f"{title}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in [*_sources(), HERE / "pyproject.toml", HERE / "README.md", HERE / "build_backend.py"]:
            archive.add(path, f"{title}/{path.relative_to(HERE)}")
    return f"{title}.tar.gz"
