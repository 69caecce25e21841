"""Unpacking the layers of an image, one above the other, into a folder that nobody else writes to.

Names and links are resolved within that folder, whatever they are. Only folders, files and links are made, without
owners, set-uid bits and extended attributes; every account can read all of them.
"""

import errno
import gzip
import io
import os
import shutil
import stat
import tarfile
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from messiahs.config.disk import is_last_part_reached
from messiahs.executor.images.archive import NEGATIVE_SIZE, Blob, Image, ImageError, NotHereError

UNPACKED_BYTES: Final = 8 << 30
"""Maximum size of an image, as its layers write it."""
ENTRIES: Final = 1 << 18
"""Maximum number of files, folders and links of all layers."""
HEAD_BYTES: Final = 1 << 17
"""Maximum size of a first file that says something of the layer."""
TOP_ENTRIES: Final = 256
"""Maximum number of entries in the root of an image, each of which is mounted in a sandbox."""
_BLOCK_BYTES: Final = 4096
_ACCOUNT_BYTES: Final = 64 << 10
_LINKS: Final = 40
_OF_IMAGES: Final = (
    *(errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR),
    *(errno.ENOTEMPTY, errno.EPERM, errno.EMLINK, errno.EILSEQ),
)
"""Errors that names, links and types of the entries of an image can cause; others are those of the machine."""
_PIECE_BYTES: Final = 1 << 20
_LATEST: Final = 1 << 32
_WHITEOUT, _OPAQUE, _OTHER_MARK = ".wh.", ".wh..wh..opq", ".wh..wh."
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEEDED: Final = {
    "etc/group": "",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/passwd": "",
    "etc/resolv.conf": "",
}
"""Files that a sandbox reads or replaces, with what they have in an image without them."""
_REAL_FOLDERS: Final = ("etc", "var", "var/tmp")
"""Folders below which a sandbox mounts: none of them may be a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Maximum size of an image, and of its number of entries."""

    unpacked_bytes: int = UNPACKED_BYTES
    entries: int = ENTRIES


def unpack(file: BinaryIO, image: Image, root: str, /, *, limits: Limits = Limits()) -> int:
    """Unpack the layers of an image into an empty folder, and return the size.

    Raises `ImageError`; what was unpacked by then remains.
    """
    tree = _Tree(root, limits)
    with _explained("a layer"):
        for layer in image.layers:
            tree.begin_layer()
            _add_layer(tree, _Section(file, layer))
        _complete(root)
    return tree.written


def unpack_one(file: BinaryIO, root: str, /, *, head: str, limits: Limits) -> tuple[int, bytes]:
    """Unpack one layer, which is a file, and return its size and the content of its first file `head`.

    Raises `ImageError` as above.
    """
    tree = _Tree(root, limits)
    with _explained("it"):
        size_bytes = file.seek(0, os.SEEK_END)
        first = _add_layer(tree, _Section(file, Blob(0, size_bytes)), head=head)
    return tree.written, first


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Raise an `ImageError` for whatever goes wrong; `what` is read."""
    try:
        yield
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise ImageError(f"{what} cannot be read: {error}") from error
    except (OSError, ValueError, OverflowError) as error:
        is_machines = isinstance(error, OSError) and error.errno not in _OF_IMAGES
        raise (NotHereError if is_machines else ImageError)(f"it cannot be unpacked: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise ImageError("it is too deeply nested, or has too long names") from error


def _add_layer(tree: "_Tree", layer: "_Section", *, head: str = "") -> bytes:
    """Add what a layer has; with a `head` its first file has that name, and its content is returned."""
    content = b""
    start = layer.start(len(_ZSTANDARD))
    if start == _ZSTANDARD:
        raise ImageError("a layer is compressed with zstd, which is not supported: compress it with gzip")
    stored = io.BufferedReader(layer, _PIECE_BYTES)
    unpacked: BinaryIO = gzip.GzipFile(fileobj=stored) if start.startswith(_GZIP) else stored  # type: ignore[assignment]
    with tarfile.open(fileobj=_Counted(unpacked, tree), mode="r|") as archive:
        if head:
            content = _head(archive, head)
        while (member := archive.next()) is not None:
            tree.add(archive, member)
            # The library remembers every member, and a stream is read once.
            archive.members.clear()  # type: ignore[attr-defined]
    return content


def _head(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.next()
    if member is None or member.name != name or not member.isreg() or not 0 <= member.size <= HEAD_BYTES:
        raise ImageError(f"it does not begin with a file {name} of at most {HEAD_BYTES} bytes")
    content = archive.extractfile(member)
    assert content is not None
    return content.read()


class _Section(io.RawIOBase):
    """A layer within its archive."""

    def __init__(self, file: BinaryIO, place: Blob) -> None:
        self._file, self._at, self._left = file, place.offset, place.size_bytes

    def start(self, size: int) -> bytes:
        """Return the first bytes, which are read again."""
        self._file.seek(self._at)
        return self._file.read(min(size, self._left))

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read the next bytes."""
        self._file.seek(self._at)
        piece = self._file.read(min(len(buffer), self._left))
        buffer[: len(piece)] = piece
        self._at, self._left = self._at + len(piece), self._left - len(piece)
        return len(piece)


