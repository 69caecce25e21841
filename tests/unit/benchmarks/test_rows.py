"""The benchmarks themselves: rows can be entered, turns alternate, and verdicts say what the numbers say."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from rich.console import Console

from tests.benchmarks import growing, judging, refusing, simulating, starting, vectors, viewing
from tests.benchmarks.__main__ import all_rows
from tests.benchmarks.measuring import (
    OURS,
    TINY,
    Budget,
    Contender,
    Entrant,
    Measured,
    Reading,
    Row,
    Sizes,
    Skipped,
    Verdict,
    measure,
)
from tests.benchmarks.processes import memory_of, usage_of
from tests.benchmarks.profiling import import_time, own_time
from tests.benchmarks.showing import document_of, skipped_lines, table_of
from tests.benchmarks.surroundings import Surroundings

AROUND = Surroundings(
    processor="a processor", cores=2, memory_bytes=1, kernel="6", python="3", load_average=9.0, busy_percent=90.0
)
IN_THIS_PROCESS = (
    *judging.rows(),
    *viewing.rows(),
    *refusing.rows(),
    *vectors.rows(),
    *growing.rows(),
    *simulating.rows(),
    pytest.param(starting.rows()[0], marks=pytest.mark.processes),
)


def _row(enter: Callable[[], Sequence[Entrant]], *budgets: Budget) -> Row:
    @contextmanager
    def entering(_sizes: Sizes) -> Iterator[Sequence[Entrant]]:
        yield enter()

    return Row(name="row", what="a row", budgets=budgets, enter=entering)


def _contender(name: str, values: Sequence[float], log: list[str]) -> Contender:
    left = iter(values)

    def take_a_turn() -> list[Reading]:
        log.append(name)
        return [Reading("speed", "/s", next(left))]

    return Contender(name=name, measure=take_a_turn)


def _measured(*budgets: Budget, ours: Sequence[float], peer: Sequence[float] = ()) -> Measured:
    entrants: list[Entrant] = [
        _contender(name, values, []) for name, values in ((OURS, ours), ("peer", peer)) if values
    ]
    return measure(_row(lambda: entrants, *budgets), TINY, repeats=len(ours))


def _printed(measured: Sequence[Measured]) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(table_of(measured))
    return captured.get()


@pytest.mark.parametrize("row", IN_THIS_PROCESS, ids=lambda row: row.name)
def test_a_row_gives_every_figure_that_has_a_budget(row: Row) -> None:
    measured = measure(row, TINY, repeats=1)
    assert {budget.figure for budget in row.budgets} <= set(measured.values)
    for figure, values in measured.values.items():
        assert values[OURS], figure
        assert all(value >= 0 for each in values.values() for value in each)
    assert _printed([measured])


def test_names_of_rows_are_unique() -> None:
    names = [row.name for row in all_rows()]
    assert len(names) == len(set(names))


def test_contenders_take_turns_and_who_is_skipped_is_said() -> None:
    log: list[str] = []
    entrants: tuple[Entrant, ...] = (
        _contender(OURS, (1, 2), log),
        Skipped(name="absent", reason="not installed"),
        _contender("peer", (3, 4), log),
    )
    measured = measure(_row(lambda: entrants), TINY, repeats=2)
    assert log == [OURS, "peer", OURS, "peer"]
    assert measured.values == {"speed": {OURS: [1, 2], "peer": [3, 4]}}
    assert skipped_lines([measured]) == ["row: no absent: not installed"]


def test_a_profile_is_taken_of_ours_alone() -> None:
    log: list[str] = []

    @contextmanager
    def profiled(contender: Contender) -> Iterator[None]:
        log.append(f"into {contender.name}")
        yield
        log.append("out")

    entrants = (_contender(OURS, (1,), log), _contender("peer", (2,), log))
    measure(_row(lambda: entrants), TINY, repeats=1, profiled=profiled)
    assert log == [f"into {OURS}", OURS, "out"]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((1, 9, 2), Verdict.MISSED), ((1, 10, 20), Verdict.REACHED), ((30, 20, 1), Verdict.AIM)],
)
def test_the_median_decides_where_more_is_better(ours: tuple[float, ...], verdict: Verdict) -> None:
    budget = Budget(figure="speed", at_least=10, aim=20, is_more_better=True)
    assert _measured(budget, ours=ours).verdict("speed") is verdict


@pytest.mark.parametrize(("ours", "verdict"), [(21, Verdict.MISSED), (20, Verdict.REACHED), (10, Verdict.AIM)])
def test_the_median_decides_where_less_is_better(ours: float, verdict: Verdict) -> None:
    assert _measured(Budget(figure="speed", at_least=20, aim=10), ours=(ours,)).verdict("speed") is verdict


def test_a_budget_in_multiples_of_a_peer_needs_the_peer() -> None:
    budget = Budget(figure="speed", at_least=5, aim=10, times_peer="peer")
    assert _measured(budget, ours=(1,), peer=(5,)).verdict("speed") is Verdict.REACHED
    assert _measured(budget, ours=(1,), peer=(4.9,)).verdict("speed") is Verdict.MISSED
    assert _measured(budget, ours=(1,)).verdict("speed") is Verdict.OPEN


@pytest.mark.parametrize(
    ("before", "ours", "verdict", "at_least"),
    [
        (1, 100, Verdict.AIM, 100),
        (1, 101, Verdict.MISSED, 100),
        (30, 150, Verdict.REACHED, 150),
        (30, 151, Verdict.MISSED, 150),
        (60, 250, Verdict.REACHED, 250),
        (60, 251, Verdict.MISSED, 250),
    ],
)
def test_so_many_times_another_figure_are_enough_between_the_two_numbers(
    before: float, ours: float, verdict: Verdict, at_least: float
) -> None:
    def measured_both() -> list[Reading]:
        return [Reading("before", "ms", before), Reading("time", "ms", ours)]

    budget = Budget(figure="time", at_least=250, aim=100, beside=(5, "before"))
    measured = measure(_row(lambda: [Contender(name=OURS, measure=measured_both)], budget), TINY, repeats=1)
    assert measured.verdict("time") is verdict
    (_, figure) = document_of([measured], around=AROUND, repeats=1, sizes="tiny")["rows"][0]["figures"]
    assert figure["at_least"] == at_least
    assert str(at_least) in _printed([measured])


def test_the_table_and_the_document_hold_median_spread_verdict_and_peers() -> None:
    budget = Budget(figure="speed", at_least=10, aim=2000, is_more_better=True)
    measured = _measured(budget, ours=(11, 1234, 12), peer=(7, 7, 7))
    (line,) = [line for line in _printed([measured]).splitlines() if "speed" in line]
    assert [part.strip() for part in line.strip("│").split("│")] == [
        "row", "speed", "12.0 (11.0 to 1,234) /s", "10.0", "2,000", "reached", "peer 7.00",
    ]  # fmt: skip
    document = document_of([measured], around=AROUND, repeats=3, sizes="tiny")
    (row,) = document["rows"]
    (figure,) = row["figures"]
    assert (figure["verdict"], figure["achieved"]) == ("reached", 12)
    assert figure["contenders"][OURS] == {"median": 12, "lowest": 11, "highest": 1234, "values": [11, 1234, 12]}


def test_a_busy_machine_is_warned_of() -> None:
    assert "others use 90 %" in AROUND.warning


def test_own_time_is_counted_by_the_innermost_function() -> None:
    stacks = "main (a.py:1);work (a.py:2) 3\nmain (a.py:1);work (a.py:7) 2\nmain (a.py:9) 1\n"
    assert own_time(stacks) == {"work (a.py)": 5, "main (a.py)": 1}


def test_a_thread_that_waits_takes_no_time() -> None:
    assert not own_time("run (a.py:1);EpollSelector.select (selectors.py:468) 7\n")


def test_imports_are_read_from_what_python_says() -> None:
    said = "import time: self [us] | cumulative | imported package\nimport time:       120 |        150 |   zipimport\n"
    assert import_time(said + "a line | of | the program\n") == {"zipimport": 120}


def test_what_this_process_uses_is_seen() -> None:
    before = usage_of(os.getpid())
    sum(range(3_000_000))
    assert usage_of(os.getpid()).since(before).cpu_seconds > 0
    memory = memory_of(os.getpid())
    assert 0 < memory.proportional_bytes <= 2 * memory.resident_bytes
