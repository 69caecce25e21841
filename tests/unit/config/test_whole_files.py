"""Files that are written atomically, on a real disk; only system calls that concern the disk are observed."""

import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.whole_files import sync_folder, write_whole


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record what is synced and renamed, in order."""
    heard: list[tuple[str, str]] = []
    sync, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        heard.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        sync(descriptor)

    def replace(source: Path, target: Path) -> None:
        heard.append(("rename", str(source)))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return heard


@pytest.fixture
def small_files() -> Iterator[None]:
    """Limit files of this process to 1 KiB, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_takes_the_place_of_another_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_whole(file, b"first")
    write_whole(file, b"second")
    assert file.read_bytes() == b"second"
    assert list(tmp_path.iterdir()) == [file]


def test_the_content_is_on_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, syncs: list[tuple[str, str]]
) -> None:
    write_whole(tmp_path / "f", b"x")
    (synced, draft), *rest = syncs
    assert synced == "sync"
    assert rest == [("rename", draft), ("sync", str(tmp_path))]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_the_mode_is_what_was_asked_for_whatever_the_mask(tmp_path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "f", b"x", mode=mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


def test_what_does_not_fit_changes_nothing_and_leaves_nothing_behind(tmp_path: Path, small_files: None) -> None:
    file = tmp_path / "f"
    write_whole(file, b"old")
    with pytest.raises(OSError, match="File too large"):
        write_whole(file, b"x" * 2_048)
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_leftovers_of_a_crash_are_no_obstacle_and_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"theirs")
    (tmp_path / f".f.{os.getpid()}").symlink_to(elsewhere)
    write_whole(tmp_path / "f", b"x")
    assert (tmp_path / "f").read_bytes() == b"x"
    assert elsewhere.read_bytes() == b"theirs"


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "gone" / "f", b"x")
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "gone")


def test_what_is_there_already_is_not_written_again(tmp_path: Path, syncs: list[tuple[str, str]]) -> None:
    file = tmp_path / "settings"
    write_whole(file, b"first", mode=0o600)
    written = list(syncs)
    write_whole(file, b"first", mode=0o600)
    assert syncs == written
    for content, mode in ((b"other", 0o600), (b"other", 0o644)):
        write_whole(file, content, mode=mode)
        assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (content, mode)
    assert len(syncs) == 3 * len(written)


def test_a_link_gives_way_although_what_it_leads_to_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"first")
    (tmp_path / "settings").symlink_to(tmp_path / "elsewhere")
    write_whole(tmp_path / "settings", b"first")
    assert not (tmp_path / "settings").is_symlink()
