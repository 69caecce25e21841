"""A simulated machine may break what it has promised."""

from messiahs.core.interface.messages import TaskState
from messiahs.core.model.instants import HOUR, MINUTE, SECOND, after
from messiahs.core.model.task_limits import Maxima
from tests.unit.sim.two_systems import PARENT, submitted, two_systems


def test_a_task_that_its_machine_does_not_end_at_its_time_limit_is_bound_anew() -> None:
    federation = two_systems(mean_ns=100 * HOUR)
    federation.conditions.unlimited = 100
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    federation.post(PARENT, submitted(1, origin=PARENT, est_time=1))
    federation.run(lambda: bool(federation.ended), until=after(federation.now, 10 * SECOND))
    federation.conditions.unlimited = 0
    federation.run(lambda: bool(federation.ended), until=after(federation.now, MINUTE))
    (row,) = federation.ended.values()
    assert (row.state, row.result and row.result.cause) == (TaskState.ABORTED, "time_limit")
    assert row.attempt == 2


def test_a_task_that_states_no_time_is_ended_at_the_maximum_of_the_site() -> None:
    federation = two_systems(mean_ns=100 * HOUR, maxima=Maxima(run_seconds=60))
    federation.run(lambda: False, until=after(federation.now, 5 * SECOND))
    submitted_at = federation.now
    federation.post(PARENT, submitted(1, origin=PARENT))
    federation.run(lambda: bool(federation.ended), until=after(federation.now, 10 * MINUTE))
    assert after(submitted_at, 60 * SECOND) < federation.now < after(submitted_at, 62 * SECOND)
    (row,) = federation.ended.values()
    assert (row.state, row.result and row.result.cause) == (TaskState.ABORTED, "time_limit")
