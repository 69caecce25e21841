"""What the starter holds: attempts and claims, places, leases and limits. No processes, no clock: time is handed in.

An attempt is queued, then running, then clearing (its first process ended, something of it may be left), then ended.
"""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId
from messiahs.executor.protocol.frames import Ended, Known, Running, Start
from messiahs.executor.protocol.layout import folder_name

NEVER = 1 << 63
"""As an instant: later than any other."""
KILLED = NEVER - 1
"""As the time of a kill: it was done."""
LIMIT_GRACE_NS = 2_000_000_000
"""Between SIGTERM and SIGKILL for a task that reached its time limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSpawned:
    """Why a task could not be started; `exit_code` is what a shell would have said."""

    cause: Cause
    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] | None
    text: str


class Phase(Enum):
    """How far an attempt has come."""

    QUEUED = "queued"
    RUNNING = "running"
    CLEARING = "clearing"
    ENDED = "ended"


@dataclass(slots=True, kw_only=True)
class Held:
    """One attempt (changes as it goes on); `ended` is set exactly in its last phase."""

    attempt: AttemptId
    folder: str
    """The name of its folder."""
    start: Start | None = None
    phase: Phase = Phase.QUEUED
    process: int = 0
    began_at: int = 0
    limit_at: int = NEVER
    kill_at: int = NEVER
    """When SIGKILL is due: set once SIGTERM was sent."""
    suspended_at: int = 0
    """Since when it is suspended; 0 if it is not."""
    paused_ns: int = 0
    """How long it was suspended, but for the present time."""
    ended_at: int = 0
    """When its first process ended; 0 if it has not, or there was none."""
    cause: Cause = Cause.NONE
    is_discarded: bool = False
    report: int = -1
    """Open while its process puts its inputs in place."""
    problem: NotSpawned | None = None
    """Why its process has not become the task."""
    exit_code: int | None = None
    signal: int | None = None
    ended: Ended | None = None


def ran_ns(held: Held, now: int) -> int:
    """Give how long an attempt has run until now, or until its first process ended, without its suspensions."""
    until = held.suspended_at or held.ended_at or now
    return max(0, until - held.began_at - held.paused_ns) if held.began_at else 0


@dataclass(slots=True, kw_only=True)
class Claim:
    """Places for attempts (changes as they come and go)."""

    places: int
    lease_until: int
    waiting: deque[Held] = field(default_factory=deque)
    active: dict[AttemptId, Held] = field(default_factory=dict)


class Table:
    """Every attempt that was started and not discarded, and the claims of those that have not ended.

    An attempt that has not ended is in exactly one claim: waiting while it is queued, active afterwards.
    """

    def __init__(self) -> None:
        self.attempts: dict[AttemptId, Held] = {}
        self.claims: dict[ClaimId, Claim] = {}
        self._next_due = NEVER

    def queue(self, start: Start) -> Held:
        """Let a new attempt wait in its claim, whose places and lease are the newest that were told."""
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
        """Move the end of a lease; a claim without attempts has none here."""
        claim = self.claims.get(claim_id)
        if claim is not None:
            claim.lease_until = until
            self.expect(until)

    @property
    def has_waiting(self) -> bool:
        """Say whether an attempt of any claim is queued."""
        return any(claim.waiting for claim in self.claims.values())

    def startable(self, limit: int) -> list[Held]:
        """Name up to `limit` attempts that have a place now, the oldest of each claim first; nothing changes."""
        found: list[Held] = []
        for claim in self.claims.values():
            room = min(claim.places - len(claim.active), len(claim.waiting), limit - len(found))
            found += [claim.waiting[place] for place in range(room)]
            if len(found) >= limit:
                break
        return found

    def began(self, held: Held, now: int) -> None:
        """Move an attempt that is the first of its claim to those that run."""
        assert held.start is not None
        claim = self.claims[held.start.claim]
        first = claim.waiting.popleft()
        assert first is held
        claim.active[held.attempt] = held
        held.phase = Phase.RUNNING
        self.limit(held, now)

    def limit(self, held: Held, now: int) -> None:
        """Count the time limit of a running attempt from now on."""
        assert held.start is not None
        held.began_at, held.paused_ns = now, 0
        held.suspended_at = now if held.suspended_at else 0
        if held.start.limit_ns is not None:
            held.limit_at = now + held.start.limit_ns
            self.expect(held.limit_at)

    def suspend(self, held: Held, now: int) -> None:
        """Let the time limit of a running attempt stand still; it keeps its place."""
        assert held.phase is Phase.RUNNING
        if not held.suspended_at:
            held.suspended_at = now

    def resume(self, held: Held, now: int) -> None:
        """Let the time limit of an attempt go on, if it stands still."""
        if held.suspended_at:
            paused_ns, held.suspended_at = now - held.suspended_at, 0
            held.paused_ns += paused_ns
            if held.limit_at != NEVER:
                held.limit_at += paused_ns
                self.expect(held.limit_at)

    def end(self, held: Held, ended: Ended) -> None:
        """Note how an attempt ended; its place is free."""
        assert held.phase is not Phase.ENDED
        if held.start is not None:
            claim = self.claims[held.start.claim]
            if held.phase is Phase.QUEUED:
                claim.waiting.remove(held)
            else:
                del claim.active[held.attempt]
            if not claim.waiting and not claim.active:
                del self.claims[held.start.claim]
        # The command may be large, and an ended attempt may stay for long.
        held.phase, held.ended, held.start, held.process = Phase.ENDED, ended, None, 0

    def expect(self, due: int) -> None:
        """See to it that `due_by` looks again at that time."""
        self._next_due = min(self._next_due, due)

    def known(self, number: int, untold: Container[AttemptId], now: int) -> Known:
        """Say all that is held; ends of `untold` attempts do not count yet, as if these were running."""
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
                if one.phase in (Phase.RUNNING, Phase.CLEARING) or one.attempt in untold
            ),
            ended=tuple(one.ended for one in held if one.ended is not None and one.attempt not in untold),
        )

    @property
    def next_due(self) -> int:
        """When the next limit, lease or kill may be due; never later than it is."""
        return self._next_due

    def leased_until(self, now: int) -> int:
        """Give the earliest end, after `now`, of a lease under which an attempt runs; `NEVER` if there is none."""
        leases = (claim.lease_until for claim in self.claims.values() if claim.active)
        return min((until for until in leases if until > now), default=NEVER)

    def due_by(self, now: int) -> list[tuple[Held, Cause]]:
        """Name the attempts to be ended now, each with its cause; `Cause.NONE` means that SIGKILL is due."""
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
