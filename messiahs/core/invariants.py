"""Invariants of a module's state between any two events, checked by tests and by the simulator.

Each check yields a sentence per violation. A check changes nothing, and does not raise on a broken state.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

from messiahs.core.executor.allocation import assigned_to
from messiahs.core.executor.kept_results import miscounted
from messiahs.core.executor.local_ids import local_id
from messiahs.core.interface.dependencies import When
from messiahs.core.interface.messages import TaskState
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, TaskId
from messiahs.core.origin.awaited import arrays_of, open_in, unmet, waits_as_a_whole
from messiahs.core.origin.holds import is_open
from messiahs.core.origin.member_runs import Run, count_in, merged, without
from messiahs.core.origin.relocation import room_in
from messiahs.core.origin.shape_queue import expects_tasks
from messiahs.core.state.lives import GrantedPhase, ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import HeldClaim, Submission
from messiahs.core.task_filter.local_resources import promised_slots, reserved_places, reserving_claims
from messiahs.core.task_filter.withheld import is_withheld_from
from messiahs.core.update.counting import find_counting, parents_in_order


def violations(state: ModuleState) -> tuple[str, ...]:
    """Return the violated invariants of a module's state; empty if it is sound."""
    own = (_machine, _granted, miscounted, _attempts, _held, _bindings, _shapes, _submissions)
    checks = (*own, _searches, _border, _links, _ways, _shut_off, _membership)
    return tuple(f"{state.system}: {violation}" for check in checks for violation in check(state))


def _machine(state: ModuleState) -> Iterator[str]:
    """Check that no more resources are promised than the machine has."""
    here = state.updates.measured.description() if state.updates.measured is not None else {}
    claims, slots = reserving_claims(state), here.get("slots")
    promised = (
        ("slots", promised_slots(state, slots if isinstance(slots, int) else 0)),
        ("total_mem", sum(reserved_places(claim) * claim.need.mem_bytes for claim in claims)),
        ("total_disk", sum(reserved_places(claim) * claim.need.disk_bytes for claim in claims)),
    )
    for name, amount in promised:
        there = here.get(name)
        if isinstance(there, int) and amount > there:
            yield f"{amount} of {there} {name} are promised"


def _granted(state: ModuleState) -> Iterator[str]:
    if state.executor.reservation is not None and not state.timers.is_set(TimerKind.RESERVATION, state.system):
        yield "a reservation has no RESERVATION timer"
    for claim_id, claim in state.executor.claims.items():
        if claim.row.id != claim_id or not state.is_own(claim_id.executor, claim_id.epoch):
            yield f"granted claim {claim_id} is not the own {claim.row.id}"
        for kind in (TimerKind.GRANTED_LEASE, *(() if claim.phase is GrantedPhase.EXPIRED else (TimerKind.RENEWAL,))):
            if not state.timers.is_set(kind, claim_id):
                yield f"granted claim {claim_id} has no {kind.name} timer"
        if not (claim.live or claim.is_ending or state.timers.is_set(TimerKind.IDLE, claim_id)):
            yield f"granted claim {claim_id} is idle and has no IDLE timer"
        rows = [state.executor.attempts.get(attempt) for attempt in claim.attempts]
        live = sum(row is not None and row.status.state is TaskState.EXECUTING for row in rows)
        if live != claim.live:
            yield f"granted claim {claim_id} counts {claim.live} live attempts of {live}"
        guards = [state.executor.guards.get(attempt) for attempt in claim.attempts]
        suspended = sum(guard is not None and guard.suspended_at is not None for guard in guards)
        if suspended != claim.suspended or claim.suspended > claim.live:
            yield f"granted claim {claim_id} counts {claim.suspended} suspended attempts of {suspended}"
        for attempt, row in zip(claim.attempts, rows, strict=True):
            if row is None or row.claim != claim_id:
                yield f"granted claim {claim_id} lists {attempt}, which is not in it"
            if row is not None and row.named in claim.acknowledged:
                yield f"granted claim {claim_id} lists {attempt}, whose result was acknowledged"
        for attempt in (*claim.started, *claim.unreported):
            if attempt not in claim.attempts:
                yield f"granted claim {claim_id} has started or reports {attempt}, which is not in it"
        offer = claim.offer
        if offer is not None and claim_id not in state.executor.offers.get(offer.search, ()):
            yield f"granted claim {claim_id} has an offer that never ends"
        if claim.unreported and not state.timers.is_set(TimerKind.STATUS, claim_id):
            yield f"granted claim {claim_id} has something to report and no STATUS timer"


