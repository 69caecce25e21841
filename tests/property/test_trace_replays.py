"""For any events, the state of a module can be written and read between them, and its trace replays."""

from copy import deepcopy

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import Event
from messiahs.core.model.instants import HOUR, SECOND
from messiahs.core.module import SchedulingModule
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.format.records import contents
from messiahs.trace.format.segments import state_bytes
from messiahs.trace.format.values import decode
from messiahs.trace.replay.replay import replay
from tests.property.budget import examples
from tests.property.test_handle_never_raises import Drawing
from tests.unit.core.rig import CHILD, PARENT, SIBLING, Rig, make_module
from tests.unit.trace.taping import taping

WAITS = st.sampled_from([0, SECOND // 5, 2 * SECOND, HOUR // 6, HOUR // 2])


def busy_rig(data: st.DataObject) -> Rig:
    # The policy that the head of a trace of `taping` names.
    rig = Rig(module=make_module(policy=OpenPolicy()))
    rig.resume()
    rig.greet(CHILD, SIBLING, PARENT)
    for system in (CHILD, SIBLING, PARENT):
        rig.see(system)
    if data.draw(st.booleans()):
        rig.measure()
    if data.draw(st.booleans()):
        rig.submit(members=3)
    return rig


def step(data: st.DataObject, rig: Rig) -> Event | int:
    """Draw an event, or an amount of time."""
    if data.draw(st.integers(0, 9)):
        return Drawing(data, rig).event()
    return data.draw(WAITS)


def take(rig: Rig, taken: Event | int) -> tuple[Action, ...]:
    return rig.wait(taken) if isinstance(taken, int) else rig.handle(taken)


def copy_of(rig: Rig) -> Rig:
    state = rig.state
    ports = {
        "policy": state.policy,
        "parse": predicate_parser,
        "randomness": deepcopy(state.randomness),
        "calendar": state.calendar,
    }
    read = decode(state_bytes(state), contents(), ports)
    return Rig(module=SchedulingModule(read), now=rig.now)


@settings(examples(25), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_state_that_was_written_and_read_behaves_like_the_original(data: st.DataObject) -> None:
    rig = busy_rig(data)
    for _ in range(data.draw(st.integers(0, 15))):
        take(rig, step(data, rig))
    other = copy_of(rig)
    assert state_bytes(other.state) == state_bytes(rig.state)
    for _ in range(data.draw(st.integers(1, 15))):
        taken = step(data, rig)
        assert take(other, taken) == take(rig, taken)
    assert state_bytes(other.state) == state_bytes(rig.state)


@settings(examples(25), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_trace_of_anything_replays_without_a_difference(data: st.DataObject) -> None:
    rig = busy_rig(data)
    tape = taping(rig)
    tape.record(segment_bytes=1_000)
    steps = data.draw(st.integers(1, 25))
    for _ in range(steps):
        taken = step(data, rig)
        if isinstance(taken, int):
            rig.now += taken  # type: ignore[assignment]
            tape.now = rig.now
            tape.expire()
        else:
            tape.module.handle(taken, rig.now)
    tape.module.end_recording()
    assert tape.lost == []
    done = replay(tape.files.segments())
    assert done.differences == []
    assert done.segments == len(tape.files.files)
