"""The vectors for a neighbor under two policies, with their differences as text (MESSIAHS 7.2)."""

from dataclasses import replace

from messiahs.core.interface.messages import StatusVector
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import CalendarTime
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.model.neighbors import Neighbor
from messiahs.core.state.module import ModuleState
from messiahs.core.update.preview import preview
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.vectors import ClassValue, Interval, Strings, hull_of
from messiahs.trace.replay.both_policies import Asked

_BESIDE_CLASSES = ("machines", "every", "waiting", "name")


def compare_sights(
    state: ModuleState, neighbor: Neighbor, old: Policy, new: Policy, /, *, now: Instant, time: CalendarTime
) -> Asked:
    """Return the differences of the vectors for a neighbor; equal facts are left out."""
    # A replay must not read the calendar of the recorded steps.
    seen = replace(state, calendar=lambda _: time)
    before, after = (
        [
            _facts(message, policy.disclosure.name_for(neighbor))
            for message in preview(seen, neighbor.system, policy, now=now)
        ]
        for policy in (old, new)
    )
    old_texts, new_texts = [], []
    for one, other in zip(before, after, strict=True):
        names = _differing(one, other)
        old_texts += [_text_of(name, one, other) for name in names]
        new_texts += [_text_of(name, other, one) for name in names]
    return Asked(f"tell {neighbor.system}", ", ".join(dict.fromkeys(old_texts)), ", ".join(dict.fromkeys(new_texts)))


def _differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Return the names of differing facts; without machines on one side, attributes are not compared."""
    has_both = "0" not in (one["machines"], other["machines"])
    names = [name for name in dict.fromkeys((*one, *other)) if one.get(name) != other.get(name)]
    names = [name for name in names if has_both or name in _BESIDE_CLASSES]
    # Differing classes are reported only if no other fact differs.
    return [name for name in names if name] or names


def _facts(message: StatusVector, name: str) -> dict[str, str]:
    classes = message.vector.classes
    facts = {
        "machines": str(message.vector.machines),
        "classes": str(len(classes)),
        "every": f"{message.period_ns / SECOND:g} s",
        "waiting": str(message.waiting),
        "name": name or "its own",
    }
    attributes = hull_of(classes).attributes if classes else ()
    return {**facts, **{f"${attribute}": _value(value) for attribute, value in attributes}, "": repr(classes)}


def _text_of(name: str, one: dict[str, str], other: dict[str, str]) -> str:
    if not name:
        # The numbers of classes and their bounds may be equal although the classes are not.
        return f"{one['machines']} machines in {one['classes']} classes"
    if name not in one:
        return f"{name} withheld"
    # The value of a fact that only one side has does not describe the difference.
    return f"{name} revealed" if name not in other else f"{name} {one[name]}"


def _value(value: ClassValue) -> str:
    match value:
        case Interval(low, high):
            least, most = lowest_in(low), highest_in(high)
            return str(least) if least == most else f"{least}..{most}"
        case Strings():
            return "various"
        case str():
            return value
