"""The tally of requests for places on the own machine: by whom, and by what refused them. Not stored.

Its size is bounded by the neighbors and by the rules of the policy, whatever others request. The protocol reads nothing
of it. Every request passes here, so counting one makes few objects.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from messiahs.core.interface.messages import SchedRequest
from messiahs.core.interface.request_counts import FITTING, NOT_FITTING, AskerCount, Gate, RefusalCount, RequestCounts
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, Instant, after

_START: Final = Instant(0)
PANE_NS: Final = 1 * HOUR
"""The tally forgets in panes of this length: it has the last pane that ended, and the present one."""
RULES_LIMIT: Final = 128
"""Most rules that are counted apart. Policy files have fewer in force; parts from outside may name any."""
OTHER_RULES: Final = "other rules"
_TEXT_LIMIT: Final = 1_000
"""Most characters of a rule, and of why it refused."""


@dataclass(slots=True)
class Asked:
    """What one asker requested in one pane (mutable)."""

    requests: int = 0
    tasks: int = 0
    granted: int = 0
    places: int = 0
    last_at: Instant = _START


@dataclass(slots=True)
class Refusals:
    """What one gate, or one rule, refused in one pane (mutable), with the last request."""

    last: SchedRequest
    asker: SystemId
    at: Instant
    why: str
    requests: int = 0
    tasks: int = 0


RefusalKey = tuple[Gate, str]


@dataclass(slots=True)
class Pane:
    """The counts from `began_at` on, until `ends_at` (mutable)."""

    began_at: Instant
    ends_at: Instant
    askers: dict[SystemId, Asked] = field(default_factory=dict)
    refusals: dict[RefusalKey, Refusals] = field(default_factory=dict)
    departed: Asked = field(default_factory=Asked)
    """What those requested together who are no neighbors any more."""


@dataclass(slots=True)
class RequestTally:
    """The counts of a module (mutable): `since` is the instant from which its panes have everything."""

    since: Instant = _START
    first_at: dict[SystemId, Instant] = field(default_factory=dict)
    """When each asker requested something for the first time since the counts began anew."""
    before: Pane | None = None
    present: Pane | None = None

    def grant(self, asker: SystemId, request: SchedRequest, /, *, places: int, now: Instant) -> None:
        """Count a request that got places."""
        asked = self._asked(asker, now)
        asked.requests += 1
        asked.tasks += request.count
        asked.granted += 1
        asked.places += places
        asked.last_at = now

    def refuse(
        self, asker: SystemId, request: SchedRequest, key: RefusalKey, /, *, why: str = "", now: Instant
    ) -> None:
        """Count a request that a gate, or one rule of the policy, has refused."""
        asked, tasks = self._asked(asker, now), request.count
        asked.requests += 1
        asked.tasks += tasks
        asked.last_at = now
        pane = self.present
        assert pane is not None, "an asker is counted in it"
        refusals = pane.refusals.get(key)
        if refusals is None:
            refusals = _new_refusals(pane, key, Refusals(last=request, asker=asker, at=now, why=""))
        refusals.requests += 1
        refusals.tasks += tasks
        refusals.last = request
        refusals.asker = asker
        refusals.at = now
        refusals.why = why if len(why) <= _TEXT_LIMIT else why[:_TEXT_LIMIT]

    def keep_only(self, askers: Collection[SystemId]) -> None:
        """Add the counts of other askers up without their names; the last request of a refusal keeps its asker."""
        for gone in [each for each in self.first_at if each not in askers]:
            del self.first_at[gone]
        for pane in filter(None, (self.before, self.present)):
            for gone in [each for each in pane.askers if each not in askers]:
                _add(pane.departed, pane.askers.pop(gone))

    def begin_anew(self, now: Instant) -> None:
        """Count from now on: the module has started, or its policy was replaced."""
        self.since, self.before, self.present = now, None, None
        self.first_at.clear()

    def counts(self, now: Instant) -> RequestCounts:
        """Return what the tally has now; nothing changes."""
        panes, since = self._panes_at(now)
        refusals = tuple(sorted(_refusal_counts(panes), key=lambda each: -each.requests))
        askers = tuple(self._asker_counts(panes))
        counted: tuple[AskerCount | Asked, ...] = (*askers, *(each.departed for each in panes))
        by_gate = Counter[Gate]()
        for each in refusals:
            by_gate[each.gate] += each.requests
        granted = sum(each.granted for each in counted)
        matched = granted + sum(by_gate[gate] for gate in FITTING)
        return RequestCounts(
            since=since,
            requests=sum(each.requests for each in counted),
            tasks=sum(each.tasks for each in counted),
            granted=granted,
            places=sum(each.places for each in counted),
            compared=matched + sum(by_gate[gate] for gate in NOT_FITTING),
            matched=matched,
            askers=askers,
            refusals=refusals,
        )

    def _asked(self, asker: SystemId, now: Instant) -> Asked:
        pane = self.present
        if pane is None or now >= pane.ends_at:
            pane = self._next_pane(now)
        asked = pane.askers.get(asker)
        if asked is None:
            asked = pane.askers[asker] = Asked()
            self.first_at.setdefault(asker, now)
        return asked

    def _next_pane(self, now: Instant) -> Pane:
        ended, dropped = self.present, self.before
        if ended is not None and now >= ended.ends_at + PANE_NS:
            ended, dropped = None, ended
        if dropped is not None:
            # Nothing was requested between the end of one pane and the beginning of the next.
            self.since = dropped.ends_at
        self.before = ended
        self.present = Pane(began_at=now, ends_at=after(now, PANE_NS))
        return self.present

    def _panes_at(self, now: Instant) -> tuple[list[Pane], Instant]:
        """Return the panes that count at an instant, the older one first, and since when they have everything."""
        since, panes = self.since, []
        for pane in (self.before, self.present):
            if pane is None:
                continue
            if now < pane.ends_at + PANE_NS:
                panes.append(pane)
            else:
                since = pane.ends_at
        return panes, since

    def _asker_counts(self, panes: list[Pane]) -> Iterator[AskerCount]:
        for system, first_at in self.first_at.items():
            found = [pane.askers[system] for pane in panes if system in pane.askers]
            if found:
                yield AskerCount(
                    system=system,
                    requests=sum(each.requests for each in found),
                    tasks=sum(each.tasks for each in found),
                    granted=sum(each.granted for each in found),
                    places=sum(each.places for each in found),
                    first_at=first_at,
                    last_at=found[-1].last_at,
                )


def _add(asked: Asked, more: Asked) -> None:
    asked.requests += more.requests
    asked.tasks += more.tasks
    asked.granted += more.granted
    asked.places += more.places


def _new_refusals(pane: Pane, key: RefusalKey, refusals: Refusals) -> Refusals:
    gate, rule = key
    key = gate, rule[:_TEXT_LIMIT]
    if key not in pane.refusals and len(pane.refusals) >= RULES_LIMIT + len(Gate):
        key = gate, OTHER_RULES
    return pane.refusals.setdefault(key, refusals)


def _refusal_counts(panes: list[Pane]) -> Iterator[RefusalCount]:
    for gate, rule in dict.fromkeys(key for pane in panes for key in pane.refusals):
        found = [pane.refusals[gate, rule] for pane in panes if (gate, rule) in pane.refusals]
        last = found[-1]
        yield RefusalCount(
            gate=gate,
            rule=rule,
            requests=sum(each.requests for each in found),
            tasks=sum(each.tasks for each in found),
            last=last.last,
            asker=last.asker,
            at=last.at,
            why=last.why,
        )
