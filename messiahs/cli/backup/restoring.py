"""Restoring a backup: everything is unpacked and checked beside its place, and then moved there.

A restored module has no mark beside its database, so its daemon takes the rows for an older copy: it continues in a new
epoch, above all numbers that it may have issued since.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from messiahs.cli.backup.archive import Contents, member_of, unpack
from messiahs.cli.backup.making import DATABASE, INPUTS, MODULES, OF_FEDERATION, is_of_backup
from messiahs.cli.backup.present_certificates import keep_pair, pair_note, put_shared
from messiahs.cli.backup.same_site import check_site
from messiahs.cli.federation.certificates import tls_paths
from messiahs.cli.federation.deployment import federation_directory
from messiahs.client.locating import check_socket_path
from messiahs.config.disk import available_bytes
from messiahs.config.regular_files import open_regular, read_at_most
from messiahs.config.settings import ModuleSettings, TrustedFile, load_settings, save_settings
from messiahs.config.whole_files import sync_folder
from messiahs.core.model.texts import printable
from messiahs.daemon.audit.files import AUDIT_FOLDER
from messiahs.daemon.process.pid_files import recorded_processes
from messiahs.daemon.storage.contents import contents_folder
from messiahs.daemon.storage.store import RowStore
from messiahs.errors import ClientError, MessiahsError
from messiahs.executor.protocol.layout import FALLBACK, prepare_files_root, task_account

_RESERVED_BYTES: Final = 16 << 20
_SECRET, _READABLE = 0o600, 0o444
_HEX_DIGITS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Modules that were restored, and what the administrator should know of it."""

    contents: Contents
    notes: tuple[str, ...]


def restore(
    archive: Path, state: Path, *, replaces: bool, module: str | None = None, is_same_site: bool = False
) -> Restored:
    """Restore the modules of a backup below a state directory, or one of them; they can be started then.

    What is in `tls` of the state directory stays. With `is_same_site` it is taken for that of the site of the backup
    without evidence. Raises ClientError, with everything as it was, if the archive cannot be used or is of another
    site, or a module of it exists and is not to be replaced, or runs.
    """
    with _staging(archive, state) as staging, open_regular(archive) as raw:
        members, tree = staging / "members", staging / "tree"
        members.mkdir()
        contents = unpack(raw, members)
        stored = contents.modules
        _lay_out(contents, members, tree)
        if module is not None:
            contents = _of_one(contents, module)
        for name in contents.modules:
            _check_module(contents, tree / MODULES / name, name)
        directory = state / contents.federation
        for name in contents.modules:
            _check_place(directory, name, replaces=replaces)
        if not is_same_site:
            check_site(tree, directory, stored)
        federation_directory(state, contents.federation)
        notes, tls = list[str](), directory / "tls"
        accepting = tls if (tls / "root.pem").exists() else tree / "tls"
        for name in contents.modules:
            notes += keep_pair(tree / MODULES / name, directory / name, accepting)
            _adapt(contents, tree / MODULES / name, directory, name=name)
        _move_in(contents, tree, directory, aside=staging / "replaced")
        notes += put_shared(tree, directory)
        for name in contents.modules:
            notes += pair_note(directory / name, tls)
        sync_folder(directory)
    return Restored(contents=contents, notes=tuple(notes))


@contextmanager
def _staging(archive: Path, state: Path) -> Iterator[Path]:
    """Make a folder on the disk of the state directory, which is removed afterwards, like what was made for it."""
    made = [folder for folder in (state, *state.parents) if not folder.exists()]
    try:
        size_bytes = archive.stat().st_size
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        if available_bytes(state) < size_bytes + _RESERVED_BYTES:
            raise ClientError(f"the disk of {state} has no room for the {size_bytes} bytes of {archive}")
        staging = Path(tempfile.mkdtemp(prefix=".restore-", dir=state))
    except OSError as error:
        raise ClientError(f"{error.filename or state}: {error.strerror}; nothing was changed") from error
    try:
        yield staging
    except OSError as error:
        raise ClientError(f"{error.filename or state}: {error.strerror or error}; nothing was changed") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in made:
            # Only an empty one is removed.
            with suppress(OSError):
                folder.rmdir()


def _of_one(contents: Contents, module: str) -> Contents:
    """Return the contents without other modules; what all of them share stays."""
    if module not in contents.modules:
        listed = ", ".join(contents.modules)
        raise ClientError(f"the backup has no module `{printable(module)}`, but {listed}; nothing was changed")
    others = {f"{folder}/{name}/" for folder in (MODULES, INPUTS) for name in contents.modules if name != module}
    files = tuple(each for each in contents.files if not each.path.startswith(tuple(others)))
    return replace(contents, modules=(module,), files=files)


def _lay_out(contents: Contents, members: Path, tree: Path) -> None:
    """Move the unpacked files to their paths, each of which is checked for its kind."""
    for number, each in enumerate(contents.files):
        if not _is_known(each.path.split("/"), contents):
            raise ClientError(f"the backup cannot be used: {each.path} has no place in it; nothing was changed")
        target = tree / each.path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        member = member_of(members, number)
        member.chmod(_READABLE if each.path.startswith(f"{INPUTS}/") else _SECRET)
        member.rename(target)


