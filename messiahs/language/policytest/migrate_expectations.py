"""The expectations `offer` or `keep`, and `ask`: whether a task is offered to others, and whether others are asked."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import HereQuery, RunningQuery
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.explaining.migrate import explain_ask, explain_offer
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import Scene
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.syntax.parsing import tokens_in_tree


@dataclass(frozen=True, slots=True)
class ExpectOffer:
    """The rules offer the task to systems that ask for tasks, or keep it."""

    is_offered: bool

    def judge(self, course: Course, /) -> Verdict:
        """Compare whether the rules offer the task."""
        situation = course.situation
        query = RunningQuery(task=situation.task, here=situation.known_here, now=situation.now)
        block = explain_offer(situation.policy.transfer, query)
        is_met = situation.policy.transfer.offers(query) is self.is_offered
        return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


@dataclass(frozen=True, slots=True)
class ExpectAsk:
    """Other systems are asked for tasks, or not."""

    is_asking: bool

    def judge(self, course: Course, /) -> Verdict:
        """Compare whether other systems are asked."""
        situation = course.situation
        query = HereQuery(
            here=situation.known_here,
            has_machine=situation.here is not None,
            subtree=IndexedVector(situation.below),
            now=situation.now,
        )
        block = explain_ask(situation.policy.transfer, query)
        is_met = any(ask.is_wanted(query) for ask in situation.policy.transfer.asks) is self.is_asking
        return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


def _read_offer(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectOffer:
    del phrase, scene
    return ExpectOffer(is_offered=bool(tokens_in_tree(tree, "OFFER")))


def _read_ask(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectAsk:
    del phrase, scene
    return ExpectAsk(is_asking=not tokens_in_tree(tree, "NOTHING"))


EXPECTATIONS: Final = (
    ExpectationKind(rule="offer", grammar="OFFER | KEEP", read=_read_offer),
    ExpectationKind(rule="ask", grammar="ASK NOTHING?", read=_read_ask),
)
