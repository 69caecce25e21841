"""Results as they are read from a file that a machine has sent."""

import pickle
from collections.abc import Iterator

import pytest

from messiahs.client.futures.packing import pickler
from messiahs.client.futures.results import DamagedResultsError, Results, Returned
from messiahs.client.futures.runner import number
from messiahs.errors import PythonMismatchError
from tests.unit.client.futures.results_files import numbered_results, raising, results_file, returning


def read(content: bytes, calls: int = 9) -> list[Returned | None]:
    return list(Results(iter([content]), size_bytes=len(content), calls=calls))


def test_one_result_is_read_at_a_time() -> None:
    content = results_file(*(returning(bytes(1_000)) for _ in range(5)))
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(content), 100):
            taken.append(at)
            yield content[at : at + 100]

    results = Results(pieces(), size_bytes=len(content), calls=5)
    read_after = [taken[-1] for _ in results]
    assert len(read_after) == 5
    assert all(after < (number + 1) * 1_100 + 200 for number, after in enumerate(read_after))


def test_calls_without_a_record_have_none() -> None:
    found = read(numbered_results((1, returning("b")), (3, returning("d"))))
    assert [one and one.value for one in found] == [None, "b", None, "d"]


@pytest.mark.parametrize(
    "head",
    [(0, 1, 2**63, 0), (0, 1, 2**64 - 1, 0), (9, 1, 0, 0), (2**64 - 1, 1, 0, 0), (0, 2**64 - 1, 0, 1)],
)
def test_numbers_that_a_machine_has_invented_are_a_damage(head: tuple[int, ...]) -> None:
    with pytest.raises(DamagedResultsError):
        read(results_file() + b"".join(map(number, head)))


def test_records_in_another_order_are_a_damage() -> None:
    with pytest.raises(DamagedResultsError):
        read(numbered_results((1, returning(1)), (0, returning(0))))


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"[]", b'{"python": 3}', b'{"python": [3]}', b'{"python": ["\x1b[2J", 11]}', b'{"python": [3, 1e9]}'),
        *(b"[" * 4_000, b'{"python": [3, 100]}', b'{"python": [-3, 11]}', b" " * 10_000, b"\xff"),
    ],
)
def test_a_first_line_that_a_machine_has_invented_is_a_damage(line: bytes) -> None:
    with pytest.raises(DamagedResultsError, match=r"^its first line is"):
        read(line + b"\n")


def test_results_of_another_python_are_named() -> None:
    with pytest.raises(PythonMismatchError, match=r"Python 3\.1 is there"):
        read(results_file(python=(3, 1)))


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"no pickle",
        *(pickle.dumps(one) for one in (None, 7, (), (1, 2), (False, 7, ""), (True, b"", None), (True, 7, [7]))),
    ],
)
def test_a_record_that_is_no_result_is_an_error_of_its_call_alone(record: bytes) -> None:
    first, second, third = read(results_file(returning(1), record, returning(3)))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.value, third.value) == (1, 3)
    assert isinstance(second.error, Exception)


def test_a_traceback_from_a_machine_steers_no_terminal() -> None:
    (found,) = read(results_file(raising(KeyError("x"), "Traceback\n  a\x1b[2J\u202e\nKeyError: 'x'")))
    assert found is not None
    assert found.error is not None
    assert str(found.error.__cause__) == "\nTraceback\n  a\\x1b[2J\\u202e\nKeyError: 'x'"
    (found,) = read(results_file(pickle.dumps((True, b"", "Traceback\nOdd: \x1b]0;title\x07"))))
    assert found is not None
    assert str(found.error) == "Odd: \\x1b]0;title\\x07"


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
    first, second = read(results_file(*records))
    assert first is not None
    assert second is not None
    assert str(first.error) == f"unpickling the result raised {error.__name__}"
    assert isinstance(first.error, RuntimeError)
    assert isinstance(second.error, RuntimeError)
    assert str(second.error) == "Odd: 1"
