"""Results as a table for people and as JSON."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tests.benchmarks.measuring import OURS, Budget, Measured, Verdict, spread
from tests.benchmarks.surroundings import Surroundings

_STYLES = {Verdict.AIM: "green", Verdict.REACHED: "green", Verdict.MISSED: "red", Verdict.OPEN: "yellow"}


def table_of(measured: Sequence[Measured]) -> Table:
    """Draw one line for each figure; a number is the median of the repeats, with the lowest and highest."""
    table = Table(pad_edge=False)
    table.add_column("row", no_wrap=True)
    table.add_column("figure", no_wrap=True)
    for heading in ("messiahs", "at least", "aim"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("beside it")
    for one in measured:
        for place, figure in enumerate(one.values):
            table.add_row(one.row.name if place == 0 else "", *_cells(one, figure))
        table.add_section()
    return table


def skipped_lines(measured: Sequence[Measured]) -> list[str]:
    """Return who is missing from which row, and why."""
    return [f"{one.row.name}: no {each.name}: {each.reason}" for one in measured for each in one.skipped]


def document_of(measured: Sequence[Measured], *, around: Surroundings, repeats: int, sizes: str) -> dict[str, Any]:
    """Return all results, including each repeat, as one JSON document."""
    return {
        "schema": 1,
        "machine": around.document(),
        "repeats": repeats,
        "sizes": sizes,
        "rows": [
            {
                "name": one.row.name,
                "what": one.row.what,
                "figures": [_figure_document(one, figure) for figure in one.values],
                "skipped": {each.name: each.reason for each in one.skipped},
            }
            for one in measured
        ],
    }


def _figure_document(measured: Measured, figure: str) -> dict[str, object]:
    budget = measured.budget(figure)
    return {
        "figure": figure,
        "unit": measured.units[figure],
        "at_least": measured.at_least(figure),
        "aim": budget and budget.aim,
        "times_peer": budget.times_peer if budget else "",
        "achieved": measured.achieved(figure),
        "verdict": measured.verdict(figure),
        "contenders": {
            name: dict(zip(("median", "lowest", "highest"), spread(values), strict=True)) | {"values": values}
            for name, values in measured.values[figure].items()
        },
    }


def _cells(measured: Measured, figure: str) -> tuple[str, ...]:
    values, unit, budget = measured.values[figure], measured.units[figure], measured.budget(figure)
    at_least, verdict = measured.at_least(figure), measured.verdict(figure)
    style = _STYLES.get(verdict, "")
    peers = (f"{name} {_number(spread(each)[0])}" for name, each in values.items() if name != OURS)
    return (
        figure,
        f"{_with_spread(values[OURS])} {unit}" if OURS in values else "",
        _wanted(budget, at_least) if budget and at_least is not None else "",
        _wanted(budget, budget.aim) if budget else "",
        f"[{style}]{verdict}[/]{_times(measured, figure)}" if verdict else "",
        ", ".join(peers),
    )


def _wanted(budget: Budget, amount: float) -> str:
    return f"{_number(amount)}x" if budget.times_peer else _number(amount)


def _times(measured: Measured, figure: str) -> str:
    budget, achieved = measured.budget(figure), measured.achieved(figure)
    return f" ({achieved:.2f}x)" if budget and budget.times_peer and achieved is not None else ""


def _with_spread(values: Sequence[float]) -> str:
    median, low, high = map(_number, spread(values))
    return median if low == high else f"{median} ({low} to {high})"


def _number(amount: float) -> str:
    """Format with three significant digits, and all digits before the point."""
    if amount == 0 or abs(amount) >= 100:
        return f"{amount:,.0f}"
    return f"{amount:.{1 if abs(amount) >= 10 else 2 if abs(amount) >= 1 else 3}f}"
