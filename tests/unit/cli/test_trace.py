"""`messiahs trace …` over segment files, and its messages when no module runs."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.cli.main import main
from messiahs.core.interface.actions import TaskEnded
from messiahs.trace.format.records import Record
from messiahs.trace.format.segments import read_segment, record_frame, segment_start
from tests.unit.core.rig import TASK, Rig, make_module
from tests.unit.trace.taping import submitted, taping


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Make the only segment file of a state directory, three steps of one module."""
    tape = taping(Rig(module=make_module()))
    tape.record()
    tape.start()
    tape.handle(submitted())
    tape.module.end_recording()
    path = tmp_path / "state" / "lab" / "me" / "trace" / "000001.trace"
    path.parent.mkdir(parents=True)
    path.write_bytes(tape.files.files[0])
    return path


@pytest.fixture
def state(file: Path) -> str:
    """Return the state directory."""
    return str(file.parents[3])


def _rewrite(file: Path, *, release: str | None = None, last: Record | None = None) -> None:
    segment = read_segment("", file.read_bytes())
    assert segment is not None
    records = list(segment.records())
    head = segment.head if release is None else replace(segment.head, release=release)
    frames = map(record_frame, records if last is None else [*records[:-1], last])
    file.write_bytes(segment_start(head, make_module().state) + b"".join(frames))


def _last(file: Path) -> Record:
    segment = read_segment("", file.read_bytes())
    assert segment is not None
    return list(segment.records())[-1]


def test_a_trace_that_replays_prints_one_line(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "replay", "--state", state]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("3 events, ")
    assert printed.out.endswith(" actions, 0 differences\n")
    assert printed.err == ""


def test_a_difference_is_reported_with_its_position_and_both_sides(
    file: Path, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    last = _last(file)
    _rewrite(file, last=replace(last, actions=(TaskEnded(task=TASK), *last.actions[1:])))
    assert main(["trace", "replay", str(file)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{file}: record 3"
    assert printed[1].startswith("    after     Submitted(")
    assert printed[2].startswith("    expected  TaskEnded(")
    assert printed[3].startswith("    found     Store(")
    assert printed[4].endswith(" 1 differences")
    assert main(["trace", "replay", "--state", state, "--json"]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert (difference["record"], difference["expected"][:9]) == (3, "TaskEnded")


def test_only_the_first_differences_are_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = _last(file)
    _rewrite(file, last=replace(last, actions=(*last.actions, *(TaskEnded(task=TASK),) * 30)))
    assert main(["trace", "replay", str(file)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert len([line for line in printed if line.endswith("record 3")]) == 10
    assert "... and 20 more; --json gives all of them" in printed


def test_a_missing_part_or_another_release_is_reported_without_failure(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _rewrite(file, release="0.0.9")
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["trace", "replay", str(file)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("2 events")
    assert f"{file}: the last record is incomplete" in printed.err
    assert f"{file}: written by release 0.0.9; this is release " in printed.err


def test_a_conversation_has_one_line_per_event(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "show", "--state", state]) == 0
    day, *lines = capsys.readouterr().out.splitlines()
    assert day.startswith("1970-01-01")
    texts = [line.split(" ", 1)[1] for line in lines]
    assert texts[:2] == ["me: starts with 0 rows, and 0 attempts at the executor", "me: the link with child is up"]
    assert "me: ann submits 2 of `true`" in texts
    assert main(["trace", "show", "--state", state, "--json", "--task", "me.1"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["lines"][0]["text"] == "me: ann submits 2 of `true`"
    assert document["lines"][0]["at"] == "1970-01-01T00:16:42.000000Z"
    assert {line["module"] for line in document["lines"]} == {"me"}


def test_a_bundle_can_be_unpacked_and_replayed(state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "odd.tar.gz"
    assert main(["trace", "bundle", "--state", state, "--into", str(archive)]) == 0
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as bundle:
        assert bundle.getnames() == ["lab/me/trace/000001.trace"]
        bundle.extractall(tmp_path / "elsewhere", filter="data")
    capsys.readouterr()
    assert main(["trace", "replay", str(tmp_path / "elsewhere")]) == 0
    assert capsys.readouterr().out.endswith("0 differences\n")
    assert main(["trace", "bundle", "--state", state, "--into", str(archive)]) == 1
    assert "File exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("replay", "nowhere"), 1, "nowhere: there is no such file"),
        (("show", "."), 1, "no trace is here; `messiahs trace start` begins one"),
        (("start", "--all", "--module", "me"), 2, "--all and --module cannot be combined"),
        (("start", "--size", "much"), 2, "much"),
        (("start", "--all", "--state", "."), 1, "no module runs under"),
    ],
)
def test_an_impossible_request_is_reported(
    words: tuple[str, ...],
    code: int,
    said: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trace", *words]) == code
    assert said in capsys.readouterr().err
