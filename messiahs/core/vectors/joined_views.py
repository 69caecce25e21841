"""All views side by side, so that one evaluation covers a hundred of them (MESSIAHS 5.2, the task filter).

A new task is compared with the views of all neighbors at once, and each of these changes at times. So up to `VIEWS` of
them share a panel, whose columns are like those of one vector with very many classes. After a change of a view, only
its own part of a column is rewritten, and only when the column is next used.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from messiahs.core.model.attributes import Kind, Value
from messiahs.core.model.ids import SystemId
from messiahs.core.vectors.columns import Classes, ClassSet, Column, Judged, Packed, column_of, packed, unpacked
from messiahs.core.vectors.compaction import CLASS_LIMIT
from messiahs.core.vectors.indexed import IndexedVector

LANE: Final = CLASS_LIMIT
VIEWS: Final = 128
WIDTH: Final = LANE * VIEWS
VALUES: Final = 512
"""Most values in a column of a panel: beyond, the memory outweighs the time saved."""
_COLUMNS_KEPT: Final = 64
_VERDICTS_KEPT: Final = 8
_PATCHES: Final = 32
"""Most patches of a column before it is rebuilt: patches leave values behind that no class has any more."""
_LANES: Final = Struct(f"<{VIEWS}Q")
"""Each `Q` is one lane."""
_PACKED_LANES: Final = Struct(f"<{2 * VIEWS}Q")

Judge = Callable[[Classes], Judged]


class TooVariousError(Exception):
    """A column of a panel would have too many values."""


@dataclass(slots=True)
class _Shown:
    """A column of a panel (mutable), outdated at the `stale` places."""

    column: Column
    patches: int = 0
    stale: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Panel:
    """Some views (mutable): the class `i` of the view at a place is the class `place * LANE + i` of the panel."""

    views: list[IndexedVector] = field(default_factory=list)
    every_class: ClassSet = 0
    _shown: dict[tuple[Kind, str], _Shown] = field(default_factory=dict)
    _verdicts: dict[object, Judged] = field(default_factory=dict)

    def put(self, place: int, view: IndexedVector, /) -> None:
        """Put a view at a place, for the first time or instead of another, or behind the last."""
        if place == len(self.views):
            self.views.append(view)
        else:
            self.views[place] = view
        self._verdicts.clear()
        self.every_class = _with_lane(self.every_class, place, view.every_class)
        for shown in self._shown.values():
            shown.stale.add(place)

    def columns(self, kind: Kind, /, *names: str) -> list[Column]:
        """Return the columns of attributes, read as one type. Raises TooVariousError."""
        return [self._column(kind, name) for name in names]

    def verdict(self, question: object, /) -> Judged | None:
        """Return the remembered verdict for a question; None if there is none, or a view has changed since."""
        return self._verdicts.get(question)

    def remember(self, question: object, verdict: Judged, /) -> None:
        """Store the verdict for a question."""
        if len(self._verdicts) >= _VERDICTS_KEPT:
            self._verdicts.clear()
        self._verdicts[question] = verdict

    def _column(self, kind: Kind, name: str) -> Column:
        key = (kind, name)
        shown = self._shown.pop(key, None)
        if shown is None or shown.patches + len(shown.stale) > _PATCHES:
            holding = [place for place, view in enumerate(self.views) if view.has_attribute(name)]
            if not holding:
                return column_of({}, unclear=self.every_class, width=WIDTH)
            shown = _Shown(self._new_column(kind, name, holding))
        for place in sorted(shown.stale):
            (column,) = self.views[place].columns(kind, name)
            shown.column = _patched(shown.column, place, column)
        shown.patches += len(shown.stale)
        shown.stale.clear()
        if len(shown.column.values) > VALUES:
            raise TooVariousError
        if len(self._shown) >= _COLUMNS_KEPT:
            self._shown.clear()
        self._shown[key] = shown
        return shown.column

    def _new_column(self, kind: Kind, name: str, holding: Sequence[int]) -> Column:
        """Return a column composed of those of the views with the attribute; for all others nothing is known."""
        unclear = [view.every_class for view in self.views]
        ends: dict[Value, list[ClassSet]] = {}
        for place in holding:
            (column,) = self.views[place].columns(kind, name)
            width, every = column.width, (1 << column.width) - 1
            unclear[place] = column.unclear
            for value, both in column.ends():
                lanes = ends.get(value)
                if lanes is None:
                    lanes = ends[value] = [0] * (2 * VIEWS)
                lanes[place], lanes[VIEWS + place] = both & every, both >> width
        return column_of(
            {value: int.from_bytes(_PACKED_LANES.pack(*lanes), "little") for value, lanes in ends.items()},
            unclear=int.from_bytes(_LANES.pack(*unclear, *[0] * (VIEWS - len(unclear))), "little"),
            width=WIDTH,
        )


@dataclass(slots=True)
class Overview:
    """The panels, and the place of each neighbor's view in them (mutable).

    It is derived from the views that it is given, and may be dropped at any time. Places count through all panels.
    """

    _panels: list[Panel] = field(default_factory=list)
    _places: dict[SystemId, int] = field(default_factory=dict)
    _views: list[IndexedVector] = field(default_factory=list)

    def judged(self, views: Mapping[SystemId, IndexedVector], judge: Judge, /) -> list[Judged]:
        """Return the judgment of each view, in their order.

        The judge is given many views as if they were one, and must judge every class independently of the others.
        """
        places = self._places_of(views)
        surely, could = [0] * len(self._views), [0] * len(self._views)
        for number in _panels_with(places):
            start, panel = number * VIEWS, self._panels[number]
            try:
                found = judge(panel)
            except TooVariousError:
                found_alone = [judge(view) for view in panel.views]
                surely[start : start + VIEWS], could[start : start + VIEWS] = zip(*found_alone, strict=True)
            else:
                surely[start : start + VIEWS], could[start : start + VIEWS] = map(_lanes, found)
        return [(surely[place], could[place]) for place in places]

    def total(self, views: Mapping[SystemId, IndexedVector], measure: Callable[[Classes], int], /) -> int:
        """Return the sum of a measure over everything that `judged` would evaluate."""
        total = 0
        for panel in [self._panels[number] for number in _panels_with(self._places_of(views))]:
            try:
                total += measure(panel)
            except TooVariousError:
                total += sum(map(measure, panel.views))
        return total

    def _places_of(self, views: Mapping[SystemId, IndexedVector]) -> list[int]:
        """Put the views into the panels, and return their places."""
        if len(self._places) > 2 * len(views) + VIEWS:
            # Most neighbors have left.
            self._panels.clear()
            self._places.clear()
            self._views.clear()
        places, shown = self._places, self._views
        found: list[int] = []
        for system, view in views.items():
            place = places.get(system)
            if place is None or shown[place] is not view:
                place = self._put(system, view)
            found.append(place)
        return found

    def _put(self, system: SystemId, view: IndexedVector) -> int:
        assert len(view.vector.classes) <= LANE, "a message has at most that many classes"
        place = self._places.setdefault(system, len(self._places))
        number, place_there = divmod(place, VIEWS)
        if number == len(self._panels):
            self._panels.append(Panel())
        self._panels[number].put(place_there, view)
        self._views[place : place + 1] = [view]
        return place


def _panels_with(places: Iterable[int]) -> list[int]:
    return sorted({place // VIEWS for place in places})


def _with_lane(classes: ClassSet, place: int, lane: ClassSet) -> ClassSet:
    """Return a set of classes with those at a place replaced."""
    offset = place * LANE
    return classes & ~(((1 << LANE) - 1) << offset) | lane << offset


def _lanes(classes: ClassSet) -> tuple[ClassSet, ...]:
    return _LANES.unpack(classes.to_bytes(_LANES.size, "little"))


def _patched(column: Column, place: int, lane: Column) -> Column:
    """Return a column of a panel with the classes at a place replaced."""
    values: tuple[Any, ...] = tuple(sorted({*column.values, *lane.values}))  # all of one type
    all_ones = (1 << LANE) - 1
    kept = ~(packed(all_ones, all_ones, WIDTH) << place * LANE)
    cells = [
        old & kept | packed(*unpacked(new, lane.width), WIDTH) << place * LANE
        for old, new in zip(_at(column, values), _at(lane, values), strict=True)
    ]
    return Column(values, tuple(cells), WIDTH)


def _at(column: Column, values: tuple[Any, ...]) -> list[Packed]:
    """Return the cells of a column beside other values, and after the last of them."""
    return [*(column.cells[bisect_left(column.values, value)] for value in values), column.cells[-1]]
