"""Compare the vector that a policy reveals to a neighbor with a trial's expectation."""

from messiahs.core.model.attributes import Value
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.vectors import Interval, MachineClass, Strings, Vector
from messiahs.language.policytest.situation import Situation
from messiahs.language.policytest.trials import ExpectReveal
from messiahs.language.policytest.verdicts import Verdict


def judge_reveal(expected: ExpectReveal, situation: Situation, /) -> Verdict:
    """Compare what the peer receives about the stated machines."""
    policy, neighbor = situation.policy, situation.neighbor
    if not policy.disclosure.reveals_to(neighbor):
        return Verdict(is_met=expected.is_nothing, came=f"{neighbor.system} is told nothing")
    told = policy.disclosure.reveal(situation.below, neighbor)
    name = policy.disclosure.name_for(neighbor)
    counted = {"machines": told.machines, "classes": len(told.classes)}
    is_met = not expected.is_nothing and (expected.name is None or expected.name == name)
    is_met &= all(_is_told(said, value, told, counted) for said, value in expected.wanted)
    classes = "; ".join(f"{each.count} x {_class_text(each)}" for each in told.classes)
    return Verdict(is_met=is_met, came=f"it is told as `{name}`: {classes}" if name else f"it is told: {classes}")


def _is_told(name: str, value: Value | None, told: Vector, counted: dict[str, int]) -> bool:
    if name in counted:
        return counted[name] == value
    values = [dict(each.attributes).get(name) for each in told.classes]
    if value is None:
        return not any(said is not None for said in values)
    return any(_is_within(value, said) for said in values)


def _is_within(value: Value, said: object) -> bool:
    if isinstance(said, Interval):
        return isinstance(value, int) and lowest_in(said.low) <= value <= highest_in(said.high)
    return value == said


def _class_text(machine_class: MachineClass) -> str:
    return ", ".join(f"{name} {_said(value)}" for name, value in machine_class.attributes) or "machine"


def _said(value: Interval | str | Strings) -> str:
    if not isinstance(value, Interval):
        return str(value)
    low, high = lowest_in(value.low), highest_in(value.high)
    return str(low) if low == high else f"{low}..{high}"
