"""Whose machine it is: the account at the console, as far as files and terminals show it."""

import os
from pathlib import Path

import pytest

from messiahs.probe.console_owners import console_owners

_ANN, _BOB = 61_001, 61_002
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@needs_root
def test_the_owner_of_the_file_that_shows_the_use_of_the_console_is_at_it(tmp_path: Path) -> None:
    console = tmp_path / "used"
    console.touch()
    assert console_owners(console) == frozenset()
    os.chown(console, _ANN, -1)
    assert console_owners(console) == {_ANN}


@needs_root
def test_whoever_puts_a_link_there_appoints_nobody(tmp_path: Path) -> None:
    of_ann, console = tmp_path / "of_ann", tmp_path / "used"
    of_ann.touch()
    os.chown(of_ann, _ANN, -1)
    console.symlink_to(of_ann)
    assert console_owners(console) == frozenset()


def test_a_file_that_is_not_there_appoints_nobody(tmp_path: Path) -> None:
    assert console_owners(tmp_path / "used") == frozenset()


@needs_root
def test_terminals_of_the_machine_have_owners_and_those_of_ssh_have_not(tmp_path: Path) -> None:
    (tmp_path / "pts").mkdir()
    for name, owner in (("tty1", 0), ("tty2", _ANN), ("pts/0", _BOB), ("null", _BOB)):
        os.mknod(tmp_path / name, 0o600 | 0o020000, os.makedev(1, 3))
        os.chown(tmp_path / name, owner, -1)
    (tmp_path / "tty3").touch()
    os.chown(tmp_path / "tty3", _BOB, -1)
    assert console_owners(None, devices=tmp_path) == {_ANN}
