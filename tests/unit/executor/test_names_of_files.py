"""Names of inputs and outputs at the executor, if one ever passed the checks of the wire."""

from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempt_values import Staged
from messiahs.executor.starter import output_search
from messiahs.executor.starter.output_search import ENTRY_LIMIT, Found, OutputSearch
from messiahs.executor.starter.staging import StagingError, stage

LONG = 1 << 20
"""More steps than any search has."""
OUTSIDE = ["../secret", "a/../../secret", "..", "/etc/passwd", "", "a//b", "."]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def found_in(work: Path, *declared: str) -> Found:
    search = OutputSearch(str(work), declared)
    assert search.go_on(LONG)
    return search.found


@pytest.mark.parametrize("name", [*OUTSIDE, "../*", "a/../../sec*"])
def test_no_declared_output_is_looked_for_outside_of_the_work_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "work" / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("another task's")
    found = found_in(tmp_path / "work", name)
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
    found = found_in(tmp_path, "**/none")
    assert (found.cause, found.files) == (Cause.TOO_MANY_OUTPUTS, {})
    assert found.text.startswith("more than 16384 files and folders were searched")


@pytest.mark.parametrize("pattern", ["d*/[ab]none", "**/[ab]none", "d*/x*none"])
def test_entries_that_match_nothing_count_as_those_that_do(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "file").touch()
    for folder in ("d1", "d2"):
        (tmp_path / folder).mkdir()
        for number in range(ENTRY_LIMIT // 2):
            (tmp_path / folder / f"x{number}").hardlink_to(tmp_path / "file")
    search = OutputSearch(str(tmp_path), (pattern, pattern + "?"))
    # Each entry is read, and then looked at.
    assert search.go_on(2 * ENTRY_LIMIT + 100)
    assert (search.found.cause, search.found.files) == (Cause.TOO_MANY_OUTPUTS, {})


def test_each_folder_is_read_once_for_all_patterns(tmp_path: Path) -> None:
    for number in range(ENTRY_LIMIT - 1):
        (tmp_path / f"x{number}").touch()
    (tmp_path / "y").touch()
    found = found_in(tmp_path, *(f"[{letter}y]" for letter in "abcdefghijklmnopqrst"), "*z")
    assert (list(found.files), found.missing, found.entries) == (["y"], ["*z"], ENTRY_LIMIT)


def test_a_folder_that_takes_long_to_read_although_little_is_left_in_it_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(output_search, "FOLDER_LIMIT_BYTES", (tmp_path / "out").stat().st_size - 1)
    found = found_in(tmp_path, "out")
    assert (found.cause, found.files) == (Cause.TOO_MANY_OUTPUTS, {})
    assert found.text.startswith("its folder out had so many files that it takes more than")


def test_a_search_that_is_given_up_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "/".join("abcdefgh") / "file").mkdir(parents=True)
    before = open_files()
    search = OutputSearch(str(tmp_path), ("**/file", "a"))
    counts = set()
    while not search.go_on(1):
        counts.add(open_files())
    assert max(counts) > before + 8
    assert open_files() == before
    search = OutputSearch(str(tmp_path), ("**/file", "a"))
    while open_files() < before + 8:
        assert not search.go_on(1)
    search.close()
    assert open_files() == before


def test_only_those_omitted_outputs_are_remembered_that_are_shown(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").symlink_to("/elsewhere")
    found = found_in(tmp_path, "*")
    assert (found.omitted_count, len(found.first_omitted)) == (20, 5)
    assert found.text.endswith("04 (a link to /elsewhere, out of the working directory) and 15 more")
