"""The trace of a task: what is valid, and the span of each attempt (W3C Trace Context, level 1)."""

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.core.model.trace_context import TRACEPARENT, TRACESTATE, context_in, in_span_of, span_of, without_context

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
MALFORMED = (
    "",
    f"00-{TRACE}-{SPAN}",
    f"00-{TRACE}-{SPAN}-01-more",
    f"ff-{TRACE}-{SPAN}-01",
    f"00-{TRACE.upper()}-{SPAN}-01",
    f"00-{'0' * 32}-{SPAN}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE}-{SPAN}-1",
    f" {PARENT}",
    f"{PARENT}\n",
)


def attempt(number: int = 1, *, task: int = 7, member: int = 0, epoch: int = 5) -> AttemptId:
    return AttemptId(TaskId(SystemId("home"), Epoch(epoch), task, member), number)


def test_a_malformed_trace_is_left_out_with_its_state() -> None:
    for text in MALFORMED:
        assert context_in({TRACEPARENT: text, TRACESTATE: "vendor=1"}) == {}, text
        assert in_span_of((("A", "1"), (TRACEPARENT, text), (TRACESTATE, "v=1")), attempt()) == (("A", "1"),), text
    assert in_span_of(((TRACESTATE, "v=1"),), attempt()) == ()


def test_a_state_that_is_malformed_or_a_template_is_left_out_alone() -> None:
    assert context_in({TRACEPARENT: PARENT, TRACESTATE: "v=1"}) == {TRACEPARENT: PARENT, TRACESTATE: "v=1"}
    for state in ("", "x" * 513, "v=\x1b", "v={}"):
        assert context_in({TRACEPARENT: PARENT, TRACESTATE: state}) == {TRACEPARENT: PARENT}


def test_an_attempt_has_the_trace_and_the_sampling_of_the_submitter_and_a_span_of_its_own() -> None:
    context = dict(in_span_of(((TRACEPARENT, PARENT), (TRACESTATE, "v=1")), attempt()))
    version, trace, span, flags = context[TRACEPARENT].split("-")
    assert (version, trace, flags, context[TRACESTATE]) == ("00", TRACE, "01", "v=1")
    assert context_in(context) == context
    assert span != SPAN


def test_the_span_of_an_attempt_is_the_one_that_it_was_given() -> None:
    for sampled in (True, False):
        env = (("A", "1"), (TRACEPARENT, f"{PARENT[:-2]}{sampled:02x}"))
        span = span_of(env, attempt())
        assert span is not None
        assert (span.trace_id, span.parent_id, span.is_sampled) == (TRACE, SPAN, sampled)
        assert dict(in_span_of(env, attempt()))[TRACEPARENT] == f"00-{TRACE}-{span.span_id}-{sampled:02x}"
    assert span_of((("A", "1"), (TRACEPARENT, "malformed")), attempt()) is None


def test_what_a_later_version_adds_is_not_passed_on() -> None:
    ((_, parent),) = in_span_of(((TRACEPARENT, f"cc-{TRACE}-{SPAN}-ff-what-it-adds"),), attempt())
    assert (parent[:36], parent[-3:]) == (f"00-{TRACE}-", "-01")


def test_no_two_attempts_have_the_same_span_and_a_repetition_has_it_again() -> None:
    attempts = [
        attempt(),
        attempt(2),
        attempt(task=8),
        attempt(member=1),
        # A module that has lost its state begins with the same numbers in another epoch.
        attempt(epoch=6),
    ]
    spans = {in_span_of(((TRACEPARENT, PARENT),), each) for each in attempts}
    assert len(spans) == len(attempts)
    assert in_span_of(((TRACEPARENT, PARENT),), attempt()) in spans


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-x)?"))
def test_whatever_is_stated_an_attempt_has_a_valid_trace_or_none(text: str) -> None:
    context = dict(in_span_of(((TRACEPARENT, text),), attempt()))
    assert context == context_in(context)
    assert bool(context) == bool(context_in({TRACEPARENT: text}))


def test_other_variables_stay() -> None:
    env = (("A", "1"), ("B", "2"))
    assert in_span_of(env, attempt()) is env
    assert without_context((*env, (TRACEPARENT, PARENT), (TRACESTATE, "v=1"))) == env
