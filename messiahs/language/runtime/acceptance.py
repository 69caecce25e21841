"""Acceptance of tasks by the block that matches the sender most closely (MESSIAHS 5: task acceptance)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.parts import PartState
from messiahs.core.interface.policies import Accepted, AcceptQuery, Asker, Randomness, Refused
from messiahs.core.model.neighbors import Relation
from messiahs.language.runtime.accept_explanation import why_refused
from messiahs.language.runtime.accept_rules import AcceptBlock, Mapping, NetworkLimit
from messiahs.language.runtime.conditions import Condition

SENDERS: Final = {Relation.CHILD: "children", Relation.SIBLING: "siblings", Relation.PARENT: "parent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptRules:
    """All blocks, by system name or by relation; `for_any` applies to every other neighbor, not to users."""

    by_name: tuple[tuple[str, AcceptBlock], ...] = ()
    by_relation: tuple[tuple[Relation, AcceptBlock], ...] = ()
    for_any: AcceptBlock | None = None
    text: str = "accept"
    initial: PartState = ()

    @property
    def blocks(self) -> tuple[AcceptBlock, ...]:
        """Every block once, even if it names several senders."""
        found = [block for _, block in (*self.by_name, *self.by_relation)]
        found += [self.for_any] if self.for_any is not None else []
        return tuple({block.start: block for block in found}.values())

    def conditions(self) -> Iterator[tuple[str, Condition]]:
        """Yield the condition of every requirement and occasion."""
        for block in self.blocks:
            yield from ((each.rule, each.condition) for each in (*block.requirements, *block.occasions))

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """Every rule that names a local account, in the order of the file."""
        found = [block.mapping for block in self.blocks if block.mapping is not None]
        return tuple(sorted(found, key=lambda mapping: mapping.start))

    @property
    def network_limits(self) -> tuple[NetworkLimit, ...]:
        """Every rule that limits the network of tasks, in the order of the file."""
        found = [block.network for block in self.blocks if block.network is not None]
        return tuple(sorted(found, key=lambda limit: limit.start))

    def judge(self, query: AcceptQuery) -> Accepted | Refused:
        """Decide by the block that matches the sender most closely; without one, accept users and refuse neighbors."""
        block = self.block_for(query.asker)
        if block is not None:
            return block.judge(query)
        if query.asker.relation is Relation.SELF:
            return Accepted()
        sender = SENDERS[query.asker.relation]
        return Refused(
            code=DenyCode.REFUSED_BY_POLICY, rule=f"accept from {sender}", text=f"no task is accepted from {sender}"
        )

    def decide(
        self, query: AcceptQuery, state: PartState, randomness: Randomness, /
    ) -> tuple[Accepted | Refused, PartState]:
        """Decide on a request to place tasks."""
        del randomness
        return self.judge(query), state

    def why_refused(self, query: AcceptQuery, /) -> str:
        """Return every rule that refuses the tasks, with the values found, for the local log; empty if none does."""
        block = self.block_for(query.asker)
        return why_refused(block, query) if block is not None else ""

    @property
    def reads_usage(self) -> bool:
        """Whether a block limits the slot time of a day."""
        return any(block.usage_limits for block in self.blocks)

    def block_for(self, asker: Asker) -> AcceptBlock | None:
        """Return the block that matches a sender most closely; None without one."""
        is_user = asker.relation is Relation.SELF
        named = None if is_user else dict(self.by_name).get(asker.system)
        return named or dict(self.by_relation).get(asker.relation) or (None if is_user else self.for_any)
