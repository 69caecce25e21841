"""One compaction for many children: D as a whole, from which some children's machines are removed (MESSIAHS 7.2).

A child is sent the vectors of all primary children except those that it receives itself. A separate compaction for
every circle of siblings would dominate the cost of a parent of many children. So the classes of all places are
determined once, and the vector for a child has the same classes without the excluded machines. Each class is then the
hull of the remaining machines; counts are exact, and the result depends on the vectors alone, not on their order of
arrival.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final

from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.compaction import CLASS_LIMIT, Part, compact, dividing, fits
from messiahs.core.vectors.split_tree import Memory
from messiahs.core.vectors.vectors import EMPTY, MachineClass, Place, Vector, coalesce, hull_of, places_of

MERGING_NS: Final = 3_000
PARTING_NS: Final = 20_000
"""Approximate costs of a class that is merged with others, and of a class that is removed."""
_BATCH: Final = 2_000

_NAME_OF: Final = itemgetter(0)
_Member = tuple[SystemId | None, MachineClass]


class Division:
    """The sum of vectors, divided into the classes of its compaction; `children` can be removed again (mutable).

    The work is done in steps, so that it can be spread over several turns. There are no results before it is done.
    """

    def __init__(
        self,
        vectors: Iterable[Vector],
        children: Mapping[SystemId, Vector],
        *,
        keys: tuple[str, ...],
        memory: Memory | None = None,
    ) -> None:
        """Begin a division; sharing a memory with earlier divisions of the same keys saves work."""
        self.vector = EMPTY
        self.is_done = False
        self.work_ns = 0
        """Approximate cost so far; the same on every machine and for any number of turns."""
        self.parting_ns = 0
        """Approximate cost of one call of `without`."""
        self._keys = tuple(sorted(keys))
        self._owned: list[_Member] = [(None, each) for vector in vectors for each in vector.classes]
        self._owned += [(child, each) for child, vector in children.items() for each in vector.classes]
        self._members: dict[Place, list[_Member]] = {}
        self._places: dict[SystemId, dict[Place, None]] = {}
        self._parts: tuple[Part, ...] = ()
        self._part_of: dict[Place, int] = {}
        self._is_whole = False
        self._steps = self._divide(memory)

    def work(self, until_ns: int | None = None) -> bool:
        """Work until `until_ns` is spent in total, or to the end; return whether less than that was enough.

        The answer depends on the cost alone: it is the same if the work was done before.
        """
        while until_ns is None or self.work_ns < until_ns:
            step_ns = next(self._steps, None)
            if step_ns is None:
                self.is_done = True
                return True
            self.work_ns += step_ns
        return False

    def without(self, children: frozenset[SystemId]) -> Vector:
        """Return a vector of all machines except those of some children, within the limits for sending."""
        assert self.is_done
        touched = {place: None for child in sorted(children) for place in self._places.get(child, ())}
        if not touched:
            return self.vector
        may_fit = len(self._members) - len(touched) <= CLASS_LIMIT < len(self._members)
        if may_fit or not self._is_whole:
            # The rest may fit without merging classes or dropping attributes.
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
        vector = self._vector_of(classes)
        return vector if fits(vector) else self._compacted_without(children)

    def _divide(self, memory: Memory | None) -> Iterator[int]:
        """Divide in steps; each yields its approximate cost in ns."""
        for start in range(0, len(self._owned), _BATCH):
            yield self._place(self._owned[start : start + _BATCH])
        self.vector = yield from self._compact(memory)
        self._part_of = {place: number for number, part in enumerate(self._parts) for place in part.places}
        classes = [machine_class for _, machine_class in self._owned]
        self._is_whole = _names_in(self.vector.classes) == _names_in(classes)
        self.parting_ns = PARTING_NS * len(self._parts) + MERGING_NS * len(classes) // 2
        if not self._is_whole:
            self.parting_ns += self.work_ns

    def _place(self, owned: Sequence[_Member]) -> int:
        places = places_of([machine_class for _, machine_class in owned], self._keys)
        for place, member in zip(places, owned, strict=True):
            self._members.setdefault(place, []).append(member)
            if member[0] is not None:
                self._places.setdefault(member[0], {})[place] = None
        return MERGING_NS * len(owned)

    def _compact(self, memory: Memory | None) -> Generator[int, None, Vector]:
        """Find the parts, and return their vector."""
        alike = {place: [each for _, each in members] for place, members in self._members.items()}
        if len(alike) <= CLASS_LIMIT:
            self._parts = tuple(Part((place,), hull_of(same)) for place, same in alike.items())
            vector = self._vector_of(part.merged for part in self._parts)
            if fits(vector):
                return vector
        self._parts = yield from dividing(alike, self._keys, memory=memory)
        return self._vector_of(part.merged for part in self._parts)

    def _vector_of(self, classes: Iterable[MachineClass]) -> Vector:
        return coalesce((Vector(tuple(classes)),), keys=self._keys)

    def _compacted_without(self, children: frozenset[SystemId]) -> Vector:
        left = (each for members in self._members.values() for child, each in members if child not in children)
        return compact(Vector(tuple(left)), keys=self._keys)


def _names_in(classes: Iterable[MachineClass]) -> frozenset[str]:
    alike = {tuple(map(_NAME_OF, each.attributes)) for each in classes}
    return frozenset(name for names in alike for name in names)
