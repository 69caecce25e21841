"""Attempts and claims of an executor: places, leases and limits. No processes and no clock: the time is a parameter.

An attempt is queued, running, clearing (its first process has ended, others may remain), and ended, in this order.
"""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.core.model.usage import Usage
from messiahs.executor.attempt_values import Ended, Known, Running, Start, folder_name

NEVER = 1 << 63
"""An instant later than any other."""
KILLED = NEVER - 1
"""As the time of a kill: SIGKILL was sent."""
LIMIT_GRACE_NS = 2_000_000_000
"""Time between SIGTERM and SIGKILL for a task that reached its time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSpawned:
    """Why a task could not be started; `exit_code` is the one that a shell would return."""

    cause: Cause
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] | None
    text: str


class Phase(Enum):
    """Phase of an attempt."""

    QUEUED = "queued"
    RUNNING = "running"
    CLEARING = "clearing"
    ENDED = "ended"


@dataclass(slots=True, kw_only=True)
class Held:
    """One attempt (mutable); `ended` is set exactly in its last phase."""

    attempt: AttemptId
    folder: str
    """Name of its folder."""
    start: Start | None = None
    phase: Phase = Phase.QUEUED
    process: int = 0
    slot: int = -1
    """Number of its sandbox; negative if it has none."""
    uid: int | None = None
    """The account of its processes, if that is not the starter's."""
    began_at: int = 0
    limit_at: int = NEVER
    kill_at: int = NEVER
    """When SIGKILL is due; set when SIGTERM is sent."""
    suspended_at: int = 0
    """Start of its current suspension; 0 if it is not suspended."""
    paused_ns: int = 0
    """Duration of its past suspensions."""
    ended_at: int = 0
    """When its first process ended; 0 if it has not, or never existed."""
    cause: Cause = Cause.NONE
    is_discarded: bool = False
    is_staging: bool = False
    """Whether its process copies its inputs, and is not the task yet."""
    report: int = -1
    """Where its process reports about that, if the starter reads it."""
    problem: NotSpawned | None = None
    """Why its process has not become the task."""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage | None = None
    """What its processes used, once the first one has ended; without suspensions."""
    ended: Ended | None = None


def ran_ns(held: Held, now: int) -> int:
    """Return how long an attempt has run until `now`, or until its first process ended, without suspensions."""
    until = held.suspended_at or held.ended_at or now
    return max(0, until - held.began_at - held.paused_ns) if held.began_at else 0


def suspended_ns(held: Held) -> int:
    """Return the duration of all suspensions of an attempt until its first process ended; it must have ended."""
    return held.paused_ns + (max(0, held.ended_at - held.suspended_at) if held.suspended_at else 0)


@dataclass(slots=True, kw_only=True)
class Claim:
    """Places for attempts (mutable)."""

    places: int
    lease_until: int
    waiting: deque[Held] = field(default_factory=deque)
    active: dict[AttemptId, Held] = field(default_factory=dict)


