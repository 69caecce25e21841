"""For any state, a plan decides what a real submit then does, and making one changes nothing."""

from copy import deepcopy
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from messiahs.core import queries
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.messages import SchedRequest, TaskDeny
from messiahs.core.interface.output_events import OutputsHome
from messiahs.core.interface.plans import Plan, PlannedOutcome
from messiahs.core.interface.search_record import SearchRecord
from messiahs.core.model.ids import ClaimId, ClientKey, Epoch, MessageId, SystemId
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.state.lives import ShapePhase
from messiahs.trace.format.segments import state_bytes
from tests.property.budget import examples
from tests.property.test_handle_never_raises import NEEDS, POLICIES, Drawing
from tests.unit.core.rig import (
    CHILD,
    COMMAND,
    FAR,
    PARENT,
    SIBLING,
    Rig,
    accept,
    answered,
    deny,
    make_module,
    sent,
    status,
    statuses,
    view,
)

KEY = ClientKey("planned")
WAITS = st.sampled_from([0, SECOND // 5, 2 * SECOND, HOUR // 6, HOUR // 2])
VIEWS = st.builds(
    lambda slots, free, speed: view(slots=slots, free_slots=min(slots, free), speed=speed),
    st.integers(1, 3),
    st.sampled_from([3, 3, 2, 1, 0]),
    st.sampled_from([1000, 1000, 0]),
)
SUBMITTED = st.builds(
    Submitted,
    answer_to=st.just(AnswerTo(7)),
    key=st.just(KEY),
    tdv=NEEDS,
    requirement=st.sampled_from([*[""] * 6, "$speed > 1", "$speed > 2000", "$os > 1"]),
    command=st.just(COMMAND),
    members=st.integers(0, 6),
    waits=st.booleans(),
    at_once=st.sampled_from([0, 0, 2]),
)


def small_system(data: st.DataObject) -> Rig:
    """Draw a module with neighbors and tasks to which all kinds of things have happened."""
    rig = Rig(module=make_module(policy=data.draw(st.sampled_from(POLICIES))))
    rig.resume()
    linked = data.draw(st.sets(st.sampled_from([CHILD, SIBLING, PARENT]), min_size=data.draw(st.integers(0, 3))))
    rig.greet(*sorted(linked))
    for system in sorted(linked):
        rig.see(system, data.draw(VIEWS))
    if data.draw(st.integers(0, 2)) == 0:
        rig.measure(slots=data.draw(st.integers(1, 4)))
    drawing = Drawing(data, rig)
    for number in range(data.draw(st.integers(0, 6))):
        kind = data.draw(st.sampled_from(["before", "before", "answer", "answer", "end", "wait", "any"]))
        if kind == "before":
            rig.handle(replace(data.draw(SUBMITTED), key=ClientKey(f"before {number}")))
        elif kind == "answer":
            answer_all(rig, data)
        elif kind == "end":
            end_one(rig)
        elif kind == "wait":
            rig.wait(data.draw(WAITS))
        else:
            rig.handle(drawing.event())
    return rig


def answer_all(rig: Rig, data: st.DataObject) -> None:
    """Let neighbors answer until nobody is asked any more: one that grants has places for more tasks than wait."""
    while rig.state.hop.asks:
        ask, search = next(iter(rig.state.hop.asks.items()))
        assert search.asked is not None
        if data.draw(st.booleans()) or not isinstance(search.request, SchedRequest):
            rig.hear(search.asked, (deny if isinstance(search.request, SchedRequest) else no_task)(ask))
            continue
        claim = ClaimId(FAR, Epoch(5), len(rig.state.origin.claims) + 1000 * int(ask))
        rig.hear(search.asked, replace(accept(ask, claim=claim, places=search.asked_left), window=9))


def end_one(rig: Rig) -> None:
    """Let one task end well at a neighbor that has several, so that its claim has room for another one."""
    for held in rig.state.origin.claims.values():
        if len(held.bound) > 1 and held.row.via != rig.state.system:
            ended = next(iter(held.bound))
            rig.hear(held.row.via, statuses(status(ended), claim=held.row.id, window=9))
            rig.handle(OutputsHome(attempt=ended))
            return


def no_task(ask: MessageId) -> TaskDeny:
    return TaskDeny(request=ask, reasons=(), asks_left=60)


def planned(rig: Rig, event: Submitted) -> Plan | str:
    """Make a plan with the random numbers that a real search is going to have."""
    drawn = deepcopy(rig.state.randomness)
    # The id of the search comes first.
    drawn.bits(128)
    found = queries.plans_of(rig.state, event, drawn, most=1, now=rig.now)
    return found if isinstance(found, str) else found[0]


def search_of(rig: Rig, event: Submitted) -> SearchRecord | None:
    live = queries.round_of(rig.state, event.tdv, event.requirement)
    return None if live is None else live.search


def in_order(record: SearchRecord) -> list[tuple[SystemId, str]]:
    return [(each.system, each.why) for each in record.order]


def bound(rig: Rig) -> int:
    task = rig.state.origin.keys[KEY]
    rows = rig.state.origin.tasks.values()
    return sum(row.id.submission == task and row.claim is not None for row in rows)


@settings(examples(100), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_plan_changes_nothing(data: st.DataObject) -> None:
    rig, event = small_system(data), data.draw(SUBMITTED)
    before, drawn = state_bytes(rig.state), deepcopy(rig.state.randomness)
    deadline = rig.module.next_deadline()
    for _ in range(2):
        planned(rig, event)
    assert state_bytes(rig.state) == before
    assert rig.module.next_deadline() == deadline
    assert rig.state.randomness.bits(64) == drawn.bits(64)


@settings(examples(200), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_submit_then_does_what_was_planned(data: st.DataObject) -> None:
    rig, event = small_system(data), data.draw(SUBMITTED)
    shape = rig.state.origin.shapes.get((event.tdv, event.requirement))
    # Else the search that is going on decides about the tasks, too.
    assume(shape is None or shape.phase is not ShapePhase.SEARCHING)
    plan = planned(rig, event)
    actions = rig.handle(event)
    if isinstance(plan, str):
        assert answered(actions).problem == plan
        return
    assert not answered(actions).problem
    is_open = queries.live_submission(rig.state, rig.state.origin.keys[KEY]) is not None
    asked = [to for to, message in sent(actions, SchedRequest) if message.tdv == event.tdv]
    neighbors = () if plan.search is None else [each.system for each in plan.search.order if each.system != "me"]
    own = () if plan.search is None else [each for each in plan.search.order if each.system == "me"]
    has_own = any(each.places for each in own)
    if plan.outcome is PlannedOutcome.START and plan.is_sure:
        assert bound(rig)
    if plan.outcome is not PlannedOutcome.START:
        assert not bound(rig)
    if plan.is_sure and plan.outcome is PlannedOutcome.DENY:
        assert not is_open
    if not has_own:
        # Claims on the own machine draw tickets.
        assert asked[:1] == list(neighbors[: plan.asks][:1])
    real = search_of(rig, event)
    if plan.search is None or real is None:
        return
    assert sorted(in_order(real)) == sorted(in_order(plan.search))
    if not has_own:
        assert in_order(real) == in_order(plan.search)
        assert real.left_out == plan.search.left_out
    assert [each for each in real.order if each.system == "me"] == own