class _Counted(io.RawIOBase):
    """The content of a layer, which ends with an error where an image becomes too large."""

    def __init__(self, content: BinaryIO, tree: "_Tree") -> None:
        self._content, self._tree = content, tree

    def read(self, size: int = -1) -> bytes:
        """Read bytes, at most as many as an image may have."""
        piece = self._content.read(min(size, _PIECE_BYTES) if size >= 0 else _PIECE_BYTES)
        self._tree.count_read(len(piece))
        return piece


class _Tree:
    """The folder that is being filled (mutable); `_made` has what the present layer has put there."""

    def __init__(self, root: str, limits: Limits) -> None:
        self.written = 0
        self._root, self._limits = root, limits
        self._read = self._entries = 0
        self._made: set[str] = set()
        self._bare: set[str] = set()
        """Folders of which the present layer has hidden all that lower ones have: nothing is looked for there again."""
        self._last: tuple[tuple[str, ...], str] = ((), root)
        """The folder that was resolved last."""

    def begin_layer(self) -> None:
        """Let what comes next hide what is there."""
        self._made.clear()
        self._bare.clear()
        self._last = ((), self._root)

    def count_read(self, size: int) -> None:
        """Count bytes of a layer. Raises `ImageError` above the limit."""
        self._read += size
        # Headers come in addition to contents.
        if self._read > 2 * self._limits.unpacked_bytes:
            raise self._too_large()

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Add an entry of a layer, or remove what it hides. Raises `ImageError` and `OSError`."""
        if member.size < 0:
            raise ImageError(NEGATIVE_SIZE)
        self._count(member.size if member.isreg() else 0)
        parts = _parts(member.name)
        if not parts:
            return
        folder, name = self._folder(parts[:-1]), parts[-1]
        place = f"{folder}/{name}"
        if name.startswith(_WHITEOUT):
            self._hide(folder, name)
        elif member.isdir():
            self._have_folder(place)
        elif member.isreg():
            self._write(archive, member, self._cleared(place))
        elif member.issym():
            os.symlink(member.linkname, self._cleared(place))  # noqa: PTH211 - as above
        elif member.islnk():
            self._link(member, place)
        # Devices and pipes are left out: a sandbox has its own, and no set-uid program could use others.

    def _count(self, size: int) -> None:
        self._entries += 1
        self.written += -(-size // _BLOCK_BYTES) * _BLOCK_BYTES + _BLOCK_BYTES
        if self._entries > self._limits.entries:
            raise ImageError(f"it has more than {self._limits.entries} files")
        if self.written > self._limits.unpacked_bytes:
            raise self._too_large()
        is_due = size > _PIECE_BYTES or self._entries % 256 == 0
        if is_due and any(is_last_part_reached(self._root, more_bytes=size)):
            raise NotHereError("the disk has no room for it")

    def _too_large(self) -> ImageError:
        return ImageError(f"it has more than {self._limits.unpacked_bytes} bytes")

    def _folder(self, parts: tuple[str, ...]) -> str:
        """Return a folder within the root, following links within the root; what is missing is made."""
        if self._last[0] == parts:
            return self._last[1]
        here: list[str] = []
        left, links = deque(parts), 0
        while left:
            part = left.popleft()
            if part == "..":
                del here[-1:]
            elif part not in ("", "."):
                place = "/".join((self._root, *here, part))
                if os.path.islink(place):  # noqa: PTH114 - strings, once per entry
                    links += 1
                    if links > _LINKS:
                        raise ImageError(f"links in the name {'/'.join(parts)!r} lead in circles")
                    target = os.readlink(place)  # noqa: PTH115 - as above
                    if target.startswith("/"):
                        here.clear()
                    left.extendleft(reversed(target.split("/")))
                else:
                    self._have_folder(place)
                    here.append(part)
        folder = "/".join((self._root, *here))
        self._last = parts, folder
        return folder

    def _have_folder(self, place: str) -> None:
        if not _is_folder(place):
            self._count(0)
            os.mkdir(self._cleared(place), 0o755)  # noqa: PTH102 - as above
        self._made.add(place)

    def _cleared(self, place: str) -> str:
        """Remove what is in a place, and return it."""
        self._remove(place)
        self._made.add(place)
        return place

    def _remove(self, place: str) -> None:
        # It may have been the folder that was resolved last, or a link to it.
        self._last = ((), self._root)
        if _is_folder(place):
            shutil.rmtree(place)
        elif os.path.lexists(place):
            os.unlink(place)  # noqa: PTH108 - as above

    def _hide(self, folder: str, name: str) -> None:
        """Remove what lower layers have under the name after the mark, or, for the opaque one, in the whole folder."""
        if name == _OPAQUE:
            self._remove_lower(folder)
        elif not name.startswith(_OTHER_MARK):
            hidden = name.removeprefix(_WHITEOUT)
            if hidden in ("", ".", ".."):
                raise ImageError(f"the mark {name!r} hides no name")
            if f"{folder}/{hidden}" not in self._made:
                self._remove(f"{folder}/{hidden}")

    def _remove_lower(self, folder: str) -> None:
        if folder in self._bare:
            return
        self._bare.add(folder)
        for name in os.listdir(folder):  # noqa: PTH208 - as above
            place = f"{folder}/{name}"
            if place not in self._made:
                self._remove(place)
            elif _is_folder(place):
                self._remove_lower(place)

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
        content = archive.extractfile(member)
        assert content is not None
        descriptor = os.open(place, _NEW_FILE, 0o755 if member.mode & 0o111 else 0o644)
        with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            shutil.copyfileobj(content, file, _PIECE_BYTES)
            # Compiled Python files are used only if their sources have the recorded times.
            changed = min(max(0, int(member.mtime)), _LATEST)
            os.utime(descriptor, (changed, changed))

    def _link(self, member: tarfile.TarInfo, place: str) -> None:
        parts = _parts(member.linkname)
        if not parts:
            raise ImageError(f"the link {member.name!r} leads to no file")
        target = f"{self._folder(parts[:-1])}/{parts[-1]}"
        if target == place:
            return
        if not os.path.lexists(target) or not stat.S_ISREG(os.lstat(target).st_mode):
            raise ImageError(f"the link {member.name!r} leads to no file")
        self._cleared(place)
        os.link(target, place, follow_symlinks=False)


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name, which is below the root even if it begins with a slash. Raises `ImageError`."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ImageError(f"the name {name!r} leads out of the image")
    return parts


def _is_folder(place: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except FileNotFoundError:
        return False


def _complete(root: str) -> None:
    """Give an image what a sandbox needs of it, in place of anything that is not an ordinary folder or small file."""
    for name in _REAL_FOLDERS:
        folder = Path(root, name)
        if not _is_folder(str(folder)):
            folder.unlink(missing_ok=True)
            folder.mkdir()
    for name, text in _NEEDED.items():
        file = Path(root, name)
        if _is_folder(str(file)):
            shutil.rmtree(file)
        elif not _is_small_file(str(file)):
            file.unlink(missing_ok=True)
        if not file.exists():
            file.write_text(text)
            file.chmod(0o644)
    if len(os.listdir(root)) > TOP_ENTRIES:  # noqa: PTH208 - only their number
        raise ImageError(f"its root has more than {TOP_ENTRIES} entries")


def _is_small_file(place: str) -> bool:
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= _ACCOUNT_BYTES
