"""Comparing the needs of a task with the resources of machines (MESSIAHS 5.1, table 1; 6.2 sched_request)."""

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from messiahs.core.interface.messages import DenyCode
from messiahs.core.interface.policies import Need
from messiahs.core.interface.predicates import Predicate
from messiahs.core.model.attributes import Kind
from messiahs.core.model.counted import Uses, counted_in, free, shown_name, uses_in
from messiahs.core.model.descriptions import TDV, Description
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.model.texts import OWN_MACHINE
from messiahs.core.vectors.columns import NO_CLASS, Classes, Judged
from messiahs.core.vectors.indexed import IndexedVector
from messiahs.core.vectors.joined_views import Overview

_LONGEST_RUN_NS: Final = 100 * 366 * 24 * HOUR
"""Upper bound of time limits: longer ones would not fit into 64 bits when stored or sent."""
COMPARISON_LIMIT: Final = 100_000
"""Comparisons that one message may cause: some tenths of a second."""
_SHOWN_TERM: Final = 160
"""Characters of a requirement in a reason."""


def need_of(tdv: TDV, requirement: Predicate) -> Need:
    """Return the needs stated by a TDV: at least one slot; unstated sizes are 0."""
    stated = tdv.description()
    return Need(
        slots=max(1, _size(stated, "cpus")),
        mem_bytes=_size(stated, "mem"),
        disk_bytes=_size(stated, "disk"),
        requirement=requirement,
        uses=uses_in(tdv.pairs),
    )


def time_limit_ns(tdv: TDV) -> int | None:
    """Return how long a task may run in ns, at most a hundred years; None if it states no time."""
    seconds = _size(tdv.description(), "est_time")
    return min(_LONGEST_RUN_NS, seconds * SECOND) if seconds else None


def _size(stated: Description, name: str) -> int:
    value = stated.get(name, 0)
    return max(0, value) if isinstance(value, int) else 0


def has_room(need: Need, here: Description) -> bool:
    """Return whether one machine, exactly described, can hold one more task now."""
    counted = ((free(name), amount) for name, amount in counted_in(need.uses, here))
    return all(_size(here, name) >= amount for name, amount in (*_free(need), *counted))


def fitting(need: Need, view: IndexedVector) -> Judged:
    """Return the classes in which every machine can hold the task now, and those in which some machine could."""
    question = _question(need)
    verdict = view.verdict(question)
    if verdict is None:
        verdict = _fitting(need, view)
        view.remember(question, verdict)
    return verdict


def evaluate(need: Need, views: Mapping[SystemId, IndexedVector], overview: Overview, /) -> None:
    """Compute `fitting` for many views together and store it in each: much faster than one view at a time."""
    question = _question(need)
    new = {system: view for system, view in views.items() if view.verdict(question) is None}
    if new:
        verdicts = overview.judged(new, lambda classes: _fitting(need, classes))
        for view, verdict in zip(new.values(), verdicts, strict=True):
            view.remember(question, verdict)


def could_hold(need: Need, view: IndexedVector) -> bool:
    """Return whether some machine behind a view may be able to hold the task now."""
    _, could = fitting(need, view)
    return could != 0


def why_not_here(need: Need, here: Description) -> DenyCode:
    """Return why one machine, exactly described, cannot hold the task now."""
    total = (*_total(need), *counted_in(need.uses, here))
    if any(_size(here, name) < amount for name, amount in total if name in here):
        return DenyCode.NO_CLASS
    return DenyCode.NO_CAPACITY if need.requirement.holds(here) else DenyCode.REQUIREMENT_UNMET


