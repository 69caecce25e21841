"""The expectations `admit` and `deny`: whether the peer may join."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import Accepted, JoinQuery
from messiahs.language.explaining.join import explain_entry
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import Scene
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.runtime.readings import PEER
from messiahs.language.syntax.parsing import tokens_in_tree


@dataclass(frozen=True, slots=True)
class ExpectEntry:
    """The peer is admitted in the role that it wants, or not."""

    is_admitted: bool

    def judge(self, course: Course, /) -> Verdict:
        """Compare whether the peer is admitted."""
        situation = course.situation
        asker, admission = situation.asker, situation.policy.admission
        query = JoinQuery(name=asker.system, role=asker.relation, members=situation.members, now=situation.now)
        block = explain_entry(admission, query)
        is_met = isinstance(admission.judge(query), Accepted) is self.is_admitted
        return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


def _read_entry(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectEntry:
    del phrase, scene
    return ExpectEntry(is_admitted=bool(tokens_in_tree(tree, "ADMIT")))


EXPECTATIONS: Final = (ExpectationKind(rule="admit", grammar="ADMIT | DENY", read=_read_entry, needs=(PEER,)),)
