"""Turns of local users: no one of them keeps the local API from the others, whatever they ask for.

A request is a chain of slices: what its handler does until it waits for something. A slice begins at once while nobody
waits and little was done since the last step of the event loop; otherwise it queues among those of its user, as the
events do that users cause.
"""

import asyncio
import logging
import pwd
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from messiahs.core.interface.events import Event
from messiahs.core.model.instants import MICROSECOND
from messiahs.daemon.audit.entries import Caller
from messiahs.daemon.host.reading_turns import ReadingTurns
from messiahs.daemon.host.turns import QUANTUM_NS, Turns, Work

_LOG = logging.getLogger(__name__)
SLICE_NS: Final = 500 * MICROSECOND
"""What a slice is expected to cost, so that few begin in one step; the difference is settled when it has ended."""
_NAMES: Final = 1_024

T = TypeVar("T")


class UserTurns:
    """What waits of each uid (mutable); `queue` is served by the driver, which says at each step that it has begun."""

    def __init__(self, *, on_waiting: Callable[[], None], on_active: Callable[[], None]) -> None:
        """Call `on_waiting` when something has been queued, and `on_active` when a user asks for something."""
        self.queue = Turns[int](_report_throttled)
        self._on_waiting, self._on_active = on_waiting, on_active
        self._reading = ReadingTurns()
        self._passed_ns = 0
        """What slices that did not queue have cost since the last step."""
        self._uids: dict[str, int] = {}
        """Of the users who asked for something last."""

    def note_request(self) -> None:
        """Record that a request has arrived."""
        self._on_active()

    def ask(self, event: Event, by: Caller) -> None:
        """Queue an event that a user causes, in order among theirs."""
        self._on_active()
        self._uids.pop(by.user, None)
        self._uids[by.user] = by.uid
        if len(self._uids) > _NAMES:
            del self._uids[next(iter(self._uids))]
        done = asyncio.get_running_loop().create_future()
        self.queue.add(Work(source=by.uid, events=iter((event,)), done=done, by=by), time.monotonic_ns())
        self._on_waiting()

    def turn_of(self, uid: int, *, cost_ns: int = SLICE_NS) -> Work[int] | None:
        """Return what a slice of a user has to wait for, until its `done`; None if it may begin now.

        One that is expected to cost more than a quantum always waits.
        """
        now = time.monotonic_ns()
        if cost_ns <= QUANTUM_NS and self._passed_ns < QUANTUM_NS and self.queue.may_pass(uid, now):
            return None
        done = asyncio.get_running_loop().create_future()
        work = Work(source=uid, events=iter(()), done=done, begun_ns=cost_ns)
        self.queue.add(work, now)
        self._on_waiting()
        return work

    def charge(self, uid: int, cost_ns: int, *, turn: Work[int] | None = None) -> None:
        """Charge what was done for a user, after the turn that was waited for, if any."""
        if turn is None:
            self._passed_ns += cost_ns
        elif not turn.done.cancelled():
            cost_ns -= turn.begun_ns
        self.queue.charge(uid, cost_ns, time.monotonic_ns())

    def charge_outside(self, uid: int, cost_ns: int) -> None:
        """Charge processor time outside of the event loop."""
        self.queue.charge(uid, cost_ns, time.monotonic_ns())

    async def in_thread(self, uid: int, work: Callable[[], T], /) -> T:
        """Do work for a user in a thread, and charge its processor time.

        It waits until no other work is done so, and for a turn of its user, who has paid for the earlier ones then: of
        several threads the event loop would have only a part of the interpreter.
        """
        spent_ns = list[int]()

        def timed() -> T:
            began_ns = time.thread_time_ns()
            try:
                return work()
            finally:
                spent_ns.append(time.thread_time_ns() - began_ns)

        async with self._reading.turn(uid, first=partial(self._turn_alone, uid)):
            thread = asyncio.ensure_future(asyncio.to_thread(timed))
            try:
                return await asyncio.shield(thread)
            finally:
                # A thread goes on although nobody waits for its result any more.
                await asyncio.wait([thread])
                # It has its error, whose traceback has this frame.
                del thread
                self.charge_outside(uid, sum(spent_ns))

    async def _turn_alone(self, uid: int) -> None:
        """Wait for a turn of a user, in which nothing is done in the event loop."""
        turn = self.turn_of(uid)
        if turn is not None:
            await turn.done
            self.charge(uid, 0, turn=turn)

    def charge_name(self, user: str, cost_ns: int) -> None:
        """Charge what was done for tasks of a user, of whom nothing is known but the name.

        Nobody is charged if that user has asked for nothing since the start, or many others have since then.
        """
        uid = self._uids.get(user)
        if uid is not None:
            self.queue.charge(uid, cost_ns, time.monotonic_ns())

    def begin_step(self) -> None:
        """Let slices begin without a queue again, as far as nobody waits."""
        self._passed_ns = 0


def _report_throttled(uid: int) -> None:
    # A directory of accounts may answer late.
    asyncio.get_running_loop().run_in_executor(None, _log_throttled, uid)


def _log_throttled(uid: int) -> None:
    try:
        name = f" ({pwd.getpwuid(uid).pw_name})"
    except KeyError:
        name = ""
    _LOG.warning("uid %s%s: it asks for more than its share and is throttled: other users come first", uid, name)
