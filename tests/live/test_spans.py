"""Spans of real modules at a real collector: below that of the submitter, and no task waits for a collector."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from messiahs.config.settings import OtlpSettings, load_settings
from tests.collectors import Collector, attributes_of, collecting, silent_collector
from tests.live.conftest import brought_up, fixed_machine
from tests.live.test_metrics import refused
from tests.live.test_traces_of_users import PARENT, SPAN, TRACE, Traced
from tests.waiting import eventually

pytestmark = pytest.mark.live
_TOPOLOGY = """
version: 1
federation: seen
defaults: {{update_period: 200ms}}
systems:
  top:
    machine: {machine}
  low:
    parent: top
    {otlp}
"""
_MISSING = "raise ModuleNotFoundError('No module named opentelemetry', name='opentelemetry.proto')"
_TASKS = 1_000


@contextmanager
def seen(folder: Path, otlp: str) -> Iterator[Traced]:
    """Run two modules; the tasks of `low`, which sends their spans, run at `top`."""
    folder.mkdir(exist_ok=True)
    topology = folder / "seen.yaml"
    topology.write_text(_TOPOLOGY.format(machine=fixed_machine(slots=2), otlp=otlp))
    made = Traced(topology=topology, name="seen", state=folder / "state", module="low", parent=PARENT)
    with brought_up(made):
        yield made


def sending_to(endpoint: str) -> str:
    return f'otlp: {{endpoint: "{endpoint}"}}'


def of_task(collector: Collector, task: str) -> list[Span]:
    """Return the spans of a task, by the numbers of their attempts."""
    own = [each for each in collector.spans if attributes_of(each)["messiahs.task.id"] == task]
    return sorted(own, key=lambda each: attributes_of(each)["messiahs.attempt.number"])


def test_the_collector_of_the_origin_gets_the_spans_that_tasks_have_below_that_of_the_submitter(
    tmp_path: Path, shared: Path
) -> None:
    with collecting() as collector, seen(tmp_path, sending_to(collector.endpoint)) as made:
        written = shared / "spans"
        begun_ns = time.time_ns()
        script = f'echo "$TRACEPARENT" >> {written}; test "$MESSIAHS_ATTEMPT" = 2 || exit 3'
        task = made.submit("--retries", "1", "--", "sh", "-c", script)
        assert made.run("wait", task).returncode == 0
        eventually(lambda: len(of_task(collector, task)) == 2)
        spans = of_task(collector, task)
        given = written.read_text().split()
        assert given == [f"00-{TRACE}-{each.span_id.hex()}-01" for each in spans]
        assert {(each.trace_id.hex(), each.parent_span_id.hex()) for each in spans} == {(TRACE, SPAN)}
        assert [attributes_of(each) for each in spans] == [
            {
                "messiahs.task.id": task,
                "messiahs.attempt.number": number,
                "messiahs.attempt.module": "top",
                "process.exit.code": exit_code,
            }
            for number, exit_code in ((1, 3), (2, 0))
        ]
        assert [each.status.code for each in spans] == [Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET]
        assert begun_ns <= spans[0].start_time_unix_nano <= spans[0].end_time_unix_nano
        assert spans[0].end_time_unix_nano <= spans[1].start_time_unix_nano <= spans[1].end_time_unix_nano
        assert spans[1].end_time_unix_nano <= time.time_ns()
        unsampled = replace(made, parent=f"{PARENT[:-2]}00")
        for other in (unsampled, replace(made, parent="")):
            assert other.run("run", "true").returncode == 0
        last = made.submit("true")
        assert made.run("wait", last).returncode == 0
        # The last spans are sent when the module stops.
        made.down()
        assert {attributes_of(each)["messiahs.task.id"] for each in collector.spans} == {task, last}


def test_a_collector_that_never_answers_delays_no_task_and_no_end(tmp_path: Path) -> None:
    """Print the rates without a collector, with one that takes all, and with one that never answers."""
    with collecting() as collector, silent_collector() as silent:
        for name, otlp in (("none", ""), ("good", sending_to(collector.endpoint)), ("silent", sending_to(silent))):
            with seen(tmp_path / name, otlp) as made:
                begun_at = time.monotonic()
                array = made.submit("--array", f"1-{_TASKS}", "true")
                assert made.run("wait", array).returncode == 0
                rate = _TASKS / (time.monotonic() - begun_at)
                begun_at = time.monotonic()
                made.down()
                print(f"collector {name}: {rate:.0f} tasks/s, stopped in {time.monotonic() - begun_at:.1f} s")  # noqa: T201 - a measurement
            log = (made.folder("low") / "module.log").read_text()
            assert ("spans were dropped since the start" in log) is (name == "silent")
        assert len(collector.spans) == _TASKS


def test_a_module_that_cannot_send_spans_does_not_start_and_says_why(tmp_path: Path) -> None:
    with seen(tmp_path / "made", "") as made:
        settings = load_settings(made.folder("low") / "settings.json")
    otlp = OtlpSettings(endpoint="https://collector/v1/traces", roots=tmp_path / "none.pem")
    assert "none.pem, cannot be read: No such file" in refused(replace(settings, otlp=otlp), tmp_path)
    (tmp_path / "opentelemetry.py").write_text(_MISSING)
    assert "pip install 'messiahs[otlp]'" in refused(replace(settings, otlp=otlp), tmp_path)


def test_nothing_of_opentelemetry_is_loaded_before_a_topology_asks_for_it() -> None:
    shown = "import sys, messiahs.daemon.__main__; print([name for name in sys.modules if name.startswith('opent')])"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
