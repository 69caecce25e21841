"""Modules whose tasks run in sandboxes: files come and go, and what is killed is accounted for."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.settings import DEFAULT_TASK_UIDS
from tests.live.conftest import Federation, brought_up, ended_with_its_tasks
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: caged
defaults: {update_period: 500ms}
systems:
  home: {}
  cage: {parent: home, machine: {slots: 2}}
  other: {parent: home, machine: {slots: 2, isolation: sandbox, attributes: {side: other}}}
  open: {parent: home, machine: {slots: 8, isolation: process}}
"""
_BOXED = """
  boxed: {parent: home, machine: {slots: 2, isolation: bubblewrap}}
"""
IN_A_SANDBOX = ("--require", '$isolation eq "sandbox"')
ON_OTHER = ("--require", '$side eq "other"')


def is_of_tasks(uid: str) -> bool:
    first, last = DEFAULT_TASK_UIDS
    return first <= int(uid) <= last


@pytest.fixture(scope="module")
def caged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    folder = tmp_path_factory.mktemp("caged")
    topology = folder / "caged.yaml"
    topology.write_text(_TOPOLOGY + (_BOXED if shutil.which("bwrap") else ""))
    made = Federation(topology=topology, name="caged", state=folder / "state", module="home")
    with brought_up(made):
        yield made


@pytest.mark.parametrize("isolation", ["sandbox", "bubblewrap"])
def test_files_go_into_a_sandbox_and_come_out(caged: Federation, tmp_path: Path, isolation: str) -> None:
    if isolation == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("needs the package bubblewrap")
    for name, size in (("small", 10), ("large", 3 << 20)):
        (tmp_path / name).write_bytes(b"x" * size)
    inputs = [part for name in ("small", "large") for part in ("--input", str(tmp_path / name))]
    script = "cat small large | wc -c >sum; id -u; pwd"
    where = ("--require", f'$isolation eq "{isolation}"')
    task = caged.submit(*where, *inputs, "--output", "sum", "--", "sh", "-c", script)
    assert caged.run("wait", task).returncode == 0
    fetched = caged.run("fetch", task, "--into", str(tmp_path / "out"))
    assert fetched.returncode == 0, fetched.stderr
    uid, folder = caged.run("logs", task).stdout.split()
    assert (is_of_tasks(uid), folder) == (True, "/task/work")
    assert (tmp_path / "out" / "sum").read_text().strip() == str(10 + (3 << 20))


def test_tasks_run_where_they_are_contained_as_they_require(caged: Federation) -> None:
    task = caged.submit("--require", '$isolation eq "process"', "--", "id", "-u")
    assert caged.run("wait", task).returncode == 0
    assert is_of_tasks(caged.run("logs", task).stdout)
    assert caged.status(task)["containment"]["isolation"] == "process"
    array = caged.submit("--array", "1-16", *IN_A_SANDBOX, "--", "sh", "-c", "id -u")
    assert caged.run("wait", array).returncode == 0
    assert all(is_of_tasks(caged.run("logs", f"{array}.{member}").stdout) for member in (1, 8, 16))
    assert caged.status(f"{array}.1")["containment"]["isolation"] == "sandbox"


def test_tasks_of_two_modules_of_one_host_never_share_an_account(caged: Federation) -> None:
    arrays = [caged.submit("--array", "1-8", *where, "--", "id", "-u") for where in (ON_OTHER, IN_A_SANDBOX)]
    script = "id -u; exec sleep 600"
    tasks = [caged.submit(*where, "--", "sh", "-c", script) for where in (ON_OTHER, IN_A_SANDBOX)]
    for array in arrays:
        assert caged.run("wait", array).returncode == 0
    eventually(lambda: all(caged.status(task)["state"] == "executing" for task in tasks))
    eventually(lambda: all(caged.run("logs", task).stdout for task in tasks))
    uids = [caged.run("logs", task).stdout.strip() for task in tasks]
    for task in tasks:
        caged.run("cancel", task)
    assert len(set(uids)) == len(uids)


def test_a_killed_starter_loses_its_tasks_which_run_again(caged: Federation) -> None:
    task = caged.submit(*ON_OTHER, "--", "sh", "-c", "exec sleep 5")
    eventually(lambda: caged.status(task)["substate"] == "running")
    caged.kill("other", "starter")
    assert caged.run("wait", task).returncode == 0
    history = caged.status(task)["history"]
    assert any("lost" in str(entry) for entry in history), history


