"""From the options of `policy explain` to what its policy is tried with."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

from messiahs.cli.policy.status_documents import SaidByTask, is_document, task_in
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
from messiahs.core.vectors.vectors import Vector
from messiahs.errors import ClientError
from messiahs.language.compiler.stating import attributes_of, read_statement, read_statements
from messiahs.language.explaining.policy import explain_policy
from messiahs.language.explaining.ranks import ExplainedOrder, explain_candidates, explain_task_order
from messiahs.language.predicate.predicates import ParsedPredicate
from messiahs.language.runtime.accepting import facts_of
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.explaining_accept import ExplainedBlock
from messiahs.language.runtime.readings import HERE, PEER, TASK

_STDIN: Final = "-"


class Stated(TypedDict):
    """What the options say; each text is `name=value`, the name of a file of those, or `-` for standard input.

    A task may also be what `status` printed of it as JSON.
    """

    task: tuple[str, ...]
    here: tuple[str, ...]
    peer: tuple[str, ...]
    moment: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a place for one task, and what the task requires of its machine.

    `present` is what is known of the task because it is here already, which no request tells.
    """

    query: AcceptQuery
    requirement: ParsedPredicate
    present: Description


def explained_blocks(policy: CompiledPolicy, asked: Asked, stated: Stated, /) -> tuple[ExplainedBlock, ...]:
    """Explain a policy for what is stated."""
    return explain_policy(policy, asked.query, asks=bool(stated["peer"]), present=asked.present)


def explained_orders(
    policy: CompiledPolicy, asked: Asked, neighbors: tuple[Candidate, ...] | None, /
) -> tuple[ExplainedOrder, ...]:
    """Explain in which order a policy asks neighbors for places for the task, and how the task stands among others.

    Whoever has sent it is not asked, and for a parent or sibling only children are. Without neighbors only what is the
    same for all of them is told.
    """
    query = asked.query
    may_climb = is_climbing(query.asker)
    open_to_it = (each for each in neighbors or () if may_climb or each.relation is Relation.CHILD)
    ranking = RankQuery(
        candidates=tuple(each for each in open_to_it if each.system != query.asker.system),
        need=need_of(query.tdv, asked.requirement),
        tdv=query.tdv,
        here=query.here,
        now=query.now,
        module=query.module,
    )
    facts = facts_of(query)
    tasks = TaskOrderQuery(tasks=({**facts[TASK], **asked.present},), here=facts[HERE], now=query.now)
    found = (explain_candidates(policy, ranking, are_known=neighbors is not None), explain_task_order(policy, tasks))
    return tuple(sorted((each for each in found if each is not None), key=lambda order: order.written.start))


def asked_of(policy: CompiledPolicy, stated: Stated, pools: Mapping[str, Vector], /) -> Asked:
    """Give the request that is stated; a task takes one slot, and comes from whoever asks, unless it says otherwise.

    Where machines are given in its place, nothing need be said of the own one. Raises PolicyError for mistakes.
    """
    if sum(text == _STDIN for scope in (TASK, HERE, PEER) for text in _texts(stated, scope)) > 1:
        raise ClientError("standard input (`-`) can be read once only")
    peer = _said(stated, PEER, policy).tdv
    name, relation, balance = str(peer.get("name", "")), str(peer.get("relation", "child")), peer.get("balance")
    if relation not in list(Relation):
        raise ClientError(f"--peer: relation is one of {', '.join(Relation)}, and not `{relation}`")
    asker = Asker(
        system=SystemId(name), relation=Relation(relation), balance=balance if isinstance(balance, int) else None
    )
    origin: dict[str, Value] = {"origin": name} if name else {}
    task, here = _said(stated, TASK, policy), _said(stated, HERE, policy).tdv
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


def whole_pool(pools: Mapping[str, Vector]) -> Vector:
    """Give all machines of several pools; one of which two tell counts twice."""
    return Vector(tuple(each for pool in pools.values() for each in pool.classes))


def _texts(stated: Stated, scope: str) -> tuple[str, ...]:
    return {TASK: stated["task"], HERE: stated["here"], PEER: stated["peer"]}[scope]


def _said(stated: Stated, scope: str, policy: CompiledPolicy) -> SaidByTask:
    """Give what is said in a scope; what comes later counts. A requirement there is only of tasks."""
    known = attributes_of(scope, policy.declared)
    said = SaidByTask()
    for text in _texts(stated, scope):
        more = _read(text, known, option=f"--{scope}")
        later = more if more.requirement.text else said
        said = SaidByTask(tdv=said.tdv | more.tdv, requirement=later.requirement)
    return said


def _read(text: str, known: Mapping[str, Attribute], *, option: str) -> SaidByTask:
    if "=" in text:
        return SaidByTask(tdv=read_statement(text, known, file=option))
    file = "<stdin>" if text == _STDIN else text
    content = _content(text, option)
    if option == f"--{TASK}" and is_document(content):
        return task_in(content, file=file)
    return SaidByTask(tdv=read_statements(content, known, file=file))


def _content(file: str, option: str) -> str:
    if file == _STDIN:
        return standard_input()
    try:
        return read_regular(file).decode()
    except NotRegularError as error:
        raise ClientError(f"{option}: `{file}` cannot be read: {error.strerror}; `-` reads standard input") from error
    except OSError as error:
        problem = f"{option}: `{file}` is neither NAME=VALUE nor a file that can be read: {error.strerror}"
        raise ClientError(problem) from error
    except UnicodeDecodeError as error:
        raise ClientError(f"{option}: {file}: this is no UTF-8") from error
