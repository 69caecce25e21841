"""Reads the file `results` of a task, one record at a time; a machine, or one of the calls, may have damaged it."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from messiahs.client.futures.packing import PYTHON, pickler
from messiahs.client.futures.runner import HEAD_NUMBERS, NUMBER_BYTES, check_sum
from messiahs.core.model.texts import printable, printable_lines
from messiahs.errors import MessiahsError, PythonMismatchError

_HEADER_BYTES: Final = 4_096
_LARGEST_PART: Final = 99
"""No version of Python has a larger number."""


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call returned, or the error that it raised, and how long it took."""

    value: Any
    error: BaseException | None
    took_ns: int


class DamagedResultsError(MessiahsError):
    """The rest of a file `results` cannot be read."""


class RemoteTraceback(Exception):  # noqa: N818 - a cause to be shown, which nobody catches
    """The traceback of an exception, as text that steers no terminal, at the machine where it was raised."""

    def __init__(self, text: str) -> None:
        text = printable_lines(text)
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """Return the traceback."""
        return f"\n{self.text}"


class Results(Iterator[Returned | None]):
    """The results in a file `results` that comes in pieces (mutable); one record is in memory at a time.

    There is one for each call in their order, None for a call whose result was lost, and none after the last record.

    Raises `PythonMismatchError` before the first one if another minor version of Python was to run the calls, and
    `DamagedResultsError` where the file is not what the runner writes, or ends within a record.
    """

    def __init__(self, pieces: Iterator[bytes], *, size_bytes: int, calls: int) -> None:
        """Read results of at most `calls` calls; the pieces have `size_bytes`."""
        self._pieces, self._left, self._calls = pieces, size_bytes, calls
        self._ahead = bytearray()
        self._next_index = 0
        self._head: tuple[int, int, int, int] | None = None
        self._has_begun = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Returned | None:
        """Read what there is of the next call; nothing here refers to it afterwards."""
        if not self._has_begun:
            self._has_begun = True
            _check_python(self._line())
        if self._head is None:
            self._head = self._next_head()
        index, took_ns, length, stated_sum = self._head
        self._next_index += 1
        if index >= self._next_index:
            return None
        self._head = None
        record = self._read(length)
        if check_sum(index, took_ns, record=record) != stated_sum:
            raise DamagedResultsError("a record is not what was written")
        return _returned(record, took_ns)

    def _next_head(self) -> tuple[int, int, int, int]:
        head = self._read(HEAD_NUMBERS * NUMBER_BYTES)
        if not head:
            raise StopIteration
        index, took_ns, length, stated_sum = (
            int.from_bytes(head[at : at + NUMBER_BYTES]) for at in range(0, HEAD_NUMBERS * NUMBER_BYTES, NUMBER_BYTES)
        )
        # No more memory is taken than there can be bytes.
        if len(head) < HEAD_NUMBERS * NUMBER_BYTES or length > self._left + len(self._ahead):
            raise DamagedResultsError("it ends within a record")
        if not self._next_index <= index < self._calls:
            raise DamagedResultsError("a record is not what was written")
        return index, took_ns, length, stated_sum

    def _line(self) -> bytes:
        line = bytearray()
        while len(line) < _HEADER_BYTES and (byte := self._read(1)):
            line += byte
            if byte == b"\n":
                return bytes(line)
        raise DamagedResultsError("its first line is not there")

    def _read(self, size_bytes: int) -> bytearray:
        """Return the next bytes; fewer at the end."""
        taken = self._ahead[:size_bytes]
        del self._ahead[:size_bytes]
        while (missing := size_bytes - len(taken)) and (piece := next(self._pieces, None)) is not None:
            self._left -= len(piece)
            taken += piece[:missing]
            self._ahead += piece[missing:]
        return taken


def _check_python(line: bytes) -> None:
    """Raise the error for a first line that is damaged or of another Python."""
    try:
        major, minor = json.loads(line)["python"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedResultsError("its first line is damaged") from error
    if not all(type(part) is int and 0 <= part <= _LARGEST_PART for part in (major, minor)):
        raise DamagedResultsError("its first line is damaged")
    if (major, minor) != PYTHON:
        here = ".".join(map(str, PYTHON))
        raise PythonMismatchError(f"the calls are those of Python {here}, and Python {major}.{minor} is there")


def _returned(record: bytearray, took_ns: int) -> Returned:
    """Return a result; what cannot be unpickled here is an error with what is known of it."""
    try:
        is_raised, packed, reported = pickle.loads(record)  # noqa: S301 - docs/security.md says what that means
        if not is_raised:
            return Returned(pickler().loads(packed), None, took_ns)
        error = _raised(packed, str(reported))
    except Exception as problem:  # noqa: BLE001 - unpickling runs code of the result
        return Returned(None, problem, took_ns)
    except BaseException as problem:  # noqa: BLE001 - it is to end neither this thread nor the one that takes the result
        ended = RuntimeError(f"unpickling the result raised {type(problem).__name__}")
        ended.__cause__ = problem
        return Returned(None, ended, took_ns)
    return Returned(None, error, took_ns)


def _raised(packed: bytes, reported: str) -> BaseException:
    raised: object
    try:
        raised = pickler().loads(packed)
    except BaseException:  # noqa: BLE001 - as above
        raised = None
    if not isinstance(raised, BaseException):
        raised = RuntimeError(printable(reported.rstrip().rpartition("\n")[2]))
    raised.__cause__ = RemoteTraceback(reported)
    return raised