def _attempts(state: ModuleState) -> Iterator[str]:
    for search in state.executor.offers:
        if not state.timers.is_set(TimerKind.OFFER, search):
            yield f"the offer to {search.hex()} has no OFFER timer"
    for (claim_id, named), attempt in state.executor.aliases.items():
        row = state.executor.attempts.get(attempt)
        if row is None or (row.claim, row.named) != (claim_id, named):
            yield f"{attempt} stands for {named} in {claim_id}, and is not here"
    for attempt in (*state.executor.guards, *state.executor.offered):
        if attempt not in state.executor.attempts:
            yield f"attempt {attempt} is guarded or offered, and is not here"
    taken = [
        (things.name, number)
        for row in state.executor.attempts.values()
        for things in assigned_to(row)
        for number in things.numbers
    ]
    if len(set(taken)) < len(taken):
        yield f"two attempts have one counted thing: {sorted(taken)}"
    for attempt, row in state.executor.attempts.items():
        claim = state.executor.claims.get(row.claim)
        if row.id != attempt or local_id(state, row.claim, row.named) != attempt:
            yield f"attempt {attempt} is stored as {row.id} with the status of {row.named}"
        if claim is None and row.status.state is not TaskState.EXECUTING:
            yield f"attempt {attempt} has ended, and so has its claim"
        if claim is not None and attempt not in claim.attempts and row.named not in claim.acknowledged:
            yield f"attempt {attempt} is not in its claim {row.claim}"


def _held(state: ModuleState) -> Iterator[str]:
    for claim_id, claim in state.origin.claims.items():
        if claim.row.id != claim_id:
            yield f"held claim {claim_id} has the row of {claim.row.id}"
        if claim.shape.claims.count(claim_id) != 1:
            yield f"held claim {claim_id} appears {claim.shape.claims.count(claim_id)} times in its shape"
        if not state.timers.is_set(TimerKind.HELD_LEASE, claim_id):
            yield f"held claim {claim_id} has no HELD_LEASE timer"
        for attempt in (*claim.unconfirmed, *claim.listed):
            if attempt not in claim.bound:
                yield f"held claim {claim_id} expects or lists {attempt}, which is not bound to it"
        if not claim.bound and (claim.is_ending or not expects_tasks(claim.shape)):
            yield f"held claim {claim_id} has no task and expects none"
        # The number of tasks kept here changes with every waiting task; such a claim is filled at its next report. A
        # module with an older copy of its state rests.
        is_filled = not claim.row.is_answer and state.counters.renewed_at is None
        if claim.shape.count and room_in(state, claim) and is_filled:
            yield f"held claim {claim_id} has room for {room_in(state, claim)} tasks, and {claim.shape.count} wait"


def _bindings(state: ModuleState) -> Iterator[str]:
    """Check that tables of attempts and of tasks agree, and that only bound attempts have outputs fetched."""
    for claim_id, claim in state.origin.claims.items():
        for attempt in claim.bound:
            row = state.origin.tasks.get(attempt.task)
            if row is None or (row.attempt, row.claim) != (attempt.number, claim_id):
                yield f"{attempt} is bound to {claim_id}, but not in the row of its task"
    for task, row in state.origin.tasks.items():
        if row.id != task or row.state is not TaskState.EXECUTING:
            yield f"task {task} is in the table of those that have not ended as {row.id}, {row.state}"
        if row.claim is not None and not _is_bound(state.origin.claims.get(row.claim), AttemptId(task, row.attempt)):
            yield f"task {task} is bound to {row.claim}, but not in that claim"
    for attempt in (
        *state.origin.fetching,
        *state.origin.fetch_failures,
        *state.origin.fetch_legs,
        *state.origin.fetch_troubles,
    ):
        if not _is_bound(_claim_of(state, attempt), attempt):
            yield f"outputs of {attempt} are being fetched, but it is not bound"


def _is_bound(claim: HeldClaim | None, attempt: AttemptId) -> bool:
    return claim is not None and attempt in claim.bound


def _claim_of(state: ModuleState, attempt: AttemptId) -> HeldClaim | None:
    row = state.origin.tasks.get(attempt.task)
    return state.origin.claims.get(row.claim) if row is not None and row.claim is not None else None


