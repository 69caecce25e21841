"""The lives of claims and shapes: which phase follows which, and that every one of them can come about."""

from enum import Enum
from typing import Any

import pytest

from messiahs.core.state.lives import (
    GRANTED_LIFE,
    HELD_LIFE,
    SHAPE_LIFE,
    GrantedPhase,
    HeldPhase,
    ShapePhase,
    Step,
    followed,
)

LIVES = ((GrantedPhase, GRANTED_LIFE), (HeldPhase, HELD_LIFE), (ShapePhase, SHAPE_LIFE))


@pytest.mark.parametrize(("phases", "life"), LIVES)
def test_every_phase_can_come_about_and_no_step_is_named_twice(phases: type[Enum], life: tuple[Step[Any], ...]) -> None:
    steps = [(step.phase, step.following) for step in life]
    assert len(steps) == len(set(steps))
    assert {following for _, following in steps} >= set(phases) - {next(iter(phases))}


@pytest.mark.parametrize(("phases", "life"), LIVES)
def test_a_phase_may_stay_and_what_is_no_step_is_a_bug(phases: type[Enum], life: tuple[Step[Any], ...]) -> None:
    for phase in phases:
        for following in phases:
            if phase is following or any((each.phase, each.following) == (phase, following) for each in life):
                assert followed(phase, following, life) is following
            else:
                with pytest.raises(AssertionError, match="is never followed by"):
                    followed(phase, following, life)


def test_nothing_leads_back_from_the_end_of_a_claim() -> None:
    assert not [step for step in GRANTED_LIFE if step.phase is GrantedPhase.RELEASED]
    assert not [step for step in HELD_LIFE if step.phase is HeldPhase.UNREACHABLE]
