"""Input files of tasks: found, named and hashed before the submit.

A file is identified by the SHA-256 of its content. A file for thousands of members is read once.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from messiahs.client.names import TakenNames, checked_name
from messiahs.client.progress import OnProgress, silent
from messiahs.client.submission import InputFile
from messiahs.config.regular_files import open_regular
from messiahs.errors import ClientError

PLACEHOLDER = "{}"
_PIECE_BYTES = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file or folder of the user, and its name in the working directory (empty: its own name).

    A name that ends with `/` is a folder for the source.
    """

    path: str
    name: str = ""

    @property
    def is_per_member(self) -> bool:
        """Whether each member has its own source."""
        return PLACEHOLDER in self.path or PLACEHOLDER in self.name

    def of_item(self, item: str) -> "Source":
        """Return the source for the member with `item`."""
        return Source(path=self.path.replace(PLACEHOLDER, item), name=self.name.replace(PLACEHOLDER, item))


def source_of(text: str) -> Source:
    """Parse `SRC` or `SRC:DST`; an existing path that contains a colon is taken as `SRC`."""
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name or (Path(text).exists() and not Path(path).exists()):
        return Source(path=text)
    return Source(path=path, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalContent:
    """Size and hash of a user's file when it was read."""

    path: str
    sha256: str
    size_bytes: int
    is_executable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedInputs:
    """Inputs that are ready to submit, and contents by hash that must be uploaded first."""

    inputs: tuple[InputFile, ...] = ()
    member_inputs: tuple[tuple[InputFile, ...], ...] = ()
    contents: Mapping[str, LocalContent] = field(default_factory=dict)


def prepare_inputs(
    sources: Sequence[Source], *, items: Sequence[str] = (), on_progress: OnProgress = silent
) -> PreparedInputs:
    """Find and hash the files of all members; `{}` in a source stands for a member's item.

    Raises `ClientError` for a file that is missing or unreadable, and for two files with one name.
    """
    finder = _Finder()
    names = TakenNames()
    common = finder.placed((one for one in sources if not items or not one.is_per_member), names)
    own = [one for one in sources if items and one.is_per_member]
    members = [finder.placed((one.of_item(item) for one in own), TakenNames(names)) for item in items] if own else []
    total = sum(finder.sizes.values())
    contents: dict[str, LocalContent] = {}
    done = 0
    for path in finder.sizes:

        def on_piece(read: int, before: int = done) -> None:
            on_progress("reading", before + read, max(total, before + read))

        contents[path] = content_of(path, on_piece)
        done += contents[path].size_bytes
    return PreparedInputs(
        inputs=_described(common, contents),
        member_inputs=tuple(_described(placed, contents) for placed in members),
        contents={content.sha256: content for content in contents.values()},
    )


def content_of(path: str, on_piece: Callable[[int], None]) -> LocalContent:
    """Read and hash a file."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                on_piece(size)
    except OSError as error:
        raise _unreadable(path, error) from error
    is_executable = bool(mode & stat.S_IXUSR)
    return LocalContent(path=path, sha256=digest.hexdigest(), size_bytes=size, is_executable=is_executable)


def pieces_of(content: LocalContent) -> Iterator[bytes]:
    """Read a file again; a `ClientError` if its content is not that which was hashed."""
    digest, left = hashlib.sha256(), content.size_bytes
    try:
        with open_regular(content.path) as file:
            while left and (piece := file.read(min(left, _PIECE_BYTES))):
                digest.update(piece)
                left -= len(piece)
                yield piece
    except OSError as error:
        raise _unreadable(content.path, error) from error
    if digest.hexdigest() != content.sha256:
        raise ClientError(f"the input `{content.path}` changed while it was uploaded; nothing was submitted")


@dataclass(slots=True)
class _Finder:
    """Walks each source once (mutable). `sizes` has every file that was found."""

    sizes: dict[str, int] = field(default_factory=dict)
    walked: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def placed(self, sources: Iterable[Source], names: TakenNames) -> tuple[tuple[str, str], ...]:
        """Return (name, path) of every file of the sources."""
        placed: list[tuple[str, str]] = []
        for source in sources:
            for below, path in self._files(source.path):
                name = checked_name("/".join(filter(None, (_base(source), below))))
                names.take(name, path)
                placed.append((name, path))
        return tuple(placed)

    def _files(self, path: str) -> tuple[tuple[str, str], ...]:
        if path not in self.walked:
            try:
                self.walked[path] = tuple(self._walk(Path(path), "", ()))
            except (OSError, ValueError) as error:
                raise _unreadable(path, error) from error
        return self.walked[path]

    def _walk(self, path: Path, below: str, above: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, str]]:
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            self.sizes[str(path)] = found.st_size
            yield below, str(path)
        elif stat.S_ISDIR(found.st_mode):
            identity = (found.st_dev, found.st_ino)
            if identity in above:
                raise ClientError(f"the input `{path}` is a link to a folder that it is in")
            for inner in sorted(path.iterdir()):
                name = f"{below}/{inner.name}" if below else inner.name
                yield from self._walk(inner, name, (*above, identity))
        else:
            raise ClientError(f"the input `{path}` is neither a file nor a folder")


def _base(source: Source) -> str:
    # A link keeps its own name, not that of its target.
    own = Path(os.path.normpath(Path(source.path).absolute())).name
    if source.name.endswith("/"):
        return f"{source.name}{own}"
    # At `.`, a file lies in the working directory under its own name, and a folder's files lie there directly.
    if source.name in {".", "./"}:
        return own if Path(source.path).is_file() else ""
    return source.name or own


def _described(placed: Iterable[tuple[str, str]], contents: Mapping[str, LocalContent]) -> tuple[InputFile, ...]:
    return tuple(_described_one(name, contents[path]) for name, path in placed)


def _described_one(name: str, content: LocalContent) -> InputFile:
    return InputFile(
        name=name, sha256=content.sha256, size_bytes=content.size_bytes, is_executable=content.is_executable
    )


def _unreadable(path: str, error: OSError | ValueError) -> ClientError:
    if isinstance(error, OSError):
        return ClientError(f"the input `{error.filename or path}` cannot be read: {error.strerror}")
    return ClientError(f"the input `{path!r}` cannot be read: {error}")