def test_the_doctor_says_how_tasks_are_contained(caged: Federation) -> None:
    found = caged.run("doctor", "--module", "cage").stdout
    assert "tasks run in sandboxes with accounts 2100000000 to 2100001023, network: loopback" in found
    boxes = "tasks run in sandboxes of bubblewrap, network: loopback"
    assert shutil.which("bwrap") is None or boxes in caged.run("doctor", "--module", "boxed").stdout
    modules = {each["name"]: each["isolation"] for each in caged.document("module", "list")["modules"]}
    assert modules.pop("boxed", "bubblewrap") == "bubblewrap"
    assert modules == {"home": None, "cage": "sandbox", "other": "sandbox", "open": "process"}


def test_by_default_the_tasks_of_root_run_in_sandboxes(caged: Federation) -> None:
    task = caged.submit("--module", "cage", "--", "id", "-u")
    caged.run("wait", task)
    assert 2_100_000_000 <= int(caged.run("logs", task).stdout) <= 2_100_001_023
    assert caged.status(task)["containment"]["isolation"] == "sandbox"


def test_a_program_that_is_not_in_the_sandbox_is_told_with_what_is_there(caged: Federation, tmp_path: Path) -> None:
    done = caged.run("run", *IN_A_SANDBOX, "--", str(tmp_path / "program"))
    assert done.returncode == 127
    assert (
        "(its sandbox shows the system, its inputs, and the folders that the machine's administrator shows)"
        in done.stderr
    )


@pytest.mark.parametrize("isolation", ["process", "sandbox", "bubblewrap"])
def test_run_exits_with_126_where_a_program_may_not_be_run_and_127_where_it_is_not_there(
    caged: Federation, tmp_path: Path, isolation: str
) -> None:
    if isolation == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("needs the package bubblewrap")
    for name, content, mode in (("plain", "echo ran", 0o644), ("lost", "#!/nowhere/sh\n", 0o755)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(mode)
    inputs = ("--input", str(tmp_path / "plain"), "--input", str(tmp_path / "lost"))
    ends = {
        "./plain": (126, "executed: "),
        "/etc": (126, "executed: "),
        "./lost": (127, "found: "),
        "no": (127, "found: "),
    }
    for program, (code, word) in ends.items():
        done = caged.run("run", "--require", f'$isolation eq "{isolation}"', *inputs, "--", program)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        (said,) = done.stderr.splitlines()
        assert word in said
        assert program in said
        assert "bwrap" not in said
        task = caged.document("status")["tasks"][-1]["id"]
        assert caged.run("logs", task, "--stderr").stdout == ""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs the package bubblewrap")
def test_what_a_task_in_a_box_writes_is_its_own(caged: Federation) -> None:
    boxed = ("--require", '$isolation eq "bubblewrap"')
    done = caged.run("run", *boxed, "--cwd", "/usr", "--", "sh", "-c", "pwd; echo own >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "/usr\n", "own\n")
    done = caged.run("run", *boxed, "--", "sh", "-c", "echo bwrap: own >&2")
    assert (done.returncode, done.stderr) == (0, "bwrap: own\n")
    done = caged.run("run", *boxed, "--cwd", "/nowhere", "--", "true")
    assert (done.returncode, "bwrap" in done.stderr) == (125, False)
    assert "the task cannot start in /nowhere: No such file or directory" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root that can do less")
def test_root_without_sandboxes_runs_processes_and_says_why(tmp_path: Path) -> None:
    topology = tmp_path / "poor.yaml"
    topology.write_text("version: 1\nfederation: poor\nsystems:\n  lone: {machine: {slots: 2}}\n")
    made = Federation(topology=topology, name="poor", state=tmp_path / "state", module="lone")
    why = "no sandboxes: unshare: Operation not permitted"
    without = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    with ended_with_its_tasks(made):
        command = [*without, sys.executable, "-m", "messiahs.cli.main", "up", str(topology), "--detach", "--wait", "60"]
        subprocess.run(command, check=True, env=made.environment, capture_output=True)
        assert is_of_tasks(made.run("run", "--", "id", "-u").stdout)
        (task,) = made.document("status")["tasks"]
        assert task["containment"]["isolation"] == "process"
        assert why in task["containment"]["lacks"]
        (module,) = made.document("module", "list")["modules"]
        (note,) = [note for note in module["notes"] if why in note]
        assert note.startswith("tasks run without sandboxes, which are the default of root: ")
        said = made.run("doctor").stdout
        assert "which no other module has, and no sandboxes separate them: " in said
        assert why in said
        assert (made.folder("lone") / "module.log").read_text().count(why) == 1
