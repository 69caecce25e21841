"""Names of inputs and outputs at the executor, if one ever passed the checks of the wire."""

from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempt_values import Staged
from messiahs.executor.starter.declared_outputs import ENTRY_LIMIT, find_outputs
from messiahs.executor.starter.staging import StagingError, stage

OUTSIDE = ["../secret", "a/../../secret", "..", "/etc/passwd", "", "a//b", "."]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_declared_output_is_looked_for_outside_of_the_work_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "work" / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("another task's")
    found = find_outputs(str(tmp_path / "work"), (name,))
    assert (found.cause, found.files) == (Cause.OUTPUT_MISSING, {})


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_input_is_put_outside_of_the_work_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work" / "a").mkdir(parents=True)
    (tmp_path / "source").write_text("x")
    monkeypatch.chdir(tmp_path / "work")
    with pytest.raises(StagingError):
        stage((Staged(name, str(tmp_path / "source"), 1, is_executable=False),))
    assert not (tmp_path / "secret").exists()


def test_a_search_that_is_longer_than_its_limit_ends_whatever_was_found_in_which_order(tmp_path: Path) -> None:
    for folder, count in (("a", ENTRY_LIMIT - 1), ("d", 0)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / str(number)).touch()
    for name in ("b", "c"):
        (tmp_path / name).touch()
    found = find_outputs(str(tmp_path), ("**/none",))
    assert (found.cause, found.files) == (Cause.TOO_MANY_OUTPUTS, {})
    assert found.text.startswith("more than 16384 files and folders were searched")


def test_only_those_omitted_outputs_are_remembered_that_are_shown(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").symlink_to("/elsewhere")
    found = find_outputs(str(tmp_path), ("*",))
    assert (found.omitted_count, len(found.first_omitted)) == (20, 5)
    assert found.text.endswith("04 (a link to /elsewhere, out of the working directory) and 15 more")
