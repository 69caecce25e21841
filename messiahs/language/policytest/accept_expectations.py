"""Compare the expectations of a trial with the decisions of its policy."""

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Accepted, HereQuery, JoinQuery, RunningQuery
from messiahs.core.model.descriptions import SDV, sorted_pairs
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.compiler.stated_facts import attributes_of
from messiahs.language.explaining.blocks import explain_ask, explain_entry, explain_offer
from messiahs.language.explaining.policy import explain_setting
from messiahs.language.policytest.rank_expectations import judge_candidates, judge_tasks
from messiahs.language.policytest.reveal_expectations import judge_reveal
from messiahs.language.policytest.situation import Situation
from messiahs.language.policytest.trials import (
    ExpectAccept,
    ExpectAsk,
    ExpectEntry,
    ExpectOffer,
    ExpectRank,
    ExpectRefuse,
    ExpectReveal,
    ExpectSend,
    Wanted,
)
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.runtime.accept_explanation import explain_accept
from messiahs.language.runtime.condition_explanation import value_text
from messiahs.language.runtime.readings import MACHINE

AtOnce = ExpectAccept | ExpectRefuse | ExpectSend | ExpectRank | ExpectReveal | ExpectOffer | ExpectAsk | ExpectEntry
"""Expectations about decisions that depend on no earlier event."""


def judge(expected: AtOnce, situation: Situation, /) -> Verdict:
    """Ask the policy, compare its answer with the expectation, and explain it."""
    match expected:
        case ExpectAccept() | ExpectRefuse():
            return _judge_accept(expected, situation)
        case ExpectSend(wanted):
            return _judge_send(wanted, situation)
        case ExpectRank(names, of_tasks=True):
            return judge_tasks(names, situation)
        case ExpectRank(names):
            return judge_candidates(names, situation)
        case ExpectReveal():
            return judge_reveal(expected, situation)
        case ExpectOffer(is_offered):
            return _judge_offer(is_offered, situation)
        case ExpectAsk(is_asking):
            return _judge_ask(is_asking, situation)
        case ExpectEntry(is_admitted):
            return _judge_entry(is_admitted, situation)


def _judge_accept(expected: ExpectAccept | ExpectRefuse, situation: Situation) -> Verdict:
    query, rules = situation.request, situation.policy.acceptance
    answer, block = rules.judge(query), rules.block_for(query.asker)
    blocks = () if block is None else (explain_accept(block, query),)
    if isinstance(answer, Accepted):
        return Verdict(is_met=isinstance(expected, ExpectAccept), came="it is accepted", blocks=blocks)
    came = f'it is refused with "{answer.text}"' if answer.text else f"it is refused: {answer.code} ({answer.rule})"
    if isinstance(expected, ExpectAccept):
        return Verdict(is_met=False, came=came, blocks=blocks)
    is_text = expected.text is None or answer.text == expected.text or answer.text.startswith(f"{expected.text}; ")
    is_cause = not expected.by_limit or answer.code is DenyCode.LIMIT_REACHED
    return Verdict(is_met=is_text and is_cause, came=came, blocks=blocks)


def _judge_send(wanted: Wanted, situation: Situation) -> Verdict:
    policy = situation.policy
    if situation.here is None:
        return Verdict(is_met=False, came="this system has no machine that could say anything")
    here = SDV(sorted_pairs(situation.known_here))
    told = policy.disclosure.describe_here(here, situation.now).description()
    names = {name for name, _ in wanted}
    settings = [setting for setting in policy.disclosure.advertising.settings if setting.name in names]
    return Verdict(
        is_met=all(told.get(name) == value for name, value in wanted),
        came=_shown({name: told.get(name) for name, _ in wanted}, situation),
        blocks=tuple(explain_setting(policy, setting, here, situation.now) for setting in settings),
    )


def _judge_offer(is_offered: bool, situation: Situation) -> Verdict:  # noqa: FBT001 - what is expected
    query = RunningQuery(task=situation.task, here=situation.known_here, now=situation.now)
    block = explain_offer(situation.policy.transfer, query)
    is_met = situation.policy.transfer.offers(query) is is_offered
    return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


def _judge_ask(is_asking: bool, situation: Situation) -> Verdict:  # noqa: FBT001 - what is expected
    query = HereQuery(
        here=situation.known_here,
        has_machine=situation.here is not None,
        subtree=IndexedVector(situation.below),
        now=situation.now,
    )
    block = explain_ask(situation.policy.transfer, query)
    is_met = any(ask.is_wanted(query) for ask in situation.policy.transfer.asks) is is_asking
    return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


def _judge_entry(is_admitted: bool, situation: Situation) -> Verdict:  # noqa: FBT001 - what is expected
    asker = situation.asker
    query = JoinQuery(name=asker.system, role=asker.relation, members=situation.members, now=situation.now)
    block = explain_entry(situation.policy.admission, query)
    is_met = isinstance(situation.policy.admission.judge(query), Accepted) is is_admitted
    return Verdict(is_met=is_met, came=block.verdict, blocks=(block,))


def _shown(said: dict[str, int | str | None], situation: Situation) -> str:
    known = attributes_of(MACHINE, situation.policy.declared)
    return ", ".join(
        f"${name} is not said" if value is None else f"${name} is {value_text(value, known[name].unit)}"
        for name, value in said.items()
    )
