"""The file of a backup: a plain tar whose members are numbered, and at its end a list with their paths and hashes.

Nothing in the archive but that list names a path, and a reader unpacks into numbered files until every hash is checked.
It accepts the members that the writer makes and no others: regular files, in order, uncompressed. What is unpacked is
therefore never larger than the archive.
"""

import hashlib
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from messiahs.core.model.names import NAME, problem_with_name
from messiahs.errors import ClientError

FORMAT: Final = 1
LIST: Final = "list.json"
_BLOCK: Final = 512
_PIECE_BYTES: Final = 1 << 20
_LIST_LIMIT_BYTES: Final = 256 << 20
_DIGITS: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9_@+-][A-Za-z0-9._@+-]{0,254}", re.ASCII)
_DEPTH: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One file of the archive: its path below the folder of the federation, or below `inputs`."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The list at the end of an archive.

    For each module, `outside` maps paths of files outside the state directory, as its settings name them, to their
    paths in the archive.
    """

    format: int
    release: str
    federation: str
    modules: tuple[str, ...]
    made_at: str
    state_directory: str
    files: tuple[Stored, ...]
    outside: dict[str, dict[str, str]]


class Writer:
    """Writes an archive into an open file (mutable)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.files: list[Stored] = []

    def add(self, path: str, source: Path) -> None:
        """Store a file; a `FileNotFoundError` if it is gone, another OSError if it cannot be read."""
        with source.open("rb") as file:
            # An open file keeps its content, if it is replaced meanwhile.
            content_bytes = source.stat().st_size if not file.seekable() else file.seek(0, 2)
            file.seek(0)
            self._header(f"{len(self.files):0{_DIGITS}}", content_bytes)
            digest, left = hashlib.sha256(), content_bytes
            while left:
                piece = file.read(min(left, _PIECE_BYTES))
                if not piece:
                    raise OSError(f"{source} has become shorter while it was read")
                digest.update(piece)
                self._file.write(piece)
                left -= len(piece)
        self._pad(content_bytes)
        self.files.append(Stored(path=path, size_bytes=content_bytes, sha256=digest.hexdigest()))

    def finish(self, contents: Contents) -> None:
        """Write the list and the end of the archive."""
        line = msgspec.json.encode(contents) + b"\n"
        content = line + hashlib.sha256(line).hexdigest().encode() + b"\n"
        self._header(LIST, len(content))
        self._file.write(content)
        self._pad(len(content))
        self._file.write(bytes(2 * _BLOCK))

    def _header(self, name: str, size_bytes: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size_bytes, 0o600
        self._file.write(info.tobuf(tarfile.GNU_FORMAT))

    def _pad(self, size_bytes: int) -> None:
        self._file.write(bytes(-size_bytes % _BLOCK))


def unpack(file: BinaryIO, folder: Path) -> Contents:
    """Write the members of an archive into an empty folder, as numbered files, and return the list once all are right.

    Raises ClientError for an archive that is damaged, incomplete, or was not made by `messiahs backup`; what the folder
    contains then is of no use.
    """
    found: list[tuple[int, str]] = []
    while True:
        name, size_bytes = _next_header(file, is_first=not found)
        if name == LIST:
            break
        if name != f"{len(found):0{_DIGITS}}":
            raise _refused("a member has a name that `messiahs backup` does not give")
        with (folder / name).open("xb") as member:
            found.append((size_bytes, _copied(file, member, size_bytes)))
    if size_bytes > _LIST_LIMIT_BYTES:
        raise _refused("its list is too long")
    contents = _list_in(_exactly(file, size_bytes))
    _exactly(file, -size_bytes % _BLOCK)
    if _exactly(file, 2 * _BLOCK).strip(b"\0") or file.read(1):
        raise _refused("something follows its end")
    if found != [(each.size_bytes, each.sha256) for each in contents.files]:
        raise _refused("a file in it is not the one that was stored")
    return contents


def member_of(folder: Path, number: int) -> Path:
    """Return the unpacked file with a number."""
    return folder / f"{number:0{_DIGITS}}"


def _next_header(file: BinaryIO, *, is_first: bool) -> tuple[str, int]:
    # A file that is shorter than one header was never a backup.
    block = file.read(_BLOCK) if is_first else _exactly(file, _BLOCK)
    try:
        info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, ValueError) as error:
        problem = "it is no file that `messiahs backup` made" if is_first else "it is damaged"
        raise _refused(problem) from error
    if info.type != tarfile.REGTYPE or info.linkname or info.size < 0:
        raise _refused("a member is no regular file")
    return info.name, info.size


def _copied(file: BinaryIO, member: BinaryIO, size_bytes: int) -> str:
    digest, left = hashlib.sha256(), size_bytes
    while left:
        piece = file.read(min(left, _PIECE_BYTES))
        if not piece:
            raise _refused("it is cut off")
        digest.update(piece)
        member.write(piece)
        left -= len(piece)
    _exactly(file, -size_bytes % _BLOCK)
    return digest.hexdigest()


def _exactly(file: BinaryIO, size_bytes: int) -> bytes:
    content = file.read(size_bytes) if size_bytes else b""
    if len(content) != size_bytes:
        raise _refused("it is cut off")
    return content


def _list_in(content: bytes) -> Contents:
    line, _, rest = content.partition(b"\n")
    if rest != hashlib.sha256(line + b"\n").hexdigest().encode() + b"\n":
        raise _refused("its list is damaged")
    try:
        number = msgspec.json.decode(line, type=dict[str, object]).get("format")
        if number != FORMAT:
            raise _refused(f"it has format {number}, and this release reads {FORMAT}: use the release that made it")
        contents = msgspec.json.decode(line, type=Contents)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _refused(f"its list cannot be read: {error}") from error
    if not NAME.fullmatch(contents.federation) or any(map(problem_with_name, contents.modules)):
        # A module called `tls` would take the place of the site's keys.
        raise _refused("its list names what is no module of a federation")
    paths = [each.path for each in contents.files]
    for path in paths:
        parts = path.split("/")
        if len(parts) > _DEPTH or not all(_NAME.fullmatch(part) for part in parts):
            raise _refused(f"the path {path!r} is not one that `messiahs backup` stores")
    is_repeated = len(set(paths)) != len(paths) or len(set(contents.modules)) != len(contents.modules)
    if is_repeated or not {to for each in contents.outside.values() for to in each.values()} <= set(paths):
        raise _refused("its list contradicts itself")
    return contents


def _refused(text: str) -> ClientError:
    return ClientError(f"the backup cannot be used: {text}; nothing was changed")
