"""Input files of tasks: found, named and hashed before the submit.

A file is identified by the SHA-256 of its content. A file for thousands of members is read once.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from messiahs.client.input_folders import Walked, open_walked, too_many, unreadable, walked
from messiahs.client.names import TakenNames
from messiahs.client.programs import HEADER_BYTES, arch_of
from messiahs.client.progress import OnProgress, silent
from messiahs.client.submission import InputFile, LaterOutput
from messiahs.config.disk import read_piece
from messiahs.config.input_names import split_source
from messiahs.config.task_names import checked_name
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.task_files import DESCRIPTION_LIMIT_BYTES
from messiahs.errors import ClientError, OptionValueError

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
    path, name = split_source(text)
    return Source(path=path, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalContent:
    """Size and hash of a user's file when it was read, and its instruction set if it is a compiled program."""

    file: Walked
    sha256: str
    size_bytes: int
    is_executable: bool
    arch: str = ""

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedInputs:
    """Inputs that are ready to submit, contents by hash to upload before, and what others will leave (`wanted`)."""

    inputs: tuple[InputFile, ...] = ()
    wanted: tuple[LaterOutput, ...] = ()
    member_inputs: tuple[tuple[InputFile, ...], ...] = ()
    contents: Mapping[str, LocalContent] = field(default_factory=dict)

    @property
    def archs(self) -> dict[str, str]:
        """The instruction sets of those inputs of all members that are compiled programs, by name."""
        found = ((one.name, self.contents.get(one.sha256)) for one in self.inputs if one.is_executable)
        return {name: content.arch for name, content in found if content is not None and content.arch}


def prepare_inputs(
    sources: Sequence[Source],
    *,
    items: Sequence[str] = (),
    on_progress: OnProgress = silent,
    known: "KnownFiles | None" = None,
) -> PreparedInputs:
    """Find and hash the files of all members; `{}` in a source stands for a member's item.

    Several submissions that share what is `known` read each file once.
    Raises `ClientError` for a file that is missing, unreadable, or changes while it is read, for a link that leads out
    of its folder, for inputs of a task whose description is too long, and for two with one name.
    """
    known = KnownFiles() if known is None else known
    finder, contents = known.finder, known.contents
    names = TakenNames()
    common = finder.placed((one for one in sources if not items or not one.is_per_member), names)
    own = [one for one in sources if items and one.is_per_member]
    members = [finder.placed((one.of_item(item) for one in own), TakenNames(names)) for item in items] if own else []
    files = dict.fromkeys(one for placed in (common, *members) for _, one in placed if one.is_file)
    total = sum(one.size_bytes for one in files)
    done = 0
    for file in files:
        if file in contents:
            done += file.size_bytes
            continue

        def on_piece(read: int, before: int = done) -> None:
            on_progress("reading", before + read, max(total, before + read))

        contents[file] = content_of(file, on_piece)
        done += contents[file].size_bytes
    return PreparedInputs(
        inputs=_described(common, contents),
        member_inputs=tuple(_described(placed, contents) for placed in members),
        contents={contents[file].sha256: contents[file] for file in files},
    )


def content_of(file: Walked, on_piece: Callable[[int], None]) -> LocalContent:
    """Read and hash a file; a `ClientError` if it changes meanwhile."""
    digest, size, header = hashlib.sha256(), 0, b""
    with _reading(file) as opened:
        before = os.fstat(opened.fileno())
        # A file that grows as fast as it is read has no end.
        while size <= before.st_size and (piece := read_piece(opened.fileno(), offset=size, limit=_PIECE_BYTES)):
            digest.update(piece)
            header = header or piece[:HEADER_BYTES]
            size += len(piece)
            on_piece(size)
        after = os.fstat(opened.fileno())
    if (before.st_size, before.st_mtime_ns) != (size, after.st_mtime_ns):
        raise ClientError(f"the input `{file.path}` changed while it was read; nothing was submitted")
    is_executable = bool(before.st_mode & stat.S_IXUSR)
    return LocalContent(
        file=file,
        sha256=digest.hexdigest(),
        size_bytes=size,
        is_executable=is_executable,
        arch=arch_of(header),
    )


