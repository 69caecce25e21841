"""The expectation `rank`: the order of candidates or of tasks under a policy; nothing is random.

With `random` and `round robin`, candidates are in order of name, and tasks in the order of their statements.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lark import Token, Tree

from messiahs.core.interface.parts import PartKind
from messiahs.core.interface.policies import Candidate, RankQuery, TaskOrderQuery
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import fitting, need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import MachineClass, Vector, coalesce
from messiahs.language.explaining.situation import block_of
from messiahs.language.policytest.course import Course
from messiahs.language.policytest.expectation_kinds import ExpectationKind
from messiahs.language.policytest.phrases import Phrase
from messiahs.language.policytest.situation import Situation, history_in, machines_of
from messiahs.language.policytest.stated_values import Rival
from messiahs.language.policytest.statements import NAMED_TASK, Scene
from messiahs.language.policytest.verdicts import Verdict
from messiahs.language.predicate.parsing import unescaped
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.runtime.candidate_ranking import First, keys_of, link_of, ranking_facts
from messiahs.language.runtime.readings import CANDIDATE, HERE, MACHINE, NOW, TASK, calendar_facts, stated_costs
from messiahs.language.runtime.rule_explanation import ExplainedBlock, explain_below, explain_rule
from messiahs.language.syntax.parsing import tokens_in_tree


@dataclass(frozen=True, slots=True)
class ExpectRank:
    """Exactly these candidates are asked, in this order; or the named tasks get places in this order."""

    names: tuple[str, ...]
    of_tasks: bool = False

    def judge(self, course: Course, /) -> Verdict:
        """Compare the order of the tasks or candidates."""
        judge = _judge_tasks if self.of_tasks else _judge_candidates
        return judge(self.names, course.situation)


def _judge_candidates(names: tuple[str, ...], situation: Situation, /) -> Verdict:
    """Compare the order in which candidates are asked; candidates that are not named must not be asked."""
    tdv = situation.tdv
    query = RankQuery(
        candidates=tuple(_candidate(rival, situation) for rival in situation.rivals.values()),
        need=need_of(tdv, parse_predicate("")),
        tdv=tdv,
        here=situation.here,
        now=situation.now,
        module=situation.module,
    )
    order = situation.asked(PartKind.LOCATION, situation.policy.location, query)
    blocks = tuple(_candidate_block(candidate, query, situation) for candidate in query.candidates)
    return Verdict(is_met=order == names, came=_listed(order), blocks=blocks)


def _candidate(rival: Rival, situation: Situation) -> Candidate:
    link = dict(rival.link)
    relation = Relation(str(link.get("relation", Relation.CHILD)))
    view = IndexedVector(coalesce(map(machines_of, rival.machines), keys=situation.policy.keys))
    balance = link.get("balance")
    return Candidate(
        system=SystemId(rival.name),
        relation=relation,
        view=view,
        age_ns=int(link.get("age", 0)) * SECOND,
        balance=balance if isinstance(balance, int) else None,
        history=history_in(link, situation.policy),
        costs=stated_costs(link),
    )


def _candidate_block(candidate: Candidate, query: RankQuery, situation: Situation) -> ExplainedBlock:
    facts = {**ranking_facts(query), CANDIDATE: link_of(candidate)}
    _, could = fitting(query.need, candidate.view)
    able = IndexedVector(Vector(tuple(_chosen(candidate.view.vector.classes, could))))
    rules = (
        explain_below(key.condition, _first(key), facts, able, scope=MACHINE)
        for key in keys_of(situation.policy.location)
        if isinstance(key, First)
    )
    verdict = f"{able.vector.machines} of {candidate.view.vector.machines} machines could hold the task"
    return block_of(f'candidate "{candidate.system}"', verdict, rules)


def _chosen(classes: tuple[MachineClass, ...], places: int) -> Iterable[MachineClass]:
    return (each for place, each in enumerate(classes) if places >> place & 1)


def _judge_tasks(names: tuple[str, ...], situation: Situation, /) -> Verdict:
    """Compare the order in which the named tasks get places."""
    order = situation.policy.selection
    tasks = {name: {**situation.stated(named.values)} for name, named in situation.tasks.items()}
    query = TaskOrderQuery(tasks=tuple(tasks.values()), here=situation.known_here, now=situation.now)
    places = situation.asked(PartKind.SELECTION, order, query)
    came = tuple(list(tasks)[place] for place in places)
    keys = [key for key in keys_of(order) if isinstance(key, First)]
    facts = {HERE: situation.known_here, NOW: calendar_facts(situation.now)}
    blocks = tuple(
        block_of(
            f'task "{name}"',
            f"place {came.index(name) + 1}",
            (explain_rule(key.condition, _first(key), {**facts, TASK: task}) for key in keys),
        )
        for name, task in tasks.items()
    )
    return Verdict(is_met=came == names, came=_listed(came), blocks=blocks)


def _first(key: First) -> str:
    return f"first where {key.condition.predicate}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "nobody"


def _read_rank(tree: Tree[Token], phrase: Phrase, scene: Scene) -> ExpectRank:
    del phrase, scene
    names = tuple(unescaped(token) for token in tokens_in_tree(tree, "TEXT"))
    return ExpectRank(names, of_tasks=bool(tokens_in_tree(tree, "TASKS")))


EXPECTATIONS: Final = (
    ExpectationKind(rule="rank", grammar="RANK TEXT (COMMA TEXT)*", read=_read_rank, needs=(CANDIDATE,)),
    ExpectationKind(rule="rank_tasks", grammar="RANK TASKS TEXT (COMMA TEXT)*", read=_read_rank, needs=(NAMED_TASK,)),
)
