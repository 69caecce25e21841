"""Accounts of tasks, of which no two starters use the same at once."""

import os
from pathlib import Path

import pytest

from messiahs.executor.linux.uid_locks import lock_uid


def test_an_account_is_taken_until_its_user_ends(tmp_path: Path) -> None:
    folder = tmp_path / "accounts"
    taken = lock_uid(7, folder=folder)
    assert taken is not None
    assert lock_uid(7, folder=folder) is None
    other = lock_uid(8, folder=folder)
    assert other is not None
    os.close(taken)
    again = lock_uid(7, folder=folder)
    assert again is not None
    for descriptor in (other, again):
        os.close(descriptor)


def test_a_link_in_the_place_of_an_account_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "7").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        lock_uid(7, folder=tmp_path)
    assert not (tmp_path / "elsewhere").exists()
