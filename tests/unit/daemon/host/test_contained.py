"""What a module says of itself when its tasks run without sandboxes."""

import pytest

from messiahs.core.model.usage import Containment
from messiahs.daemon.host.contained import Expected, notes_of

_POOR = Containment(isolation="process", lacks="no sandboxes: not permitted")


@pytest.mark.parametrize("found", [None, Containment(isolation="sandbox"), Containment(isolation="bubblewrap")])
def test_where_tasks_have_sandboxes_or_there_are_none_nothing_is_said(found: Containment | None) -> None:
    assert notes_of(found, Expected(is_root=True, is_default=True, refuses_sites=True)) == []


def test_root_says_why_its_default_does_not_hold() -> None:
    (note,) = notes_of(_POOR, Expected(is_root=True, is_default=True))
    assert note == "tasks run without sandboxes, which are the default of root: no sandboxes: not permitted"


@pytest.mark.parametrize("expected", [Expected(is_root=True), Expected(is_default=True)])
def test_processes_that_were_chosen_or_are_the_default_are_no_news(expected: Expected) -> None:
    assert notes_of(_POOR, expected) == []


@pytest.mark.parametrize(
    ("is_root", "remedy"), [(True, "write `isolation: process`"), (False, "`isolation: bubblewrap`")]
)
def test_that_tasks_of_other_sites_are_refused_is_said_with_what_to_do(*, is_root: bool, remedy: str) -> None:
    (note,) = notes_of(_POOR, Expected(is_root=is_root, refuses_sites=True))
    assert note.startswith("tasks of other sites are refused here, because ")
    assert remedy in note
