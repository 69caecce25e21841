"""Environments of programs that users name: packed once for each state of their folder, into a cache of the user."""

import gzip
import hashlib
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from messiahs.client.conda import prefix_of
from messiahs.client.full_disks import why_not_written
from messiahs.client.input_folders import Walked
from messiahs.client.inputs import LocalContent
from messiahs.client.progress import OnProgress
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, OptionValueError
from messiahs.executor.images.environments import ABOUT_NAME, TREE, Environment

CACHE_BYTES: Final = 8 << 30
"""Maximum size of the packed environments of a user; the least recently used ones go."""
_FORMAT: Final = b"1"
"""Changes with the content of archives."""
_CONFIGURATION: Final = "pyvenv.cfg"
_MINOR: Final = re.compile(r"(\d+\.\d+)")
_PACKED: Final = re.compile(r"([0-9a-f]{64})-([0-9a-f]{64})\.tar\.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedEnvironment:
    """An environment in an archive, with the interpreter that it needs outside of it, if any."""

    content: LocalContent
    interpreter: str


def packed_venv(folder: str, on_progress: OnProgress) -> PackedEnvironment:
    """Return the archive of a virtual environment of Python; raises `ClientError` if it is none, or cannot be sent."""
    path = os.path.abspath(folder)  # noqa: PTH100 - its programs have the path by which it was made, links and all
    try:
        configuration = _configuration(Path(path, _CONFIGURATION).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = (isinstance(error, OSError) and error.strerror) or "it is not UTF-8"
        raise OptionValueError(
            f"`{folder}` is no virtual environment: {_CONFIGURATION} cannot be read: {why}"
        ) from error
    minor = _MINOR.match(configuration.get("version", configuration.get("version_info", "")))
    home = configuration.get("home", "")
    if minor is None or not home.startswith("/"):
        raise OptionValueError(f"`{folder}` is no virtual environment: {_CONFIGURATION} has no `home` or `version`")
    interpreter = os.path.normpath(f"{home}/python{minor[1]}")
    about = _about(folder, path, variable="VIRTUAL_ENV", interpreter=interpreter, links=_links_out_of(path))
    return _packed(about, folder, on_progress)


def packed_conda(named: str, on_progress: OnProgress) -> PackedEnvironment:
    """Return the archive of an environment of conda, which has its own interpreter; raises `ClientError` as above."""
    about = _about(named, prefix_of(named), variable="CONDA_PREFIX")
    return _packed(about, named, on_progress)


def _about(named: str, path: str, *, variable: str, interpreter: str = "", links: tuple[str, ...] = ()) -> Environment:
    try:
        return Environment(path=path, variable=variable, interpreter=interpreter, links=links)
    except ValueError as error:
        raise OptionValueError(
            f"the environment `{named}` cannot be shown to a task at {printable(path)}: {error}"
        ) from error


def _configuration(text: str) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _links_out_of(path: str) -> tuple[str, ...]:
    """Return where the names of the interpreter lead that lead out of an environment."""
    found = set[str]()
    for one in sorted(Path(path, "bin").glob("python*")):
        if one.is_symlink() and (target := os.readlink(one)).startswith("/"):  # noqa: PTH115 - a string
            # Two slashes at the beginning would stay.
            found.add(os.path.normpath(f"/{target.lstrip('/')}"))
    return tuple(sorted(found))


def _packed(about: Environment, folder: str, on_progress: OnProgress) -> PackedEnvironment:
    cache, entries = _cache(), list[tuple[str, os.stat_result]]()
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = list(_entries(about.path))
        signature = _signature(about, entries)
        known = next((found for found in _in_cache(cache) if found[0] == signature), None)
        path, sha256 = known[1:] if known is not None else _pack(about, entries, cache / signature, on_progress)
        os.utime(path)
        _trim(cache, kept=path)
        size_bytes = path.stat().st_size
    except OSError as error:
        size_bytes = sum(what.st_size for _, what in entries if stat.S_ISREG(what.st_mode))
        what = "the packed environment"
        full = why_not_written(error, cache, what=what, size_bytes=size_bytes, variable="XDG_CACHE_HOME")
        why = full or ": ".join(filter(None, (printable(str(error.filename or "")), error.strerror)))
        raise ClientError(f"the environment `{folder}` cannot be packed: {why}") from error
    file = Walked(str(path), "", size_bytes)
    content = LocalContent(file=file, sha256=sha256, size_bytes=size_bytes, is_executable=False)
    return PackedEnvironment(content=content, interpreter=about.interpreter)


def _cache() -> Path:
    above = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(above, "messiahs", "environments")


def _entries(path: str, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield everything in a folder, sorted by name; pipes, sockets and devices are left out."""
    with os.scandir(path) as scanned:
        found = sorted(scanned, key=lambda entry: entry.name)
    for entry in found:
        what = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(what.st_mode) or stat.S_ISLNK(what.st_mode):
            yield below + entry.name, what
        elif stat.S_ISDIR(what.st_mode):
            yield below + entry.name, what
            yield from _entries(entry.path, f"{below}{entry.name}/")


def _signature(about: Environment, entries: list[tuple[str, os.stat_result]]) -> str:
    """Return what changes with every change of an environment; its files are not read for that."""
    digest = hashlib.sha256(_FORMAT + msgspec.json.encode(about))
    for name, what in entries:
        # The times of a folder change with temporary files in it, too.
        times = () if stat.S_ISDIR(what.st_mode) else (what.st_size, what.st_mtime_ns, what.st_ctime_ns, what.st_ino)
        digest.update(f"{name}\0{what.st_mode:o} {times}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _in_cache(cache: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield the signature, the path and the hash of each packed environment."""
    for path in cache.iterdir():
        if match := _PACKED.fullmatch(path.name):
            yield match[1], path, match[2]


def _pack(
    about: Environment, entries: list[tuple[str, os.stat_result]], target: Path, on_progress: OnProgress
) -> tuple[Path, str]:
    """Write the archive of an environment: the same bytes whenever its files are the same; return it with its hash."""
    total, done = sum(what.st_size for _, what in entries if stat.S_ISREG(what.st_mode)), 0
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix="new-", delete=False) as draft:
        try:
            with (
                gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=draft, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
            ):
                _add_about(archive, about)
                for name, what in entries:
                    _add(archive, f"{about.path}/{name}", f"{TREE}/{name}", what)
                    done += what.st_size if stat.S_ISREG(what.st_mode) else 0
                    on_progress("packing", done, total)
            draft.close()
            with Path(draft.name).open("rb") as written:
                sha256 = hashlib.file_digest(written, "sha256").hexdigest()
            path = target.with_name(f"{target.name}-{sha256}.tar.gz")
            Path(draft.name).rename(path)
        except BaseException:
            with suppress(OSError):
                Path(draft.name).unlink()
            raise
    return path, sha256


def _add_about(archive: tarfile.TarFile, about: Environment) -> None:
    content = msgspec.json.encode(about)
    info = tarfile.TarInfo(ABOUT_NAME)
    info.size = len(content)
    with tempfile.SpooledTemporaryFile() as file:
        file.write(content)
        file.seek(0)
        archive.addfile(info, file)
    folder = tarfile.TarInfo(TREE)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    archive.addfile(folder)


def _add(archive: tarfile.TarFile, path: str, name: str, what: os.stat_result) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = 0o755 if what.st_mode & 0o111 else 0o644, int(what.st_mtime)
    if stat.S_ISLNK(what.st_mode):
        info.type, info.linkname, info.mtime = tarfile.SYMTYPE, os.readlink(path), 0  # noqa: PTH115 - a string
        archive.addfile(info)
    elif stat.S_ISDIR(what.st_mode):
        info.type, info.mtime = tarfile.DIRTYPE, 0
        archive.addfile(info)
    else:
        info.size = what.st_size
        with Path(path).open("rb") as file:
            archive.addfile(info, file)


def _trim(cache: Path, *, kept: Path) -> None:
    """Remove the least recently used files that exceed the cache; other commands may do so at the same time."""
    left = CACHE_BYTES
    for _, size_bytes, path in sorted(_uses_in(cache), reverse=True):
        left -= size_bytes
        if left < 0 and path != kept:
            with suppress(OSError):
                path.unlink()


def _uses_in(cache: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield when each file was last used, its size and its path; those that are gone by now are left out."""
    for path in cache.iterdir():
        with suppress(FileNotFoundError):
            found = path.stat()
            yield found.st_mtime, found.st_size, path
