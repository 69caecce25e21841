"""Live modules are recorded, and the core repeats their actions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.language.compiler.files import parse_policy
from messiahs.trace.replay.replay import replay
from messiahs.trace.show.reader import read_segments
from tests.live.conftest import Federation, federation
from tests.waiting import eventually


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a campus that was recorded from its start to the end of its tasks."""
    yield from federation("campus", tmp_path_factory.mktemp("campus"), module="blays")


def _segments(campus: Federation, module: str) -> list[Path]:
    return sorted((campus.folder(module) / "trace").glob("*.trace"))


@pytest.fixture(scope="module")
def many(campus: Federation) -> str:
    """Record the campus while it works, and return the id of an array of tasks."""
    started = campus.document("trace", "start", "--all", "--size", "8MiB")
    assert len(started["modules"]) == 15
    assert {module["recording"] for module in started["modules"]} == {True}
    task = _work(campus)
    assert campus.run("trace", "stop", "--all").returncode == 0
    return task


def test_the_recording_of_a_live_campus_replays_without_a_difference(campus: Federation, many: str) -> None:
    done = campus.document("trace", "replay")
    assert done["differences"] == []
    # Only the last record before a daemon was killed may be incomplete.
    assert all("/xinu/" in note for note in done["notes"])
    assert min(done["events"], done["actions"]) > 1_000
    # The killed daemon continued with a segment of its own.
    assert len(_segments(campus, "xinu")) >= 2
    assert done["segments"] >= 16


def test_the_story_of_a_task_is_told_from_end_to_end(campus: Federation, many: str) -> None:
    by_machine = {task["executed_on"]: task["id"] for task in _members(campus, many)}
    machine = next(name for name in by_machine if name not in {"blays", "xinu"})
    task = by_machine[machine]
    lines = campus.document("trace", "show", "--task", task)["lines"]
    kinds = [line["kind"] for line in lines]
    wanted = ["submitted", "sched_request", "sched_accept", "task_transfer", "attempt_started", "attempt_ended"]
    found = [kind for kind in dict.fromkeys(kinds) if kind in wanted]
    assert found == wanted, json.dumps(lines, indent=1)
    texts = [line["text"] for line in lines]
    assert [text for text in texts if f"stores {task} staging, attempt 1 bound to {machine}/" in text]
    assert f"{machine}: {task}#1 has ended: exit code 0" in texts
    assert f"blays: stores {task} finished" in texts
    shown = campus.run("trace", "show", "--task", task).stdout.splitlines()
    assert [line.split(" ", 1)[1] for line in shown[1:]] == texts


def _members(campus: Federation, many: str) -> list[dict[str, str]]:
    return campus.members(many)


def test_another_policy_would_have_decided_otherwise(campus: Federation, many: str) -> None:
    closed = parse_policy('policy "closed" version 1;', file="closed.policy")
    done = replay(read_segments(_segments(campus, "nyneve")), policy=closed)
    assert "refused_by_policy" in "".join(difference.found for difference in done.differences)


def test_a_task_without_a_trace_is_reported(campus: Federation, many: str) -> None:
    done = campus.run("trace", "show", "--task", "blays.4711")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing in these traces names blays.4711" in done.stderr


def _work(campus: Federation) -> str:
    """Run two hundred tasks, some with inputs; one is refused and one cancelled; a daemon is killed meanwhile."""
    refused = campus.submit("--module", "harbor", "--set", "gpus=9", "--require", '$owner eq "software"', "--", "true")
    eventually(lambda: "not that many GPUs here" in json.dumps(campus.status(refused)["reasons"]))
    assert campus.run("cancel", refused).returncode == 0
    note = campus.state / "note.txt"
    note.write_text("hello\n")
    many = campus.submit("--array", "1-200", "--", "sleep", "0.2")
    inputs = campus.submit("--array", "1-10", "--input", f"{note}:n.txt", "--output", "o", "--", "cp", "n.txt", "o")
    campus.kill("xinu", "daemon")
    long = campus.submit("--", "sleep", "600")
    eventually(lambda: campus.status(long)["substate"] == "running")
    assert campus.run("cancel", long).returncode == 0
    for task in (many, inputs, long):
        assert campus.run("wait", task).returncode == (0 if task != long else 130)
    assert campus.status(many)["counts"] == {"finished": 200}
    return many


def test_a_trace_with_a_changed_byte_does_not_pass(campus: Federation, many: str, tmp_path: Path) -> None:
    segment = _segments(campus, "blays")[0]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    copy = tmp_path / segment.name
    copy.write_bytes(data)
    done = campus.run("trace", "replay", str(copy))
    assert done.returncode == 1
    assert f"{copy}: damaged at byte" in done.stderr
    assert campus.run("trace", "replay", str(segment)).returncode == 0
