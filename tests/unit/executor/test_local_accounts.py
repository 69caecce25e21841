"""Accounts of the host as which tasks run."""

import os
import pwd

import pytest

from messiahs.executor.linux.local_accounts import account_for_tasks


def test_no_task_runs_as_nobody_whatever_its_number_is(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.struct_passwd(("nobody", "x", 99, 99, "", "/", "/bin/false"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "getgrouplist", lambda _, group: [group])
    monkeypatch.setattr(pwd, "getpwnam", lambda _: nobody)
    found = account_for_tasks("nobody", others=())
    assert found == "it is that of other tasks, or stands for accounts without a number"
