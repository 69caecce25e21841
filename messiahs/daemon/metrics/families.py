"""The metrics of a module as families of Prometheus: their names, units, labels and help texts.

Names are those that users of Kueue know where they fit, with `messiahs_` and `tasks` in place of `kueue_` and
`workloads`. Labels have values of a fixed set, or names of neighbors; never tasks, users or addresses.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from messiahs.channel.contract import Counters
from messiahs.core.counts import Counts
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import DenyCode, Substate, TaskState
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.daemon.metrics.file_bytes import OTHER
from messiahs.daemon.metrics.histograms import Histogram
from messiahs.daemon.metrics.tally import EVICTIONS, Direction, Outcome, Tally
from messiahs.daemon.otlp.sender import SpanCounts
from messiahs.daemon.transfer.budgets import Moved

_EXITED: Final = "exited"
"""The reason of an end without a `Cause`."""
_CAUSES: Final = frozenset(Cause)
_ENDS: Final = tuple(state for state in TaskState if state is not TaskState.EXECUTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a module is, for the labels of `messiahs_build_info`."""

    release: str
    federation: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything that is measured of a module at one instant."""

    about: About
    counts: Counts
    tally: Tally
    messages: Mapping[SystemId, Counters]
    file_bytes: Mapping[tuple[str, Moved], int]
    """Bytes of files and standard input that other systems have sent or read here, by their labels."""
    throttled: frozenset[SystemId]
    has_commit_failed: bool
    spans: SpanCounts


def families_of(reading: Reading) -> list[Metric]:
    """Return all families; each appears whether or not anything was counted."""
    return [*_of_module(reading), *_of_tasks(reading), *_of_machine(reading), *_of_neighbors(reading)]


def _of_module(reading: Reading) -> Iterator[Metric]:
    about, tally = reading.about, reading.tally
    info = GaugeMetricFamily(
        "messiahs_build_info",
        "1, with the release, and the names of the federation and of the module.",
        labels=("release", "federation", "module"),
    )
    info.add_metric((about.release, about.federation, about.module), 1)
    yield info
    yield _histogram(
        "messiahs_commit_duration_seconds",
        "How long transactions took, from their begin until the module acted on them.",
        tally.commits,
    )
    rows = "Rows that were stored or deleted in these transactions."
    yield CounterMetricFamily("messiahs_committed_rows", rows, value=tally.committed_rows)
    failing = "1 while nothing can be stored, so that no new work is accepted; otherwise 0."
    yield GaugeMetricFamily("messiahs_commit_failing", failing, value=reading.has_commit_failed)
    claims = _gauge("messiahs_claims", "Claims that this module holds, has granted, or passes on.", "role")
    counts = reading.counts
    for role, number in (
        ("held", counts.held_claims),
        ("granted", counts.granted_claims),
        ("passed", counts.passed_claims),
    ):
        claims.add_metric((role,), number)
    yield claims
    spans = _counter(
        "messiahs_spans", "Spans of attempts that a collector has taken (sent), or will never get (dropped).", "outcome"
    )
    spans.add_metric(("sent",), reading.spans.sent)
    spans.add_metric(("dropped",), reading.spans.dropped)
    yield spans


def _of_tasks(reading: Reading) -> Iterator[Metric]:
    tally, pending = reading.tally, reading.counts.pending
    submitted = "Tasks that users of this module have submitted."
    yield CounterMetricFamily("messiahs_submitted_tasks", submitted, value=tally.submitted_tasks)
    waiting = _gauge(
        "messiahs_pending_tasks",
        "Tasks of this module's users that have no place: they wait for one (waiting), are on hold (held), wait for "
        "other tasks (dependent), or for a limit of their array (limited).",
        "status",
    )
    for status in ("waiting", "held", "dependent", "limited"):
        waiting.add_metric((status,), getattr(pending, status))
    yield waiting
    active = _gauge("messiahs_placed_active_tasks", "Tasks of this module's users that have a place.", "status")
    for substate in Substate:
        active.add_metric((substate,), reading.counts.placed.get(substate, 0))
    yield active
    placed = _counter("messiahs_placed_tasks", "Times that a task of this module's users got a place.", "machine")
    for machine, is_own in (("own", True), (OTHER, False)):
        placed.add_metric((machine,), tally.placed_tasks[is_own])
    yield placed
    yield _histogram(
        "messiahs_placement_wait_time_seconds",
        "From the submit of a task to its first place, unless it also waited for something else.",
        tally.placement_waits,
    )
    evicted = _counter(
        "messiahs_evicted_tasks",
        "Times that a task of this module's users lost its place and was to be placed again; `revoked` and `vacated`: "
        "the owner of the machine wanted that.",
        "reason",
    )
    for reason in sorted(EVICTIONS):
        evicted.add_metric((reason,), tally.evicted_tasks[reason])
    yield evicted
    ended = _counter("messiahs_ended_tasks", "Tasks of this module's users that have ended.", "state")
    for state in _ENDS:
        ended.add_metric((state,), tally.ended_tasks[state])
    yield ended


def _of_machine(reading: Reading) -> Iterator[Metric]:
    here = _gauge("messiahs_machine_attempts", "Attempts on the own machine that have not ended.", "status")
    for substate in Substate:
        here.add_metric((substate,), reading.counts.here.get(substate, 0))
    yield here
    ended = _counter(
        "messiahs_ended_attempts",
        "Attempts on the own machine that have ended; `revoked` and `vacated` are acts of the owner.",
        "state",
        "reason",
    )
    known: Counter[tuple[str, str]] = Counter()
    for (state, cause), number in reading.tally.ended_attempts.items():
        known[state, cause if cause in _CAUSES else OTHER] += number
    for (found, cause), number in sorted(known.items()):
        ended.add_metric((found, cause or _EXITED), number)
    yield ended


def _of_neighbors(reading: Reading) -> Iterator[Metric]:
    tally, linked = reading.tally, reading.counts.linked
    links = _gauge("messiahs_neighbor_linked", "1 if there is a link with a neighbor, otherwise 0.", "neighbor")
    throttled = _gauge(
        "messiahs_neighbor_throttled",
        "1 while a neighbor that uses more than its share waits for others, otherwise 0.",
        "neighbor",
    )
    throttlings = _counter(
        "messiahs_neighbor_throttlings", "Times that a neighbor was made to wait for a second.", "neighbor"
    )
    for neighbor, is_linked in sorted(linked.items()):
        links.add_metric((neighbor,), is_linked)
        throttled.add_metric((neighbor,), neighbor in reading.throttled)
        throttlings.add_metric((neighbor,), tally.throttlings[neighbor])
    yield from (links, throttled, throttlings)
    ages = _gauge("messiahs_view_age_seconds", "Age of the oldest part of the view of a neighbor.", "neighbor")
    for neighbor, age_ns in sorted(reading.counts.view_ages_ns.items()):
        ages.add_metric((neighbor,), age_ns / SECOND)
    yield ages
    searches = "Searches for places that were sent to a neighbor, by what became of them first."
    yield _by_outcome("messiahs_searches", searches, tally.searches, tuple(Outcome), linked)
    answers = "Answers to searches of a neighbor for places; a search may have several."
    given = (Outcome.GRANTED, Outcome.DENIED)
    yield _by_outcome("messiahs_search_answers", answers, tally.answers, given, linked)
    denials = _counter(
        "messiahs_denials", "Denials of searches, sent to neighbors and received from them.", "direction", "code"
    )
    for direction in Direction:
        for code in DenyCode:
            denials.add_metric((direction, code), tally.denials[direction, code])
    yield denials
    violations = _counter("messiahs_dropped_control_messages", "Messages that the protocol refuses.", "code")
    for violation, number in sorted(tally.violations.items()):
        violations.add_metric((violation,), number)
    yield violations
    yield from _of_bytes(reading)


def _of_bytes(reading: Reading) -> Iterator[Metric]:
    ways = ("neighbor", "direction")
    messages = _counter("messiahs_messages", "Messages exchanged with a neighbor.", *ways)
    sizes = _counter("messiahs_message_bytes", "Their bytes, before encryption.", *ways)
    dropped = _counter("messiahs_dropped_messages", "Messages that were not sent, or malformed.", "neighbor")
    for neighbor, counters in sorted(reading.messages.items()):
        messages.add_metric((neighbor, Direction.SENT), counters.sent)
        messages.add_metric((neighbor, Direction.RECEIVED), counters.received)
        sizes.add_metric((neighbor, Direction.SENT), counters.sent_bytes)
        sizes.add_metric((neighbor, Direction.RECEIVED), counters.received_bytes)
        dropped.add_metric((neighbor,), counters.dropped)
    yield from (messages, sizes, dropped)
    files = _counter(
        "messiahs_file_bytes",
        "Bytes of files and standard input that other systems have read here (sent), sent (received), or exchanged "
        "through this module on connections that it cannot read (passed). Systems that are no neighbors are `other`.",
        *ways,
    )
    for labels, size_bytes in reading.file_bytes.items():
        files.add_metric(labels, size_bytes)
    yield files


def _by_outcome(
    name: str,
    text: str,
    counted: Mapping[tuple[SystemId, Outcome], int],
    outcomes: tuple[Outcome, ...],
    neighbors: Mapping[SystemId, bool],
) -> Metric:
    family = _counter(name, text, "neighbor", "outcome")
    for neighbor in sorted(neighbors):
        for outcome in outcomes:
            family.add_metric((neighbor, outcome), counted.get((neighbor, outcome), 0))
    return family


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=labels)


def _histogram(name: str, text: str, counted: Histogram) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, text, buckets=counted.buckets, sum_value=counted.sum_seconds)
