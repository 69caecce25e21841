"""The demo's job: compress and hash every file of Python's standard library on the machines of a campus.

Each task runs real programs on a copy of one file that is sent to its machine; the output is fetched and compared.
"""

import gzip
import hashlib
import sysconfig
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from messiahs.cli.exit_codes import exit_code_of
from messiahs.client.connection import Document
from messiahs.client.fetching import fetch, outputs_of
from messiahs.client.inputs import Source, prepare_inputs
from messiahs.client.locating import member_of
from messiahs.client.module import ModuleClient
from messiahs.client.status import FINAL_STATES
from messiahs.client.submission import Submission
from messiahs.client.uploading import upload
from messiahs.errors import ClientError

COMMAND = ("sh", "-c", 'gzip -9 -n -c "$1" > "$1.gz" && sha256sum "$1"', "sh", "{}")
_NOT_LIBRARY = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test"})
_LONGEST_SECONDS = 120.0
_POLL_SECONDS = 0.2
_CLIENTS = 4


class OnStep(Protocol):
    """Callback for the progress of the demo."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Report that `done` of `total` files have passed the step `what`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result for one file: its machine, the bytes sent and fetched, and the problem (empty if there is none)."""

    name: str
    machine: str
    bytes_in: int
    bytes_out: int
    problem: str


def library() -> Path:
    """Return the folder of the standard library of the running Python."""
    return Path(sysconfig.get_path("stdlib"))


def library_files(root: Path) -> tuple[str, ...]:
    """Return every Python file below a folder, relative to it, without tests and installed packages."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return tuple(sorted(str(path) for path in found if not _NOT_LIBRARY.intersection(path.parts)))


def compress_everywhere(module: ModuleClient, root: Path, *, names: tuple[str, ...], on_step: OnStep) -> list[Document]:
    """Submit one array with a task for each file, and return the members' documents once all have ended."""
    on_step("hashed and uploaded", 0, len(names))
    prepared = prepare_inputs((Source(path=f"{root}/{{}}", name="{}"),), items=names)
    upload(module, prepared.contents)
    on_step("hashed and uploaded", len(names), len(names))
    array = module.submit(
        Submission(
            argv=COMMAND,
            members=len(names),
            items=names,
            name="demo",
            outputs=("{}.gz",),
            member_inputs=prepared.member_inputs,
        )
    )
    _wait(module, array, len(names), on_step)
    return list(module.tasks(array, members=True)["tasks"])


def checked_files(
    socket: Path, members: list[Document], *, root: Path, names: tuple[str, ...], into: Path
) -> Iterator[Checked]:
    """Fetch the output of each file into the folder of its member number, and compare it with the file."""
    assert len(members) == len(names), "one member for each file"
    clients: SimpleQueue[ModuleClient] = SimpleQueue()

    def check(member: Document, name: str) -> Checked:
        module = clients.get()
        try:
            return _checked(module, member, root=root, name=name, into=into)
        finally:
            clients.put(module)

    with ExitStack() as stack:
        for _ in range(_CLIENTS):
            clients.put(stack.enter_context(ModuleClient(socket)))
        # A module answers one request at a time per connection, so several clients fetch in parallel.
        pool = stack.enter_context(ThreadPoolExecutor(_CLIENTS))
        yield from pool.map(check, members, names)


def problem_with(original: bytes, compressed: bytes, *, printed: str) -> str:
    """Return what is wrong with a task's output for a file, or an empty text."""
    digest = hashlib.sha256(original).hexdigest()
    if printed.split()[:1] != [digest]:
        return f"the task printed the hash {printed[:64].strip() or 'nothing'}; expected {digest}"
    try:
        content = gzip.decompress(compressed)
    except (OSError, EOFError, zlib.error) as error:
        return f"the output cannot be decompressed: {error}"
    return "" if content == original else "the decompressed output differs from the file"


def _checked(module: ModuleClient, member: Document, *, root: Path, name: str, into: Path) -> Checked:
    original = (root / name).read_bytes()
    problem, size = _fetched(module, member, name, into)
    if not problem:
        printed = b"".join(module.logs(member["id"])).decode(errors="replace")
        made = into / str(member_of(member["id"])) / f"{name}.gz"
        problem = problem_with(original, made.read_bytes(), printed=printed)
    machine = str(member.get("executed_on") or "")
    return Checked(name=name, machine=machine, bytes_in=len(original), bytes_out=size, problem=problem)


def _wait(module: ModuleClient, array: str, total: int, on_step: OnStep) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        (document,) = module.tasks(array)["tasks"]
        ended = sum(count for state, count in document["counts"].items() if state in FINAL_STATES)
        on_step("compressed", ended, total)
        if ended == total:
            return
        if time.monotonic() > deadline:
            left = ", ".join(f"{count} {state}" for state, count in document["counts"].items())
            raise ClientError(f"not all tasks of {array} ended within {_LONGEST_SECONDS:g} s: {left}")
        time.sleep(_POLL_SECONDS)


def _fetched(module: ModuleClient, member: Document, name: str, into: Path) -> tuple[str, int]:
    """Fetch the outputs of a member; returns the problem, or an empty text, and the number of bytes."""
    if exit_code_of(member):
        result = " ".join(str(member[part]) for part in ("state", "cause", "text", "exit_code") if member.get(part))
        return f"{member['id']} {result}", 0
    outputs = outputs_of(module, member["id"])
    if [output.name for output in outputs] != [f"{name}.gz"]:
        return f"{member['id']} produced {', '.join(output.name for output in outputs) or 'no outputs'}", 0
    return "", sum(output.size_bytes for output in fetch(module, outputs, into=into))