def _shapes(state: ModuleState) -> Iterator[str]:
    """Check that a shape counts its waiting tasks, searches while it has any, and lists its claims."""
    if sorted(state.origin.shapes_by_number) != sorted(shape.number for shape in state.origin.shapes.values()):
        yield "the two tables of shapes differ"
    if state.origin.waiting != sum(shape.count for shape in state.origin.shapes.values()):
        yield f"{state.origin.waiting} tasks are counted as waiting, but the shapes have another number"
    for key, shape in state.origin.shapes.items():
        waiting = sum(last - first + 1 for _, first, last in shape.waiting)
        if shape.key != key or waiting != shape.count:
            yield f"shape {shape.number} counts {shape.count} waiting tasks of {waiting}"
        if (shape.phase is ShapePhase.SEARCHING) != (shape.request is not None):
            yield f"shape {shape.number} is {shape.phase.value} with the request {shape.request}"
        if (shape.phase is ShapePhase.WAITING) != state.timers.is_set(TimerKind.ROUND, shape.number):
            yield f"shape {shape.number} is {shape.phase.value}, but its ROUND timer does not match"
        if shape.phase is ShapePhase.SETTLED and (shape.count or not shape.claims):
            yield f"shape {shape.number} does not search although tasks wait, or it is unused"
        if shape.request is not None and state.origin.requests.get(shape.request) is not shape:
            yield f"the search of shape {shape.number} is not among the requests"
        for attempt in shape.moving:
            if not _is_bound(_claim_of(state, attempt), attempt):
                yield f"{attempt} is to move, but is not bound"
        has_search = shape.phase is ShapePhase.SEARCHING or shape.answers is not None
        for attempt in shape.offered:
            if not shape.moving.get(attempt) and not has_search:
                yield f"{attempt} is offered, but no search for it is in progress"
            if attempt not in shape.moving:
                yield f"{attempt} is offered, but is not to move"
        for claim_id in shape.claims:
            claim = state.origin.claims.get(claim_id)
            if claim is None or claim.shape is not shape:
                yield f"shape {shape.number} lists claim {claim_id}, which is not held for it"
    for request, shape in state.origin.requests.items():
        if shape.request != request or (state.system, request) not in state.hop.searches:
            yield f"request {request} is not the one search of shape {shape.number}"


def _submissions(state: ModuleState) -> Iterator[str]:
    """Check that each open task of a submission is in exactly one place: waiting or bound."""
    waiting = _waiting(state)
    if any(after[0] <= before[1] for runs in waiting.values() for before, after in pairwise(runs)):
        yield "a task waits twice"
    open_members = Counter({key: count_in(runs) for key, runs in waiting.items()})
    for task, row in state.origin.tasks.items():
        key, is_bound = task.submission, row.claim is not None
        open_members[key] += is_bound
        place = bisect_right(runs := waiting.get(key, []), task.member, key=itemgetter(0)) - 1
        waits = place >= 0 and task.member <= runs[place][1]
        if waits == is_bound:
            yield f"task {task} {'both waits and is bound' if waits else 'neither waits nor is bound'}"
    if state.origin.awaited_changes or state.origin.admitted:
        yield f"changes were not handled: {state.origin.awaited_changes}, {state.origin.admitted}"
    expected = {key: submission.open_members for key, submission in state.origin.submissions.items()}
    if open_members != expected:
        yield f"open members are {open_members}, but counted as {expected}"
    started = Counter(task.submission for task, row in state.origin.tasks.items() if row.started_at is not None)
    counted = {key: submission.started for key, submission in state.origin.submissions.items() if submission.started}
    if started != counted:
        yield f"tasks that have started are {started}, but counted as {counted}"
    yield from _retention(state)
    for key, submission in state.origin.submissions.items():
        yield from _dependencies(state, submission)
        at_once, admitted = submission.row.at_once, submission.admitted
        if admitted > (at_once or admitted) or (submission.behind and admitted < at_once):
            yield f"{admitted} members of {key} are admitted, of {at_once} at once, and {submission.behind} wait behind"
        if submission.row.deadline_at is None and state.timers.is_set(TimerKind.DEADLINE, key):
            yield f"submission {key} has a DEADLINE timer and no deadline"