def unmet_text(need: Need, here: Description, *, is_own: bool) -> str:
    """Return what one machine, exactly described, lacks of a requirement that it does not meet.

    Which term is not true is said for an own task alone: it could be what the policy withholds from others.
    """
    unset = need.requirement.unset_in(here)
    if unset:
        # Things that it does not count are two attributes, of which users need not know.
        things = [name for name, _ in need.uses if {name, free(name)} <= set(unset)]
        others = [f"${name}" for name in unset if not any(name in (each, free(each)) for each in things)]
        return f"{OWN_MACHINE} has no {', no '.join((*map(shown_name, things), *others))}"
    if not is_own:
        return ""
    term = need.requirement.false_term_in(here)
    return f"{OWN_MACHINE} does not meet {term if len(term) <= _SHOWN_TERM else f'{term[:_SHOWN_TERM]}…'}"


def why_not(need: Need, views: Mapping[SystemId, IndexedVector], overview: Overview, /) -> dict[SystemId, DenyCode]:
    """Return for each view why it cannot hold the task: size, requirement, or busy machines."""
    judged = overview.judged(views, lambda classes: _meeting(need, classes))
    return {
        system: DenyCode.NO_CAPACITY if able else DenyCode.REQUIREMENT_UNMET if large_enough else DenyCode.NO_CLASS
        for system, (able, large_enough) in zip(views, judged, strict=True)
    }


def why_too_costly(need: Need, views: Mapping[SystemId, IndexedVector], overview: Overview, /) -> str:
    """Return why a requirement is too expensive to evaluate over views; empty if it is not."""
    comparisons = overview.total(views, need.requirement.cost)
    if comparisons <= COMPARISON_LIMIT:
        return ""
    return (
        f"the requirement compares two attributes too often: {comparisons} comparisons over the views of neighbors,"
        f" at most {COMPARISON_LIMIT} are allowed"
    )


def met(need: Need, classes: Classes) -> Judged:
    """Return the classes that surely, and those that may, meet the requirement; both are remembered."""
    text = need.requirement.text
    verdict = classes.verdict(text)
    if verdict is None:
        verdict = need.requirement.over(classes)
        classes.remember(text, verdict)
    return verdict


def _question(need: Need) -> tuple[str, int, int, int, Uses]:
    return (need.requirement.text, need.slots, need.mem_bytes, need.disk_bytes, need.uses)


def _meeting(need: Need, classes: Classes) -> Judged:
    """Return the classes that could hold the task if they were idle, and those that are large enough for it."""
    _, could = _large_enough(classes, (*_total(need), *_counted(need, classes, names_total=True)))
    if not could:
        return NO_CLASS
    _, could_meet = met(need, classes)
    return could & could_meet, could


def _fitting(need: Need, classes: Classes) -> Judged:
    surely, could = _large_enough(classes, (*_free(need), *_counted(need, classes, names_total=False)))
    if not could:
        return NO_CLASS
    meets_surely, could_meet = met(need, classes)
    return surely & meets_surely, could & could_meet


def _free(need: Need) -> tuple[tuple[str, int], ...]:
    return (("free_slots", need.slots), ("avail_mem", need.mem_bytes), ("avail_disk", need.disk_bytes))


def _total(need: Need) -> tuple[tuple[str, int], ...]:
    return (("slots", need.slots), ("total_mem", need.mem_bytes), ("total_disk", need.disk_bytes))


def _counted(need: Need, classes: Classes, *, names_total: bool) -> Uses:
    """Return the least values of the attributes about those counted things that some machine counts."""
    columns = classes.columns(Kind.INTEGER, *(free(name) for name, _ in need.uses)) if need.uses else ()
    return tuple(
        [
            (name if names_total else free(name), amount)
            for (name, amount), column in zip(need.uses, columns, strict=True)
            if column.values
        ]
    )


def _large_enough(classes: Classes, amounts: tuple[tuple[str, int], ...]) -> Judged:
    surely = could = classes.every_class
    names, least = zip(*amounts, strict=True)
    for (values, cells, width), amount in zip(classes.columns(Kind.INTEGER, *names), least, strict=True):
        cell = cells[bisect_left(values, amount)]
        surely &= cell
        # A value that is withheld, missing or of another type could be anything: possible, never sure.
        could &= cell >> width | ~cells[0]
    return surely, could
