"""Finding segment files, and reading them in the order in which they were written."""

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
    """Return these files, and every segment below these folders, each once, those of one folder in order.

    Raises `TraceError` if a path does not exist, or a folder has no segments.
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
    """Put files into a new compressed archive that only its owner can read, and return their number.

    In the archive they keep the names of their three innermost folders. Raises `TraceError` if it cannot be created.
    """
    count = 0
    try:
        descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as bundle:
            for path in files:
                # A file that the module has deleted meanwhile is left out.
                with suppress(FileNotFoundError):
                    bundle.add(path, arcname=str(Path(*path.absolute().parts[-_KEPT_PARTS:])))
                    count += 1
    except OSError as error:
        raise TraceError(f"{archive}: {error.strerror or error}") from error
    return count


def read_segments(files: Iterable[Path]) -> Iterator[Segment]:
    """Yield the segments of the files in turn; a file that ends before its segment has started is skipped.

    Raises `TraceError` for a file that cannot be read.
    """
    for path in files:
        try:
            data = read_regular(path, limit_bytes=_LIMIT_BYTES)
        except FileNotFoundError:
            # The module has deleted its oldest segment meanwhile.
            continue
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}") from error
        segment = read_segment(str(path), data)
        if segment is not None:
            yield segment
