"""The expectation `reveal`: what a neighbor receives about the machines below."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.model.attributes import Attribute, Scope, Value
from messiahs.core.vectors.buckets import highest_in, lowest_in
from messiahs.core.vectors.vectors import Interval, MachineClass, Strings, Vector
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.stated_values import Wanted
from messiahs.language.policytest.statements import Scene, body_of, read_values
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.readings import MACHINE, PEER
from messiahs.language.syntax.parsing import tokens_in_tree

_COUNTED: Final = tuple(
    Attribute(name=name, scope=Scope.MACHINE, supplier="module", meaning=meaning, low=0)
    for name, meaning in (("machines", "machines in the vector"), ("classes", "classes in the vector"))
)
"""What may be expected of a vector besides its attributes."""


@dataclass(frozen=True, slots=True)
class ExpectReveal:
    """The peer receives these values for the machines below: each value in a class, None in no class; or nothing."""

    wanted: Wanted
    name: str | None = None
    is_nothing: bool = False

    def judge(self, course: Course, /) -> Verdict:
        """Compare what the peer receives about the stated machines."""
        situation = course.situation
        policy, neighbor = situation.policy, situation.neighbor
        if not policy.disclosure.reveals_to(neighbor):
            return Verdict(is_met=self.is_nothing, came=f"{neighbor.system} is told nothing")
        revealed = policy.disclosure.reveal(situation.below, neighbor)
        name = policy.disclosure.name_for(neighbor)
        counted = {"machines": revealed.machines, "classes": len(revealed.classes)}
        is_met = not self.is_nothing and (self.name is None or self.name == name)
        is_met &= all(_is_revealed(said, value, revealed, counted) for said, value in self.wanted)
        classes = "; ".join(f"{each.count} x {_class_text(each)}" for each in revealed.classes)
        return Verdict(is_met=is_met, came=f"it is told as `{name}`: {classes}" if name else f"it is told: {classes}")


def _is_revealed(name: str, value: Value | None, revealed: Vector, counted: dict[str, int]) -> bool:
    if name in counted:
        return counted[name] == value
    values = [dict(each.attributes).get(name) for each in revealed.classes]
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


def _read_reveal(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectReveal:
    is_nothing = bool(tokens_in_tree(tree, "NOTHING"))
    body = () if is_nothing else body_of(phrase, scene)
    known = {**scene.known(MACHINE), **{each.name: each for each in _COUNTED}}
    wanted = read_values(body, known, scene.notebook)
    texts = tokens_in_tree(tree, "TEXT")
    return ExpectReveal(wanted, name=unescaped(texts[0]) if texts else None, is_nothing=is_nothing)


EXPECTATIONS: Final = (
    ExpectationKind(
        rule="reveal",
        grammar="REVEAL (AS TEXT)? NOTHING?",
        read=_read_reveal,
        needs=(PEER, MACHINE),
        takes_block=True,
    ),
)
