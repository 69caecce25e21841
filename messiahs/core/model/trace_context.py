"""The trace to which a task belongs, in the variables that OpenTelemetry reads (W3C Trace Context, level 1).

A task has the trace of who submitted it, and each of its attempts is a span of its own: the attempt's `TRACEPARENT`
names that span, so spans that the task makes are below it. The submitter's own span stays at the origin.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.ids import AttemptId

TRACEPARENT: Final = "TRACEPARENT"
TRACESTATE: Final = "TRACESTATE"
TRACE_VARIABLES: Final = frozenset((TRACEPARENT, TRACESTATE))
_PARENT: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})-"
    r"(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?",
    re.ASCII,
)
_STATE: Final = re.compile(r"[\x20-\x7e]{1,512}", re.ASCII)
_SAMPLED: Final = 0x01
_SPAN_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanContext:
    """The span of one attempt; ids are small hexadecimal digits, `parent_id` that of the submitter's span."""

    trace_id: str
    span_id: str
    parent_id: str
    is_sampled: bool
    """Whether the submitter's trace is recorded; a span of another one is not."""


def context_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a valid trace in an environment; none if there is none, or if it is malformed."""
    parent, state = environment.get(TRACEPARENT, ""), environment.get(TRACESTATE, "")
    if not _parsed(parent):
        return {}
    # In an array, `{}` would be replaced by the item of each member.
    is_state = _STATE.fullmatch(state) is not None and PLACEHOLDER not in state
    return {TRACEPARENT: parent, **({TRACESTATE: state} if is_state else {})}


def without_context(env: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the variables of a task that say what it does: who repeats a submit may be in another span."""
    return tuple(pair for pair in env if pair[0] not in TRACE_VARIABLES)


def in_span_of(env: tuple[tuple[str, str], ...], attempt: AttemptId) -> tuple[tuple[str, str], ...]:
    """Return the variables of one attempt, whose span is another one than that of every other attempt.

    A malformed trace is left out.
    """
    stated = dict(env)
    if TRACE_VARIABLES.isdisjoint(stated):
        return env
    context = context_in(stated)
    if context:
        span = _below(context[TRACEPARENT], attempt)
        context[TRACEPARENT] = f"00-{span.trace_id}-{span.span_id}-{span.is_sampled:02x}"
    return (*without_context(env), *context.items())


def span_of(env: tuple[tuple[str, str], ...], attempt: AttemptId) -> SpanContext | None:
    """Return the span that `in_span_of` names to an attempt; None if its task belongs to no trace."""
    parent = context_in(dict(env)).get(TRACEPARENT)
    return None if parent is None else _below(parent, attempt)


def _parsed(parent: str) -> re.Match[str] | None:
    found = _PARENT.fullmatch(parent)
    # Later versions may have more fields behind those of version 00.
    return None if found is not None and found["version"] == "00" and found["more"] else found


def _below(parent: str, attempt: AttemptId) -> SpanContext:
    found = _parsed(parent)
    assert found is not None
    # The epoch in it is secret outside, so nobody there learns the id of the task, which a border may hide.
    content = repr((parent, attempt.task.system, attempt.task.epoch, *attempt.task[2:], attempt.number))
    span = sha256(content.encode()).digest()[:_SPAN_BYTES]
    # No span has the id 0, which has no meaning.
    span_id = max(1, int.from_bytes(span))
    return SpanContext(
        trace_id=found["trace"],
        span_id=f"{span_id:016x}",
        parent_id=found["span"],
        is_sampled=bool(int(found["flags"], 16) & _SAMPLED),
    )
