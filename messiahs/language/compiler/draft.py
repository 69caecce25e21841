"""A policy while its file is read, and its completion."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from lark import Token

from messiahs.core.interface.policies import Limits, Timeouts
from messiahs.core.model.attributes import KEY_ATTRIBUTES
from messiahs.core.model.series import Kept
from messiahs.errors import Problem
from messiahs.language.compiler.peers import rules_by_name, rules_by_relation
from messiahs.language.compiler.reader import Reader
from messiahs.language.runtime.accept_rules import AcceptBlock, Requirement
from messiahs.language.runtime.acceptance import AcceptRules
from messiahs.language.runtime.candidate_ranking import WrittenOrder
from messiahs.language.runtime.compiled_policy import CompiledPolicy, Parts
from messiahs.language.runtime.disclosing import Advertising, Combining, CompiledDisclosure, Setting
from messiahs.language.runtime.reveal_rules import EVERYTHING, Disclosure, Revealing
from messiahs.language.runtime.running_rules import CompiledRule
from messiahs.language.syntax.problems import Code
from messiahs.language.syntax.statements import Statement
from messiahs.language.syntax.written import start_of
from messiahs.policy.built_in import Catalogue

DEFAULT: Final = "default:"
"""Stands for every attribute that `combine` does not name; no attribute can have this name."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """Content of the blocks read so far (mutable). Rules are listed under their peer as written."""

    reader: Reader
    timeouts: Timeouts
    limits: Limits = field(default_factory=Limits)
    catalogue: Catalogue = field(default_factory=Catalogue)
    blocks: set[str] = field(default_factory=set)
    name: str = ""
    histories: list[Kept] = field(default_factory=list)
    sends_all: bool = False
    sent: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    combined: dict[str, str] = field(default_factory=dict)
    revealed: dict[str, Disclosure] = field(default_factory=dict)
    accepted: dict[str, AcceptBlock] = field(default_factory=dict)
    required: list[Requirement] = field(default_factory=list)
    """What every block of `accepted` requires, before what it requires itself."""
    parts: Parts = field(default_factory=Parts)
    """Parts that replace defaults."""
    orders: list[WrittenOrder] = field(default_factory=list)
    running: list[tuple[CompiledRule, Statement]] = field(default_factory=list)
    """Each rule with its words."""

    def begin(self, block: Token, *more: str) -> None:
        """Record a block; a second block of the same kind is a problem. `more` are further words of its name."""
        name = " ".join((block, *more))
        if name in self.blocks:
            self.reader.notebook.error(block, Code.TWICE, f"`{name}` occurs twice", hint="join the two blocks")
        self.blocks.add(name)

    def set_timeout(self, name: str, nanoseconds: int | None) -> None:
        """Set one of the core's durations, by its field name there; None: it never ends."""
        changed: dict[str, Any] = {name: nanoseconds}
        self.timeouts = replace(self.timeouts, **changed)

    def set_query(self, *, queries_silent: bool) -> None:
        """Set whether a silent neighbor is queried before it is declared down."""
        self.timeouts = replace(self.timeouts, queries_silent=queries_silent)

    def set_limit(self, name: str, number: int) -> None:
        """Set one of the core's limits, by its field name there."""
        self.limits = replace(self.limits, **{name: number})

    def finish(self, warnings: tuple[Problem, ...]) -> CompiledPolicy:
        """Return the policy; the file must be valid."""
        required = tuple(self.required)
        accepted = {
            peer: replace(block, requirements=(*required, *block.requirements)) for peer, block in self.accepted.items()
        }
        return CompiledPolicy(
            name=self.name,
            timeouts=self.timeouts,
            limits=self.limits,
            running=tuple(rule for rule, _ in self.running),
            acceptance=AcceptRules(
                by_name=rules_by_name(accepted),
                by_relation=rules_by_relation(accepted),
                for_any=accepted.get("any"),
            ),
            disclosure=self._disclosure(),
            orders=tuple(self.orders),
            **self.parts,
            lets=tuple((name, start_of(let.tree)) for name, let in self.reader.lets.items() if let is not None),
            histories=tuple(self.histories),
            in_history=tuple(self.reader.vocabulary.in_history.values()),
            declared=tuple(each for each in self.reader.vocabulary.declared.values() if each is not None),
            warnings=warnings,
        )

    def _disclosure(self) -> CompiledDisclosure:
        return CompiledDisclosure(
            advertising=Advertising(
                sends_all=self.sends_all,
                sent=tuple(sorted(self.sent)),
                settings=tuple(self.settings),
                in_history=frozenset(self.reader.vocabulary.in_history),
            ),
            combining=self._combining(),
            revealing=Revealing(
                by_name=rules_by_name(self.revealed),
                by_relation=rules_by_relation(self.revealed),
                to_any=self.revealed.get("any", EVERYTHING),
            ),
        )

    def _combining(self) -> Combining:
        def named(rule: str) -> tuple[str, ...]:
            return tuple(sorted(name for name, said in self.combined.items() if said == rule and name != DEFAULT))

        return Combining(
            keys=tuple(sorted({*KEY_ATTRIBUTES, *named("key")})),
            carried=named("carry"),
            dropped=named("drop"),
            drops_others=self.combined.get(DEFAULT) == "drop",
        )
