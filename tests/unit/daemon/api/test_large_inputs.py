"""Submits with more inputs than machines take of one task."""

import pytest

from messiahs.daemon.api.submit_body import InputBody, SubmitBody
from messiahs.daemon.api.submit_checks import checking
from tests.unit.daemon.api.steps import result_of


def _large(name: str, gib: int) -> InputBody:
    return InputBody(name=name, sha256=name * 64, size=gib << 30)


@pytest.mark.parametrize(
    ("inputs", "member_inputs", "disk", "problem"),
    [
        ((_large("a", 10), _large("b", 6)), (), None, ""),
        ((_large("a", 10), _large("b", 7)), (), None, "17 GiB: machines take at most 16 GiB"),
        ((_large("a", 10), _large("b", 7)), (), 17 << 30, ""),
        ((_large("a", 10), _large("b", 8)), (), 17 << 30, "18 GiB: machines take at most 17 GiB"),
        ((_large("a", 10),), ((_large("b", 6),), (_large("c", 6),)), None, ""),
        ((_large("a", 10),), ((), (_large("b", 7),)), None, "17 GiB: machines take at most 16 GiB"),
    ],
)
def test_inputs_that_no_machine_takes_are_refused_with_what_to_state(
    inputs: tuple[InputBody, ...], member_inputs: tuple[tuple[InputBody, ...], ...], disk: int | None, problem: str
) -> None:
    body = SubmitBody(
        key="k",
        argv=("true",),
        tdv={} if disk is None else {"disk": disk},
        inputs=inputs,
        members=len(member_inputs),
        member_inputs=member_inputs,
    )
    said = f"the inputs of a task take {problem} of one that does not state more with --disk"
    assert result_of(checking(body)) == (said if problem else "")
