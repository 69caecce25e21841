"""The expectation `send`: what the own machine advertises."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.language.compiler.stated_facts import attributes_of
from messiahs.language.explaining.advertise import explain_setting
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.situation import Situation
from messiahs.language.policytest.stated_values import Wanted
from messiahs.language.policytest.statements import Scene, body_of, read_values
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.readings import HERE, MACHINE


@dataclass(frozen=True, slots=True)
class ExpectSend:
    """The own machine advertises these values."""

    wanted: Wanted

    def judge(self, course: Course, /) -> Verdict:
        """Compare the description of the own machine."""
        situation = course.situation
        policy = situation.policy
        if situation.here is None:
            return Verdict(is_met=False, came="this system has no machine that could say anything")
        here = SDV(sorted_pairs(situation.known_here))
        advertised = policy.disclosure.describe_here(here, situation.now).description()
        names = {name for name, _ in self.wanted}
        settings = [setting for setting in policy.disclosure.advertising.settings if setting.name in names]
        return Verdict(
            is_met=all(advertised.get(name) == value for name, value in self.wanted),
            came=_shown({name: advertised.get(name) for name, _ in self.wanted}, situation),
            blocks=tuple(explain_setting(policy, setting, here, situation.now) for setting in settings),
        )


def _shown(said: dict[str, int | str | None], situation: Situation) -> str:
    known = attributes_of(MACHINE, situation.policy)
    return ", ".join(
        f"${name} is not said" if value is None else f"${name} is {value_text(value, known[name].unit)}"
        for name, value in said.items()
    )


def _read_send(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectSend:
    del tree
    return ExpectSend(read_values(body_of(phrase, scene), scene.known(MACHINE), scene.notebook))


EXPECTATIONS: Final = (ExpectationKind(rule="send", grammar="SEND", read=_read_send, needs=(HERE,), takes_block=True),)
