"""Placing the tasks of local users: rounds of searching, and binding tasks to claims (MESSIAHS 6.2).

The origin owns a task and is the only one to bind its attempts, one after the other. Tasks of one shape follow each
other in a claim without a new search. A task that cannot be placed waits; a new round starts when a changed view newly
could hold it, else after 1 s, doubling to 5 min. It waits in any case after the own machine could not start a task.
"""

from dataclasses import replace

from messiahs.core.interface.actions import Action, Decision, Forget, SendControl, SendTasks, Store
from messiahs.core.interface.history import HistoryEntry
from messiahs.core.interface.messages import (
    BoundTask,
    ClaimEnd,
    Command,
    Reason,
    SchedAccept,
    Substate,
    TaskTransfer,
)
from messiahs.core.interface.rows import HeldClaimRow, RowKind, TaskRow
from messiahs.core.interface.timers import TimerKind
from messiahs.core.model.ids import AttemptId, MessageId, SearchId, SystemId
from messiahs.core.model.instants import MINUTE, Duration, Instant, after
from messiahs.core.model.routes import Leg
from messiahs.core.model.task_files import description_bytes
from messiahs.core.model.trace_context import in_span_of
from messiahs.core.origin.array_members import command_of
from messiahs.core.origin.denial import deny_in_pause, deny_unwilling
from messiahs.core.origin.giving_way import gives_way, note_denied, note_granted, yield_quantum
from messiahs.core.origin.not_after import answer_late, is_overdue
from messiahs.core.origin.own_requests import request_for
from messiahs.core.origin.relocation import drop_offers, move_on, room_in
from messiahs.core.origin.resting import await_status, rests_until, round_waits_until, watch_lease, why_it_rests
from messiahs.core.origin.shape_queue import drop_if_unused, expects_tasks, take_first, unplaced
from messiahs.core.origin.task_history import longer, way_entry
from messiahs.core.origin.unmet import note_lack
from messiahs.core.relay.byte_route import choose_way, forget_ways, leg_of, route_of
from messiahs.core.relay.deliveries import most_bound, note_held
from messiahs.core.state.lives import HeldPhase, ShapePhase
from messiahs.core.state.module import ModuleState
from messiahs.core.state.origin import FIRST_ROUND_DELAY_NS, HeldClaim, Shape
from messiahs.core.task_filter.acceptance import summary_of

_LONGEST_DELAY_NS = 5 * MINUTE
_TRANSFER_BYTES = 256 * 1_024
CLAIM_LIMIT = 4_096
"""Claims per shape, so that executors that only promise places cannot fill the store."""


def place(state: ModuleState, shape: Shape, now: Instant) -> tuple[Action, ...]:
    """Bind tasks to the claims of a shape up to their room, end claims that are not needed, and search for the rest.

    While no round of the shape may begin, tasks of submissions that do not wait are denied.
    """
    claims = _claims_of(state, shape)
    bound = [action for claim in claims for action in bind(state, claim, now)]
    shape.is_filled = True
    return (*bound, *deny_in_pause(state, shape, now), *_end_or_search(state, shape, claims, now))