def _retention(state: ModuleState) -> Iterator[str]:
    """Check that what has ended is in one table, and that what others depend on is counted."""
    kept = state.origin.retention
    there = [*state.origin.submissions, *kept.ended, *kept.needed, *kept.due, *kept.forgetting]
    if len(there) != len(set(there)):
        yield "a submission is in two tables of those that have and have not ended"
    on = (each.on.submission for one in state.origin.submissions.values() for each in one.row.after)
    if kept.dependents != Counter(on):
        yield f"submissions on which others depend are counted as {kept.dependents}"


def _dependencies(state: ModuleState, submission: Submission) -> Iterator[str]:
    """Check that what waits for others waits for tasks that have not ended, and is known to them."""
    key, open_on = submission.row.id, unmet(submission.row)
    for_all = [each for each in open_on if each.when != When.EACH]
    if for_all and not submission.dependent:
        yield f"{key} has {len(for_all)} conditions that are not met, and no waiting members"
    others = merged(run for on in arrays_of(submission.row) for run in open_in(state, on))
    in_vain = list(without(submission.dependent, others))
    if in_vain and not waits_as_a_whole(submission.row):
        yield f"members {in_vain} of {key} wait for nothing"
    for each in open_on:
        index = state.origin.awaited_each if each.when == When.EACH else state.origin.awaited
        if key not in index.get(each.on, {}):
            yield f"{key} waits for {each.on}, which is not known"
    for each in for_all:
        awaited = state.origin.submissions.get(each.on.submission)
        if awaited is None or not is_open(state, awaited, task=each.on):
            yield f"{key} waits for {each.on}, which has ended"


def _waiting(state: ModuleState) -> dict[TaskId, list[Run]]:
    """Return the members of each submission that wait, as ascending runs."""
    waiting = defaultdict[TaskId, list[Run]](list)
    for shape in state.origin.shapes.values():
        for key, first, last in shape.waiting:
            waiting[key].append((first, last))
    for key, submission in state.origin.submissions.items():
        if runs := (*submission.aside, *submission.dependent, *submission.behind):
            waiting[key] += runs
    return {key: sorted(runs) for key, runs in waiting.items()}


def _searches(state: ModuleState) -> Iterator[str]:
    """Check that every search has exactly one ask outstanding, and every ask a timer."""
    asks = list(state.hop.asks.values())
    for key, search in state.hop.searches.items():
        if key != (search.asker.system, search.request.id):
            yield f"the search {key} belongs to {search.asker.system}"
        if sum(asked_for is search for asked_for in asks) != 1 or search.asked is None:
            yield f"the search {key} has not exactly one ask outstanding"
        if search.left <= 0 or search.asks_left < 0:
            yield f"the search {key} searches {search.left} places with {search.asks_left} asks"
        if not 0 < search.asked_left <= search.left:
            yield f"the search {key} has asked for {search.asked_left} of {search.left} places"
        if search.asked == search.asker.system:
            yield f"the search {key} went back to its asker"
    for ask, search in state.hop.asks.items():
        if state.hop.searches.get((search.asker.system, search.request.id)) is not search:
            yield f"ask {ask} belongs to no search"
        if not state.timers.is_set(TimerKind.SEARCH, ask):
            yield f"ask {ask} has no SEARCH timer"
    for passed in state.hop.passed.values():
        if passed.toward_origin == passed.toward_executor:
            yield f"claim {passed.id} leads back to where it came from"
    by_neighbor = {search: asker for asker, searches in state.hop.seen_from.items() for search in searches}
    if by_neighbor != {search: seen.asker for search, seen in state.hop.seen.items()}:
        yield "remembered searches belong to other neighbors"
    for seen in state.hop.seen:
        if not state.timers.is_set(TimerKind.SEEN, seen):
            yield f"search {seen.hex()} is remembered without a timer"


def _border(state: ModuleState) -> Iterator[str]:
    """Check that the tables of shown ids agree with the rows of claims and hidden submissions."""
    shown = {row.shown: row.id for row in state.hop.passed.values() if row.shown is not None}
    if shown != state.border.claims:
        yield "the table of shown claims differs from the claims that pass"
    if {row.shown: row.id for row in state.border.submissions.values()} != state.border.shown:
        yield "the tables of hidden and shown submissions differ"
    brought = [(claim, row.id) for row in state.border.submissions.values() for claim in row.claims]
    if sorted(brought) != sorted((claim, each) for claim, them in state.border.brought.items() for each in them):
        yield "the submissions brought in claims differ from their rows"
    uses = {(use, system) for system, them in state.border.uses.items() for use in them}
    if uses != {((claim, each), state.hop.passed[claim].toward_origin) for claim, each in brought}:
        yield "uses of hidden submissions belong to other neighbors"
    for claim in state.border.brought:
        passed = state.hop.passed.get(claim)
        if passed is None or not passed.hides_origin:
            yield f"hidden tasks were brought in {claim}, which does not pass or hides nothing"


