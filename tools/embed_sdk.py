#!/usr/bin/env python3
"""Writes a C table of the Python package and libsouk, which every rank of a program of one's own finds.

    embed_sdk.py OUT.c LIBRARY FILE.py...

LIBRARY is libsouk without its symbols; it goes into the package's folder by its soname.
"""
import hashlib
import pathlib
import re
import sys
import zlib


def literal(data):
    return "\n".join('    "' + "".join(f"\\{byte:03o}" for byte in data[i : i + 32]) + '"'
                     for i in range(0, len(data), 32))


out, library, *modules = map(pathlib.Path, sys.argv[1:])
abi = re.search(r"^ABI_VERSION = (\d+)$", next(m for m in modules if m.name == "library.py").read_text(), re.MULTILINE)[1]
files = [(f"souk/{path.name}", path.read_bytes()) for path in sorted(modules)]
files.append((f"souk/libsouk.so.{abi}", library.read_bytes()))
key = hashlib.blake2b(digest_size=12)
text = ['#include "cli/sdk_files.h"\n']
table = []
for index, (name, data) in enumerate(files):
    packed = zlib.compress(data, 9)
    key.update(f"{name} {len(data)}\n".encode() + data)
    text.append(f"static const char file_{index}[] =\n{literal(packed)};\n")
    table.append(f'    {{"{name}", {{file_{index}, {len(packed)}}}, {len(data)}}},')
text.append("static const struct sdk_file files[] = {\n" + "\n".join(table) + "\n};\n")
text.append(f'const struct sdk sdk_files = {{"{key.hexdigest()}", files, {len(files)}}};\n')
content = "\n".join(text)
if not out.exists() or out.read_text() != content:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(content)
