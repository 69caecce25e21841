"""Both ends of each link have the same ledger, once a federation is quiet (core/ledger)."""

from collections.abc import Collection, Iterator, Mapping

from messiahs.core.interface.ledger_rows import ClaimBookRow
from messiahs.core.ledger.books import awaited
from messiahs.core.model.ids import SystemId
from messiahs.core.module import SchedulingModule
from messiahs.core.state.module import ModuleState


def disagreements(
    modules: Collection[SchedulingModule], *, cut: Collection[tuple[SystemId, SystemId]] = ()
) -> Iterator[str]:
    """Yield the links whose ends differ about what one gave the other, and the claims without a final sum.

    Only links that exist count: what was given over a former one may never be reported, nor by those behind it. `cut`
    are takers and givers of which the taker has counted less than was stated: its clock, set back while the machine
    was off, allowed no more.
    """
    states = [module.state for module in modules]
    by_name = {state.system: state for state in states}
    for giver in states:
        for name in giver.neighbors:
            taker = by_name.get(name)
            if taker is None or giver.system not in taker.neighbors:
                continue
            given, taken = giver.ledger.neighbors.get(name), taker.ledger.neighbors.get(giver.system)
            of_giver = (given.given_ns, given.given_used_ns) if given is not None else (0, 0)
            of_taker = (taken.taken_ns, taken.taken_used_ns) if taken is not None else (0, 0)
            for what, given_ns, taken_ns in zip(("held", "used"), of_giver, of_taker, strict=True):
                if given_ns != taken_ns and not (given_ns > taken_ns and (name, giver.system) in cut):
                    yield f"{giver.system} gave {name} {given_ns} ns of processors, {what}, and {name} took {taken_ns}"
        for book in (*giver.ledger.own.values(), *giver.ledger.others.values()):
            if not _waits_for_one_that_left(giver, book, by_name):
                yield f"{giver.system} still has a book of {book.id}"


def _waits_for_one_that_left(state: ModuleState, book: ClaimBookRow, by_name: Mapping[SystemId, ModuleState]) -> bool:
    """Return whether the final sum of a claim cannot come: a link on its path has been ended meanwhile."""
    if awaited(state, book) not in state.neighbors:
        return True
    source = None if book.is_final else by_name.get(book.parties.source)
    if source is None:
        return False
    of_source = source.ledger.others.get(source.ledger.shown.get(book.id, book.id))
    return of_source is not None and _waits_for_one_that_left(source, of_source, by_name)
