"""A policy that is loaded while a module is recorded: its text is in the trace, and decides from there on."""

from messiahs.config.policies import source_of
from messiahs.core.interface.events import ControlReceived, PolicyChanged
from messiahs.core.interface.messages import SchedDeny
from messiahs.language.compiler.files import parse_policy
from messiahs.policy.open_policy import OpenPolicy
from messiahs.trace.replay.replay import replay
from messiahs.trace.show.lines import event_text
from tests.unit.core.rig import CHILD, ME, Rig, hello, make_module, message_in, request
from tests.unit.trace.taping import Taping, taping

CLOSED = 'policy "closed"; accept from any { require $mem < 1B else "closed"; limit 1 tasks; }'
LOADED = PolicyChanged(policy=parse_policy(CLOSED, file="closed.policy"))


def _taped(*, segment_bytes: int, requests: int = 1) -> Taping:
    tape = taping(Rig(module=make_module(policy=OpenPolicy())))
    tape.record(segment_bytes=segment_bytes)
    tape.start()
    tape.handle(ControlReceived(sender=CHILD, message=hello(CHILD)))
    before = tape.handle(ControlReceived(sender=CHILD, message=request(1)))
    tape.handle(LOADED)
    for number in range(2, 2 + requests):
        after = tape.handle(ControlReceived(sender=CHILD, message=request(number, search=bytes([number]) * 16)))
    tape.module.end_recording()
    assert message_in(before, SchedDeny).reasons[0].text != message_in(after, SchedDeny).reasons[0].text
    return tape


def test_a_replay_takes_up_a_policy_where_it_was_loaded() -> None:
    done = replay(_taped(segment_bytes=1 << 20).files.segments())
    assert (done.events, done.differences) == (6, [])


def test_a_segment_that_begins_later_begins_under_the_policy_that_was_loaded() -> None:
    # A segment has at least as many bytes of records as of the state at its beginning.
    segments = _taped(segment_bytes=1, requests=20).files.segments()
    first, *later = [segment.head.policy.text for segment in segments]
    assert first is None
    assert set(later) == {CLOSED}
    assert replay(segments[-1:]).differences == []
    assert replay(segments).differences == []


def test_a_trace_holds_the_text_of_a_policy_with_its_name_and_hash() -> None:
    (segment,) = _taped(segment_bytes=1 << 20).files.segments()
    (policy,) = [each.subject.policy for each in segment.records() if isinstance(each.subject, PolicyChanged)]
    assert source_of(policy) == source_of(LOADED.policy)
    assert policy == LOADED.policy


def test_a_loaded_policy_is_reported_with_its_file_and_hash() -> None:
    text = event_text(ME, LOADED)
    assert text == f"me: loads the policy closed.policy, SHA-256 {source_of(LOADED.policy).sha256}"
