"""What travels: calls and their results as bytes, and the archive that runs calls on a machine without MESSIAHS."""

import json
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, Final, ParamSpec

from messiahs.client.futures import runner
from messiahs.client.futures.runner import number, number_in
from messiahs.errors import MessiahsError, PythonMismatchError

P = ParamSpec("P")
PYTHON: Final = sys.version_info[:2]
_HEADER_BYTES: Final = 4_096
_FIXED_TIME: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call returned, or the error that it raised, and how long it took."""

    value: Any
    error: BaseException | None
    took_ns: int


class RemoteTraceback(Exception):  # noqa: N818 - a cause to be shown, which nobody catches
    """The traceback of an exception, as text, at the machine where it was raised."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """Return the traceback."""
        return f"\n{self.text}"


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


def results_in(content: bytes) -> Iterator[Returned]:
    """Yield the results in a file `results`, of which the end may be missing.

    Raises `PythonMismatchError` before the first one if another minor version of Python was to run the calls.
    """
    file = BytesIO(content)
    try:
        python = tuple(json.loads(file.readline(_HEADER_BYTES))["python"])
    except (ValueError, KeyError, TypeError):
        return
    if python != PYTHON:
        raise PythonMismatchError(
            f"the calls are those of Python {_dotted(PYTHON)}, and Python {_dotted(python)} is there"
        )
    try:
        while True:
            length, took_ns = number_in(file), number_in(file)
            record = file.read(length)
            if len(record) < length:
                return
            yield _returned(record, took_ns)
    except EOFError:
        return


def _returned(record: bytes, took_ns: int) -> Returned:
    """Return a result; what cannot be unpickled here is an error with what is known of it."""
    try:
        is_raised, packed, reported = pickle.loads(record)  # noqa: S301 - docs/security.md says what that means
        if not is_raised:
            return Returned(pickler().loads(packed), None, took_ns)
    except Exception as error:  # noqa: BLE001 - unpickling runs code of the result
        return Returned(None, error, took_ns)
    except BaseException as error:  # noqa: BLE001 - it is to end neither this thread nor the one that takes the result
        ended = RuntimeError(f"unpickling the result raised {type(error).__name__}")
        ended.__cause__ = error
        return Returned(None, ended, took_ns)
    try:
        raised = pickler().loads(packed)
    except BaseException:  # noqa: BLE001 - as above
        raised = None
    if not isinstance(raised, BaseException):
        raised = RuntimeError(reported.rstrip().rpartition("\n")[2])
    raised.__cause__ = RemoteTraceback(reported)
    return Returned(None, raised, took_ns)


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


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
