"""From the options of `policy explain` to what its policy is tried with."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypedDict

from messiahs.core.attributes import Attribute, Value
from messiahs.core.calendar import calendar_time
from messiahs.core.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.fitting import need_of
from messiahs.core.ids import SystemId
from messiahs.core.neighbors import Relation
from messiahs.core.ports import AcceptQuery, Asker, Candidate, RankQuery, TaskOrderQuery
from messiahs.core.routing import Arrived
from messiahs.core.vectors import Vector
from messiahs.errors import ClientError
from messiahs.language.blocks.stating import attributes_of, read_statement, read_statements
from messiahs.language.explaining.policy import explain_policy
from messiahs.language.explaining.ranks import ExplainedOrder, explain_candidates, explain_task_order
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.rules.accepting import facts_of
from messiahs.language.rules.compiled_policy import CompiledPolicy
from messiahs.language.rules.explaining_accept import ExplainedBlock
from messiahs.language.rules.readings import HERE, PEER, TASK


class Stated(TypedDict):
    """What the options say; each text is `name=value` or the name of a file of those."""

    task: tuple[str, ...]
    here: tuple[str, ...]
    peer: tuple[str, ...]
    moment: datetime | None


def explained_blocks(policy: CompiledPolicy, query: AcceptQuery, stated: Stated, /) -> tuple[ExplainedBlock, ...]:
    """Explain a policy for what is stated."""
    return explain_policy(policy, query, asks=bool(stated["peer"]))


def explained_orders(
    policy: CompiledPolicy, query: AcceptQuery, neighbors: tuple[Candidate, ...] | None, /
) -> tuple[ExplainedOrder, ...]:
    """Explain in which order a policy asks neighbors for places for the task, and how the task stands among others.

    Whoever has sent it is not asked, and for a parent or sibling only children are. Without neighbors only what is the
    same for all of them is told.
    """
    any_machine = parse_predicate("")
    arrived = Arrived(asker=query.asker, predicate=any_machine, is_first=True)
    asked = (each for each in neighbors or () if arrived.is_climbing or each.relation is Relation.CHILD)
    ranking = RankQuery(
        candidates=tuple(each for each in asked if each.system != query.asker.system),
        need=need_of(query.tdv, any_machine),
        tdv=query.tdv,
        here=query.here,
        now=query.now,
    )
    facts = facts_of(query)
    tasks = TaskOrderQuery(tasks=(facts[TASK],), here=facts[HERE], now=query.now)
    found = (explain_candidates(policy, ranking, are_known=neighbors is not None), explain_task_order(policy, tasks))
    return tuple(sorted((each for each in found if each is not None), key=lambda order: order.written.start))


def query_of(policy: CompiledPolicy, stated: Stated, pools: Mapping[str, Vector], /) -> AcceptQuery:
    """Give the request that is stated; a task takes one slot, and comes from whoever asks, unless it says otherwise.

    Where machines are given in its place, nothing need be said of the own one. Raises PolicyError for mistakes.
    """
    peer = _said(stated["peer"], PEER, policy)
    name, relation, balance = str(peer.get("name", "")), str(peer.get("relation", "child")), peer.get("balance")
    if relation not in list(Relation):
        raise ClientError(f"--peer: relation is one of {', '.join(Relation)}, and not `{relation}`")
    asker = Asker(
        system=SystemId(name), relation=Relation(relation), balance=balance if isinstance(balance, int) else None
    )
    origin: dict[str, Value] = {"origin": name} if name else {}
    task = {"cpus": 1, **origin, **_said(stated["task"], TASK, policy)}
    here = _said(stated["here"], HERE, policy)
    return AcceptQuery(
        tdv=TDV(sorted_pairs(task)),
        asker=asker,
        here=SDV(sorted_pairs(here)) if here or not pools else None,
        subtree=whole_pool(pools),
        now=calendar_time(stated["moment"] or datetime.now().astimezone()),
    )


def whole_pool(pools: Mapping[str, Vector]) -> Vector:
    """Give all machines of several pools; one of which two tell counts twice."""
    return Vector(tuple(each for pool in pools.values() for each in pool.classes))


def _said(texts: Iterable[str], scope: str, policy: CompiledPolicy) -> dict[str, Value]:
    known = attributes_of(scope, policy.declared)
    said: dict[str, Value] = {}
    for text in texts:
        said |= _read(text, known, option=f"--{scope}")
    return said


def _read(text: str, known: Mapping[str, Attribute], *, option: str) -> dict[str, Value]:
    if "=" in text:
        return read_statement(text, known, file=option)
    try:
        return read_statements(Path(text).read_text(encoding="utf-8"), known, file=text)
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{option} {text} is neither NAME=VALUE nor a file that can be read: {error}") from error
