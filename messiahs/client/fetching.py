"""Outputs of ended tasks, written from their module to the user's folder.

A file appears under its name when it is complete. Nothing is ever written outside the given folder.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path

from messiahs.client.connection import Document
from messiahs.client.locating import array_of, member_of
from messiahs.client.member_logs import member_logs
from messiahs.client.module import ModuleClient
from messiahs.client.names import check_received_name
from messiahs.client.progress import OnProgress, silent
from messiahs.config.disk import write_sparsely
from messiahs.core.model.folder_links import stays_inside
from messiahs.core.model.output_names import Declared
from messiahs.core.model.texts import has_control, printable
from messiahs.errors import ClientError, UnknownRequestError

_FEW_MEMBERS = 16
"""So many members of an array are asked for one by one: the array may have a million others."""
_PART_NAME = ".messiahs-{}.part"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file, symbolic link or empty folder that a task left behind.

    `place` is its path relative to the folder into which it is fetched.
    """

    task: str
    name: str
    place: str
    size_bytes: int
    is_executable: bool
    link_target: str = ""
    is_folder: bool = False

    def document(self, folder: Path) -> Document:
        """Describe the file after it was written."""
        document: Document = {
            "task": self.task,
            "name": self.name,
            "path": str(folder / self.place),
            "size": self.size_bytes,
            "executable": self.is_executable,
        }
        if self.link_target:
            document["link"] = self.link_target
        if self.is_folder:
            document["folder"] = True
        return document


def outputs_of(module: ModuleClient, task: str, *, declared: Collection[str] | None = None) -> tuple[OutputFile, ...]:
    """List what an ended task left behind; files of member 3 of an array go to the folder `3`.

    A name that `declared` (default: the names and patterns that the module has stored) does not cover, and a link that
    leads out of the task's working directory, is a `ClientError`, because the executor chose it.
    """
    return _listed(task, module.output_listing(task), declared=declared)


def outputs_of_all(module: ModuleClient, tasks: Collection[str]) -> dict[str, tuple[OutputFile, ...]]:
    """List what ended tasks left behind, by their ids, as `outputs_of` does for each: many members in one request."""
    found: dict[str, tuple[OutputFile, ...]] = {}
    for array, members in groupby(tasks, key=array_of):
        names = list(members)
        listed = _of_members(module, array, frozenset(names)) if len(names) > _FEW_MEMBERS else None
        found |= {name: outputs_of(module, name) for name in names} if listed is None else listed
    return found


def _of_members(module: ModuleClient, array: str, members: frozenset[str]) -> dict[str, tuple[OutputFile, ...]] | None:
    """List what members of an array left; None if its module is of an earlier release."""
    try:
        listings = module.output_listing(array, part="member-outputs")["members"]
    except UnknownRequestError:
        return None
    left = {listing["id"]: listing for listing in listings if listing["id"] in members}
    return {name: _listed(name, left[name]) if name in left else () for name in members}


def _listed(task: str, listing: Document, *, declared: Collection[str] | None = None) -> tuple[OutputFile, ...]:
    number = member_of(task)
    folder = f"{number}/" if number else ""
    found: dict[str, OutputFile] = {}
    allowed = Declared(listing.get("declared", ()) if declared is None else declared)
    for document in listing["outputs"]:
        name = str(document["name"])
        check_received_name(name, allowed)
        target = str(document.get("link", ""))
        if target and (has_control(target) or not stays_inside(name, target)):
            raise ClientError(
                f"`{name}` is a link to `{printable(target)}`, out of the task's working directory: nothing was written"
            )
        found[name] = OutputFile(
            task=task,
            name=name,
            place=folder + name,
            size_bytes=int(document["size"]),
            is_executable=bool(document.get("executable")),
            link_target=target,
            is_folder=bool(document.get("folder")),
        )
    return tuple(found.values())


def check_places(outputs: Iterable[OutputFile]) -> None:
    """Refuse outputs of several tasks that would overwrite each other."""
    placed = list(outputs)
    count = Counter(output.place for output in placed)
    alike = [output for output in placed if count[output.place] > 1]
    if alike:
        first, second = [output for output in alike if output.place == alike[0].place][:2]
        raise ClientError(
            f"{first.task} and {second.task} both left a file `{first.name}`: fetch them into different folders"
        )


