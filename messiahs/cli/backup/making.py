"""Making a backup of modules, running or not: a consistent copy of their rows, with everything that the rows need.

The database is copied first. A file that it needs and that is gone by then belongs to a task that has ended meanwhile:
the copy of that module is made again.
"""

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from messiahs import __version__
from messiahs.cli.backup.archive import FORMAT, Contents, Writer
from messiahs.cli.federation.private_folders import as_owner
from messiahs.client.locating import ModulePlace
from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.config.whole_files import sync_folder
from messiahs.core.interface.rows import SubmissionRow
from messiahs.daemon.storage.contents import found_contents
from messiahs.daemon.storage.facts import note_fact
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import ClientError
from messiahs.executor.protocol.layout import FALLBACK, file_name, prepare_files_root, task_account

DATABASE: Final = "module.db"
MODULES: Final = "modules"
INPUTS: Final = "inputs"
OUTSIDE: Final = "outside"
OUTPUTS: Final = "outputs"
_NEVER: Final = frozenset(
    {"ballast", "daemon.lock", "daemon.pid", "starter.lock", "starter.pid", "module.mark", "journal.0", "journal.1"}
)
"""What belongs to processes, or would make an older copy look new."""
_NEVER_SUFFIXES: Final = (".log", ".sock", ".part", ".whole", ".new", ".db", ".db-wal", ".db-shm")
_FOLDERS_OF_MODULES: Final = (OUTPUTS, "join", OUTSIDE)
_NUMBERED: Final = re.compile(r"[0-9]+-.*")
OF_FEDERATION: Final = ("ports.json", "up.json")
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A backup that was made."""

    size_bytes: int
    files: int
    tasks: int
    """Tasks and arrays in it that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of a module's database, and the files that its rows need."""

    database: Path
    inputs: dict[str, Path]
    tasks: int


def make(places: tuple[ModulePlace, ...], out: Path) -> Made:
    """Write a backup of modules of one federation; `out` must not exist, and appears when it is complete.

    Raises ClientError if something of them cannot be read, and OSError if `out` cannot be written.
    """
    if out.exists():
        raise ClientError(f"{out} exists already: a backup replaces no file")
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        copies = tempfile.TemporaryDirectory(dir=out.parent, prefix=".copy-")
        with os.fdopen(descriptor, "wb") as file, copies:
            made = _write(places, Writer(file), Path(copies.name))
            file.flush()
            os.fsync(file.fileno())
        # Unlike a renaming, this never replaces a file.
        os.link(draft, out)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(out.absolute().parent)
    return replace(made, size_bytes=out.stat().st_size)


def _write(places: tuple[ModulePlace, ...], writer: Writer, copies: Path) -> Made:
    federation = places[0].directory.parent
    outside: dict[str, dict[str, str]] = {}
    tasks = 0
    for place in places:
        settings = load_settings(place.directory / "settings.json")
        tasks += _add_module(writer, settings, copies / place.module)
        for number, path in enumerate(_outside(settings, federation)):
            stored = f"{MODULES}/{place.module}/{OUTSIDE}/{number}-{_plain(path.name)}"
            _add(writer, stored, path)
            outside.setdefault(place.module, {})[str(path)] = stored
    for path in (federation / each for each in OF_FEDERATION):
        if path.is_file():
            _add(writer, path.name, path)
    for path in _files_in(federation / "tls"):
        if is_of_backup(["tls", path.name]):
            _add(writer, f"tls/{path.name}", path)
    contents = Contents(
        format=FORMAT,
        release=__version__,
        federation=federation.name,
        modules=tuple(place.module for place in places),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state_directory=str(federation),
        files=tuple(writer.files),
        outside=outside,
    )
    writer.finish(contents)
    return Made(size_bytes=0, files=len(writer.files), tasks=tasks)


def _add_module(writer: Writer, settings: ModuleSettings, copies: Path) -> int:
    """Store a module and return the number of its tasks and arrays that have not ended."""
    copies.mkdir()
    found = _consistent_copy(settings, copies)
    name = settings.name
    if found is not None:
        _add(writer, f"{MODULES}/{name}/{DATABASE}", found.database)
        for stored, path in found.inputs.items():
            _add(writer, f"{INPUTS}/{name}/{stored}", path)
    for path in _own_files(settings.directory):
        stored = path.relative_to(settings.directory).as_posix()
        try:
            writer.add(f"{MODULES}/{name}/{stored}", path)
        except FileNotFoundError:
            # An output of which a task that is retried has no more need.
            continue
    return 0 if found is None else found.tasks


