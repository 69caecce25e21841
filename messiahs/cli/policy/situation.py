"""Build the situation in which `policy explain` evaluates a policy from the command's options."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

from messiahs.cli.policy.status_documents import Statements, is_document, task_in
from messiahs.cli.standard_input import standard_input
from messiahs.config.regular_files import NotRegularError, read_regular
from messiahs.core.interface.calendar import calendar_time
from messiahs.core.interface.policies import AcceptQuery, Asker, Candidate, RankQuery, TaskOrderQuery
from messiahs.core.model.attributes import KNOWN_ONCE_HERE, Attribute, Value
from messiahs.core.model.descriptions import SDV, TDV, Description, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.search.routing import is_climbing
from messiahs.core.task_filter.matching import need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import Vector
from messiahs.errors import ClientError
from messiahs.language.compiler.stated_facts import attributes_of, read_statement, read_statements
from messiahs.language.explaining.policy import explain_policy
from messiahs.language.explaining.ranks import ExplainedOrder, explain_candidates, explain_task_order
from messiahs.language.predicate.predicates import ParsedPredicate
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import HERE, PEER, TASK, request_facts, stated_costs
from messiahs.language.runtime.rule_explanation import ExplainedBlock

_STDIN: Final = "-"


class Stated(TypedDict):
    """Texts of the options: `name=value`, the name of a file with such lines, or `-` for standard input.

    A task may also be given as the JSON that `status` prints.
    """

    task: tuple[str, ...]
    here: tuple[str, ...]
    peer: tuple[str, ...]
    moment: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a place for one task, and the task's requirement.

    `present` holds attributes that only a task on this machine has, and that no request carries.
    """

    query: AcceptQuery
    requirement: ParsedPredicate
    present: Description


def explained_blocks(policy: CompiledPolicy, asked: Asked, stated: Stated, /) -> tuple[ExplainedBlock, ...]:
    """Evaluate the blocks of a policy for the given situation."""
    return explain_policy(policy, asked.query, asks=bool(stated["peer"]), present=asked.present)


def explained_orders(
    policy: CompiledPolicy, asked: Asked, neighbors: tuple[Candidate, ...] | None, /
) -> tuple[ExplainedOrder, ...]:
    """Rank the neighbors that the policy would ask for places, and the task among other tasks.

    The sender of the task is not asked, and for a parent or sibling only children are. Without neighbors, only the
    values that are equal for all of them are shown.
    """
    query = asked.query
    may_climb = is_climbing(query.asker)
    candidates = (each for each in neighbors or () if may_climb or each.relation is Relation.CHILD)
    ranking = RankQuery(
        candidates=tuple(each for each in candidates if each.system != query.asker.system),
        need=need_of(query.tdv, asked.requirement),
        tdv=query.tdv,
        here=query.here,
        now=query.now,
        module=query.module,
    )
    facts = request_facts(query)
    task = {**facts[TASK], "relation": query.asker.relation.value, **asked.present}
    tasks = TaskOrderQuery(tasks=(task,), here=facts[HERE], now=query.now)
    found = (explain_candidates(policy, ranking, are_known=neighbors is not None), explain_task_order(policy, tasks))
    return tuple(sorted((each for each in found if each is not None), key=lambda order: order.written.start))


def request_to_explain(policy: CompiledPolicy, stated: Stated, pools: Mapping[str, IndexedVector], /) -> Asked:
    """Return the request; by default, a task takes one slot and its origin is the asking neighbor.

    This machine's attributes are optional if machines are given. Raises PolicyError for mistakes.
    """
    if sum(text == _STDIN for scope in (TASK, HERE, PEER) for text in _texts(stated, scope)) > 1:
        raise ClientError("standard input (`-`) can be used only once")
    peer = _stated(stated, PEER, policy).tdv
    name, relation, balance = str(peer.get("name", "")), str(peer.get("relation", "child")), peer.get("balance")
    if relation not in list(Relation):
        raise ClientError(f"--peer: unknown relation `{relation}`; expected one of {', '.join(Relation)}")
    asker = Asker(
        system=SystemId(name),
        relation=Relation(relation),
        balance=balance if isinstance(balance, int) else None,
        history=tuple((each.name, peer[each.name]) for each in policy.in_history if each.name in peer),
        costs=stated_costs(peer),
    )
    origin: dict[str, Value] = {"origin": name} if name else {}
    task, here = _stated(stated, TASK, policy), _stated(stated, HERE, policy).tdv
    present = {name: value for name, value in task.tdv.items() if name in KNOWN_ONCE_HERE}
    alone = {name: value for name, value in task.tdv.items() if name not in {"from", *present}}
    tdv = TDV(sorted_pairs({"cpus": 1, **origin, **alone}))
    query = AcceptQuery(
        tdv=tdv,
        asker=asker,
        here=SDV(sorted_pairs(here)) if here or not pools else None,
        subtree=whole_pool(pools),
        now=calendar_time(stated["moment"] or datetime.now().astimezone()),
        wanted_slots=need_of(tdv, task.requirement).slots,
    )
    return Asked(query=query, requirement=task.requirement, present=present)


def whole_pool(pools: Mapping[str, IndexedVector]) -> IndexedVector:
    """Return all machines of several pools; one reported by two pools counts twice."""
    return IndexedVector(Vector(tuple(each for pool in pools.values() for each in pool.vector.classes)))


def _texts(stated: Stated, scope: str) -> tuple[str, ...]:
    return {TASK: stated["task"], HERE: stated["here"], PEER: stated["peer"]}[scope]


def _stated(stated: Stated, scope: str, policy: CompiledPolicy) -> Statements:
    """Return the attributes stated for a scope, the last value of each, and for a task its last requirement."""
    known = attributes_of(scope, policy)
    statements = Statements()
    for text in _texts(stated, scope):
        more = _read(text, known, option=f"--{scope}")
        later = more if more.requirement.text else statements
        statements = Statements(tdv=statements.tdv | more.tdv, requirement=later.requirement)
    return statements


def _read(text: str, known: Mapping[str, Attribute], *, option: str) -> Statements:
    if "=" in text:
        return Statements(tdv=read_statement(text, known, file=option))
    file = "<stdin>" if text == _STDIN else text
    content = _content(text, option)
    if option == f"--{TASK}" and is_document(content):
        return task_in(content, file=file)
    return Statements(tdv=read_statements(content, known, file=file))


def _content(file: str, option: str) -> str:
    if file == _STDIN:
        return standard_input()
    try:
        return read_regular(file).decode()
    except NotRegularError as error:
        raise ClientError(f"{option}: `{file}` cannot be read: {error.strerror}; `-` reads standard input") from error
    except OSError as error:
        problem = f"{option}: `{file}` is neither NAME=VALUE nor a readable file: {error.strerror}"
        raise ClientError(problem) from error
    except UnicodeDecodeError as error:
        raise ClientError(f"{option}: {file}: not valid UTF-8") from error
