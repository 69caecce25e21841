"""An account of this host for tests that run tasks as one; it is deleted afterwards."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.waiting import eventually


@contextmanager
def made_account() -> Iterator[str]:
    """Make an account that is a member of a second group with its name and `-more`; skip where that is impossible."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("needs root and useradd, to make an account")
    name = f"mt{uuid.uuid4().hex[:12]}"
    _done("groupadd", f"{name}-more")
    try:
        _done("useradd", "--no-log-init", "--no-create-home", "--user-group", "--groups", f"{name}-more", name)
        try:
            yield name
        finally:
            delete_account(name)
    finally:
        _done("groupdel", f"{name}-more")


def delete_account(name: str) -> None:
    """Delete an account that exists, whatever runs as it."""
    if subprocess.run(("id", name), capture_output=True, check=False).returncode == 0:
        _done("userdel", "--force", name)


def add_to_group(name: str, group: str) -> None:
    """Make an account a member of one more group."""
    _done("usermod", "--append", "--groups", group, name)


def _done(*command: str) -> None:
    # The files of accounts may be locked by another test.
    eventually(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0)
