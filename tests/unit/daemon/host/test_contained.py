"""What a module says of itself by how its tasks are contained."""

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


def test_a_folder_to_show_that_is_not_there_is_said_and_so_is_a_lack_of_programs() -> None:
    boxed = Containment(isolation="bubblewrap")
    assert notes_of(boxed, Expected(shown=("/usr/", "/etc"))) == []
    assert notes_of(boxed, Expected(shown=("/usr", "/nonexistent"))) == [
        "`show` names /nonexistent, which is not there: tasks do not see it"
    ]
    (note,) = notes_of(boxed, Expected(shown=("/usr/share", "/etc")))
    assert note.startswith("`show` does not name /usr: tasks find no programs of the system there")


def test_processes_see_everything_whatever_is_to_be_shown() -> None:
    assert notes_of(_POOR, Expected(shown=("/nonexistent",))) == []
