"""Users of one module of a host who submit with the same environment of programs."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.environments import SYSTEM_PYTHON
from tests.live.shared_host import Host, shared_installation

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has a mount namespace and becomes other accounts")

_SHARED = """
version: 1
federation: shared
systems:
  site: {machine: {isolation: sandbox, slots: 2}}
"""
_VENV = "/opt/science"
_PREPARE = f"""
mount -t tmpfs -o mode=755 none /opt
{SYSTEM_PYTHON} -m venv --without-pip {_VENV}
echo "TEXT = 'of the environment'" > $(echo {_VENV}/lib/python3*/site-packages)/brought.py
"""
_PROGRAM = "import brought, os, sys; print(brought.TEXT, sys.prefix, os.environ['MESSIAHS_ATTEMPT'])"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if not SYSTEM_PYTHON.exists():
        pytest.skip("needs the system's Python")
    with shared_installation(tmp_path_factory.mktemp("host"), _SHARED, prepare=_PREPARE) as made:
        yield made


def _submit(host: Host, person: str, program: str) -> str:
    words = ("submit", "--quiet", "--module", "site", "--venv", _VENV, "--", "python", "-c", program)
    done = host.run(person, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _said(host: Host, person: str, task: str) -> str:
    host.run(person, "wait", task)
    return host.run(person, "logs", task).stdout


def test_two_users_submit_with_the_same_environment_at_once(host: Host) -> None:
    people = ("ann", "eve")
    with ThreadPoolExecutor(len(people)) as threads:
        tasks = list(threads.map(lambda person: _submit(host, person, _PROGRAM), people))
    for person, task in zip(people, tasks, strict=True):
        assert _said(host, person, task) == f"of the environment {_VENV} 1\n"


def test_no_task_of_a_user_changes_what_that_of_another_one_is_shown(host: Host) -> None:
    change = "import brought, pathlib; pathlib.Path(brought.__file__).write_text('TEXT = 1')"
    changed = _submit(host, "ann", f"{_PROGRAM}; {change}")
    assert host.run("ann", "wait", changed).returncode != 0
    assert "Read-only file system" in host.run("ann", "logs", "--stderr", changed).stdout
    assert _said(host, "eve", _submit(host, "eve", _PROGRAM)) == f"of the environment {_VENV} 1\n"


def test_the_environment_of_one_user_stays_when_another_one_forgets_the_tasks_that_ran_in_it(host: Host) -> None:
    first, second = _submit(host, "ann", _PROGRAM), _submit(host, "eve", f"{_PROGRAM}; sys.exit(3)")
    assert host.run("ann", "wait", first).returncode == 0
    assert _said(host, "eve", second) == f"of the environment {_VENV} 1\n"
    cleaned = host.run("ann", "clean", "--module", "site", "--older-than", "0s")
    assert cleaned.returncode == 0, cleaned.stderr
    assert host.run("ann", "status", first).returncode == 1
    assert host.run("eve", "retry", second).returncode == 0
    assert _said(host, "eve", second) == f"of the environment {_VENV} 2\n"
