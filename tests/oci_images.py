"""Archives of OCI images, made by hand: good ones and hostile ones."""

import gzip
import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_PROGRAMS = (
    *("sh", "bash", "cat", "chattr", "chmod", "cut", "find", "grep", "head", "id", "ipcmk", "ipcs", "kill", "ln", "ls"),
    *(
        "lsattr",
        "mkdir",
        "mkfifo",
        "mount",
        "ps",
        "readlink",
        "sed",
        "seq",
        "setsid",
        "sha256sum",
        "sleep",
        "stat",
        "stty",
    ),
    *("tail", "touch", "true", "unshare", "wc", "xargs"),
)
_SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES = ("collections", "ctypes", "encodings", "importlib", "re")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of a layer: by default a file with a content."""

    name: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    mode: int = 0o644
    size: int | None = None

    def add_to(self, layer: tarfile.TarFile) -> None:
        """Write the entry."""
        info = tarfile.TarInfo(self.name)
        info.type, info.linkname, info.mode, info.uid, info.gid = self.kind, self.target, self.mode, 1234, 1234
        info.size = len(self.content)
        if self.size is None:
            layer.addfile(info, io.BytesIO(self.content))
        else:
            # The header claims what does not follow.
            info.size = self.size
            layer.addfile(info)


def folder(name: str) -> Entry:
    """Return a folder."""
    return Entry(name=name, kind=tarfile.DIRTYPE, mode=0o700)


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(name=name, kind=tarfile.SYMTYPE, target=target)


def hard_link(name: str, target: str) -> Entry:
    """Return a hard link."""
    return Entry(name=name, kind=tarfile.LNKTYPE, target=target)


def layer_of(*entries: Entry) -> bytes:
    """Return a layer that is not compressed."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for entry in entries:
            entry.add_to(layer)
    return content.getvalue()


def programs(*names: str) -> tuple[Entry, ...]:
    """Return programs of this machine in /bin, with the libraries that they need."""
    found: dict[str, str] = {}
    for name in names:
        path = shutil.which(name, path=_SYSTEM)
        assert path is not None, name
        found |= {f"bin/{name}": path, **_libraries_of(path)}
    return _files(found)


def python() -> tuple[Entry, ...]:
    """Return the system's Python, with the modules that tests of sandboxes import."""
    library = Path("/usr/lib", Path("/usr/bin/python3").resolve().name)
    compiled = list(library.glob("lib-dynload/_ctypes.*"))
    modules = [*library.glob("*.py"), *compiled]
    modules += [one for name in _PACKAGES for one in (library / name).rglob("*.py")]
    found = {str(one).lstrip("/"): str(one) for one in modules}
    for one in compiled:
        found |= _libraries_of(str(one))
    return (*programs("python3"), *_files(found))


def _libraries_of(path: str) -> dict[str, str]:
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    return {word.lstrip("/"): word for word in listed.split() if word.startswith("/")}


def _files(found: Mapping[str, str]) -> tuple[Entry, ...]:
    return tuple(Entry(name=name, content=Path(path).read_bytes(), mode=0o755) for name, path in found.items())


@dataclass(slots=True, kw_only=True)
class Archive:
    """The parts of an image (mutable), each of which a test can falsify before it takes the bytes."""

    layers: list[bytes]
    env: list[str] = field(default_factory=list)
    architecture: str = ARCHITECTURE
    blobs: dict[str, bytes] = field(default_factory=dict)
    platforms: Iterable[str] = ()

    def blob(self, content: bytes) -> dict[str, str | int]:
        """Add a content, and return its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs.setdefault(f"blobs/sha256/{digest}", content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    def document(self, value: object) -> dict[str, str | int]:
        """Add a JSON document, and return its descriptor."""
        return self.blob(json.dumps(value).encode())

    def manifest(self) -> dict[str, str | int]:
        """Add everything but the index, and return the manifest's descriptor."""
        configuration = {"architecture": self.architecture, "os": "linux", "config": {"Env": self.env}}
        layers = [self.blob(layer) for layer in self.layers]
        return self.document({"config": self.document(configuration), "layers": layers})

    def content(self) -> bytes:
        """Return the archive."""
        if "index.json" not in self.blobs:
            self.blobs["index.json"] = json.dumps({"manifests": [self.manifest()]}).encode()
        self.blobs.setdefault("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        return layer_of(*(Entry(name=name, content=content) for name, content in self.blobs.items()))


def image_of(*layers: bytes, env: Iterable[str] = ()) -> bytes:
    """Return an image with compressed layers, and variables."""
    return Archive(layers=[gzip.compress(layer, 1) for layer in layers], env=list(env)).content()


@cache
def image_of_this_machine() -> bytes:
    """Return an image with Python and the other programs that tests of sandboxes run."""
    folders = (folder(name) for name in ("home", "mnt", "opt", "root", "run", "sys", "usr/share", "var/log"))
    return image_of(layer_of(*folders, *programs(*_PROGRAMS), *python()))


@cache
def image_of_programs() -> bytes:
    """Return an image with the programs alone, which is unpacked faster."""
    return image_of(layer_of(*programs(*_PROGRAMS)))
