"""Queries for tests of policy files: requests and rankings with ordinary values except for the tested ones."""

from collections.abc import Mapping

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import (
    Accepted,
    AcceptQuery,
    Asker,
    CalendarTime,
    Candidate,
    Placed,
    Randomness,
    RankQuery,
    Refused,
    TaskOrderQuery,
)
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import SDV, TDV, sorted_pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.neighbors import Relation
from messiahs.core.task_filter.matching import need_of
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.vectors import EMPTY, Vector, coalesce, vector_of
from messiahs.language.compiler.files import parse_policy
from messiahs.language.predicate.predicates import parse_predicate
from messiahs.language.runtime.compiled_policy import CompiledPolicy

NOON = CalendarTime(clock=12 * 60, date=20_649)
MACHINE: Mapping[str, Value] = {
    "arch": "x86_64",
    "os": "Linux",
    "slots": 8,
    "free_slots": 8,
    "total_mem": 64 << 30,
    "avail_mem": 32 << 30,
    "total_disk": 1 << 40,
    "avail_disk": 1 << 39,
    "load": 1000,
    "speed": 100,
}


class Draws:
    """A predetermined sequence of random numbers."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    def bits(self, count: int, /) -> int:
        """Return the next one."""
        return self._numbers.pop(0) % (1 << count)


def policy(text: str) -> CompiledPolicy:
    """Return the policy of a valid text."""
    return parse_policy(text, file="test.policy")


def tdv(**said: Value) -> TDV:
    """Return the TDV of a task; a plain one states nothing."""
    return TDV(sorted_pairs({"cpus": 1, "origin": "cs.example", "user": "ann", **said}))


def sdv(**said: Value) -> SDV:
    """Return the description of an ordinary machine with these values."""
    return SDV(sorted_pairs({**MACHINE, **said}))


def machines(*said: Mapping[str, Value], keys: tuple[str, ...] = ("arch", "free_slots")) -> Vector:
    """Return the vector of ordinary machines with these values."""
    return coalesce((vector_of(sdv(**each)) for each in said), keys=keys)


def request(
    task: TDV | None = None,
    *,
    relation: Relation = Relation.CHILD,
    system: str = "leaf",
    here: SDV | None = None,
    placed: tuple[Placed, ...] = (),
    wanted_slots: int = 1,
) -> AcceptQuery:
    """Return a request for an ordinary machine at noon on a Wednesday."""
    return AcceptQuery(
        tdv=task or tdv(),
        asker=Asker(system=SystemId(system), relation=relation),
        here=here or sdv(),
        subtree=IndexedVector(EMPTY),
        now=NOON,
        placed=placed,
        wanted_slots=wanted_slots,
    )


def ranking(*candidates: Candidate, task: TDV | None = None) -> RankQuery:
    """Return a ranking of candidates for one task without a requirement."""
    stated = task or tdv()
    return RankQuery(candidates=candidates, need=need_of(stated, parse_predicate("")), tdv=stated, here=sdv(), now=NOON)


def ranked(rules: Policy, query: RankQuery, draws: Randomness, /) -> tuple[SystemId, ...]:
    """Return the order in which a policy with its initial state asks candidates."""
    answer, _ = rules.location.decide(query, rules.location.initial, draws)
    assert isinstance(answer, tuple)
    return answer


def served(rules: Policy, query: TaskOrderQuery, draws: Randomness, /) -> tuple[int, ...]:
    """Return the order in which a policy with its initial state serves tasks."""
    answer, _ = rules.selection.decide(query, rules.selection.initial, draws)
    assert isinstance(answer, tuple)
    return answer


def candidate(
    name: str,
    *said: Mapping[str, Value],
    relation: Relation = Relation.CHILD,
    lost: bool = False,
    age_ns: int = 0,
) -> Candidate:
    """Return a candidate with ordinary machines with these values."""
    view = IndexedVector(machines(*(said or ({},))))
    return Candidate(system=SystemId(name), relation=relation, view=view, age_ns=age_ns, has_lost=lost)


def refusal(answer: Accepted | Refused) -> Refused:
    """Return an answer that must be a refusal."""
    assert isinstance(answer, Refused)
    return answer


def finality(answer: Accepted | Refused) -> tuple[DenyCode, bool]:
    """Return the code of a refusal, and whether it is final."""
    refused = refusal(answer)
    return refused.code, refused.is_final