def _links(state: ModuleState) -> Iterator[str]:
    """Check that only connected neighbors have views and are asked, and that every view can expire."""
    updates = state.updates
    for system in updates.links:
        if system not in state.neighbors:
            yield f"{system} is linked but is not a neighbor"
    for system, kind in updates.views:
        if not updates.links.get(system):
            yield f"the view {kind.name} of {system} outlived its link"
        if not state.timers.is_set(TimerKind.INPUT, system):
            yield f"the view of {system} never expires"
    parents = parents_in_order(state)
    for parent in parents if len(parents) > 1 else ():
        if parent not in updates.silent and not state.timers.is_set(TimerKind.INPUT, parent):
            yield f"the parent {parent} is neither silent nor awaited"
    if updates.counting not in (None, find_counting(state)):
        yield "the neighbors that are counted differ from what they say"
    is_at_work = bool(updates.round.unsent or updates.round.again) or updates.summing is not None
    if is_at_work and not state.timers.is_set(TimerKind.SUM, state.system):
        yield "an advertisement needs further turns, but none is scheduled"
    for search in state.hop.searches.values():
        for party in (search.asker.system, search.asked):
            if party is not None and party != state.system and not updates.links.get(party):
                yield f"a search continues with {party}, which is not linked"


def _ways(state: ModuleState) -> Iterator[str]:
    """Check that nothing is remembered about the way of claims that are neither held nor passed on."""
    for claim_id in (*state.ways.given_up, *state.ways.bringers):
        if claim_id not in state.origin.claims and claim_id not in state.hop.passed:
            yield f"the way of {claim_id} is remembered, which is neither held nor passed on"


def _shut_off(state: ModuleState) -> Iterator[str]:
    for system in state.shut_off:
        if system in state.updates.links or any(each == system for each, _ in state.updates.views):
            yield f"{system} is shut off, and has a link or a view"
        if any(system == claim.row.via for claim in state.executor.claims.values()):
            yield f"{system} is shut off, and holds a claim here"
        if any(system in (row.toward_origin, row.toward_executor) for row in state.hop.passed.values()):
            yield f"{system} is shut off, and a claim passes between it and another"
        if any(system == claim.row.via and not claim.row.is_cut_off for claim in state.origin.claims.values()):
            yield f"{system} is shut off, and a claim is held through it"
        if any(system in (search.asked, search.asker.system) for search in state.hop.searches.values()):
            yield f"{system} is shut off, and a search goes there or comes from there"


def _membership(state: ModuleState) -> Iterator[str]:
    """Check that a neighbor whose link ends is in no sum and no search, and that a removed one is no neighbor."""
    membership = state.membership
    for system, row in membership.removed.items():
        if row.is_ended and system in state.neighbors:
            yield f"{system} was removed, and is a neighbor"
        if not row.is_ended and system not in state.neighbors:
            yield f"the link with {system} is being ended, but it is no neighbor"
        if row.is_ended and system in membership.members:
            yield f"{system} was removed, and has the row of a member"
    for system in membership.members:
        if system not in state.neighbors:
            yield f"{system} is a member, but no neighbor"
    for row in membership.leaving():
        if any(each == row.system for each, _ in state.updates.views):
            yield f"the link with {row.system} is being ended, and has a view"
        if any(row.system in (search.asked, search.asker.system) for search in state.hop.searches.values()):
            yield f"the link with {row.system} is being ended, and a search goes there or comes from there"
    drain = membership.drain
    for claim in state.executor.claims.values():
        if drain is not None and not claim.is_ending:
            yield f"granted claim {claim.row.id} takes tasks, though the module is drained"
        if is_withheld_from(state, claim.row.via) and not claim.is_ending:
            yield f"granted claim {claim.row.id} takes tasks, though the machine is not lent"
        if membership.is_leaving(claim.row.via) and not claim.is_ending:
            yield f"granted claim {claim.row.id} takes tasks, though its link is being ended"
