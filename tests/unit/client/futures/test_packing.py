"""Calls and results as bytes, and the program that turns one into the other, run as in a task."""

import ast
import builtins
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from messiahs.client.futures import runner
from messiahs.client.futures.packing import (
    PYTHON,
    calls_file,
    function_key,
    packed_call,
    runner_archive,
)
from messiahs.client.futures.results import DamagedResultsError, Results, Returned
from messiahs.client.futures.runner import CALLS, RESULTS, Imports
from messiahs.errors import PythonMismatchError

pytestmark = pytest.mark.processes


def run(folder: Path, calls: bytes, *, program: str = "calls.pyz") -> subprocess.CompletedProcess[str]:
    (folder / CALLS).write_bytes(calls)
    (folder / "calls.pyz").write_bytes(runner_archive())
    return subprocess.run(
        [sys.executable, "-I", program], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def results(folder: Path, calls: int = 9) -> list[Returned | None]:
    whole = (folder / RESULTS).read_bytes()
    return list(Results(iter([whole]), size_bytes=len(whole), calls=calls))


def values(folder: Path) -> list[object]:
    return [None if one is None else type(one.error) if one.error else one.value for one in results(folder)]


def test_each_call_has_its_value_or_its_exception_in_order(tmp_path: Path) -> None:
    class OddError(Exception):
        """Can be pickled and not be read again."""

        def __init__(self, first: int, second: int) -> None:
            super().__init__(f"{first} and {second}")

    def odd() -> None:
        raise OddError(1, 2)

    calls = [packed_call(divmod, 7, 2), packed_call(divmod, 7, 0), packed_call(odd)]
    assert run(tmp_path, calls_file(calls)).returncode == 0
    value, zero, other = filter(None, results(tmp_path))
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
    assert values(tmp_path) == [1]


def test_calls_of_another_python_do_not_run(tmp_path: Path) -> None:
    calls = calls_file([packed_call(Path.touch, tmp_path / "ran")])
    assert run(tmp_path, calls.replace(str(list(PYTHON)).encode(), b"[3, 1]")).returncode == 1
    assert not (tmp_path / "ran").exists()
    assert results(tmp_path) == []


def test_a_python_that_is_too_old_for_the_runner_says_so(tmp_path: Path) -> None:
    source = Path(runner.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))
    # `missing_ok` came with 3.8, and a default of `byteorder` with 3.11.
    (tmp_path / "old.py").write_text(
        "import os, pathlib, runpy, sys\n"
        "sys.version_info = (3, 6, 15, 'final', 0)\n"
        "pathlib.Path.unlink = lambda path: os.unlink(path)\n"
        "runpy.run_path('calls.pyz', run_name='__main__')\n"
    )
    assert run(tmp_path, calls_file([packed_call(abs, -1)]), program="old.py").returncode == 1
    with pytest.raises(PythonMismatchError, match=r"Python 3\.6 is there"):
        results(tmp_path)


class Job:
    """What joblib makes for each batch, say."""

    def __call__(self) -> None:
        """Do nothing."""

    def run(self) -> None:
        """Do nothing."""


def test_functions_that_are_made_by_the_same_code_are_one_and_others_are_not() -> None:
    def made(number: int) -> Callable[[], int]:
        return lambda: number

    assert function_key(made(1)) == function_key(made(2))
    assert function_key(Job()) == function_key(Job())
    assert function_key(Job().run) == function_key(partial(Job().run)) == function_key(Job.run)
    functions: list[Callable[..., object]] = [lambda: 1, lambda: 2, made(1), int, str, abs, divmod, "a".join, Job()]
    assert len({function_key(one) for one in (*functions, Job.run)}) == len(functions) + 1


def test_the_archive_is_the_same_each_time() -> None:
    assert runner_archive() == runner_archive()


@pytest.mark.parametrize(
    "damage",
    [
        "mv results away; echo mine > results",
        "rm results",
        "echo mine > results",
        "echo mine >> results",
        "rm results; mkdir -p results/inner",
        "ln -sf /dev/null results",
    ],
)
def test_a_call_that_changes_the_results_has_an_error_and_only_results_before_are_lost(
    tmp_path: Path, damage: str
) -> None:
    calls = [packed_call(abs, -1), packed_call(os.system, damage), packed_call(abs, -2), packed_call(os.system, damage)]
    assert run(tmp_path, calls_file([*calls, packed_call(abs, -3)])).returncode == 0
    assert values(tmp_path) == [None, RuntimeError, None, RuntimeError, 3]
    assert "changed the file `results`" in str(next(one for one in results(tmp_path) if one).error)


def test_a_call_that_goes_to_another_folder_is_not_blamed(tmp_path: Path) -> None:
    assert run(tmp_path, calls_file([packed_call(os.chdir, "/"), packed_call(abs, -1)])).returncode == 0
    assert values(tmp_path) == [None, 1]
    assert results(tmp_path)[0] is not None


def test_results_that_were_cut_off_are_those_before_and_then_a_damage(tmp_path: Path) -> None:
    run(tmp_path, calls_file([packed_call(abs, -1), packed_call(bytes, 100)]))
    whole = (tmp_path / RESULTS).read_bytes()
    for length in range(len(whole)):
        found = Results(iter([whole[:length]]), size_bytes=length, calls=2)
        with pytest.raises((DamagedResultsError, StopIteration)):
            # Without an end, since the last record is not whole.
            assert [next(found) is None, next(found) is None, next(found) is None] == []


def test_no_bit_of_the_results_can_be_changed_unseen(tmp_path: Path) -> None:
    run(tmp_path, calls_file([packed_call(abs, -1)]))
    whole = (tmp_path / RESULTS).read_bytes()
    for place in range(whole.index(b"\n"), len(whole)):
        damaged = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        with pytest.raises(DamagedResultsError):
            list(Results(iter([damaged]), size_bytes=len(damaged), calls=2))
