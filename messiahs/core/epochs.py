"""The epochs of a module's ids, and the ids that neighbors remember.

A database restored from a backup would repeat ids issued since the backup, which other systems already know. A module
whose state turns out to be an older copy therefore continues in a new epoch, and above every number that it may have
issued: users do not see the epoch, and `blays.17` must not mean two tasks.

An older copy is detected by a mark that the host keeps beside the database, or by what neighbors remember: in its
hello, each end reports how many ids it has issued in which epoch, and what it remembers of the other end.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl, Store
from messiahs.core.interface.hello import Hello
from messiahs.core.interface.rows import RememberedRow
from messiahs.core.model.ids import EndedEpoch, Epoch, IdsGiven, LostNumbers, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.module import ModuleState

WIRE_VERSIONS: tuple[int, ...] = (1,)
_REPORT_INTERVAL_NS: Final = 10 * SECOND
_STEP: Final = 100_000
"""More ids than a module issues within `_REPORT_INTERVAL_NS`; new numbers begin at a multiple of it."""
_JUMP_LIMIT: Final = 1 << 32
"""A neighbor that remembers this many more ids is faulty or hostile."""
_JUMP_LIMIT_APART: Final = 1 << 20
"""The same for a neighbor under another administration."""
_EPOCH_BITS: Final = 64


def epoch_of(state: ModuleState, number: int) -> Epoch:
    """Return the epoch of the submission with a number."""
    ended = (each.epoch for each in state.counters.earlier if number <= each.submissions)
    return next(ended, state.epoch)


def lost_with(state: ModuleState, number: int) -> LostNumbers | None:
    """Return the skipped numbers among which the number of a submission is; None if it is among none."""
    return next((each for each in state.counters.lost if each.first <= number <= each.last), None)


def hello_to(state: ModuleState, neighbor: SystemId) -> SendControl:
    """Return the hello for a neighbor."""
    remembered = state.remembered.get(neighbor)
    hello = Hello(
        system=state.system,
        epoch=state.epoch,
        wire_versions=WIRE_VERSIONS,
        release=state.identity.release,
        given=state.counters.given,
        heard_epoch=remembered.epoch if remembered is not None else None,
        heard=remembered.given if remembered is not None else IdsGiven(),
        former=state.former_epochs,
    )
    return SendControl(to=neighbor, message=hello)


def report_ids(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Report the number of issued ids to all neighbors, if it has changed and the interval has passed."""
    if state.given_sent_at is None:
        state.given_sent_at = now
    if state.counters.given == state.given_sent or now - state.given_sent_at < _REPORT_INTERVAL_NS:
        return ()
    return _send_to_all(state, now)


def is_new_system(state: ModuleState, hello: Hello) -> bool:
    """Return whether a neighbor is not the system of before: its epoch has changed, and it does not name the old."""
    known = state.remembered.get(hello.system)
    return known is not None and known.epoch != hello.epoch and known.epoch not in hello.former


def on_hello(state: ModuleState, hello: Hello, now: Instant, /) -> tuple[Action, ...]:
    """Compare the ids that a neighbor remembers of this module with the own state, and remember the neighbor's ids."""
    return (*_remember(state, hello), *_compare(state, hello, now))


def on_older_copy(state: ModuleState, forgotten: IdsGiven, now: Instant, /) -> tuple[Action, ...]:
    """Continue in a new epoch, because the host has found that the rows are older than those stored last.

    At most `forgotten` ids were issued.
    """
    return _renew(state, forgotten, now, witness="the mark beside the database")


def _remember(state: ModuleState, hello: Hello) -> tuple[Action, ...]:
    known = state.remembered.get(hello.system)
    # Ids issued in an earlier epoch count as well.
    given = hello.given.joined(known.given if known is not None else IdsGiven())
    row = RememberedRow(system=hello.system, epoch=hello.epoch, given=given)
    if row == known:
        return ()
    state.remembered[hello.system] = row
    return (Store(row=row),)


