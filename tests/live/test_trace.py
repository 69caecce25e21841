"""Live modules are recorded, and what they did is what the core does again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, eventually, federation


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a campus that was recorded from its start to the end of its tasks."""
    yield from federation("campus", tmp_path_factory.mktemp("campus"), module="blays")


def _segments(campus: Federation, module: str) -> list[Path]:
    return sorted((campus.folder(module) / "trace").glob("*.trace"))


def test_what_a_live_campus_did_replays_without_a_difference(campus: Federation) -> None:
    started = campus.document("trace", "start", "--all", "--size", "8MiB")
    assert len(started["modules"]) == 15
    assert {module["recording"] for module in started["modules"]} == {True}
    _work(campus)
    assert campus.run("trace", "stop", "--all").returncode == 0
    done = campus.document("trace", "replay")
    assert done["differences"] == []
    # Only what was written when a daemon was killed may be incomplete.
    assert all("/xinu/" in note for note in done["notes"])
    assert min(done["events"], done["actions"]) > 1_000
    # The killed daemon went on with a segment of its own.
    assert len(_segments(campus, "xinu")) >= 2
    assert done["segments"] >= 16


def _work(campus: Federation) -> None:
    """Let two hundred tasks run, some with inputs; one is refused and one cancelled; a daemon dies in the midst."""
    note = campus.state / "note.txt"
    note.write_text("hello\n")
    many = campus.submit("--array", "1-200", "--", "sleep", "0.2")
    inputs = campus.submit("--array", "1-10", "--input", f"{note}:n.txt", "--output", "o", "--", "cp", "n.txt", "o")
    refused = campus.run(
        "run", "--module", "harbor", "--require", '$owner eq "software"', "--set", "gpus=5", "--no-wait", "--", "true"
    )
    assert "not that many GPUs here" in refused.stderr
    campus.kill("xinu", "daemon")
    long = campus.submit("--", "sleep", "600")
    eventually(lambda: campus.status(long)["substate"] == "running")
    assert campus.run("cancel", long).returncode == 0
    for task in (many, inputs, long):
        assert campus.run("wait", task).returncode == (0 if task != long else 130)
    assert campus.status(many)["counts"] == {"finished": 200}


def test_a_trace_with_a_changed_byte_does_not_pass(campus: Federation, tmp_path: Path) -> None:
    segment = _segments(campus, "blays")[0]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    copy = tmp_path / segment.name
    copy.write_bytes(data)
    done = campus.run("trace", "replay", str(copy))
    assert done.returncode == 1
    assert f"{copy}: damaged at byte" in done.stderr
    assert campus.run("trace", "replay", str(segment)).returncode == 0
