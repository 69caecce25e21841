"""Splitting one class repeatedly, each time where that loses least, with a memory of results for the same machines.

Little changes between two sums: most groups of machines are the same as the last time. The best split and the hull of a
group depend only on its machines and their cells, so they need not be computed again. The result is the same with and
without memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from messiahs.core.vectors.compaction_points import Cell, Point, Points
from messiahs.core.vectors.compaction_split import Group, Split
from messiahs.core.vectors.vectors import MachineClass, Place, hull_of

_GroupKey = tuple[int, ...]
"""Identifies a group of machines by the numbers of the contents of its places."""
_Content = tuple[Sequence[MachineClass], tuple[Cell, ...]]
"""The machines of a place, and the cells of their point, which differ if a sum of more points is rounded."""


@dataclass(slots=True)
class _Found:
    """The results for one group of machines (mutable): filled in as they are needed."""

    loss: int
    is_sought: bool = False
    split: tuple[Split, Cell] | None = None
    """Its best split, once that is sought, with the cell itself, whose position depends on all other cells."""
    merged: MachineClass | None = None


class Memory:
    """The results for the groups of the last sum only (mutable)."""

    def __init__(self) -> None:
        self._numbers: dict[Place, tuple[_Content, int]] = {}
        self._found: dict[_GroupKey, _Found] = {}
        self._next = count()

    def begin(self, alike: Mapping[Place, Sequence[MachineClass]], points: Points) -> "Recall":
        """Assign numbers to the contents of all places; a content unchanged since the last sum keeps its number."""
        numbers: dict[Place, tuple[_Content, int]] = {}
        for point in points.points:
            cells = points.cells_of(point)
            for place in point.places:
                content, known = (alike[place], cells), self._numbers.get(place)
                numbers[place] = known if known is not None and known[0] == content else (content, next(self._next))
        recall = Recall(numbers, self._found)
        self._numbers, self._found = numbers, recall.found
        return recall


class Recall:
    """The results of one sum, with access to those of the last one (mutable). Another sum may begin before it ends."""

    def __init__(self, numbers: Mapping[Place, tuple[_Content, int]], before: Mapping[_GroupKey, _Found]) -> None:
        self.found: dict[_GroupKey, _Found] = {}
        self._numbers, self._before = numbers, before

    def key_of(self, points: Sequence[Point]) -> _GroupKey:
        """Return the numbers of the contents of all places of some points."""
        return tuple(self._numbers[place][1] for point in points for place in point.places)

    def find(self, key: _GroupKey) -> _Found | None:
        """Return the results for a group of this or the last sum; None for any other group."""
        found = self.found.get(key)
        if found is None:
            found = self._before.get(key)
            if found is not None:
                self.found[key] = found
        return found


@dataclass(slots=True)
class Node:
    """Points that form or once formed one class, and the nodes that they were split into (mutable)."""

    points: Sequence[Point]
    found: _Found
    group: Group | None
    parts: tuple[int, int] | None = None
    places: tuple[Place, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.places = tuple(place for point in self.points for place in point.places)


class SplitTree:
    """The nodes of repeated splits, up to a number of classes; the first one holds all points."""

    def __init__(self, alike: Mapping[Place, Sequence[MachineClass]], points: Points, memory: Memory) -> None:
        """Begin with one node that holds all points."""
        self.nodes: list[Node] = []
        self._points, self._recall = points, memory.begin(alike, points)
        # The cells of a group's first point are the last tie-breaker: they are unique to the group.
        self._waiting: list[tuple[int, int, int, tuple[int, ...], int, Split | None]] = []
        self._add(points.points)

    def grow(self, *, least: int, classes: int) -> Iterator[int]:
        """Split repeatedly the group whose split saves the most loss; each split appends two nodes.

        A group cannot gain more than its loss, so its split is sought only when it could be the best one. Each search
        yields the number of points that it covered.
        """
        while self._waiting and len(self.nodes) < 2 * classes - 1:
            *_, position, split = heappop(self._waiting)
            node = self.nodes[position]
            if split is None:
                self._seek(node, position, least=least)
                yield len(node.points)
            else:
                one, other = split.divide(node.points)
                node.parts = self._add(one), self._add(other)

    def merged(self, alike: Mapping[Place, Sequence[MachineClass]]) -> list[MachineClass]:
        """Return the class of every node, computed from its parts: the hull of hulls is the hull of all."""
        classes: dict[int, MachineClass] = {}
        for position in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[position]
            if node.parts is None:
                classes[position] = hull_of([each for place in node.places for each in alike[place]])
            else:
                classes[position] = hull_of([classes[part] for part in node.parts])
        return [classes[position] for position in range(len(self.nodes))]

    def remembered(self, alike: Mapping[Place, Sequence[MachineClass]]) -> list[MachineClass]:
        """Return the same for the classes of the tree itself, and remember the results."""
        for node in reversed(self.nodes):
            if node.found.merged is not None:
                continue
            if node.parts is None:
                node.found.merged = hull_of([each for place in node.places for each in alike[place]])
            else:
                parts = (self.nodes[part].found.merged for part in node.parts)
                node.found.merged = hull_of([part for part in parts if part is not None])
        return [node.found.merged for node in self.nodes if node.found.merged is not None]

    def _add(self, points: Sequence[Point]) -> int:
        key, group = self._recall.key_of(points), None
        found = self._recall.find(key)
        if found is None:
            group = Group(points, self._points.disagreement)
            found = _Found(loss=group.loss)
            self._recall.found[key] = found
        position = len(self.nodes)
        self.nodes.append(Node(points, found, group))
        if found.loss:
            heappush(self._waiting, (-found.loss, -1, 0, points[0].cells, position, None))
        return position

    def _seek(self, node: Node, position: int, *, least: int) -> None:
        found, scales = node.found, self._points.scales
        if not found.is_sought:
            group = node.group or Group(node.points, self._points.disagreement)
            split = group.best_split(scales, least=least)
            found.is_sought = True
            if split is not None:
                found.split = split, scales[split.key_position].cells[split.cell]
        if found.split is not None:
            split = found.split[0].at(scales[found.split[0].key_position].cells, found.split[1])
            order = (-split.gain, split.key_position, split.cell, node.points[0].cells)
            heappush(self._waiting, (*order, position, split))
