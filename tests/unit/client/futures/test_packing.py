"""Calls and results as bytes, and the program that turns one into the other, run as in a task."""

import builtins
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.client.futures.packing import (
    PYTHON,
    Returned,
    calls_file,
    packed_call,
    pickler,
    results_in,
    runner_archive,
)
from messiahs.client.futures.runner import CALLS, RESULTS, Imports, number
from messiahs.errors import PythonMismatchError

pytestmark = pytest.mark.processes


def run(folder: Path, calls: bytes) -> subprocess.CompletedProcess[str]:
    (folder / CALLS).write_bytes(calls)
    (folder / "calls.pyz").write_bytes(runner_archive())
    return subprocess.run(
        [sys.executable, "-I", "calls.pyz"], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def results(folder: Path) -> list[Returned]:
    return list(results_in((folder / RESULTS).read_bytes()))


def test_each_call_has_its_value_or_its_exception_in_order(tmp_path: Path) -> None:
    class OddError(Exception):
        """Can be pickled and not be read again."""

        def __init__(self, first: int, second: int) -> None:
            super().__init__(f"{first} and {second}")

    def odd() -> None:
        raise OddError(1, 2)

    calls = [packed_call(divmod, 7, 2), packed_call(divmod, 7, 0), packed_call(odd)]
    assert run(tmp_path, calls_file(calls)).returncode == 0
    value, zero, other = results(tmp_path)
    assert (value.value, value.error) == ((3, 1), None)
    assert isinstance(zero.error, ZeroDivisionError)
    assert isinstance(other.error, RuntimeError)
    assert "1 and 2" in str(other.error)
    assert "in odd" in str(other.error.__cause__)


def test_imports_of_a_call_take_none_of_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "import time\nbegan = time.monotonic_ns()\n{}while time.monotonic_ns() < began + 1_000_000: pass\n"
    (tmp_path / "outer_of_calls.py").write_text(
        body.format("import inner_of_calls\n") + "took = time.monotonic_ns() - began"
    )
    (tmp_path / "inner_of_calls.py").write_text(body.format(""))
    monkeypatch.syspath_prepend(tmp_path)
    original = builtins.__import__
    began = time.monotonic_ns()
    with Imports() as imports:
        import outer_of_calls  # type: ignore[import-not-found]  # noqa: PLC0415 - this is measured
    assert outer_of_calls.took <= imports.took_ns <= time.monotonic_ns() - began
    assert builtins.__import__ is original


def test_imports_of_other_threads_do_not_count_and_what_a_call_puts_in_their_place_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builtins, "__import__", builtins.__import__)
    with Imports() as imports:
        other = threading.Thread(target=lambda: __import__("json"))
        other.start()
        other.join()
        assert imports.took_ns == 0
        found: list[str] = []
        below: Callable[..., object] = builtins.__import__

        def noted(name: str, *arguments: object) -> object:
            found.append(name)
            return below(name, *arguments)

        monkeypatch.setattr(builtins, "__import__", noted)
    assert __import__("json")
    assert found == ["json"]


def test_what_returned_before_the_process_ended_is_there(tmp_path: Path) -> None:
    calls = [packed_call(abs, -1), packed_call(os._exit, 3), packed_call(abs, -2)]
    assert run(tmp_path, calls_file(calls)).returncode == 3
    assert [one.value for one in results(tmp_path)] == [1]


def test_a_record_that_is_cut_off_is_no_result(tmp_path: Path) -> None:
    run(tmp_path, calls_file([packed_call(abs, -1), packed_call(bytes, 100)]))
    whole = (tmp_path / RESULTS).read_bytes()
    first = whole.index(b"\n") + 1
    counts = {len(list(results_in(whole[:length]))) for length in range(first, len(whole))}
    assert counts == {0, 1}
    assert not list(results_in(whole[: first - 2]))


def test_calls_of_another_python_do_not_run(tmp_path: Path) -> None:
    calls = calls_file([packed_call(Path.touch, tmp_path / "ran")])
    assert run(tmp_path, calls.replace(str(list(PYTHON)).encode(), b"[3, 1]")).returncode == 1
    assert not (tmp_path / "ran").exists()
    assert results(tmp_path) == []


def test_results_of_another_python_are_named() -> None:
    with pytest.raises(PythonMismatchError, match=r"Python 3\.1 is there"):
        list(results_in(b'{"python": [3, 1]}\n'))


def test_the_archive_is_the_same_each_time() -> None:
    assert runner_archive() == runner_archive()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_result_that_ends_whoever_reads_it_is_an_error(error: type[BaseException]) -> None:
    class Ending:
        """Raises while it is unpickled."""

        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return raised, (error,)

    def raised(what: type[BaseException]) -> None:
        raise what

    value, failure = Ending(), RuntimeError(Ending())
    records = [
        pickle.dumps((False, pickler().dumps(value), "")),
        pickle.dumps((True, pickler().dumps(failure), "Odd: 1")),
    ]
    content = b"".join(part for one in records for part in (number(len(one)), number(1), one))
    first, second = results_in(json.dumps({"python": PYTHON}).encode() + b"\n" + content)
    assert str(first.error) == f"unpickling the result raised {error.__name__}"
    assert isinstance(first.error, RuntimeError)
    assert isinstance(second.error, RuntimeError)
    assert str(second.error) == "Odd: 1"
