"""Evaluate each part of a condition over many machines, of which only classes are known (MESSIAHS 5.4, 7.1).

As in `class_truth`: *surely* means for every machine that a class may stand for, *could* for at least one of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_, xor

from messiahs.core.vectors.columns import NO_CLASS, Column, Judged, opposite
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.language.predicate.class_truth import class_truth_of
from messiahs.language.predicate.syntax import uses_of
from messiahs.language.runtime.conditions import Condition
from messiahs.language.runtime.readings import Facts
from messiahs.language.syntax.written import Compound, Joint, Term, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPart:
    """A part of a condition, and the classes of which it is true; `parts` are those of a compound."""

    written: Written
    judged: Judged
    parts: "tuple[ClassPart, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """A number of machines: those of which something is certain, and those of which it is possible."""

    surely: int
    could: int

    def __str__(self) -> str:
        return f"{self.could}" if self.surely == self.could else f"{self.surely} to {self.could}"


def explain_classes(condition: Condition, facts: Facts, scope: str, vector: IndexedVector, /) -> ClassPart:
    """Evaluate every part of a condition over classes, which take the place of one scope."""
    assert condition.written is not None, "a condition of a file with mistakes decides nothing"
    columns = {operand.key: operand.column_over(facts, scope, vector) for operand in condition.operands}
    whole = _judged(condition.written, columns, vector)
    # The condition itself determines the result: an undefined part makes all of it false.
    return ClassPart(written=whole.written, judged=condition.over(facts, scope, vector), parts=whole.parts)


def machines_in(judged: Judged, vector: IndexedVector, /) -> Machines:
    """Count the machines in evaluated classes."""
    surely, could = judged
    counts = [each.count for each in vector.vector.classes]
    return Machines(
        surely=sum(count for place, count in enumerate(counts) if surely >> place & 1),
        could=sum(count for place, count in enumerate(counts) if could >> place & 1),
    )


def class_terms(part: ClassPart) -> Iterator[ClassPart]:
    """Yield every comparison, in the order of the text."""
    if isinstance(part.written, Term):
        yield part
    for each in part.parts:
        yield from class_terms(each)


def _judged(written: Written, columns: Mapping[str, Column | None], vector: IndexedVector) -> ClassPart:
    every = vector.every_class
    if isinstance(written, Term):
        surely, could = _term(written, columns)
        return ClassPart(written=written, judged=(surely & every, could & every))
    parts = tuple([_judged(part, columns, vector) for part in written.parts])
    surely, could = _joined(written, [part.judged for part in parts])
    return ClassPart(written=written, judged=(surely & every, could & every), parts=parts)


def _term(term: Term, columns: Mapping[str, Column | None]) -> Judged:
    keys = [key for key, _ in uses_of(term.expression)]
    used = [column for key in keys if (column := columns[key]) is not None]
    if len(used) < len(keys):
        return NO_CLASS
    return class_truth_of(term.expression, {key: place for place, key in enumerate(keys)})(used)


def _joined(compound: Compound, judged: list[Judged]) -> Judged:
    surely, could = [each for each, _ in judged], [each for _, each in judged]
    match compound.joint:
        case Joint.AND:
            return reduce(and_, surely), reduce(and_, could)
        case Joint.OR:
            return reduce(or_, surely), reduce(or_, could)
        case Joint.NOT:
            return opposite(judged[0])
        case Joint.LET:
            return judged[0]
        case Joint.XOR:
            unclear = reduce(or_, [each & ~sure for sure, each in judged])
            odd = reduce(xor, surely)
            return odd & ~unclear, odd | unclear
