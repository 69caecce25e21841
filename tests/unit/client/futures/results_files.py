"""Files `results` as the runner writes them, made by hand."""

import json
import pickle

from messiahs.client.futures.packing import PYTHON
from messiahs.client.futures.runner import check_sum, number

Python = tuple[object, ...]


def results_file(*records: bytes, python: Python = PYTHON) -> bytes:
    """Return a file with records of the first calls."""
    return numbered_results(*enumerate(records), python=python)


def numbered_results(*records: tuple[int, bytes], python: Python = PYTHON) -> bytes:
    """Return a file with records of some calls."""
    header = json.dumps({"python": list(python)}).encode()
    parts = [
        part
        for index, record in records
        for part in (number(index), number(1), number(len(record)), number(check_sum(index, 1, record=record)), record)
    ]
    return b"".join((header, b"\n", *parts))


def returning(value: object) -> bytes:
    """Return the record of a call that returned a value."""
    return pickle.dumps((False, pickle.dumps(value), ""))


def raising(error: BaseException, reported: str = "Traceback: there") -> bytes:
    """Return the record of a call that raised an error."""
    return pickle.dumps((True, pickle.dumps(error), reported))
