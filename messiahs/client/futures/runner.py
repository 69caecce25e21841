"""The program of a task that runs calls: standard library and cloudpickle only, since MESSIAHS is not installed there.

It reads `calls` and appends to `results` in its working directory. Both begin with a line of JSON. In `calls` it has
the minor version of Python that pickled them (`python`), and a call follows for each of its `count`. In `results` a
record follows for each call that has returned, in their order. Numbers are of eight bytes, the highest first.

- A call: its length, and `(function, positional arguments, keyword arguments)` pickled.
- A record: its length, the nanoseconds that the function took without what it imported, and `(is_raised, pickled value
  or exception, traceback)` pickled. What cannot be read there is known by its traceback.
"""

import builtins
import json
import os
import pickle
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

CALLS, RESULTS = "calls", "results"
NUMBER_BYTES = 8


def main() -> int:
    """Run all calls; returns 0 unless this Python cannot read them, which `results` then says."""
    with Path(CALLS).open("rb") as calls, Path(RESULTS).open("wb") as results:
        wanted = json.loads(calls.readline())
        own = list(sys.version_info[:2])
        results.write(json.dumps({"python": own}).encode() + b"\n")
        if wanted["python"] != own:
            return 1
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - a path of the import system is text
        for _ in range(wanted["count"]):
            packed = calls.read(number_in(calls))
            record, took_ns = _outcome(packed)
            results.write(number(len(record)) + number(took_ns) + record)
            # What has returned is not lost if the next call ends this process.
            results.flush()
    return 0


def number(value: int) -> bytes:
    """Return a number as it is written."""
    return value.to_bytes(NUMBER_BYTES)


def number_in(file: BinaryIO) -> int:
    """Read a number; `EOFError` at the end of the file."""
    raw = file.read(NUMBER_BYTES)
    if len(raw) < NUMBER_BYTES:
        raise EOFError
    return int.from_bytes(raw)


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
        took_ns, reported = time.monotonic_ns() - began - imports.took_ns, traceback.format_exc()
        try:
            raised = bytes(cloudpickle.dumps(error))
        except Exception:  # noqa: BLE001 - it has no pickle
            raised = b""
        return pickle.dumps((True, raised, reported)), took_ns


if __name__ == "__main__":
    sys.exit(main())
