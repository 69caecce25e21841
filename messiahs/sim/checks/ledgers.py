"""Both ends of each link have the same ledger, once a federation is quiet (core/ledger)."""

from collections.abc import Collection, Iterator

from messiahs.core.ledger.books import awaited
from messiahs.core.model.ids import SystemId
from messiahs.core.module import SchedulingModule


def disagreements(
    modules: Collection[SchedulingModule], *, cut: Collection[tuple[SystemId, SystemId]] = ()
) -> Iterator[str]:
    """Yield the links whose ends differ about what one gave the other, and the claims without a final sum.

    Only links that exist count: what was given over a former one may never be reported. `cut` are takers and givers
    of which the taker has counted less than was stated: its clock, set back while the machine was off, allowed no more.
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
            if awaited(giver, book) in giver.neighbors:
                yield f"{giver.system} still has a book of {book.id}"
