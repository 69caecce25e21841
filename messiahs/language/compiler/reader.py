"""What is known of a policy file while its predicates and amounts are read."""

from dataclasses import dataclass, field

from lark import Token, Tree

from messiahs.core.model.attributes import Kind
from messiahs.language.compiler.constant_predicates import EFFORT
from messiahs.language.compiler.vocabulary import View, Vocabulary
from messiahs.language.predicate.satisfiability import Effort
from messiahs.language.runtime.amounts import Operand
from messiahs.language.runtime.readings import Group
from messiahs.language.syntax.problems import Notebook


@dataclass(frozen=True, slots=True)
class Let:
    """A named predicate, and its size when it is expanded."""

    tree: Tree[Token]
    comparisons: int
    depth: int


@dataclass(slots=True, kw_only=True)
class Reader:
    """State of a file while it is read (mutable). A `let` or a group that is None has an invalid definition."""

    notebook: Notebook
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    lets: dict[str, Let | None] = field(default_factory=dict)
    groups: dict[str, Group | None] = field(default_factory=dict)
    defined_below: set[str] = field(default_factory=set)
    effort: Effort = field(default_factory=lambda: Effort(EFFORT))


@dataclass(slots=True, kw_only=True)
class Scene:
    """One predicate being read in one block; `operands` grows (mutable)."""

    reader: Reader
    view: View
    operands: dict[str, Operand] = field(default_factory=dict)
    kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)