def fill(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Do as `place` does after a change to one claim: the other claims of its shape have no new room."""
    shape = claim.shape
    if not shape.is_filled:
        return place(state, shape, now)
    has_waited = shape.count > 0
    bound = (*bind(state, claim, now), *deny_in_pause(state, shape, now))
    # Once the last task is bound, claims without room for it are no longer needed.
    claims = _claims_of(state, shape) if has_waited and not shape.count else (claim,)
    return (*bound, *_end_or_search(state, shape, claims, now))


def on_round_timeout(state: ModuleState, number: int, now: Instant) -> tuple[Action, ...]:
    """Start the next round of a shape."""
    shape = state.origin.shapes_by_number.get(number)
    if shape is None:
        return ()
    shape.enter(ShapePhase.SETTLED)
    return place(state, shape, now)


def search_now(state: ModuleState, shape: Shape, now: Instant) -> tuple[Action, ...]:
    """Start a round at once, because something has changed since the last one."""
    forget_round(state, shape)
    return place(state, shape, now)


def forget_round(state: ModuleState, shape: Shape) -> None:
    """Let the next round of a shape begin as soon as its tasks are placed, unless one is in progress."""
    shape.delay_ns = FIRST_ROUND_DELAY_NS
    state.timers.cancel(TimerKind.ROUND, shape.number)
    if shape.phase is ShapePhase.WAITING:
        shape.enter(ShapePhase.SETTLED)


def on_claim_granted(
    state: ModuleState, request: MessageId, accept: SchedAccept, /, *, via: SystemId, is_last: bool, now: Instant
) -> tuple[Action, ...]:
    """Hold a granted claim and bind waiting tasks to it (MESSIAHS 6.2 sched_accept, at the origin)."""
    shape = state.origin.requests.get(request)
    if shape is None or len(shape.claims) >= CLAIM_LIMIT:
        if shape is not None and is_last:
            _end_round(state, request, shape, now)
        return (SendControl(to=via, message=ClaimEnd(claim=accept.claim)),)
    tdv, requirement = shape.key
    is_answer = shape.promised > 0 and shape.answers is None
    route = route_of(accept, via)
    choose_way(state, accept, route, now=now)
    row = HeldClaimRow(
        id=accept.claim,
        via=via,
        address=route.straight.address,
        ticket=route.straight.ticket,
        lease_ns=accept.lease_ns,
        tdv=tdv,
        requirement=requirement,
        answered_at=now,
        is_answer=is_answer and not shape.offered and via != state.system,
        places=accept.places,
        server=route.straight.system if route.straight.system != accept.claim.executor else None,
        path=route.path if route.has_shortcut else None,
        place=accept.place,
        search=shape.search,
        is_foreign=accept.is_foreign or via in state.identity.apart,
    )
    is_for_offered = is_answer and bool(shape.offered)
    claim = HeldClaim(row=row, shape=shape, window=accept.window, is_for_offered=is_for_offered)
    hold(state, claim, now)
    note_granted(state, shape)
    shape.reasons, shape.lacks = (), None
    if is_last:
        _end_round(state, request, shape, now)
    bound = fill(state, claim, now)
    if not is_last or not shape.count or not claim.bound or shape.has_lost:
        return (Store(row=row), *bound)
    # Everything requested was granted, so more may be free, unless the claim takes no tasks or loses them at once.
    forget_round(state, shape)
    return (Store(row=row), *bound, _start_search(state, shape))


def on_search_denied(
    state: ModuleState, request: MessageId, reasons: tuple[Reason, ...], /, now: Instant
) -> tuple[Action, ...]:
    """Keep waiting tasks and the reasons of the denial; deny the tasks of submissions that do not wait."""
    shape = state.origin.requests.get(request)
    if shape is None:
        return ()
    shape.reasons = reasons
    note_lack(state, shape, reasons)
    _end_round(state, request, shape, now)
    note_denied(state, shape, reasons, now=now)
    denied = deny_unwilling(state, shape, now)
    text = ", ".join(f"{reason.module}: {summary_of(reason)}" for reason in reasons)
    tasks = f"{shape.count} waiting"
    return (*denied, Decision(what="sched_deny", task=tasks, text=text), *place(state, shape, now))


def hold(state: ModuleState, claim: HeldClaim, now: Instant) -> None:
    """Enter a new or stored claim, and start the origin's timeout of its lease."""
    claim.began_at = now
    state.origin.claims[claim.row.id] = claim
    claim.shape.claims.append(claim.row.id)
    note_held(state, claim, now)
    watch_lease(state, claim, now)
    await_status(state, claim, now)


def bind(state: ModuleState, claim: HeldClaim, now: Instant) -> tuple[Action, ...]:
    """Bind waiting tasks to a claim up to its window, store the bindings, and send the tasks.

    A claim that gives way to another shape takes none any more.
    """
    stores: list[Action] = []
    tasks: list[BoundTask] = []
    if rests_until(state) > now:
        return ()
    claim.most = most_bound(state, claim)
    if is_overdue(state, claim, now):
        claim.enter(HeldPhase.ENDING)
    room = min(claim.shape.count, room_in(state, claim))
    if room and gives_way(state, claim, now):
        claim.enter(HeldPhase.ENDING)
        yield_quantum(state, claim.shape, now)
        return ()
    way = way_entry(state, claim, now)
    for _ in range(room):
        task = take_first(state, claim.shape)
        row = state.origin.tasks.get(task, TaskRow(id=task))
        row = replace(
            row,
            attempt=row.attempt + 1,
            claim=claim.row.id,
            substate=Substate.STAGING,
            bound_at=now,
            executed_on=claim.row.id.executor,
            search=claim.row.search,
            assigned=(),
            history=longer(row.history, *_entries(row.attempt + 1, claim, way, now=now)),
        )
        attempt = AttemptId(task, row.attempt)
        state.origin.tasks[task] = row
        claim.bound[attempt] = now
        claim.unconfirmed[attempt] = None
        stores.append(Store(row=row))
        tasks.append(bound_task(state, attempt))
    return (*stores, *send_tasks(state, claim, tasks), *answer_late(state, claim, now))


def promise(state: ModuleState, shape: Shape, count: int, search: SearchId, /, *, now: Instant) -> tuple[Action, ...]:
    """Search for places for `count` tasks of a shape, at once or as soon as its current round ends.

    Hops that remember the task_request `search` first ask the neighbor from which it came.
    """
    shape.answers, shape.promised, shape.promised_at = search, count, now
    return search_now(state, shape, now)


def send_tasks(state: ModuleState, claim: HeldClaim, tasks: list[BoundTask], /) -> tuple[Action, ...]:
    """Send tasks on the present leg of their claim, in messages of bounded size."""
    if not tasks:
        return ()
    leg = leg_of(state, claim.row.id, claim.row.route)
    actions: list[Action] = []
    batch: list[BoundTask] = []
    size = 0
    for task in tasks:
        size += command_size(task.command)
        if batch and size > _TRANSFER_BYTES:
            actions.append(_transfer(claim, leg, batch))
            batch, size = [], command_size(task.command)
        batch.append(task)
    return (*actions, _transfer(claim, leg, batch))


def command_size(command: Command) -> int:
    """Return the approximate size of a command on the wire, in bytes."""
    return words_size(command) + description_bytes(command.inputs, command.outputs)


def words_size(command: Command) -> int:
    """Return the approximate size of a command and its environment on the wire, in bytes, without its files."""
    words = (*command.argv, *(word for pair in command.env for word in pair))
    # Unix allows words that are not Unicode: their bytes appear as surrogates, as from `os.fsdecode`.
    return 32 + sum(len(word.encode(errors="surrogateescape")) + 4 for word in words)


def release(state: ModuleState, claim: HeldClaim) -> tuple[Action, ...]:
    """End a claim that has no tasks and expects none."""
    if claim.bound or (expects_tasks(claim.shape) and not claim.is_ending):
        return ()
    return (*drop_claim(state, claim), SendControl(to=claim.row.via, message=ClaimEnd(claim=claim.row.id)))


def drop_claim(state: ModuleState, claim: HeldClaim) -> tuple[Action, ...]:
    """Forget a claim."""
    del state.origin.claims[claim.row.id]
    claim.shape.claims.remove(claim.row.id)
    state.timers.cancel(TimerKind.HELD_LEASE, claim.row.id)
    state.timers.cancel(TimerKind.RESEND, claim.row.id)
    state.timers.cancel(TimerKind.QUERY, claim.row.id)
    state.timers.cancel(TimerKind.KILL, claim.row.id)
    forget_ways(state, claim.row.id)
    return (Forget(key=(RowKind.HELD_CLAIM, claim.row.id)),)


def _end_or_search(
    state: ModuleState, shape: Shape, claims: tuple[HeldClaim, ...], now: Instant, /
) -> tuple[Action, ...]:
    actions = [*move_on(state, shape), *(action for claim in claims for action in release(state, claim))]
    drop_offers(shape)
    if not unplaced(shape):
        if shape.phase is not ShapePhase.SEARCHING:
            # The round in progress when the tasks were promised has found places for all of them.
            shape.answers, shape.promised = None, 0
        drop_if_unused(state, shape)
    elif shape.phase is ShapePhase.SETTLED and round_waits_until(state, shape) > now:
        shape.reasons = (why_it_rests(state, shape),)
        shape.enter(ShapePhase.WAITING)
        state.timers.set(TimerKind.ROUND, shape.number, round_waits_until(state, shape))
    elif shape.phase is ShapePhase.SETTLED:
        actions.append(_start_search(state, shape))
    return tuple(actions)


def _claims_of(state: ModuleState, shape: Shape) -> tuple[HeldClaim, ...]:
    return tuple(state.origin.claims[claim] for claim in shape.claims)


def _entries(attempt: int, claim: HeldClaim, way: HistoryEntry | None, /, *, now: Instant) -> tuple[HistoryEntry, ...]:
    bound = HistoryEntry(at=now, event="bound", attempt=attempt, module=claim.row.id.executor)
    return (bound,) if way is None else (bound, replace(way, attempt=attempt))


def _transfer(claim: HeldClaim, leg: Leg, tasks: list[BoundTask], /) -> SendTasks:
    message = TaskTransfer(claim=claim.row.id, ticket=leg.ticket, tasks=tuple(tasks))
    return SendTasks(to=leg.system, address=leg.address, message=message)


def bound_task(state: ModuleState, attempt: AttemptId) -> BoundTask:
    """Return an attempt with its command, as it is sent to the executor."""
    row = state.origin.submissions[attempt.task.submission].row
    command = command_of(row, attempt.task)
    env = in_span_of(command.env, attempt)
    return BoundTask(attempt=attempt, command=command if env is command.env else replace(command, env=env))


def _start_search(state: ModuleState, shape: Shape) -> Action:
    search = SearchId(state.randomness.bits(128).to_bytes(16))
    shape.enter(ShapePhase.SEARCHING)
    shape.request, shape.search = state.next_message_id(), None
    state.origin.requests[shape.request] = shape
    request = request_for(state, shape, number=shape.request, search=search, tasks=unplaced(shape))
    shape.answers, shape.is_near, shape.near = None, shape.near is not None, None
    return SendControl(to=state.system, message=request)


def _end_round(state: ModuleState, request: MessageId, shape: Shape, now: Instant, /) -> None:
    del state.origin.requests[request]
    shape.request = None
    shape.enter(ShapePhase.WAITING)
    if shape.answers is not None:
        shape.is_near = False
        # Promised during this round: the next round serves the promise and starts at once.
        state.timers.set(TimerKind.ROUND, shape.number, now)
        return
    shape.promised = 0
    if shape.is_near:
        # The next round searches everywhere.
        shape.is_near = False
        state.timers.set(TimerKind.ROUND, shape.number, now)
        return
    # Between three and five quarters of the delay: modules that were denied together do not ask together again.
    delay_ns = 3 * shape.delay_ns // 4 + (shape.delay_ns * state.randomness.bits(16) >> 17)
    state.timers.set(TimerKind.ROUND, shape.number, after(now, delay_ns))
    shape.delay_ns = Duration(min(2 * shape.delay_ns, _LONGEST_DELAY_NS))