def _consistent_copy(settings: ModuleSettings, copies: Path) -> _Copy | None:
    """Copy the database with links to the inputs of its tasks; None for a module that has never run."""
    source = settings.directory / DATABASE
    if not source.exists():
        return None
    # The place depends on the account of the module.
    with as_owner(settings.directory):
        account = task_account(settings.task_uids)
        root = prepare_files_root(settings.directory, account, fallback=FALLBACK)
        contents = found_contents(root) or root
    missing = ""
    for number in range(_TRIES):
        database = copies / f"{number}.db"
        _copy_database(source, database)
        needed, tasks = _needs(database)
        kept = {name: copies / name for name in needed}
        try:
            for name, path in kept.items():
                _keep(contents / name, path)
        except FileNotFoundError as error:
            missing = error.filename
        else:
            return _Copy(database=database, inputs=kept, tasks=tasks)
    raise ClientError(f"{missing} is missing, an input of a task that has not ended: cancel that task")


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database, and note in the copy that it had a high-water mark: without it, who opens the copy skips ids."""
    try:
        with closing(sqlite3.connect(source, timeout=30)) as reader, closing(sqlite3.connect(target)) as writer:
            reader.backup(writer)
            with writer:
                note_fact(writer, "marked", b"")
    except sqlite3.Error as error:
        raise ClientError(f"{source} cannot be copied: {error}") from error


def _keep(file: Path, copy: Path) -> None:
    """Keep a file that the module may remove while the backup is made."""
    if copy.exists():
        return
    try:
        copy.hardlink_to(file)
    except FileNotFoundError:
        raise
    except OSError:
        # On another disk, for example.
        shutil.copyfile(file, copy)


def _needs(database: Path) -> tuple[set[str], int]:
    """Return the names of the inputs of all submissions that have not ended, and their number."""
    store = RowStore(database)
    try:
        live = [row for row in store.live_rows() if isinstance(row, SubmissionRow) and row.ended_at is None]
    finally:
        store.close()
    inputs = (
        each for row in live for each in (*row.command.inputs, *(one for member in row.member_inputs for one in member))
    )
    return {file_name(each.sha256) for each in inputs if each.is_file}, len(live)


def _own_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a module that belong to a backup, beside its database."""
    yield from (path for path in _files_in(folder) if not _is_left_out(path.name))
    for name in _FOLDERS_OF_MODULES:
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and not path.is_symlink() and not _is_left_out(path.name):
                yield path


def is_of_backup(parts: list[str]) -> bool:
    """Return whether a backup has a file at this path of `tls` or `modules`: none that belongs to processes."""
    match parts:
        case ["tls", name]:
            return name != "lock" and not _is_left_out(name)
        case ["modules", _, name]:
            return name == DATABASE or not _is_left_out(name)
        case ["modules", _, "outside", name] if _NUMBERED.fullmatch(name):
            return True
        case ["modules", _, folder, *_, name]:
            return folder in _FOLDERS_OF_MODULES and not _is_left_out(name)
    return False


def _is_left_out(name: str) -> bool:
    return name in _NEVER or name.endswith(_NEVER_SUFFIXES) or name.startswith(".")


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())


def _outside(settings: ModuleSettings, federation: Path) -> list[Path]:
    """Return the files that settings name outside the folder of the federation."""
    named = [settings.certificate_file, settings.key_file, settings.trust_file]
    named += [] if settings.policy_file is None else [settings.policy_file]
    named += [each.file for link in settings.neighbors for each in link.trust]
    named += [each.file for each in settings.introductions]
    return [path for path in dict.fromkeys(named) if not path.is_relative_to(federation)]


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:99]


def _add(writer: Writer, stored: str, path: Path) -> None:
    try:
        writer.add(stored, path)
    except OSError as error:
        raise ClientError(f"{path} cannot be stored: {error.strerror or error}") from error
