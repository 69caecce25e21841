"""What travels to machines: calls as bytes, and the archive that runs them where MESSIAHS is not installed."""

import json
import sys
import zipfile
from collections.abc import Callable, Iterable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Final, ParamSpec

from messiahs.client.futures import runner
from messiahs.client.futures.runner import number
from messiahs.errors import MessiahsError

P = ParamSpec("P")
PYTHON: Final = sys.version_info[:2]
_FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)


def pickler() -> ModuleType:
    """Return cloudpickle; a `MessiahsError` says how it is installed."""
    try:
        return import_module("cloudpickle")
    except ImportError as error:
        raise MessiahsError("`messiahs.Executor` needs cloudpickle: pip install 'messiahs[executor]'") from error


def packed_call(function: Callable[P, object], /, *arguments: P.args, **keywords: P.kwargs) -> bytes:
    """Pickle a call; raises what pickling raises."""
    return bytes(pickler().dumps((function, arguments, keywords)))


def calls_file(calls: Iterable[bytes]) -> bytes:
    """Return the content of the file `calls`."""
    packed = [part for call in calls for part in (number(len(call)), call)]
    header = {"python": list(PYTHON), "count": len(packed) // 2}
    return b"".join((json.dumps(header).encode(), b"\n", *packed))


def runner_archive() -> bytes:
    """Return an archive that Python runs, the same bytes each time: the runner and cloudpickle."""
    archive = BytesIO()
    package = Path(str(pickler().__file__)).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for path in sorted(package.rglob("*.py")):
            _add(written, f"{package.name}/{path.relative_to(package)}", path)
        _add(written, "__main__.py", Path(runner.__file__))
    return archive.getvalue()


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    # With a fixed time the archive is the same file for machines that have it.
    archive.writestr(zipfile.ZipInfo(name, _FIXED_TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
