"""What the demo does: every file of Python's standard library is compressed and hashed somewhere on a campus.

Real programs do the work, on copies that travelled there; what they made travels back, and every byte is checked.
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
from messiahs.client.module import FINAL_STATES, ModuleClient
from messiahs.client.submission import Submission
from messiahs.client.uploading import upload
from messiahs.errors import ClientError

COMMAND = ("sh", "-c", 'gzip -9 -n -c "$1" > "$1.gz" && sha256sum "$1"', "sh", "{}")
_NOT_LIBRARY = frozenset({"site-packages", "dist-packages", "test", "tests", "idle_test"})
_LONGEST_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_CLIENTS = 4


class Teller(Protocol):
    """Whoever is told how far the demo is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Take note that `done` of `total` files are done with `what`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One file: who worked on it, how many bytes went there and came back, and what was wrong (nothing: empty)."""

    name: str
    machine: str
    bytes_in: int
    bytes_out: int
    problem: str


def library() -> Path:
    """Give the folder of the standard library of the running Python."""
    return Path(sysconfig.get_path("stdlib"))


def library_files(root: Path) -> tuple[str, ...]:
    """Give every Python file below a folder, relative to it, without tests and what was installed besides."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return tuple(sorted(str(path) for path in found if not _NOT_LIBRARY.intersection(path.parts)))


def compress_everywhere(module: ModuleClient, root: Path, *, names: tuple[str, ...], tell: Teller) -> list[Document]:
    """Submit one task for each file in one array, and give the members' documents when all have ended."""
    tell("hashed and uploaded", 0, len(names))
    prepared = prepare_inputs((Source(path=f"{root}/{{}}", name="{}"),), items=names)
    upload(module, prepared.contents)
    tell("hashed and uploaded", len(names), len(names))
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
    _wait(module, array, len(names), tell)
    return list(module.tasks(array, members=True)["tasks"])


def checked_files(
    socket: Path, members: list[Document], *, root: Path, names: tuple[str, ...], into: Path
) -> Iterator[Checked]:
    """Fetch what came of each file into the folder of its number, and compare it with the file itself."""
    assert len(members) == len(names), "there is one member for each file"
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
        # A module answers one question after the other, but nobody need wait in between.
        pool = stack.enter_context(ThreadPoolExecutor(_CLIENTS))
        yield from pool.map(check, members, names)


def problem_with(original: bytes, compressed: bytes, *, printed: str) -> str:
    """Say what is wrong with what a task made of a file: nothing if it is empty."""
    digest = hashlib.sha256(original).hexdigest()
    if printed.split()[:1] != [digest]:
        return f"the task printed the hash {printed[:64].strip() or 'nothing'}, and it is {digest}"
    try:
        content = gzip.decompress(compressed)
    except (OSError, EOFError, zlib.error) as error:
        return f"what came back cannot be decompressed: {error}"
    return "" if content == original else "what came back is another file when it is decompressed"


def _checked(module: ModuleClient, member: Document, *, root: Path, name: str, into: Path) -> Checked:
    original = (root / name).read_bytes()
    problem, size = _came_back(module, member, name, into)
    if not problem:
        printed = b"".join(module.logs(member["id"])).decode(errors="replace")
        made = into / str(member_of(member["id"])) / f"{name}.gz"
        problem = problem_with(original, made.read_bytes(), printed=printed)
    machine = str(member.get("executed_on") or "")
    return Checked(name=name, machine=machine, bytes_in=len(original), bytes_out=size, problem=problem)


def _wait(module: ModuleClient, array: str, total: int, tell: Teller) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        (document,) = module.tasks(array)["tasks"]
        ended = sum(count for state, count in document["counts"].items() if state in FINAL_STATES)
        tell("compressed", ended, total)
        if ended == total:
            return
        if time.monotonic() > deadline:
            left = ", ".join(f"{count} {state}" for state, count in document["counts"].items())
            raise ClientError(f"not all tasks of {array} ended within {_LONGEST_SECONDS:g} s: {left}")
        time.sleep(_LOOK_SECONDS)


def _came_back(module: ModuleClient, member: Document, name: str, into: Path) -> tuple[str, int]:
    """Fetch what a member left behind; gives what is wrong, and the bytes."""
    if exit_code_of(member):
        told = " ".join(str(member[part]) for part in ("state", "cause", "text", "exit_code") if member.get(part))
        return f"{member['id']} {told}", 0
    outputs = outputs_of(module, member["id"])
    if [output.name for output in outputs] != [f"{name}.gz"]:
        return f"{member['id']} left {', '.join(output.name for output in outputs) or 'nothing'} behind", 0
    return "", sum(output.size_bytes for output in fetch(module, outputs, into=into))
