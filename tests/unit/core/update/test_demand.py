"""The unmet demand of a module as its parents read it."""

import pytest

from messiahs.core import queries
from messiahs.core.model.demand import DemandSize
from messiahs.core.model.ids import ClientKey
from tests.unit.core.rig import Rig, tdv


@pytest.mark.parametrize(
    ("cpus", "counted"), [(64, 64), (1 << 16, 1 << 16), (1 << 40, 1 << 16), ((1 << 63) - 1, 1 << 16)]
)
def test_one_task_counts_no_more_processors_than_the_largest_machine_has(rig: Rig, cpus: int, counted: int) -> None:
    for number, wanted in enumerate((cpus, 5)):
        rig.submit(tdv=tdv(cpus=wanted), key=ClientKey(str(number)))
    demand = queries.demand_report(rig.state, rig.now).total
    assert [each.size for each in demand] == [
        DemandSize(tasks=1, processors=counted),
        DemandSize(tasks=1, processors=5),
    ]
