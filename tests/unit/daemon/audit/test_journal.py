"""Decisions on their way to the files: equal ones share a line, and what costs nothing is counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from messiahs.core.model.instants import HOUR, MINUTE, SECOND, Instant
from messiahs.daemon.audit import files as audit_files
from messiahs.daemon.audit import journal as audit_journal
from messiahs.daemon.audit.entries import Caller, Entry, Kind, of_neighbor
from messiahs.daemon.audit.files import AuditFiles
from messiahs.daemon.audit.journal import TASKS_LIMIT, Journal
from messiahs.daemon.audit.noting import Noted
from messiahs.errors import StoreError

NOW = Instant(1_800_000_000 * SECOND)
BOUND = Entry(Kind.TASK, "bound", "user.ann", neighbor="left", origin="own", user="ann")
DENIED = Entry(Kind.TASK, "denied", of_neighbor("left"), neighbor="left", code="no_capacity", is_counted=True)


def journal_in(folder: Path) -> Journal:
    return Journal(AuditFiles(folder, keep_days=lambda: 30), module="own")


def write(journal: Journal, now: Instant = NOW, *, is_last: bool = False) -> None:
    with journal.written(journal.take(now, is_last=is_last)):
        pass


def lines(folder: Path, source: str) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob(f"*/{source}.jsonl") for line in file.read_text().splitlines()]


def test_a_decision_about_several_tasks_is_one_line_with_its_author_and_module(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.note(Noted(BOUND, "own.1.1#1"), NOW)
    journal.note(Noted(BOUND, "own.1.2#1"), NOW)
    journal.note(Noted(Entry(Kind.POLICY, "loaded", by=Caller("ann", 1000), about="a.policy")), NOW)
    write(journal)
    (line,) = lines(tmp_path, "user.ann")
    assert line == {
        "at": "2027-01-15T08:00:00.000000Z",
        "module": "own",
        "kind": "task",
        "what": "bound",
        "neighbor": "left",
        "origin": "own",
        "user": "ann",
        "tasks": ["own.1.1#1", "own.1.2#1"],
    }
    (loaded,) = lines(tmp_path, "module")
    assert (loaded["by"], loaded["uid"], loaded["about"]) == ("ann", 1000, "a.policy")


def test_a_line_names_a_bounded_number_of_tasks(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for member in range(TASKS_LIMIT + 1):
        journal.note(Noted(BOUND, f"own.1.{member}"), NOW)
    write(journal)
    assert [len(line["tasks"]) for line in lines(tmp_path, "user.ann")] == [TASKS_LIMIT, 1]


def test_what_costs_nothing_has_one_line_at_once_and_one_with_the_count_of_its_minute(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    for text in range(1_000):
        journal.note(Noted(DENIED._replace(why=f"text {text}")), NOW)
    write(journal)
    assert [line["why"] for line in lines(tmp_path, "neighbor.left")] == ["text 0"]
    write(journal, Instant(NOW + MINUTE))
    (_, counted) = lines(tmp_path, "neighbor.left")
    assert (counted["count"], counted["code"], counted["since"]) == (999, "no_capacity", "2027-01-15T08:00:00.000000Z")
    journal.note(Noted(DENIED), Instant(NOW + MINUTE))
    write(journal, Instant(NOW + MINUTE))
    assert len(lines(tmp_path, "neighbor.left")) == 3


def test_the_last_counts_are_written_at_the_end_of_the_daemon(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.note(Noted(DENIED), NOW)
    journal.note(Noted(DENIED), NOW)
    write(journal, is_last=True)
    assert [line.get("count") for line in lines(tmp_path, "neighbor.left")] == [None, 1]


def test_the_room_of_a_day_ends_for_one_source_alone_and_what_follows_is_counted_by_the_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_files, "DAY_BYTES", 1_000)
    instants = iter([NOW, NOW, NOW, NOW + HOUR + SECOND])
    files = AuditFiles(tmp_path, keep_days=lambda: 30)
    journal = Journal(files, module="own", clock=lambda: next(instants))
    for number in range(20):
        journal.note(Noted(Entry(Kind.TASK, "taken", "neighbor.flood", why=f"{number:0200}"), f"f.{number}#1"), NOW)
    write(journal)
    journal.note(Noted(BOUND, "own.1"), NOW)
    write(journal)
    kept = lines(tmp_path, "neighbor.flood")
    assert 1 <= len(kept) < 20
    assert len(lines(tmp_path, "user.ann")) == 1
    journal.note(Noted(BOUND, "own.2"), NOW)
    write(journal)
    assert lines(tmp_path, "neighbor.flood") == kept
    journal.note(Noted(BOUND, "own.3"), NOW)
    write(journal)
    (counted,) = lines(tmp_path, "neighbor.flood")[len(kept) :]
    assert (counted["what"], counted["count"]) == ("taken", 20 - len(kept))


def test_what_could_not_be_written_waits_and_is_there_once(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    journal.note(Noted(BOUND, "own.1"), NOW)
    taken = journal.take(NOW)
    journal.note(Noted(BOUND, "own.2"), NOW)
    with pytest.raises(StoreError), journal.written(taken):
        raise StoreError("the commit")
    journal.put_back(taken)
    write(journal)
    assert [line["tasks"] for line in lines(tmp_path, "user.ann")] == [["own.1", "own.2"]]


def test_too_many_decisions_that_wait_are_counted_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_journal, "WAITING_LIMIT", 2)
    journal = journal_in(tmp_path)
    for number in range(5):
        journal.note(Noted(BOUND._replace(why=str(number)), "own.1"), NOW)
    write(journal)
    assert len(lines(tmp_path, "user.ann")) == 2
    assert [(line["what"], line["count"]) for line in lines(tmp_path, "module")] == [("lost", 3)]


def test_texts_of_others_forge_no_line_and_steer_no_terminal(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    hostile = 'x\n{"kind": "policy"}\x1b[2J\u202e\x9b' + "y" * 10_000
    journal.note(Noted(Entry(Kind.TASK, "denied", of_neighbor("../../etc"), neighbor=hostile, why=hostile)), NOW)
    write(journal)
    (file,) = tmp_path.glob("*/*")
    assert file.name == "neighbor...%2F..%2Fetc.jsonl"
    raw = file.read_text()
    assert raw.count("\n") == 1
    assert raw.rstrip("\n").isprintable()
    assert len(json.loads(raw)["why"]) < 1_000
