"""The benchmarks that need a federation, at the smallest size: they run, whatever the numbers are."""

import pytest

from tests.benchmarks import calling, crossing, equipping, flooding, idling, latency, moving, passing, tasks
from tests.benchmarks.measuring import OURS, TINY, Contender, Row

FEW = (*tasks.rows()[1:], *calling.rows(), latency.rows()[0], latency.rows()[-1], *equipping.rows(), idling.rows()[0])


@pytest.mark.parametrize(
    "row", [*FEW, *moving.rows(), *passing.rows(), *crossing.rows(), *flooding.rows()], ids=lambda row: row.name
)
def test_a_row_gives_every_figure_that_has_a_budget(row: Row) -> None:
    with row.enter(TINY) as entrants:
        (ours,) = [each for each in entrants if isinstance(each, Contender) and each.name == OURS]
        figures = {reading.figure for reading in ours.measure()}
    assert {budget.figure for budget in row.budgets} <= figures
