"""The epochs of a module's ids, and what neighbors remember of them.

A database that was put back from a backup would give out again what was given out since: ids of tasks and claims that
others know already. So a module whose state turns out to be an older copy goes on in a new epoch, and above every
number that it may have given out: people do not see the epoch, and `blays.17` must not mean two tasks.

Two things tell an older copy: a mark that the host keeps beside the database, and what neighbors remember of it. In its
hello, each end says how many ids it has given out in which epoch, and what it remembers of the other one.
"""

from dataclasses import replace
from typing import Final

from messiahs.core.interface.actions import Action, Decision, Report, ReportCode, SendControl, Store
from messiahs.core.interface.messages import Hello, IdsGiven
from messiahs.core.interface.rows import EndedEpoch, RememberedRow
from messiahs.core.model.ids import Epoch, SystemId
from messiahs.core.model.instants import SECOND, Instant
from messiahs.core.state.module import ModuleState

WIRE_VERSIONS: tuple[int, ...] = (1,)
_REPORT_INTERVAL_NS: Final = 10 * SECOND
_STEP: Final = 100_000
"""More than a module gives out within `_REPORT_INTERVAL_NS`; new numbers begin at a multiple of it."""
_JUMP_LIMIT: Final = 1 << 32
"""A neighbor that remembers so much more is wrong, or means harm."""
_EPOCH_BITS: Final = 64


def epoch_of(state: ModuleState, number: int) -> Epoch:
    """Give the epoch of the submission with a number."""
    ended = (each.epoch for each in state.counters.earlier if number <= each.submissions)
    return next(ended, state.epoch)


def hello_to(state: ModuleState, neighbor: SystemId) -> SendControl:
    """Make the hello for a neighbor."""
    remembered = state.remembered.get(neighbor)
    hello = Hello(
        system=state.system,
        epoch=state.epoch,
        wire_versions=WIRE_VERSIONS,
        release=state.identity.release,
        given=state.counters.given,
        heard_epoch=remembered.epoch if remembered is not None else None,
        heard=remembered.given if remembered is not None else IdsGiven(),
    )
    return SendControl(to=neighbor, message=hello)


def tell(state: ModuleState, now: Instant) -> tuple[Action, ...]:
    """Let neighbors know how many ids were given out, if that has changed and the last time is long enough ago."""
    if state.given_sent_at is None:
        state.given_sent_at = now
    if state.counters.given == state.given_sent or now - state.given_sent_at < _REPORT_INTERVAL_NS:
        return ()
    return _send_to_all(state, now)


def on_hello(state: ModuleState, hello: Hello, now: Instant, /) -> tuple[Action, ...]:
    """Compare what a neighbor remembers of this module with the own state, and remember what it says of itself."""
    return (*_remember(state, hello), *_compare(state, hello, now))


def on_older_copy(state: ModuleState, forgotten: IdsGiven, now: Instant, /) -> tuple[Action, ...]:
    """Go on in a new epoch, since the host has found that the rows are older than what was stored last.

    At most `forgotten` ids were given out.
    """
    return _renew(state, forgotten, now, witness="the mark beside the database")


def _remember(state: ModuleState, hello: Hello) -> tuple[Action, ...]:
    known = state.remembered.get(hello.system)
    # What was given out in an epoch before was given out all the same.
    given = hello.given.joined(known.given if known is not None else IdsGiven())
    row = RememberedRow(system=hello.system, epoch=hello.epoch, given=given)
    if row == known or given == IdsGiven():
        return ()
    state.remembered[hello.system] = row
    return (Store(row=row),)


def _compare(state: ModuleState, hello: Hello, now: Instant) -> tuple[Action, ...]:
    """Believe the first hello of a neighbor in this life: an older copy is there from the start."""
    if hello.system in state.heard_of_self:
        return ()
    state.heard_of_self[hello.system] = None
    own, told = state.counters.given, hello.heard
    if hello.heard_epoch is None or not told.exceeds(own):
        return ()
    if max(told.submissions - own.submissions, told.claims - own.claims) > _JUMP_LIMIT:
        text = f"it remembers {told.submissions} submissions and {told.claims} claims of this module"
        return (Report(neighbor=hello.system, code=ReportCode.OUT_OF_RANGE, text=text),)
    forgotten = IdsGiven(submissions=_above(told.submissions), claims=_above(told.claims))
    if hello.heard_epoch == state.epoch and not state.has_renewed:
        actions = _renew(state, forgotten, now, witness=hello.system)
    else:
        # The epoch is a new one already, because the state was lost or is a copy: only the numbers are the same.
        actions = _skip(state, forgotten, witness=hello.system)
    sent_to_all = _send_to_all(state, now)
    # On a new link the neighbor counts as greeted only after this.
    is_told = any(action.to == hello.system for action in sent_to_all)
    return (*actions, *sent_to_all, *(() if is_told else (hello_to(state, hello.system),)))


def _above(given: int) -> int:
    return -(-(given + _STEP) // _STEP) * _STEP


def _renew(state: ModuleState, forgotten: IdsGiven, now: Instant, /, *, witness: str) -> tuple[Action, ...]:
    counters, ended = state.counters, EndedEpoch(epoch=state.epoch, submissions=state.counters.submissions)
    # One without ids of its own needs no place in the list. All others stay, since their submissions may be stored: a
    # further one costs a restart of this module, an older copy or a neighbor's claim of one, and a submission.
    is_empty = ended.submissions <= (counters.earlier[-1].submissions if counters.earlier else 0)
    state.counters = replace(
        counters,
        epoch=_later_epoch(state),
        earlier=counters.earlier if is_empty else (*counters.earlier, ended),
        renewed_at=now,
    )
    state.has_renewed = True
    text = f"the database is an older copy, says {witness}: a new epoch begins"
    return (Decision(what="older_copy", task=state.system, text=text), *_skip(state, forgotten, witness=witness))


def _skip(state: ModuleState, forgotten: IdsGiven, *, witness: str) -> tuple[Action, ...]:
    given = state.counters.given.joined(forgotten)
    state.counters = replace(state.counters, submissions=given.submissions, claims=given.claims)
    text = f"given out before, says {witness}: the next one is {state.system}.{given.submissions + 1}"
    return (Store(row=state.counters), Decision(what="numbers_skipped", task=state.system, text=text))


def _later_epoch(state: ModuleState) -> Epoch:
    """Draw an epoch that is greater, so that rows of tasks lie in the order in which they were submitted."""
    drawn = state.randomness.bits(_EPOCH_BITS)
    left = (1 << _EPOCH_BITS) - 1 - state.epoch
    return Epoch(state.epoch + 1 + drawn % left if left >> (_EPOCH_BITS // 2) else drawn)


def _send_to_all(state: ModuleState, now: Instant) -> tuple[SendControl, ...]:
    state.given_sent, state.given_sent_at = state.counters.given, now
    return tuple(hello_to(state, system) for system, is_greeted in state.updates.links.items() if is_greeted)
