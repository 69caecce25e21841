"""The expectation of acts: what was done to the running task."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.policies import Act
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import Scene
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.syntax.parsing import tokens_in_tree

_ACTS: Final = tuple(act.upper() for act in Act)


@dataclass(frozen=True, slots=True)
class ExpectActs:
    """Exactly these acts were done to the task, in this order, since its start or the last such expectation."""

    acts: tuple[Act, ...]

    def judge(self, course: Course, /) -> Verdict:
        """Do the acts that are due now, and compare all since the last such expectation."""
        task = course.followed()
        task.evaluate()
        done, task.acts = tuple(task.acts), []
        came = f"what is done: {', '.join(done) or 'nothing'}"
        return Verdict(is_met=done == self.acts, came=came, blocks=(task.explained(),))


def _read_acts(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectActs:
    del phrase, scene
    return ExpectActs(tuple(Act(act) for act in tokens_in_tree(tree, *_ACTS)))


_ONE_ACT: Final = f"({' | '.join(_ACTS)})"
EXPECTATIONS: Final = (
    ExpectationKind(rule="acts", grammar=f"NOTHING | {_ONE_ACT} (COMMA {_ONE_ACT})*", read=_read_acts),
)
