"""A state directory that another user could change, or has put a file in, is never used."""

import json
import os
import sys
from pathlib import Path

import pytest

from messiahs.cli.federation.deployment import federation_directory, lock_federation
from messiahs.cli.federation.private_folders import check_federation
from messiahs.cli.main import main
from messiahs.daemon.process.pid_files import PID_FILE
from messiahs.errors import ClientError
from messiahs.executor.linux.processes import identity_of
from tests.commands import Command

TRIO = Path(__file__).parents[4] / "topologies" / "trio.yaml"
NOBODY = 65_534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = federation_directory(tmp_path / "state", "f")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert federation_directory(tmp_path / "state", "f") == directory


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    for place in (tmp_path / "state", tmp_path / "state" / "f"):
        place.mkdir()
        place.chmod(mode)
        with pytest.raises(
            ClientError, match=f"other users can write to {place}; `chmod go-w {place}` \\(or \\+t\\), or choose"
        ):
            federation_directory(tmp_path / "state", "f")
        place.chmod(0o755)
    federation_directory(tmp_path / "state", "f")


def test_a_writable_folder_on_the_way_is_safe_only_with_the_sticky_bit(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(ClientError, match=f"other users can write to {above}"):
        federation_directory(above / "state", "f")
    assert not (above / "state").exists()
    above.chmod(0o1777)
    assert federation_directory(above / "state", "f").is_dir()


@needs_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path / "state", tmp_path / "state" / "f"):
        place.mkdir()
        os.chown(place, NOBODY, NOBODY)
        with pytest.raises(ClientError, match=rf"{place} belongs to \w+ \(uid {NOBODY}\); choose another location"):
            federation_directory(tmp_path / "state", "f")
        os.chown(place, 0, 0)
    federation_directory(tmp_path / "state", "f")


@needs_root
def test_a_link_of_another_user_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "target")
    os.chown(tmp_path / "state", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(ClientError, match="belongs to"):
        federation_directory(tmp_path / "state", "f")
    assert list((tmp_path / "target").iterdir()) == []


def test_a_link_of_ones_own_is_followed_on_the_way_and_not_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    assert federation_directory(tmp_path / "state", "f").is_dir()
    (tmp_path / "disk" / "g").symlink_to(tmp_path / "disk" / "f")
    with pytest.raises(ClientError, match="is not a folder but a link or a file; remove it"):
        federation_directory(tmp_path / "state", "g")


def test_a_link_to_itself_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("state")
    with pytest.raises(ClientError, match="goes through too many links"):
        federation_directory(tmp_path / "state", "f")


@needs_root
@pytest.mark.parametrize("name", ["ports.json", "root", "root/settings.json"])
def test_a_file_of_another_user_inside_is_refused(tmp_path: Path, name: str) -> None:
    directory = federation_directory(tmp_path, "trio")
    planted = directory / name
    planted.parent.mkdir(exist_ok=True)
    planted.symlink_to("/etc/passwd")
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(ClientError, match=rf"{planted} belongs to \w+ \(uid {NOBODY}\); remove it"):
        federation_directory(tmp_path, "trio")


@needs_root
def test_the_folder_of_tasks_may_belong_to_their_account(tmp_path: Path) -> None:
    tasks = federation_directory(tmp_path, "trio") / "root" / "tasks"
    tasks.mkdir(parents=True)
    os.chown(tasks, NOBODY, NOBODY)
    federation_directory(tmp_path, "trio")


@needs_root
def test_an_ordinary_account_is_told_that_only_root_may_run_modules_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = federation_directory(tmp_path, "trio")
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    with pytest.raises(ClientError, match=rf"^only root \(uid 0\) may run and end the modules in {directory}: do this"):
        check_federation(directory)


def test_the_lock_is_never_taken_through_a_link(tmp_path: Path) -> None:
    directory = federation_directory(tmp_path, "trio")
    (directory / "up.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ClientError, match=r"cannot be written: .*up\.lock"):
        lock_federation(directory)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.processes
@needs_root
def test_down_ends_no_process_named_by_another_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Command([sys.executable, "-c", "import signal; signal.pause()"]) as other:
        identity = identity_of(other.pid)
        assert identity is not None
        directory = tmp_path / "state" / "trio"
        directory.mkdir(parents=True)
        (directory / PID_FILE).write_text(json.dumps({"pid": identity.pid, "start_time": identity.started}))
        os.chown(directory, NOBODY, NOBODY)
        assert main(["down", str(TRIO), "--state", str(tmp_path / "state")]) == 1
        assert "is not safe from other users" in capsys.readouterr().err
        assert other.poll() is None
        other.kill()