def _compare(state: ModuleState, hello: Hello, now: Instant) -> tuple[Action, ...]:
    """Evaluate the first hello of a neighbor after a restart: an older copy is present from the start."""
    if hello.system in state.witnesses:
        return ()
    state.witnesses[hello.system] = None
    own, heard = state.counters.given, hello.heard
    if hello.heard_epoch is None or not heard.exceeds(own):
        return ()
    limit = _JUMP_LIMIT_APART if hello.system in state.identity.apart else _JUMP_LIMIT
    if max(heard.submissions - own.submissions, heard.claims - own.claims) > limit:
        text = f"it remembers {heard.submissions} submissions and {heard.claims} claims of this module"
        return (Report(neighbor=hello.system, code=ReportCode.OUT_OF_RANGE, text=text),)
    forgotten = IdsGiven(submissions=_above(heard.submissions), claims=_above(heard.claims))
    if hello.heard_epoch == state.epoch and not state.has_renewed:
        actions = _renew(state, forgotten, now, witness=hello.system)
    else:
        # The epoch is new already, because the state was lost or is a copy: only numbers could repeat.
        actions = _skip(state, forgotten, now, witness=hello.system)
    sent_to_all = _send_to_all(state, now)
    # On a new link the neighbor counts as greeted only after this.
    is_sent = any(action.to == hello.system for action in sent_to_all)
    return (*actions, *sent_to_all, *(() if is_sent else (hello_to(state, hello.system),)))


def _above(given: int) -> int:
    return -(-(given + _STEP) // _STEP) * _STEP


def _renew(state: ModuleState, forgotten: IdsGiven, now: Instant, /, *, witness: str) -> tuple[Action, ...]:
    counters, ended = state.counters, EndedEpoch(epoch=state.epoch, submissions=state.counters.submissions)
    # An epoch without ids of its own is not listed. All others stay, since their submissions may be stored: a further
    # one requires a restart of this module, an older copy or a neighbor's report of one, and a submission.
    is_empty = ended.submissions <= (counters.earlier[-1].submissions if counters.earlier else 0)
    state.counters = replace(
        counters,
        epoch=_later_epoch(state),
        former=(*state.former_epochs, state.epoch),
        earlier=counters.earlier if is_empty else (*counters.earlier, ended),
        renewed_at=now,
    )
    state.has_renewed = True
    text = f"the database is an older copy, according to {witness}: a new epoch begins"
    return (Decision(what="older_copy", task=state.system, text=text), *_skip(state, forgotten, now, witness=witness))


def _skip(state: ModuleState, forgotten: IdsGiven, now: Instant, /, *, witness: str) -> tuple[Action, ...]:
    counters, given = state.counters, state.counters.given.joined(forgotten)
    skipped = LostNumbers(
        first=counters.submissions + 1,
        last=given.submissions,
        at=now if counters.renewed_at is None else counters.renewed_at,
        is_copy=counters.renewed_at is not None,
    )
    lost = (*counters.lost, skipped) if skipped.first <= skipped.last else counters.lost
    state.counters = replace(counters, submissions=given.submissions, claims=given.claims, lost=lost)
    text = f"later ids were issued, according to {witness}: the next is {state.system}.{given.submissions + 1}"
    return (Store(row=state.counters), Decision(what="numbers_skipped", task=state.system, text=text))


def _later_epoch(state: ModuleState) -> Epoch:
    """Draw a greater epoch, so that rows of tasks are in the order of their submission."""
    drawn = state.randomness.bits(_EPOCH_BITS)
    left = (1 << _EPOCH_BITS) - 1 - state.epoch
    return Epoch(state.epoch + 1 + drawn % left if left >> (_EPOCH_BITS // 2) else drawn)


def _send_to_all(state: ModuleState, now: Instant) -> tuple[SendControl, ...]:
    state.given_sent, state.given_sent_at = state.counters.given, now
    return tuple(hello_to(state, system) for system, is_greeted in state.updates.links.items() if is_greeted)
