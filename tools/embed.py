#!/usr/bin/env python3
"""Writes a C table of files that become part of the program.

    embed.py OUT.c OPENAPI.json FOLDER...

The first FOLDER that has an index.html is the page (the built one, or else the placeholder). Each
file gets its content type, an ETag from its bytes, and the same by gzip where that is smaller.
"""
import gzip
import hashlib
import pathlib
import sys

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


def etag(data):
    return f'"\\"{hashlib.blake2b(data, digest_size=12).hexdigest()}\\""'


def literal(data):
    lines = [data[i : i + 32] for i in range(0, len(data), 32)] or [b""]
    return "\n".join('    "' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines)


out, openapi, *folders = map(pathlib.Path, sys.argv[1:])
files = [("/openapi.json", openapi)]
page = next(folder for folder in folders if (folder / "index.html").exists())
for path in sorted(page.rglob("*")):
    if path.is_file() and path.suffix in TYPES:
        files.append(("/" + str(path.relative_to(page)), path))

text = ['#include "server/page.h"\n']
table = []
for index, (name, path) in enumerate(files):
    data = path.read_bytes()
    packed = gzip.compress(data, 9, mtime=0)
    if len(packed) >= len(data):
        packed = b""
    text.append(f"static const char file_{index}[] =\n{literal(data)};\n")
    text.append(f"static const char packed_{index}[] =\n{literal(packed)};\n")
    table.append(
        f'    {{"{name}", "{TYPES[path.suffix]}", {etag(data)}, {{file_{index}, {len(data)}}},\n'
        f"     {etag(packed)}, {{packed_{index}, {len(packed)}}}}},"
    )
text.append("const struct page_file page_files[] = {\n" + "\n".join(table) + "\n};\n")
text.append(f"const size_t page_file_count = {len(files)};\n")
content = "\n".join(text)
if not out.exists() or out.read_text() != content:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(content)
