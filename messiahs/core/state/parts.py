"""Calling the parts of the policy: the state of each is kept here, and its failures are reported once."""

from typing import TypeVar

from messiahs.core.interface.actions import Decision
from messiahs.core.interface.parts import Failed, Part, PartKind, Policy, part_texts
from messiahs.core.state.module import ModuleState

_Query = TypeVar("_Query")
_Answer = TypeVar("_Answer")


def decide(state: ModuleState, kind: PartKind, part: Part[_Query, _Answer], query: _Query, /) -> _Answer:
    """Return a part's answer, and keep its new state; if the part failed, return the substitute of its answer."""
    states = state.parts.states
    before = states.get(kind, part.initial)
    answer, after = part.decide(query, before, state.randomness)
    if after is not before:
        states[kind] = after
    if not isinstance(answer, Failed):
        return answer
    if kind not in state.parts.failed:
        state.parts.failed[kind] = state.parts.unreported[kind] = f"{part.text}: {answer.why}"
    instead: _Answer = answer.instead
    return instead


def unreported_failures(state: ModuleState) -> tuple[Decision, ...]:
    """Report each part that failed for the first time under this policy, and mark it as reported."""
    unreported, state.parts.unreported = state.parts.unreported, {}
    return tuple(Decision(what="part_failed", task=kind.value, text=text) for kind, text in unreported.items())


def replace_policy(state: ModuleState, policy: Policy) -> None:
    """Put a policy in place of another; parts that are equal in both keep their state."""
    before, after = part_texts(state.policy), part_texts(policy)
    for kind in [kind for kind in state.parts.states if before[kind] != after[kind]]:
        del state.parts.states[kind]
    state.parts.failed.clear()
    state.policy = policy