def fetch(
    module: ModuleClient, outputs: Iterable[OutputFile], *, into: Path, on_progress: OnProgress = silent
) -> Iterator[OutputFile]:
    """Write outputs below `into`, replacing existing files, and yield each when it is written."""
    # Links last: nothing is written through them.
    wanted = sorted(outputs, key=lambda output: bool(output.link_target))
    total, done = sum(output.size_bytes for output in wanted), 0
    for output in wanted:

        def on_piece(written: int, before: int = done) -> None:
            on_progress("fetching", before + written, total)

        try:
            _write(_pieces(module, output, on_piece), output, into)
        except OSError as error:
            raise ClientError(f"`{into / output.place}` cannot be written: {error.strerror}") from error
        done += output.size_bytes
        yield output


def fetch_with_logs(
    module: ModuleClient,
    name: str,
    *,
    outputs: Collection[OutputFile],
    into: Path,
    members: Collection[int] = (),
    on_progress: OnProgress = silent,
) -> Iterator[OutputFile]:
    """Write the outputs of a task, or those of an array or a member and what these `members` wrote to their streams."""
    yield from fetch(module, outputs, into=into, on_progress=on_progress)
    if members:
        besides = {"/".join(output.place.split("/")[:2]) for output in outputs}
        yield from fetch_logs(module, name, into=into, members=frozenset(members), besides=besides)


def fetch_logs(
    module: ModuleClient, name: str, *, into: Path, members: Collection[int], besides: Collection[str] = ()
) -> Iterator[OutputFile]:
    """Write what members of an array, or the named one, wrote to the files `stdout` and `stderr` in their folders.

    Each file is yielded; there is none if nothing was written. The places of `besides` have files or folders that are
    outputs, and stay.
    """
    for stream in ("stdout", "stderr"):
        for member, pieces in _logs_by_member(module, name, stream):
            place = f"{member}/{stream}"
            if member in members and place not in besides:
                task = f"{array_of(name)}.{member}"
                file = OutputFile(task=task, name=stream, place=place, size_bytes=0, is_executable=False)
                counted = _Counted(pieces)
                try:
                    _write(iter(counted), file, into)
                except OSError as error:
                    raise ClientError(f"`{into / place}` cannot be written: {error.strerror}") from error
                yield replace(file, size_bytes=counted.size_bytes)


def _logs_by_member(module: ModuleClient, name: str, stream: str) -> Iterator[tuple[int, Iterable[bytes]]]:
    """Yield what each member has written to a stream if that is anything; the others of a named one are not read."""
    if number := member_of(name):
        pieces = iter(module.logs(name, stream=stream))
        first = next(pieces, b"")
        if first:
            yield number, chain((first,), pieces)
        return
    for member, parts in groupby(member_logs(module, name, stream=stream), key=itemgetter(0)):
        yield member, (piece for _, piece in parts)


class _Counted:
    """Pieces, and how many bytes of them were taken (mutable)."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.size_bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size_bytes += len(piece)
            yield piece


def _pieces(module: ModuleClient, output: OutputFile, on_piece: Callable[[int], None]) -> Iterator[bytes]:
    written = 0
    for piece in module.read_output(output.task, output.name, size_bytes=output.size_bytes):
        yield piece
        written += len(piece)
        on_piece(written)


def _write(pieces: Iterator[bytes], output: OutputFile, into: Path) -> None:
    *folders, name = output.place.split("/")
    if output.is_folder:
        os.close(_opened_folder(into, [*folders, name]))
        return
    folder = _opened_folder(into, folders)
    draft = _PART_NAME.format(os.urandom(8).hex())
    try:
        if output.link_target:
            os.symlink(output.link_target, draft, dir_fd=folder)
        else:
            _write_file(pieces, output, draft, folder)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        os.close(folder)


def _write_file(pieces: Iterator[bytes], output: OutputFile, draft: str, folder: int) -> None:
    # The umask removes the permissions that the user does not want.
    mode = 0o777 if output.is_executable else 0o666
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, mode, dir_fd=folder), "wb") as file:
        size_bytes = 0
        for piece in pieces:
            write_sparsely(file, piece)
            size_bytes += len(piece)
        # The end may be a hole.
        file.truncate(size_bytes)


def _opened_folder(into: Path, parts: list[str]) -> int:
    """Create and open the folders of a name. A link is refused, because it could lead anywhere."""
    try:
        into.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        place = next(each for each in (into, *into.parents) if each.exists())
        raise ClientError(f"`{place}` is not a folder: nothing was written") from error
    folder = os.open(into, _FOLDER)
    for number, part in enumerate(parts, 1):
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=folder)
        try:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            path = into.joinpath(*parts[:number])
            if path.is_symlink():
                raise ClientError(f"`{path}` is a link: nothing is written outside `{into}`") from error
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder
