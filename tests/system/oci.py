"""Builds OCI images from scratch, whole ones and ones that mean harm."""
import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
BUSYBOX = "/bin/busybox"


def entry(name, data=None, kind=tarfile.REGTYPE, mode=0o755, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, link
    info.size = len(data) if data is not None else 0
    info.mtime = 1_600_000_000
    return info, data


def folder(name):
    return entry(name, kind=tarfile.DIRTYPE)


def link(name, target):
    return entry(name, kind=tarfile.SYMTYPE, link=target)


def hardlink(name, target):
    return entry(name, kind=tarfile.LNKTYPE, link=target)


def layer(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def busybox():
    """A layer with a shell and the programs that tests use."""
    program = open(BUSYBOX, "rb").read()
    names = ("sh", "cat", "ls", "echo", "env", "id", "pwd", "touch", "wget", "nc", "sleep", "stat",
             "mount", "head", "readlink", "timeout", "uname")
    return layer(folder("bin"), entry("bin/busybox", program),
                 *(link("bin/" + name, "busybox") for name in names), folder("etc"),
                 entry("etc/passwd", b"root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n", mode=0o644))


def compress(data, how):
    if how == "gzip":
        return gzip.compress(data, 6, mtime=0)
    if how == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
    return data


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write_layout(path, layers, config=None, architecture=ARCHITECTURE, how="gzip", change=None):
    """An OCI layout in the folder `path`; `change(blobs, index)` may spoil it."""
    blobs = {}

    def put(data, media_type):
        blobs[digest(data)] = data
        return {"mediaType": media_type, "digest": digest(data), "size": len(data)}

    image = {"architecture": architecture, "os": "linux", "config": config or {},
             "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]}}
    suffix = {"gzip": "+gzip", "zstd": "+zstd", "": ""}[how]
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": put(json.dumps(image).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": [put(compress(one, how), "application/vnd.oci.image.layer.v1.tar" + suffix)
                   for one in layers]}
    index = {"schemaVersion": 2, "manifests": [
        put(json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")]}
    if change:
        change(blobs, index)
    (path / "blobs" / "sha256").mkdir(parents=True)
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (path / "index.json").write_text(json.dumps(index))
    for name, data in blobs.items():
        (path / "blobs" / "sha256" / name.split(":")[1]).write_bytes(data)
    return path


def write_save(path, layers, config=None):
    """A file as `docker save` wrote it before it knew of OCI."""
    image = json.dumps({"architecture": ARCHITECTURE, "os": "linux", "config": config or {},
                        "rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]}}).encode()
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": ["test:1"], "Layers": names}]
    path.write_bytes(layer(entry("manifest.json", json.dumps(manifest).encode(), mode=0o644),
                           entry("config.json", image, mode=0o644),
                           *(entry(name, data, mode=0o644) for name, data in zip(names, layers))))
    return path
