"""One compaction for many children: of everything that D may hold, from which each is told all but some (MESSIAHS 7.2).

A child is told of all primary children but those that it hears itself. To compact that for every circle of siblings
anew would cost a parent of many children far more than all else. So the places of classes are decided once, for
everything, and a child's vector has the same classes without the machines that are kept from it. Each class is then the
hull of what is left in it; counts are exact, and it depends on what was said alone, not on the order in which it came.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final

from messiahs.core.compaction import CLASS_LIMIT, Part, compact, divided, fits
from messiahs.core.ids import SystemId
from messiahs.core.split_tree import Memory
from messiahs.core.vectors import MachineClass, Place, Vector, coalesce, hull_of, places_of

MERGING_NS: Final = 3_000
SPLITTING_NS: Final = 60_000
PARTING_NS: Final = 20_000
"""Roughly what a class costs that is put together with others, a place among too many, and a class that leaves."""

_NAME_OF: Final = itemgetter(0)
_Member = tuple[SystemId | None, MachineClass]


class Division:
    """Vectors in one sum, divided into the classes of its compaction; `children` may be taken out again (mutable).

    It only remembers what it was asked for.
    """

    def __init__(
        self,
        vectors: Iterable[Vector],
        children: Mapping[SystemId, Vector],
        *,
        keys: tuple[str, ...],
        memory: Memory | None = None,
    ) -> None:
        """Divide; what a division of the same keys has found before saves work if its memory goes on."""
        self.memory = memory or Memory()
        self._keys = tuple(sorted(keys))
        owned: list[_Member] = [(None, each) for vector in vectors for each in vector.classes]
        owned += [(child, each) for child, vector in children.items() for each in vector.classes]
        classes = [machine_class for _, machine_class in owned]
        self._members: dict[Place, list[_Member]] = {}
        self._places: dict[SystemId, dict[Place, None]] = {}
        for place, member in zip(places_of(classes, self._keys), owned, strict=True):
            self._members.setdefault(place, []).append(member)
            if member[0] is not None:
                self._places.setdefault(member[0], {})[place] = None
        self.vector, self._parts = self._divide()
        self._part_of = {place: number for number, part in enumerate(self._parts) for place in part.places}
        self._is_whole = _names_in(self.vector.classes) == _names_in(classes)
        is_divided = len(self._parts) < len(self._members)
        self.work_ns = MERGING_NS * len(classes) + (SPLITTING_NS * len(self._members) if is_divided else 0)
        """What it cost, roughly; the same wherever it is made."""
        self.parting_ns = PARTING_NS * len(self._parts) + MERGING_NS * len(classes) // 2
        """What one of `without` costs, roughly."""

    def without(self, children: frozenset[SystemId]) -> Vector:
        """Give a vector of all machines but those that some children said, within the limits of one that leaves."""
        touched = {place: None for child in sorted(children) for place in self._places.get(child, ())}
        if not touched:
            return self.vector
        may_fit = len(self._members) - len(touched) <= CLASS_LIMIT < len(self._members)
        if may_fit or not self._is_whole:
            # Nothing may have to be put together, or no attribute left out.
            return self._compacted_without(children)
        classes = [part.merged for part in self._parts]
        for number in sorted({self._part_of[place] for place in touched}, reverse=True):
            left = [
                machine_class
                for place in self._parts[number].places
                for child, machine_class in self._members[place]
                if child not in children
            ]
            classes[number : number + 1] = [hull_of(left)] if left else []
        vector = coalesce((Vector(tuple(classes)),), keys=self._keys)
        return vector if fits(vector) else self._compacted_without(children)

    def _divide(self) -> tuple[Vector, tuple[Part, ...]]:
        alike = {place: [each for _, each in members] for place, members in self._members.items()}
        if len(alike) <= CLASS_LIMIT:
            parts = tuple(Part((place,), hull_of(same)) for place, same in alike.items())
            vector = coalesce((Vector(tuple(part.merged for part in parts)),), keys=self._keys)
            if fits(vector):
                return vector, parts
        parts = divided(alike, self._keys, memory=self.memory)
        return coalesce((Vector(tuple(part.merged for part in parts)),), keys=self._keys), parts

    def _compacted_without(self, children: frozenset[SystemId]) -> Vector:
        left = (each for members in self._members.values() for child, each in members if child not in children)
        return compact(Vector(tuple(left)), keys=self._keys)


def _names_in(classes: Iterable[MachineClass]) -> frozenset[str]:
    alike = {tuple(map(_NAME_OF, each.attributes)) for each in classes}
    return frozenset(name for names in alike for name in names)
