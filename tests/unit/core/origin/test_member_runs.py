"""Runs of members, compared with the members themselves."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.origin.member_runs import runs_among, tasks_in, without
from tests.unit.core.rig import TASK

members = st.frozensets(st.integers(0, 12))


@given(members, members)
def test_runs_without_others_have_the_members_that_are_left(some: frozenset[int], others: frozenset[int]) -> None:
    runs = runs_among(sorted(some))
    assert [task.member for task in tasks_in(TASK, runs)] == sorted(some)
    left = list(without(runs, runs_among(sorted(others))))
    assert left == runs_among(sorted(some - others))
