"""Splitting one class into many, each time where that loses least, and remembering what was found of the same machines.

Between two sums, little changes: most groups of machines are those of the last time. What their best split is and what
their hull is follows from them and their cells alone, so it need not be found again. The result is the same with and
without memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from messiahs.core.vectors.compaction_points import Cell, Point, Points
from messiahs.core.vectors.compaction_split import Group, Split
from messiahs.core.vectors.vectors import MachineClass, Place, hull_of

_Said = tuple[int, ...]
"""A group of machines, by the numbers that stand for what is said at each of its places."""
_Content = tuple[Sequence[MachineClass], tuple[Cell, ...]]
"""The machines of a place, and the cells of their point, which are others if a sum of more points is rounded."""


@dataclass(slots=True)
class _Found:
    """What follows from a group of machines alone (mutable): it fills up as it is needed."""

    loss: int
    is_sought: bool = False
    split: tuple[Split, Cell] | None = None
    """Its best split, if that is sought, with the cell itself: where that stands changes with all others."""
    merged: MachineClass | None = None


class Memory:
    """What was found of the groups of the last sum, and of no others (mutable)."""

    def __init__(self) -> None:
        self._numbers: dict[Place, tuple[_Content, int]] = {}
        self._found: dict[_Said, _Found] = {}
        self._next = count()

    def begin(self, alike: Mapping[Place, Sequence[MachineClass]], points: Points) -> "Recall":
        """Give numbers to what is said at each place; what was said there the last time keeps its number."""
        numbers: dict[Place, tuple[_Content, int]] = {}
        for point in points.points:
            cells = points.cells_of(point)
            for place in point.places:
                content, said = (alike[place], cells), self._numbers.get(place)
                numbers[place] = said if said is not None and said[0] == content else (content, next(self._next))
        recall = Recall(numbers, self._found)
        self._numbers, self._found = numbers, recall.found
        return recall


class Recall:
    """What one sum knows of the last one, and finds itself (mutable). Others may begin before it is done."""

    def __init__(self, numbers: Mapping[Place, tuple[_Content, int]], before: Mapping[_Said, _Found]) -> None:
        self.found: dict[_Said, _Found] = {}
        self._numbers, self._before = numbers, before

    def said_by(self, points: Sequence[Point]) -> _Said:
        """Give the numbers of everything that points say."""
        return tuple(self._numbers[place][1] for point in points for place in point.places)

    def find(self, said: _Said) -> _Found | None:
        """Give what was found of a group, if it is one of this or the last sum."""
        found = self.found.get(said)
        if found is None:
            found = self._before.get(said)
            if found is not None:
                self.found[said] = found
        return found


@dataclass(slots=True)
class Node:
    """Points that were one class once, and the nodes that they were split into (mutable)."""

    points: Sequence[Point]
    found: _Found
    group: Group | None
    parts: tuple[int, int] | None = None
    places: tuple[Place, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.places = tuple(place for point in self.points for place in point.places)


class SplitTree:
    """The nodes that come of splitting over and over, as long as there are few classes; the first one is everything."""

    def __init__(self, alike: Mapping[Place, Sequence[MachineClass]], points: Points, memory: Memory) -> None:
        """Begin with one node that holds all points."""
        self.nodes: list[Node] = []
        self._points, self._recall = points, memory.begin(alike, points)
        # The cells of a group's first point are the last tie-breaker: no other group has them.
        self._waiting: list[tuple[int, int, int, tuple[int, ...], int, Split | None]] = []
        self._add(points.points)

    def grow(self, *, least: int, classes: int) -> Iterator[int]:
        """Split the group whose split lowers the loss most; each split appends two nodes.

        What a split gains is sought only where it could be the most: a group cannot gain more than it loses. After each
        search it yields among how many points that was.
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
        """Give the class of every node: what became of it stands behind it, and the hull of hulls is the hull."""
        classes: dict[int, MachineClass] = {}
        for position in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[position]
            if node.parts is None:
                classes[position] = hull_of([each for place in node.places for each in alike[place]])
            else:
                classes[position] = hull_of([classes[part] for part in node.parts])
        return [classes[position] for position in range(len(self.nodes))]

    def remembered(self, alike: Mapping[Place, Sequence[MachineClass]]) -> list[MachineClass]:
        """Give the same of what the tree was made of, and remember it."""
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
        said, group = self._recall.said_by(points), None
        found = self._recall.find(said)
        if found is None:
            group = Group(points, self._points.disagreement)
            found = _Found(loss=group.loss)
            self._recall.found[said] = found
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