def pieces_of(content: LocalContent) -> Iterator[bytes]:
    """Read a file again; a `ClientError` if its content is not that which was hashed."""
    digest, size = hashlib.sha256(), 0
    with _reading(content.file) as file:
        while piece := read_piece(file.fileno(), offset=size, limit=min(content.size_bytes - size, _PIECE_BYTES)):
            digest.update(piece)
            size += len(piece)
            yield piece
    if digest.hexdigest() != content.sha256:
        raise changed(content)


def small_content(content: LocalContent) -> bytes:
    """Read a small file again; it is hashed by the module, which stores it."""
    with _reading(content.file) as file:
        return file.read(content.size_bytes)


def changed(content: LocalContent) -> ClientError:
    """Return the error for a file that is not the one that was hashed."""
    return ClientError(f"the input `{content.path}` changed while it was uploaded; nothing was submitted")


@contextmanager
def _reading(file: Walked) -> Iterator[BinaryIO]:
    try:
        with open_walked(file) as opened:
            yield opened
    except OSError as error:
        raise unreadable(file.path, error) from error


@dataclass(slots=True)
class _Finder:
    """Walks each source once (mutable)."""

    known: dict[str, tuple[Walked, ...]] = field(default_factory=dict)

    def placed(self, sources: Iterable[Source], names: TakenNames) -> tuple[tuple[str, Walked], ...]:
        """Return everything in the sources, each with its name in the working directory."""
        placed: list[tuple[str, Walked]] = []
        for source in chain.from_iterable(map(_matching, sources)):
            base = _base(source)
            for found in self._walked(source.path):
                name = "/".join(filter(None, (base, found.below)))
                if found.is_folder and not name:
                    # An empty folder in the place of the working directory adds nothing to it.
                    continue
                name = checked_name(name)
                names.take(name, found.path, link_target=found.link_target)
                placed.append((name, found))
            if names.total_bytes > DESCRIPTION_LIMIT_BYTES:
                raise too_many(source.path)
        return tuple(placed)

    def _walked(self, path: str) -> tuple[Walked, ...]:
        if path not in self.known:
            try:
                self.known[path] = walked(path)
            except OptionValueError:
                raise
            except (OSError, ValueError) as error:
                raise unreadable(path, error) from error
        return self.known[path]


@dataclass(slots=True)
class KnownFiles:
    """The files that were found and hashed so far (mutable)."""

    finder: _Finder = field(default_factory=_Finder)
    contents: dict[Walked, LocalContent] = field(default_factory=dict)


def _matching(source: Source) -> tuple[Source, ...]:
    """Return the files and folders that a pattern names, sorted; what exists under its very name is no pattern."""
    if not has_magic(source.path) or os.path.lexists(source.path):
        return (source,)
    if source.name not in {"", "."} and not source.name.endswith("/"):
        raise ClientError(
            f"the input `{source.path}` is a pattern, and `{source.name}` a single name: "
            f"`{source.path}:{source.name}/` puts what matches into that folder",
            code=ClientError.USAGE,
        )
    paths = sorted(glob(source.path))  # noqa: PTH207 - paths stay as the user writes them
    if not paths:
        raise OptionValueError(f"the input `{source.path}` matches nothing")
    return tuple(Source(path=path, name=source.name) for path in paths)


def _base(source: Source) -> str:
    # A link keeps its own name, not that of its target.
    own = os.path.basename(os.path.abspath(source.path))  # noqa: PTH100, PTH119 - for each input
    if source.name.endswith("/"):
        return f"{source.name}{own}"
    # At `.`, a file lies in the working directory under its own name, and a folder's files lie there directly.
    if source.name in {".", "./"}:
        return own if Path(source.path).is_file() else ""
    return source.name or own


def _described(placed: Iterable[tuple[str, Walked]], contents: Mapping[Walked, LocalContent]) -> tuple[InputFile, ...]:
    return tuple(_described_one(name, one, contents.get(one)) for name, one in placed)


def _described_one(name: str, found: Walked, content: LocalContent | None) -> InputFile:
    if content is None:
        return InputFile(name=name, link_target=found.link_target, is_folder=found.is_folder)
    return InputFile(
        name=name, sha256=content.sha256, size_bytes=content.size_bytes, is_executable=content.is_executable
    )
