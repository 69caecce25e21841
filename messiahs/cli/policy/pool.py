"""Machines on which to evaluate a policy: those known to a running module, or those in a document that it wrote."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from messiahs.cli.output import print_text
from messiahs.cli.policy.situation import Asked, Stated, whole_pool
from messiahs.client.connection import Document
from messiahs.config.regular_files import read_regular
from messiahs.core.interface.policies import Asker, Candidate
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.link_costs import LinkCosts
from messiahs.core.model.neighbors import Relation
from messiahs.core.vectors.buckets import bucket_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import VARIOUS, ClassValue, Interval, MachineClass, Vector
from messiahs.errors import ClientError
from messiahs.language.explaining.pool import Demand, Loss, demands_of, judge_pool, losses_in
from messiahs.language.explaining.relaxing import Change, changes_for
from messiahs.language.explaining.requirements import demands_of_task
from messiahs.language.runtime.class_explanation import Machines, machines_in
from messiahs.language.runtime.compiled_policy import CompiledPolicy
from messiahs.language.runtime.readings import Facts, request_facts


class ExplainOptions(Stated):
    """Options of `policy explain`."""

    pool: Path | None
    views: bool
    module: str | None
    state: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPool:
    """Machines that match the request of `asker`, reasons why others do not, and changes that would help."""

    asker: str
    machines: int
    matched: Machines
    pools: tuple[tuple[str, int, Machines], ...]
    losses: tuple[Loss, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Machines per pool, each in one pool only, and every neighbor with its relation and view.

    Without any machines the neighbors are unknown too.
    """

    pools: Mapping[str, IndexedVector] = field(default_factory=dict)
    neighbors: tuple[Candidate, ...] | None = None


def known_of(options: ExplainOptions) -> Known:
    """Return the machines that the options select; none without such an option."""
    if options["pool"] is not None and options["views"]:
        raise click.UsageError("--pool and --views cannot be combined")
    if options["pool"] is not None:
        return _known_in(_document_in(options["pool"]), str(options["pool"]))
    if not options["views"]:
        return Known()
    from messiahs.client.locating import locate_module
    from messiahs.client.module import ModuleClient

    with ModuleClient(locate_module(options["module"], state=options["state"]).socket) as client:
        return _known_in(client.vectors(), "the module")


def explained_pool(policy: CompiledPolicy, asked: Asked, pools: Mapping[str, IndexedVector], /) -> ExplainedPool:
    """Match machines with the task's own requirement and the policy's rules for the asking neighbor."""
    asker = asked.query.asker
    demands = (*demands_of_task(asked.requirement), *demands_of(policy.acceptance, asker))
    facts, whole = request_facts(asked.query), whole_pool(pools)
    return ExplainedPool(
        asker=_asker_text(asker),
        machines=whole.vector.machines,
        matched=_matched(demands, facts, whole),
        pools=tuple((name, pool.vector.machines, _matched(demands, facts, pool)) for name, pool in pools.items()),
        losses=losses_in(demands, facts, whole),
        changes=changes_for(demands, facts, whole),
    )


def show_pool(found: ExplainedPool) -> None:
    """Print how many machines match, how many each demand excludes, and the changes that would help."""
    counted = f"{found.matched} of {found.machines} match for {found.asker}"
    print_text(f"machines: {counted} (one reported by several neighbors counts for each)")
    for name, machines, matched in found.pools:
        print_text(f"  {name}: {matched} of {machines}")
    for loss in found.losses:
        print_text(f"  {loss.machines} lost to {loss.text}")
    if found.matched.could < found.machines and not found.changes:
        print_text("  changing a single value would not help")
    for change in found.changes:
        print_text(f"  would match {change.machines} of {found.machines} if {change.text}")


def pool_document(found: ExplainedPool) -> Document:
    """Describe the same as a JSON document."""
    return {
        "asker": found.asker,
        "machines": found.machines,
        "matched": _counts(found.matched),
        "pools": {name: {"machines": count, "matched": _counts(matched)} for name, count, matched in found.pools},
        "lost": [{"text": loss.text, **_counts(loss.machines)} for loss in found.losses],
        "changes": [{"text": change.text, "matched": _counts(change.machines)} for change in found.changes],
    }


def _asker_text(asker: Asker) -> str:
    if asker.relation is Relation.SELF:
        return "a user"
    return f"the {asker.relation} {asker.system}" if asker.system else f"a {asker.relation}"


def _matched(demands: tuple[Demand, ...], facts: Facts, pool: IndexedVector) -> Machines:
    return machines_in(judge_pool(demands, facts, pool), pool)


def _counts(machines: Machines) -> Document:
    return {"surely": machines.surely, "could": machines.could}


def _document_in(file: Path) -> Document:
    try:
        document = json.loads(read_regular(file).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ClientError(f"{file} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ClientError(f"{file} is not a document of `messiahs module vectors --json`")
    return document


def _known_in(document: Document, name: str) -> Known:
    """Return the machines of the module and its subtree, and the views of neighbors outside the subtree."""
    try:
        neighbors = tuple(
            Candidate(
                system=SystemId(system),
                relation=Relation(view["relation"]),
                view=_vector(view),
                age_ns=int(view["age"] * SECOND),
                history=tuple((str(name), int(value)) for name, value in view.get("history", {}).items()),
                costs=LinkCosts(view.get("round_trip_ns"), view.get("throughput")),
            )
            for system, view in document["views"].items()
        )
        others = {str(each.system): each.view for each in neighbors if each.relation is not Relation.CHILD}
        return Known(pools={"here and below": _vector(document["up"]), **others}, neighbors=neighbors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ClientError(f"{name} is not a document of `messiahs module vectors --json`") from error


def _vector(document: Document) -> IndexedVector:
    return IndexedVector(Vector(tuple(_class(each) for each in document["classes"])))


def _class(document: Document) -> MachineClass:
    attributes = tuple((str(name), _value(value)) for name, value in sorted(document["attributes"].items()))
    return MachineClass(count=int(document["count"]), attributes=attributes, some_lack=tuple(document["some_lack"]))


def _value(value: object) -> ClassValue:
    match value:
        case [int(low), int(high)]:
            return Interval(bucket_of(low), bucket_of(high))
        case str():
            return value
        case None:
            return VARIOUS
        case _:
            raise ValueError(f"{value!r} is not a value of a class")
