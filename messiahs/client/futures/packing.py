"""What travels to machines: calls as bytes, and the archive that runs them where MESSIAHS is not installed."""

import json
import sys
import zipfile
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
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


def function_key(function: Callable[..., object]) -> Hashable:
    """Return what is equal for calls that may be expected to take about as long as each other.

    Functions that are made again and again by the same code are one, and so are all objects of a class.
    """
    while isinstance(function, partial | MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    if isinstance(function, FunctionType | BuiltinFunctionType | type):
        return function.__module__, function.__qualname__, getattr(function, "__code__", None)
    return type(function).__module__, type(function).__qualname__, None


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
