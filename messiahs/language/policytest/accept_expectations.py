"""The expectations `accept` and `refuse`: the answer to a request for a place."""

from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.statements import Scene
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.runtime.accept_explanation import explain_accept
from messiahs.language.runtime.readings import PEER
from messiahs.language.syntax.parsing import tokens_in_tree


@dataclass(frozen=True, slots=True)
class ExpectAccept:
    """The task is accepted from the peer."""

    def judge(self, course: Course, /) -> Verdict:
        """Compare the answer to the peer's request."""
        return _judge(self, course)


@dataclass(frozen=True, slots=True)
class ExpectRefuse:
    """The task is refused: because a limit is reached, or with the given text, if any.

    The actual text may continue with `;` and the attributes that the task does not state.
    """

    text: str | None = None
    by_limit: bool = False

    def judge(self, course: Course, /) -> Verdict:
        """Compare the answer to the peer's request."""
        return _judge(self, course)


def _judge(expected: ExpectAccept | ExpectRefuse, course: Course) -> Verdict:
    query, rules = course.situation.request, course.situation.policy.acceptance
    answer, block = rules.judge(query), rules.block_for(query.asker)
    blocks = () if block is None else (explain_accept(block, query),)
    if isinstance(answer, Accepted):
        return Verdict(is_met=isinstance(expected, ExpectAccept), came="it is accepted", blocks=blocks)
    is_limit = answer.code is DenyCode.LIMIT_REACHED
    has_text = bool(answer.text) and not is_limit
    came = f'it is refused with "{answer.text}"' if has_text else f"it is refused: {answer.code} ({answer.rule})"
    if isinstance(expected, ExpectAccept):
        return Verdict(is_met=False, came=came, blocks=blocks)
    is_text = expected.text is None or answer.text == expected.text or answer.text.startswith(f"{expected.text}; ")
    is_cause = is_limit or not expected.by_limit
    return Verdict(is_met=is_text and is_cause, came=came, blocks=blocks)


def _read_accept(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectAccept:
    del tree, phrase, scene
    return ExpectAccept()


def _read_refuse(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectRefuse:
    del phrase, scene
    texts = tokens_in_tree(tree, "TEXT")
    return ExpectRefuse(text=unescaped(texts[0]) if texts else None, by_limit=bool(tokens_in_tree(tree, "LIMIT")))


EXPECTATIONS: Final = (
    ExpectationKind(rule="accept", grammar="ACCEPT", read=_read_accept, needs=(PEER,)),
    ExpectationKind(rule="refuse", grammar="REFUSE (TEXT | LIMIT)?", read=_read_refuse, needs=(PEER,)),
)