def _is_known(parts: list[str], contents: Contents) -> bool:
    match parts:
        case ["tls", _]:
            return is_of_backup(parts)
        case [name]:
            return name in OF_FEDERATION
        case ["inputs", module, name]:
            return module in contents.modules and len(name) == _HEX_DIGITS and set(name) <= set("0123456789abcdef")
        case ["modules", module, *_]:
            return module in contents.modules and is_of_backup(parts)
    return False


def _check_module(contents: Contents, folder: Path, name: str) -> None:
    try:
        settings = load_settings(folder / "settings.json")
        if (settings.federation, settings.name) != (contents.federation, name):
            raise ClientError(f"the settings of `{name}` are those of another module")
        if (folder / DATABASE).exists():
            RowStore(folder / DATABASE).close()
    except MessiahsError as error:
        raise ClientError(f"the backup cannot be used: {error}; nothing was changed") from error


def _check_place(directory: Path, name: str, *, replaces: bool) -> None:
    folder = directory / name
    check_socket_path(directory / f"{name}.sock")
    if not folder.exists():
        return
    if not replaces:
        text = f"`{name}` exists in {directory}: stop it, and add `--replace` to put the backup in its place"
        raise ClientError(f"{text}; nothing was changed")
    patterns = (f"{name}/*.pid", f"{name}/*/starter.pid")
    running = ", ".join(str(process.pid) for process in recorded_processes(directory, patterns))
    if running:
        raise ClientError(f"`{name}` or its tasks still run (processes {running}): end them; nothing was changed")


def _adapt(contents: Contents, folder: Path, directory: Path, *, name: str) -> None:
    """Let settings name files in the new place, and files outside the state directory where they are the same."""
    settings = load_settings(folder / "settings.json")
    tls = tls_paths(directory, name)

    @cache
    def present(path: Path) -> Path:
        stored = contents.outside.get(name, {}).get(str(path))
        if stored is None:
            former = Path(contents.state_directory)
            return directory / path.relative_to(former) if path.is_relative_to(former) else path
        prefix = f"{MODULES}/{name}/"
        copy = folder / stored.removeprefix(prefix)
        with suppress(OSError):
            # The path is one of the backup: it may be a device, or a pipe, which counts as another file.
            content = copy.read_bytes()
            if read_at_most(path, len(content) + 1) == content:
                copy.unlink()
                return path
        return directory / name / stored.removeprefix(prefix)

    save_settings(
        replace(
            settings,
            state_directory=directory,
            certificate_file=tls.certificate_file,
            key_file=tls.key_file,
            trust_file=tls.trust_file,
            policy_file=None if settings.policy_file is None else present(settings.policy_file),
            neighbors=tuple(replace(each, trust=_moved(each.trust, present)) for each in settings.neighbors),
            introductions=_moved(settings.introductions, present),
        ),
        folder / "settings.json",
    )


def _moved(trusted: tuple[TrustedFile, ...], present: Callable[[Path], Path]) -> tuple[TrustedFile, ...]:
    return tuple(replace(each, file=present(each.file)) for each in trusted)


def _move_in(contents: Contents, tree: Path, directory: Path, *, aside: Path) -> None:
    """Move the folders of the modules to their places; after an error all of them are as they were."""
    aside.mkdir()
    undo: list[tuple[Path, Path]] = []
    try:
        for name in contents.modules:
            final = directory / name
            if final.exists():
                final.rename(aside / name)
                undo.append((aside / name, final))
            (tree / MODULES / name).chmod(0o700)
            (tree / MODULES / name).rename(final)
            undo.append((final, tree / MODULES / name))
        for name in contents.modules:
            _put_inputs(tree / INPUTS / name, load_settings(directory / name / "settings.json"))
        for name in contents.modules:
            undo.extend(_keep_logs(aside / name, directory / name))
    except BaseException:
        for source, target in reversed(undo):
            source.rename(target)
        raise


def _keep_logs(former: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Keep the logs of a module that was replaced, which no backup has; yield where each is now, and where it was."""
    for path in (former / AUDIT_FOLDER, *sorted(former.glob("module.log*"))):
        kept = folder / path.name
        if path.exists() and not kept.exists():
            path.rename(kept)
            yield kept, path


def _put_inputs(folder: Path, settings: ModuleSettings) -> None:
    """Put inputs where the daemon looks for them, which may be outside the state directory."""
    account = task_account(settings.task_uids)
    contents = contents_folder(prepare_files_root(settings.directory, account, fallback=FALLBACK))
    for path in sorted(folder.glob("*")):
        draft = contents / f".{path.name}.{os.getpid()}"
        shutil.copyfile(path, draft)
        draft.chmod(_READABLE)
        draft.replace(contents / path.name)
