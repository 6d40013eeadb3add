#!/usr/bin/env python3
"""Packs souk as a custom runtime of AWS Lambda: the program, the libraries it needs, and bootstrap.

    tools/lambda_zip.py PROGRAM OUT.zip [--root FOLDER] [--strip PROGRAM]

Libraries are looked for below FOLDER (/: this machine; build/arm64-root: of the cross build). The
loader comes along, since Lambda's own C library may be older. oneDNN and OpenBLAS stay out: they are
larger than all else together, and the program's own kernels serve.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ZIP_BYTES_MAX = 50_000_000  # of an upload without S3
OPENED = ["libcurl.so.4", "libnss_dns.so.2", "libnss_files.so.2"]  # at run time
BOOTSTRAP = """#!/bin/sh
cd "$(dirname "$0")"
exec ./lib/{loader} --library-path "$PWD/lib" ./souk function serve
"""
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("program", type=pathlib.Path)
parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("/"))
parser.add_argument("--strip", default="strip")
wanted = parser.parse_args()


def read_elf(*arguments):
    return subprocess.run(["readelf", *arguments], check=True, capture_output=True, text=True).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", read_elf("-d", path))


machine = "aarch64" if "AArch64" in read_elf("-h", wanted.program) else "x86_64"
loader = {"aarch64": "ld-linux-aarch64.so.1", "x86_64": "ld-linux-x86-64.so.2"}[machine]
folders = [wanted.root / folder / f"{machine}-linux-gnu" for folder in ("usr/lib", "lib")]
folders += [wanted.root / folder for folder in ("usr/lib64", "lib64", "usr/lib", "lib")]


def find(name):
    for folder in folders:
        if (folder / name).exists():
            return (folder / name).resolve()
    sys.exit(f"lambda_zip: {name} is not below {wanted.root}")


libraries = {}
waiting = [*needed(wanted.program), *OPENED, loader]
while waiting:
    name = waiting.pop()
    if name not in libraries:
        libraries[name] = find(name)
        waiting += needed(libraries[name])


def add(archive, name, data, mode=0o755):
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes from the same files
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


wanted.out.parent.mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(wanted.out, "w", compresslevel=9) as archive, tempfile.TemporaryDirectory() as folder:
    stripped = pathlib.Path(folder) / "souk"
    subprocess.run([wanted.strip, "-o", stripped, wanted.program], check=True)
    add(archive, "bootstrap", BOOTSTRAP.format(loader=loader))
    add(archive, "souk", stripped.read_bytes())
    for name in sorted(libraries):
        add(archive, f"lib/{name}", libraries[name].read_bytes())
size = wanted.out.stat().st_size
if size > ZIP_BYTES_MAX:
    sys.exit(f"lambda_zip: {wanted.out} has {size} bytes, more than {ZIP_BYTES_MAX}")
print(f"{wanted.out}: {size / 1e6:.1f} MB, {machine}, {len(libraries)} libraries")
