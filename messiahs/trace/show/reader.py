"""Finds segment files, and reads them in the order in which they were written."""

import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.config.regular_files import read_regular
from messiahs.errors import TraceError
from messiahs.trace.format.segments import Segment, read_segment
from messiahs.trace.record.ring import SUFFIX

_LIMIT_BYTES: Final = 4 * 1024 * 1024 * 1024
_KEPT_PARTS: Final = 4
"""FEDERATION/MODULE/trace/FILE, as under a state directory."""


def segment_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Give these files, and every segment below these folders, each once, those of one folder in order.

    A `TraceError` says that a path does not exist, or that nothing was recorded in a folder.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            below = sorted(path.rglob(f"*{SUFFIX}"))
            if not below:
                raise TraceError(f"{path}: no trace is here; `messiahs trace start` begins one")
            found.update(dict.fromkeys(below))
        elif path.exists():
            found[path] = None
        else:
            raise TraceError(f"{path}: there is no such file")
    return tuple(found)


def bundle_files(files: Iterable[Path], archive: Path) -> int:
    """Put files into a new compressed archive that its owner alone can read, and give how many.

    In the archive they keep the names of their three innermost folders. A `TraceError` says why it cannot be made.
    """
    count = 0
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
            for path in files:
                # One that the module has dropped since we looked is left out.
                with suppress(FileNotFoundError):
                    bundle.add(path, arcname=str(Path(*path.absolute().parts[-_KEPT_PARTS:])))
                    count += 1
    except OSError as error:
        raise TraceError(f"{archive}: {error.strerror or error}") from error
    return count


def read_segments(files: Iterable[Path]) -> Iterator[Segment]:
    """Read the files one by one; one that was cut off before it had begun is passed over.

    A `TraceError` says what cannot be read.
    """
    for path in files:
        try:
            data = read_regular(path, limit_bytes=_LIMIT_BYTES)
        except FileNotFoundError:
            # The module has dropped its oldest segment since we looked.
            continue
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}") from error
        segment = read_segment(str(path), data)
        if segment is not None:
            yield segment
