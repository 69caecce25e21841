"""Spans on their way to a collector: sent in groups, again after failures that may pass, and never waited for."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from messiahs.config.settings import OtlpSettings
from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.core.model.instants import Instant
from messiahs.core.model.trace_context import SpanContext
from messiahs.daemon.otlp.attempt_spans import AttemptSpan
from messiahs.daemon.otlp.encoding import Encoder
from messiahs.daemon.otlp.sender import QUEUE_LIMIT, SpanCounts, SpanSender
from messiahs.errors import MessiahsError
from tests.collectors import certificate_of_loopback, collecting, endless_collector, silent_collector
from tests.waiting import eventually


def span(number: int) -> AttemptSpan:
    return AttemptSpan(
        context=SpanContext(trace_id="a" * 32, span_id=f"{number + 1:016x}", parent_id="b" * 16, is_sampled=True),
        attempt=AttemptId(TaskId(SystemId("me"), Epoch(1), number), 1),
        module="far",
        begun_at=Instant(1),
        ended_at=Instant(2),
        cause="",
        problem="",
        exit_code=0,
    )


@contextmanager
def sending(endpoint: str, roots: Path | None = None) -> Iterator[tuple[SpanSender, SpanCounts]]:
    """Run a sender, which is stopped at the end of the context."""
    counts, encoder = SpanCounts(), Encoder(federation="lab", module="me")
    settings = OtlpSettings(endpoint=endpoint, roots=roots)
    sender = SpanSender(settings, lambda spans: encoder.body_of(spans, wall_offset_ns=0), counts)
    sender.start()
    try:
        yield sender, counts
    finally:
        asyncio.run(sender.stop())


def test_spans_arrive_in_groups_and_the_last_ones_at_the_end() -> None:
    with collecting() as collector:
        with sending(collector.endpoint) as (sender, counts):
            for number in range(1_000):
                sender.put(span(number))
            eventually(lambda: counts.sent == 1_000)
            assert len(collector.requests) <= 3
            sender.put(span(1_000))
        assert [int(each.span_id.hex(), 16) for each in collector.spans] == list(range(1, 1_002))
        assert (counts.sent, counts.dropped, collector.kinds) == (1_001, 0, {"application/x-protobuf"})


def test_a_failure_that_may_pass_delays_spans_and_another_one_drops_them() -> None:
    with collecting() as collector:
        collector.statuses = [503, 200, 400]
        with sending(collector.endpoint) as (sender, counts):
            sender.put(span(1))
            eventually(lambda: counts.sent == 1)
            sender.put(span(2))
            eventually(lambda: counts.dropped == 1)
            sender.put(span(3))
            eventually(lambda: counts.sent == 2)
        assert [int(each.span_id.hex(), 16) for each in collector.spans] == [2, 4]


def test_a_redirection_is_not_followed() -> None:
    with collecting() as other, collecting() as collector:
        collector.statuses, collector.location = [307], other.endpoint
        with sending(collector.endpoint) as (sender, counts):
            sender.put(span(1))
            eventually(lambda: counts.dropped == 1)
        assert not other.requests


def test_a_collector_that_never_answers_keeps_nobody_waiting_and_what_is_too_much_is_counted() -> None:
    with silent_collector() as endpoint:
        with sending(endpoint) as (sender, counts):
            for number in range(2 * QUEUE_LIMIT):
                sender.put(span(number))
            assert counts.overflowed > 0
        # Nothing was sent, so all that did not overflow was waiting at the end.
        assert (counts.sent, counts.dropped) == (0, 2 * QUEUE_LIMIT)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: " + b"a" * 4_000 + b"\r\n", b"\0" * 65_536],
)
def test_a_collector_that_answers_without_end_is_left(answer: bytes) -> None:
    with endless_collector(answer) as endpoint:
        with sending(endpoint) as (sender, counts):
            sender.put(span(1))
        assert (counts.sent, counts.dropped) == (0, 1)


def test_a_body_without_end_is_not_read() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"
    with endless_collector(head + bytes(1 << 20)) as endpoint, sending(endpoint) as (sender, counts):
        sender.put(span(1))
        eventually(lambda: counts.sent == 1)


def test_a_failure_that_goes_on_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with collecting() as collector, caplog.at_level(logging.WARNING):
        collector.statuses = [400] * 3
        with sending(collector.endpoint) as (sender, counts):
            for number in range(3):
                sender.put(span(number))
                eventually(partial(_has_dropped, counts, number + 1))
        warnings = [each.message for each in caplog.records if "it answered 400" in each.message]
        assert len(warnings) == 1
        assert "3 spans were dropped since the start of this module, and 0 sent" in caplog.text


def _has_dropped(counts: SpanCounts, number: int) -> bool:
    return counts.dropped == number


def test_roots_decide_which_collector_is_believed(tmp_path: Path) -> None:
    files, (other, _) = (certificate_of_loopback(tmp_path, name) for name in ("collector", "other"))
    with collecting(files) as collector:
        with sending(collector.endpoint, other) as (sender, counts):
            sender.put(span(1))
        assert (counts.sent, counts.dropped) == (0, 1)
        with sending(collector.endpoint, files[0]) as (sender, counts):
            sender.put(span(1))
            eventually(lambda: counts.sent == 1)


def test_roots_that_are_of_no_use_are_an_error_at_the_start(tmp_path: Path) -> None:
    settings = OtlpSettings(endpoint="https://collector/v1/traces", roots=tmp_path / "none.pem")
    with pytest.raises(MessiahsError, match=r"none.pem, cannot be read: No such file"):
        SpanSender(settings, lambda _: b"", SpanCounts())
    (tmp_path / "none.pem").write_text("no roots")
    with pytest.raises(MessiahsError, match=r"`roots` of `otlp` in the topology, .*none.pem, "):
        SpanSender(settings, lambda _: b"", SpanCounts())
