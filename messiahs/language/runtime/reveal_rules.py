"""The part of a vector that a neighbor receives; applied last, it only removes (MESSIAHS 5: local autonomy)."""

from dataclasses import dataclass, field

from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.core.vectors.redaction import without, without_small_classes
from messiahs.core.vectors.vectors import EMPTY, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What a neighbor receives: `only` some attributes (None: any), without those that are `withheld`.

    Every class that is sent has at least `least_count` machines. `name` replaces the names of this system and of those
    behind it in reasons.
    """

    is_nothing: bool = False
    only: tuple[str, ...] | None = None
    withheld: tuple[str, ...] = ()
    least_count: int = 0
    name: str = ""
    demand: bool | None = None
    """Whether the unmet demand is sent; None: to the parent of the same site alone."""

    def shows(self, attribute: str) -> bool:
        """Return whether anything is revealed, and the attribute with it."""
        return not self.is_nothing and self.allows(attribute)

    def allows(self, attribute: str) -> bool:
        """Return whether an attribute is revealed."""
        return attribute not in self.withheld and (self.only is None or attribute in self.only)

    def restricted_by(self, other: "Disclosure") -> "Disclosure":
        """Return what both allow; of two names the first."""
        if self.only is None or other.only is None:
            only = self.only if other.only is None else other.only
        else:
            only = tuple(name for name in self.only if name in other.only)
        return Disclosure(
            is_nothing=self.is_nothing or other.is_nothing,
            only=only,
            withheld=tuple(sorted({*self.withheld, *other.withheld})),
            least_count=max(self.least_count, other.least_count),
            name=self.name or other.name,
            demand=_allowed_by((self.demand, other.demand)),
        )

    def of(self, vector: Vector, *, keys: tuple[str, ...]) -> Vector:
        """Return what is revealed of a vector; if the vector is within the limits for sending, the result is too."""
        if self == EVERYTHING:
            return vector
        if self.is_nothing:
            return EMPTY
        names = {name for each in vector.classes for name, _ in each.attributes if not self.allows(name)}
        return without_small_classes(without(vector, names, keys=keys), keys=keys, least=self.least_count)


EVERYTHING = Disclosure()


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealing:
    """The rules for each neighbor: the closest one applies; of several relations, every rule applies."""

    by_name: tuple[tuple[str, Disclosure], ...] = ()
    by_relation: tuple[tuple[Relation, Disclosure], ...] = ()
    to_any: Disclosure = field(default=EVERYTHING)

    def to(self, neighbor: Neighbor) -> Disclosure:
        """Return the rule for a neighbor; by default everything is revealed."""
        named = dict(self.by_name).get(neighbor.system)
        if named is not None:
            return named
        relations = (
            (neighbor.is_parent, Relation.PARENT),
            (neighbor.is_child, Relation.CHILD),
            (neighbor.is_sibling, Relation.SIBLING),
        )
        rules = dict(self.by_relation)
        found = [rules[relation] for is_so, relation in relations if is_so and relation in rules]
        if not found:
            return self.to_any
        disclosure = found[0]
        for rule in found[1:]:
            disclosure = disclosure.restricted_by(rule)
        return disclosure


def _allowed_by(rules: tuple[bool | None, ...]) -> bool | None:
    """Return what all rules allow of the demand: one that says nothing of it allows less than one that sends it."""
    if False in rules:
        return False
    return None if None in rules else True
