"""The program of a task that runs calls: standard library and cloudpickle only, since MESSIAHS is not installed there.

It reads `calls` and appends to `results` in its working directory. Both begin with a line of JSON. In `calls` it has
the minor version of Python that pickled them (`python`), and a call follows for each of its `count`. In `results` a
record follows for each call that has returned, in their order. Numbers are of eight bytes, the highest first.

- A call: its length, and `(function, positional arguments, keyword arguments)` pickled.
- A record: the number of its call (from 0), the nanoseconds that the function took without what it imported, its
  length, its sum (`check_sum`), and `(is_raised, pickled value or exception, traceback)` pickled. What cannot be read
  there is known by its traceback.

A call may write to any file here. `results` begins again after one that has changed its length, or replaced it: the
records of calls before are lost, but not those that say which calls did it.
"""

import builtins
import json
import os
import pickle
import shutil
import sys
import threading
import time
import traceback
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

CALLS, RESULTS = "calls", "results"
NUMBER_BYTES = 8
HEAD_NUMBERS = 4
"""Numbers before each record."""


def main() -> int:
    """Run all calls; returns 0 unless this Python cannot read them, which `results` then says."""
    with Path(CALLS).open("rb") as calls:
        wanted, here = json.loads(calls.readline()), list(sys.version_info[:2])
        if wanted["python"] != here:
            # Up to this line, all is known to Python 3.6.
            with open(RESULTS, "wb") as told:  # noqa: PTH123 - as old
                told.write(header_line(here))
            return 1
        results = ResultsFile(here)
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - a path of the import system is text
        for index in range(wanted["count"]):
            packed = calls.read(number_in(calls))
            record, took_ns = _outcome(packed)
            results.add(index, record, took_ns=took_ns)
    return 0


def header_line(python: "list[int]") -> bytes:
    """Return the line with which `results` begins."""
    return json.dumps({"python": python}).encode() + b"\n"


def number(value: int) -> bytes:
    """Return a number as it is written."""
    return value.to_bytes(NUMBER_BYTES)


def number_in(file: BinaryIO) -> int:
    """Read a number; `EOFError` at the end of the file."""
    raw = file.read(NUMBER_BYTES)
    if len(raw) < NUMBER_BYTES:
        raise EOFError
    return int.from_bytes(raw)


def check_sum(index: int, took_ns: int, *, record: "bytes | bytearray") -> int:
    """Return a number that tells whether a record, or what is said of it, was damaged."""
    return zlib.crc32(record, zlib.crc32(number(index) + number(took_ns) + number(len(record))))


class ResultsFile:
    """The file `results` while calls run that may write to it, too (mutable)."""

    def __init__(self, python: "list[int]") -> None:
        # A call may go to another folder.
        self._path = Path(RESULTS).absolute()
        self._header = header_line(python)
        self._blamed = b""
        self._begin()

    def add(self, index: int, record: bytes, *, took_ns: int) -> None:
        """Append the record of a call, or the error of one that has damaged the file."""
        is_damaged = self._seen() != self._left_as
        if is_damaged:
            record = _record_of(
                RuntimeError(f"the call has changed the file `{RESULTS}`, which has the results of its task")
            )
        head = (number(each) for each in (index, took_ns, len(record), check_sum(index, took_ns, record=record)))
        content = b"".join((*head, record))
        if is_damaged:
            self._blamed += content
            self._file.close()
            self._begin()
        else:
            self._append(content)

    def _begin(self) -> None:
        if self._path.is_dir() and not self._path.is_symlink():
            shutil.rmtree(self._path)
        else:
            self._path.unlink(missing_ok=True)
        self._file = self._path.open("xb")
        self._append(self._header + self._blamed)

    def _append(self, content: bytes) -> None:
        self._file.write(content)
        # What has returned is not lost if the next call ends this process.
        self._file.flush()
        self._left_as = self._seen()

    def _seen(self) -> "tuple[int, ...] | None":
        try:
            found = self._path.lstat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size


class Imports:
    """How long this thread imports modules, from `__enter__` to `__exit__` (mutable)."""

    def __init__(self) -> None:
        self.took_ns = 0
        self._thread, self._depth = threading.get_ident(), 0
        self._original = builtins.__import__

    def __enter__(self) -> "Imports":  # noqa: PYI034 - a Python that is too old for `Self` has to say so in `results`
        builtins.__import__ = self._import
        return self

    def __exit__(self, *_: object) -> None:
        if builtins.__import__ == self._import:
            # Otherwise the call has put something else there, which may stand on this.
            builtins.__import__ = self._original

    def _import(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as what it replaces
        if self._depth or threading.get_ident() != self._thread:
            return self._original(*arguments, **keywords)
        self._depth, began = 1, time.monotonic_ns()
        try:
            return self._original(*arguments, **keywords)
        finally:
            self._depth = 0
            self.took_ns += time.monotonic_ns() - began


def _outcome(packed: bytes) -> "tuple[bytes, int]":
    """Run a call; what it imports, also while it is unpickled, does not count: later calls find it there."""
    cloudpickle = import_module("cloudpickle")
    began, imports = time.monotonic_ns(), Imports()
    try:
        function, arguments, keywords = cloudpickle.loads(packed)
        began = time.monotonic_ns()
        with imports:
            value = function(*arguments, **keywords)
        took_ns = time.monotonic_ns() - began - imports.took_ns
        return pickle.dumps((False, cloudpickle.dumps(value), "")), took_ns
    except Exception as error:  # noqa: BLE001 - raised again where the result is taken
        took_ns = time.monotonic_ns() - began - imports.took_ns
        return _record_of(error), took_ns


def _record_of(error: Exception) -> bytes:
    reported = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        raised = bytes(import_module("cloudpickle").dumps(error))
    except Exception:  # noqa: BLE001 - it has no pickle
        raised = b""
    return pickle.dumps((True, raised, reported))


if __name__ == "__main__":
    sys.exit(main())
