"""Outputs of ended tasks, from their module to the user's own folder.

A file appears under its name when it is whole, and nothing is ever written outside the folder that was named.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from messiahs.client.connection import Document
from messiahs.client.locating import member_of
from messiahs.client.module import ModuleClient
from messiahs.client.names import check_received_name
from messiahs.client.progress import OnProgress, silent
from messiahs.errors import ClientError

_PART_NAME = ".messiahs-{}.part"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file that a task left behind; `place` is where it goes, relative to the folder that it is fetched into."""

    task: str
    name: str
    place: str
    size_bytes: int
    is_executable: bool

    def document(self, folder: Path) -> Document:
        """Describe it once it was written."""
        return {
            "task": self.task,
            "name": self.name,
            "path": str(folder / self.place),
            "size": self.size_bytes,
            "executable": self.is_executable,
        }


def outputs_of(module: ModuleClient, task: str) -> tuple[OutputFile, ...]:
    """List what an ended task left behind; that of member 3 of an array goes to the folder `3`."""
    number = member_of(task)
    folder = f"{number}/" if number else ""
    found: dict[str, OutputFile] = {}
    for document in module.outputs(task):
        name = str(document["name"])
        check_received_name(name)
        found[name] = OutputFile(
            task=task,
            name=name,
            place=folder + name,
            size_bytes=int(document["size"]),
            is_executable=bool(document.get("executable")),
        )
    return tuple(found.values())


def check_places(outputs: Iterable[OutputFile]) -> None:
    """Refuse outputs of several tasks that would be written over each other."""
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
    """Write outputs below `into` and give each when it is there; what was there under its name is replaced."""
    wanted = list(outputs)
    total, done = sum(output.size_bytes for output in wanted), 0
    for output in wanted:

        def on_piece(written: int, before: int = done) -> None:
            on_progress("fetching", before + written, total)

        try:
            _write(_pieces(module, output, on_piece), output, into)
        except OSError as error:
            place = error.filename or into / output.place
            raise ClientError(f"`{place}` cannot be written: {error.strerror}") from error
        done += output.size_bytes
        yield output


def _pieces(module: ModuleClient, output: OutputFile, on_piece: Callable[[int], None]) -> Iterator[bytes]:
    written = 0
    for piece in module.read_output(output.task, output.name, size_bytes=output.size_bytes):
        yield piece
        written += len(piece)
        on_piece(written)


def _write(pieces: Iterator[bytes], output: OutputFile, into: Path) -> None:
    folder = _made_folder(into, output.place.split("/")[:-1])
    draft = folder / _PART_NAME.format(os.urandom(8).hex())
    mode = 0o777 if output.is_executable else 0o666
    try:
        # The user's own mask takes away what he does not want.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
        draft.replace(into / output.place)
    finally:
        draft.unlink(missing_ok=True)


def _made_folder(into: Path, parts: list[str]) -> Path:
    """Make the folders of a name; one that is a link could lead anywhere, and is refused."""
    into.mkdir(parents=True, exist_ok=True)
    folder = into
    for part in parts:
        folder /= part
        if folder.is_symlink():
            raise ClientError(f"`{folder}` is a link: nothing is written outside `{into}`")
        folder.mkdir(exist_ok=True)
    return folder
