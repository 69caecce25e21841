"""Spans in the messages of OTLP; the only file of this project that needs the extra `otlp`."""

from collections.abc import Iterable, Sequence
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from messiahs import __version__
from messiahs.daemon.otlp.attempt_spans import AttemptSpan

_NAME: Final = "messiahs attempt"
_SERVICE: Final = "messiahs"


class Encoder:
    """Encodes spans of one module; `body_of` may run in any thread."""

    def __init__(self, *, federation: str, module: str) -> None:
        texts = {"service.name": _SERVICE, "service.namespace": federation, "service.instance.id": module}
        pairs = (_pair(name, text) for name, text in {**texts, "service.version": __version__}.items())
        self._resource = Resource(attributes=pairs)
        self._scope = InstrumentationScope(name=_SERVICE, version=__version__)

    def body_of(self, spans: Iterable[AttemptSpan], *, wall_offset_ns: int) -> bytes:
        """Return the body of a request; the wall clock is ahead of instants by `wall_offset_ns`."""
        encoded = [_encoded(span, wall_offset_ns) for span in spans]
        scope_spans = ScopeSpans(scope=self._scope, spans=encoded)
        resource_spans = ResourceSpans(resource=self._resource, scope_spans=(scope_spans,))
        return ExportTraceServiceRequest(resource_spans=(resource_spans,)).SerializeToString()


def _encoded(span: AttemptSpan, wall_offset_ns: int) -> Span:
    context = span.context
    failed = Status(code=Status.STATUS_CODE_ERROR, message=span.problem)
    return Span(
        trace_id=bytes.fromhex(context.trace_id),
        span_id=bytes.fromhex(context.span_id),
        parent_span_id=bytes.fromhex(context.parent_id),
        flags=int(context.is_sampled),
        name=_NAME,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.begun_at + wall_offset_ns,
        end_time_unix_nano=span.ended_at + wall_offset_ns,
        attributes=_attributes_of(span),
        status=failed if span.problem else None,
    )


def _attributes_of(span: AttemptSpan) -> Sequence[KeyValue]:
    found = [
        _pair("messiahs.task.id", str(span.attempt.task)),
        KeyValue(key="messiahs.attempt.number", value=AnyValue(int_value=span.attempt.number)),
        _pair("messiahs.attempt.module", span.module),
    ]
    if span.cause:
        found.append(_pair("messiahs.attempt.cause", span.cause))
    if span.exit_code is not None:
        found.append(KeyValue(key="process.exit.code", value=AnyValue(int_value=span.exit_code)))
    return found


def _pair(name: str, text: str) -> KeyValue:
    return KeyValue(key=name, value=AnyValue(string_value=text))
