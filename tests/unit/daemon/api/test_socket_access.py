"""Owner, group and mode of the local API's socket, and the link to it."""

import grp
import os
import socket
import stat
from pathlib import Path

import pytest

from messiahs.config.settings import DEFAULT_TASK_UIDS, ModuleSettings
from messiahs.daemon.api.socket_access import SocketAccess, access_of
from messiahs.errors import MessiahsError
from tests.unit.executor.apart import as_ordinary_user


def opened(access: SocketAccess) -> int:
    """Listen as a module does, and return the mode of the socket."""
    with access.bound() as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as user:
            user.connect(str(access.path if access.link is None else access.link))
    return stat.S_IMODE(access.path.stat().st_mode)


@pytest.mark.parametrize(("users", "mode"), [("everyone", 0o666), ("owner", 0o600)])
def test_the_mode_admits_everyone_or_the_owner_alone(short_folder: Path, users: str, mode: int) -> None:
    assert opened(SocketAccess(path=short_folder / "a.sock", users=users)) == mode


def test_a_group_gets_the_socket(short_folder: Path) -> None:
    group = grp.getgrgid(os.getegid())
    access = SocketAccess(path=short_folder / "a.sock", users=f"group:{group.gr_name}")
    assert opened(access) == 0o660
    assert access.path.stat().st_gid == group.gr_gid


def test_a_group_that_does_not_exist_is_an_error(short_folder: Path) -> None:
    with pytest.raises(MessiahsError, match="this host has no group no-such-group"):
        opened(SocketAccess(path=short_folder / "a.sock", users="group:no-such-group"))
    assert list(short_folder.iterdir()) == []


def test_a_socket_elsewhere_is_found_by_a_link_in_the_state_directory(short_folder: Path) -> None:
    access = SocketAccess(path=short_folder / "run" / "f" / "a.sock", link=short_folder / "a.sock")
    assert opened(access) == 0o666
    assert [stat.S_IMODE(each.stat().st_mode) for each in (access.path.parent, access.path.parent.parent)] == [
        0o755
    ] * 2
    assert access.link is not None
    assert access.link.readlink() == access.path


def test_a_socket_elsewhere_stays_when_its_module_stops_and_gives_way_to_the_next_one(short_folder: Path) -> None:
    access = SocketAccess(path=short_folder / "run" / "f" / "a.sock", link=short_folder / "a.sock")
    opened(access)
    access.close()
    assert list(short_folder.iterdir()) == [short_folder / "run"]
    with socket.socket(socket.AF_UNIX) as user, pytest.raises(ConnectionRefusedError):
        user.connect(str(access.path))
    assert opened(access) == 0o666


@pytest.mark.parametrize(("users", "stays"), [("everyone", True), ("owner", False)])
def test_a_socket_in_the_state_directory_stays_for_other_accounts_alone(
    short_folder: Path, users: str, *, stays: bool
) -> None:
    access = SocketAccess(path=short_folder / "a.sock", users=users)
    access.bound().close()
    access.close()
    assert access.path.exists() == stays


def test_a_link_of_the_last_run_gives_way_to_the_socket(short_folder: Path) -> None:
    opened(SocketAccess(path=short_folder / "run" / "f" / "a.sock", link=short_folder / "a.sock"))
    assert opened(SocketAccess(path=short_folder / "a.sock")) == 0o666
    assert not (short_folder / "a.sock").is_symlink()


@pytest.mark.processes
def test_accounts_of_tasks_are_refused_whoever_runs_the_module(tmp_path: Path) -> None:
    file = tmp_path / "unread"
    settings = ModuleSettings(
        federation="f",
        name="a",
        state_directory=tmp_path,
        listen="",
        certificate_file=file,
        key_file=file,
        trust_file=file,
    )

    def act() -> None:
        refused = access_of(settings).task_uids
        assert all(uid in refused for uid in DEFAULT_TASK_UIDS)
        assert os.geteuid() not in refused

    act()
    as_ordinary_user(act, tmp_path)
