"""Simulated modules are recorded like live ones; their traces replay, and contain the transcripts."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from messiahs.config.policies import PolicySource
from messiahs.core.interface.actions import Report, SendControl, SendTasks, StartAttempt, Store, TaskEnded
from messiahs.core.interface.policies import Timeouts
from messiahs.core.interface.rows import TaskRow
from messiahs.core.module import SchedulingModule
from messiahs.sim.hosts.federation import SimulatedFederation
from messiahs.trace.record.recorder import RecordedModule, Recording
from messiahs.trace.record.ring import RingFiles
from messiahs.trace.replay.replay import replay
from messiahs.trace.show.conversation import Conversation, Line
from messiahs.trace.show.reader import read_segments, segment_files
from messiahs.trace.show.story import Story
from tests.simulation.scenarios import SCENARIOS, transcript
from tests.unit.core.scripted_policy import ScriptedPolicy


def _recorded_in(folder: Path, *names: str) -> Callable[[SimulatedFederation], None]:
    """Return a function that makes every module (or the named ones) write a trace."""

    def record(federation: SimulatedFederation) -> None:
        for name, member in federation.members.items():
            if not names or name in names:
                member.module = cast("SchedulingModule", _recorded(member.module, folder / name, federation))

    return record


def _recorded(module: SchedulingModule, folder: Path, federation: SimulatedFederation) -> RecordedModule:
    recorded = RecordedModule(module)
    recording = Recording(
        sink=RingFiles(folder, size_bytes=1 << 20),
        source=PolicySource(file="", text=None, timeouts=Timeouts()),
        segment_bytes=4_096,
        wall_offset_ns=lambda: 0,
        on_lost=pytest.fail,
    )
    recorded.record(recording, federation.now)
    return recorded


def _run(folder: Path, scenario: str, *names: str) -> tuple[str, tuple[Path, ...]]:
    federations: list[SimulatedFederation] = []
    record = _recorded_in(folder, *names)

    def prepare(federation: SimulatedFederation) -> None:
        record(federation)
        federations.append(federation)

    text = transcript(SCENARIOS[scenario], prepare)
    for member in federations[0].members.values():
        if isinstance(recorded := cast("object", member.module), RecordedModule):
            recorded.end_recording()
    return text, segment_files([folder])


def _is_in_transcripts(line: Line) -> bool:
    value = line.value
    if isinstance(value, Store):
        return isinstance(value.row, TaskRow) and value.row.ended_at is not None
    return isinstance(value, SendControl | SendTasks | StartAttempt | TaskEnded | Report)


def _texts(lines: list[Line]) -> list[str]:
    return [f"{line.at_ns // 10**9:3}.{line.at_ns % 10**9 // 1_000:06} {line.text}" for line in lines]


@pytest.mark.parametrize("scenario", ["pair", "chain", "tree"])
def test_a_simulated_trace_replays_and_contains_the_transcript(scenario: str, tmp_path: Path) -> None:
    text, files = _run(tmp_path, scenario)
    done = replay(read_segments(files), policy=ScriptedPolicy())
    assert done.differences == []
    assert done.segments > len(SCENARIOS[scenario].parents)
    lines = [line for line in Conversation(files).lines([]) if _is_in_transcripts(line)]
    shown = text.splitlines()[2:]
    # Events at different modules in the same instant may appear in another order.
    assert sorted(_texts(lines)) == sorted(shown)


def test_messages_of_an_unrecorded_module_are_shown_by_their_receivers(tmp_path: Path) -> None:
    text, files = _run(tmp_path, "chain", "middle")
    said = {line.text for line in Conversation(files).lines([])}
    assert "root -> middle: hello root" in said
    assert {line for line in said if " -> " in line} == {
        line[11:] for line in text.splitlines()[2:] if "middle" in line
    }


def test_the_story_of_a_task_has_its_search_claim_end_and_usage_and_nothing_else(tmp_path: Path) -> None:
    text, files = _run(tmp_path, "tree")
    conversation = Conversation(files)
    story = Story("blays.1")
    story.learn(conversation.lines([]))
    shown = list(story.concerning(conversation.lines([])))
    kinds = [line.kind for line in shown if line.message is not None]
    assert list(dict.fromkeys(kinds)) == [
        "sched_request", "sched_accept", "task_transfer", "task_status", "task_status_ack", "claim_end",
        "usage_report",
    ]  # fmt: skip
    assert {line.ends for line in shown if line.kind == "sched_request"} == {
        ("blays", "xinu"), ("xinu", "shadow"), ("shadow", "nyneve"),
    }  # fmt: skip
    assert "a user" not in text
    said = [line.text for line in shown]
    assert said[0] == "blays: ann submits 1 of `true`"
    assert [text for text in said if text.startswith("blays: stores blays.1 staging, attempt 1 bound to nyneve/")]
    assert "nyneve: blays.1#1 has ended: exit code 0" in said


def test_the_story_of_a_member_leaves_out_events_of_other_members(tmp_path: Path) -> None:
    _, files = _run(tmp_path, "pair")
    conversation = Conversation(files)
    story = Story("left.1.2")
    story.learn(conversation.lines([]))
    said = [line.text for line in story.concerning(conversation.lines([]))]
    assert "right: starts left.1.2#1, at most 2 at a time" in said
    assert not [text for text in said if "left.1.1" in text and "left.1.2" not in text]
    assert "left -> right: sched_request #2 from left, count 3; hops 31, asks 63, 9.980 s" in said


def test_an_unknown_task_has_no_story(tmp_path: Path) -> None:
    _, files = _run(tmp_path, "pair")
    story = Story("left.9")
    story.learn(Conversation(files).lines([]))
    assert story.since_ns is None
    assert list(story.concerning(Conversation(files).lines([]))) == []