class Table:
    """All attempts that were started and not discarded, and the claims of those that have not ended.

    An attempt that has not ended is in exactly one claim: in its queue at first, among its active attempts afterwards.
    """

    def __init__(self) -> None:
        self.attempts: dict[AttemptId, Held] = {}
        self.claims: dict[ClaimId, Claim] = {}
        self._next_due = NEVER

    def queue(self, start: Start) -> Held:
        """Queue a new attempt in its claim, whose places and lease are set by the newest start."""
        assert start.attempt not in self.attempts
        claim = self.claims.get(start.claim)
        if claim is None:
            claim = self.claims[start.claim] = Claim(places=start.places, lease_until=start.lease_until)
        claim.places = start.places
        claim.lease_until = max(claim.lease_until, start.lease_until)
        held = self.attempts[start.attempt] = Held(
            attempt=start.attempt, folder=folder_name(start.attempt), start=start
        )
        claim.waiting.append(held)
        self.expect(claim.lease_until)
        return held

    def extend(self, claim_id: ClaimId, until: int) -> None:
        """Change the end of a lease; a claim without attempts is unknown here and ignored."""
        claim = self.claims.get(claim_id)
        if claim is not None:
            claim.lease_until = until
            self.expect(until)

    @property
    def has_waiting(self) -> bool:
        """Whether an attempt of any claim is queued."""
        return any(claim.waiting for claim in self.claims.values())

    def startable(self, limit: int) -> list[Held]:
        """Return up to `limit` attempts that have a place now, the oldest of each claim first; changes nothing."""
        found: list[Held] = []
        for claim in self.claims.values():
            room = min(claim.places - len(claim.active), len(claim.waiting), limit - len(found))
            found += [claim.waiting[place] for place in range(room)]
            if len(found) >= limit:
                break
        return found

    def began(self, held: Held, now: int) -> None:
        """Move the first queued attempt of its claim to the running ones."""
        assert held.start is not None
        claim = self.claims[held.start.claim]
        first = claim.waiting.popleft()
        assert first is held
        claim.active[held.attempt] = held
        held.phase = Phase.RUNNING
        self.limit(held, now)

    def limit(self, held: Held, now: int) -> None:
        """Start the time limit of a running attempt."""
        assert held.start is not None
        held.began_at, held.paused_ns = now, 0
        held.suspended_at = max(now, held.suspended_at) if held.suspended_at else 0
        if held.start.limit_ns is not None:
            held.limit_at = now + held.start.limit_ns
            self.expect(held.limit_at)

    def suspend(self, held: Held, now: int) -> None:
        """Stop counting the time limit of a running attempt; it keeps its place."""
        assert held.phase is Phase.RUNNING
        if not held.suspended_at:
            held.suspended_at = now

    def resume(self, held: Held, now: int) -> None:
        """Continue counting the time limit of a suspended attempt."""
        if held.suspended_at:
            paused_ns, held.suspended_at = now - held.suspended_at, 0
            held.paused_ns += paused_ns
            if held.limit_at != NEVER:
                held.limit_at += paused_ns
                self.expect(held.limit_at)

    def end(self, held: Held, ended: Ended) -> None:
        """Record the end of an attempt; its place is free."""
        assert held.phase is not Phase.ENDED
        if held.start is not None:
            claim = self.claims[held.start.claim]
            if held.phase is Phase.QUEUED:
                claim.waiting.remove(held)
            else:
                del claim.active[held.attempt]
            if not claim.waiting and not claim.active:
                del self.claims[held.start.claim]
        # The command may be large, and an ended attempt may be kept for long.
        held.phase, held.ended, held.start, held.process = Phase.ENDED, ended, None, 0

    def expect(self, due: int) -> None:
        """Make `due_by` check its attempts at that time."""
        self._next_due = min(self._next_due, due)

    def known(self, number: int, unreported: Container[AttemptId], now: int) -> Known:
        """Return all attempts; those in `unreported`, whose end is not reported yet, count as running."""
        held = self.attempts.values()
        return Known(
            number=number,
            queued=tuple(one.attempt for one in held if one.phase is Phase.QUEUED),
            running=tuple(
                Running(
                    attempt=one.attempt,
                    ran_ns=ran_ns(one, now),
                    suspended_ns=now - one.suspended_at if one.suspended_at else None,
                )
                for one in held
                if one.phase in (Phase.RUNNING, Phase.CLEARING) or one.attempt in unreported
            ),
            ended=tuple(one.ended for one in held if one.ended is not None and one.attempt not in unreported),
        )

    @property
    def next_due(self) -> int:
        """Earliest time at which a limit, lease or kill may be due."""
        return self._next_due

    def leased_until(self, now: int) -> int:
        """Return the earliest end, after `now`, of the lease of a running attempt; `NEVER` if there is none."""
        leases = (claim.lease_until for claim in self.claims.values() if claim.active)
        return min((until for until in leases if until > now), default=NEVER)

    def due_by(self, now: int) -> list[tuple[Held, Cause]]:
        """Return the attempts to end now, each with its cause; `Cause.NONE` means that SIGKILL is due."""
        if now < self._next_due:
            return []
        self._next_due = NEVER
        return list(self._due(now))

    def _due(self, now: int) -> Iterator[tuple[Held, Cause]]:
        for claim in self.claims.values():
            if claim.lease_until <= now:
                for held in (*claim.active.values(), *claim.waiting):
                    yield held, Cause.LEASE_EXPIRED
                continue
            self.expect(claim.lease_until)
            for held in claim.active.values():
                if held.kill_at <= now:
                    yield held, Cause.NONE
                limit_at = NEVER if held.suspended_at else held.limit_at
                if held.kill_at == NEVER and limit_at <= now:
                    yield held, Cause.TIME_LIMIT
                self.expect(min(due for due in (held.kill_at, limit_at, NEVER) if due > now))
