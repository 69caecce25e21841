"""Full, read-only and damaged disks: clear messages, nothing is lost, and work continues once it is possible."""

import hashlib
import http.client
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messiahs.daemon.process.pid_files import record_this_process
from messiahs.errors import UnusableStateError
from tests.live.conftest import Federation, federation, shared_folder
from tests.live.disks import fill, mounted
from tests.waiting import eventually

ON_RIGHT = ("--require", '$side eq "right"')
_FULL = "the disk is full: no new work is accepted"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of a few megabytes."""
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=24m,mode=755", "tmpfs"):
        yield tmp_path


@pytest.fixture
def cramped(small_disk: Path) -> Iterator[Federation]:
    """Start the pair on the small disk."""
    yield from federation("pair", small_disk, module="left")


def test_a_first_start_on_a_full_disk_says_that_it_is_full(small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(OSError, match="No space left on device"):
        record_this_process(small_disk / "daemon.pid")


def test_a_full_disk_refuses_new_work_keeps_the_old_and_recovers(
    cramped: Federation, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = shared_folder(tmp_path_factory)
    running = cramped.submit(*ON_RIGHT, "--", "sh", "-c", f"while [ ! -e {shared}/go ]; do sleep 0.1; done")
    eventually(lambda: cramped.status(running)["substate"] == "running")
    filler = fill(tmp_path)
    (shared / "go").touch()
    refused = cramped.start("submit", "--", "true")
    _, printed = refused.communicate()
    filler.unlink()
    assert (refused.returncode, "Traceback" in printed) == (1, False), printed
    assert "full" in printed or "no_space" in printed
    assert cramped.run("wait", running).returncode == 0
    eventually(lambda: cramped.run("run", "--", "echo", "again").stdout == "again\n")
    assert cramped.status(running)["attempt"] == 1


def test_doctor_says_that_a_disk_is_small_and_that_it_is_full(cramped: Federation, tmp_path: Path) -> None:
    def found() -> tuple[str, str]:
        """Return what is said of the disk of the state, but for its inputs; those of tasks may be on another one."""
        checks = json.loads(cramped.run("doctor", "--module", "left", "--json").stdout)["checks"]
        (here,) = [each for each in checks if each["what"] == "disk" and f"{tmp_path}" in each["text"]]
        return here["level"], here["text"].partition(": ")[2].partition("; inputs of tasks take ")[0]

    assert found() == ("warn", "that is little for the files of tasks; free space, or use a larger disk")
    filler = fill(tmp_path)
    accepts_none = "the module accepts no work; free space or remove files, and it continues by itself"
    assert found() == ("FAIL", accepts_none)
    filler.unlink()
    assert found()[0] == "warn"


def test_a_full_disk_refuses_acts_of_the_administrator_at_once_and_the_module_takes_them_later(
    cramped: Federation, tmp_path: Path
) -> None:
    acts = (("drain", "--no-wait"), ("remove", "right"), ("undrain",))
    answers: list[str] = []

    def refused() -> list[str]:
        """Repeat the acts: the first ones may still fit into the files of the database."""
        done = [cramped.run("module", *act, "--module", "left") for act in acts[:2]]
        answers.extend(each.stderr for each in done)
        return [each.stderr.partition(":")[0] for each in done if each.returncode == 1]

    filler = fill(tmp_path)
    eventually(lambda: refused() == ["messiahs", "messiahs"])
    token = cramped.run("join", "token", "--module", "left", "--address", "127.0.0.1:7101")
    assert token.stderr.startswith("messiahs: no token can be made: ")
    assert token.stderr.endswith("No space left on device; free space on that disk, and repeat it\n")
    assert "no_space: the disk of this module is full" in answers[-1]
    assert "still waiting" not in "".join(answers)
    filler.unlink()
    eventually(lambda: cramped.run("module", *acts[2], "--module", "left").returncode == 0)


@pytest.fixture(scope="module")
def small_right(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share a pair with only the state of the right module on a small disk; each test leaves the disk as it was."""
    state = tmp_path_factory.mktemp("pair")
    place = state / "pair" / "right"
    place.mkdir(parents=True)
    (state / "pair").chmod(0o700)
    with mounted(place, "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"):
        yield from federation("pair", state, module="left")


def test_an_executor_with_little_room_finishes_its_tasks_and_accepts_none_until_there_is_more(
    small_right: Federation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = shared_folder(tmp_path_factory)
    script = f"while [ ! -e {shared}/go ]; do sleep 0.1; done; echo out"
    running = small_right.submit(*ON_RIGHT, "--", "sh", "-c", script)
    eventually(lambda: small_right.status(running)["substate"] == "running")
    filler = fill(small_right.folder("right"), leave_bytes=4 << 20)
    eventually(lambda: notes_of(small_right, "right") == [_FULL])
    (shared / "go").touch()
    assert small_right.run("wait", running).returncode == 0
    assert small_right.run("logs", running).stdout == "out\n"
    waiting = small_right.submit(*ON_RIGHT, "--", "echo", "later")
    eventually(lambda: "no_space" in str(small_right.status(waiting)["reasons"]))
    filler.unlink()
    assert small_right.run("wait", waiting).returncode == 0


def test_a_result_that_an_executor_cannot_store_waits_until_there_is_room(
    small_right: Federation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shared = shared_folder(tmp_path_factory)
    script = f"while [ ! -e {shared}/go ]; do sleep 0.1; done; echo out; touch {shared}/over"
    running = small_right.submit(*ON_RIGHT, "--", "sh", "-c", script)
    eventually(lambda: small_right.status(running)["substate"] == "running")
    filler = fill(small_right.folder("right"))
    (shared / "go").touch()
    eventually((shared / "over").exists)
    assert small_right.status(running)["state"] == "executing"
    filler.unlink()
    assert small_right.run("wait", running).returncode == 0
    assert small_right.run("logs", running).stdout == "out\n"
    assert small_right.status(running)["attempt"] == 1


def test_a_damaged_database_keeps_its_module_down_untouched_until_it_is_restored(own_pair: Federation) -> None:
    task = own_pair.submit(*ON_RIGHT, "--", "echo", "before")
    assert own_pair.run("wait", task).returncode == 0
    own_pair.down()
    state = own_pair.folder("left") / "module.db"
    backup = shutil.copy(state, own_pair.state / "backup")
    spoiled = b"\0" * 512 + state.read_bytes()[512:]
    state.write_bytes(spoiled)
    # It does not wait: nothing would change.
    done = own_pair.run("up", str(own_pair.topology), "--detach", "--wait", "100000")
    assert done.returncode == 1
    assert "`left` stays down until the next `messiahs up`, its state cannot be used: " in done.stderr
    assert f"{state} is damaged" in done.stderr
    assert "restore it from a backup" in done.stderr
    supervisor = own_pair.state / "pair" / "supervisor.log"
    assert "left: its state cannot be used" in supervisor.read_text()
    log = (own_pair.folder("left") / "daemon.log").read_text()
    assert log.count(f"{state} is damaged") == 1
    assert "restore it from a backup" in log
    eventually(lambda: own_pair.vectors("right")["up"]["machines"] == 1)
    assert state.read_bytes() == spoiled
    own_pair.down()
    shutil.copy(backup, state)
    own_pair.up()
    assert own_pair.run("logs", task).stdout == "before\n"
    assert own_pair.run("run", *ON_RIGHT, "--", "echo", "after").stdout == "after\n"


def test_a_daemon_that_cannot_use_its_state_reports_why_and_whether_a_retry_helps(own_pair: Federation) -> None:
    own_pair.down()
    folder = own_pair.folder("left")
    command = [sys.executable, "-m", "messiahs.daemon", str(folder / "settings.json")]
    with mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "Read-only file system" in done.stderr
    (folder / "module.db").write_bytes(b"")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (UnusableStateError.EXIT_CODE, 1)


@pytest.mark.parametrize("processes", [("daemon",), ("daemon", "starter")])
def test_a_daemon_that_ends_while_its_disk_is_full_restarts_reports_it_and_recovers(
    small_right: Federation, processes: tuple[str, ...]
) -> None:
    eventually((small_right.folder("right") / "ballast").exists)
    before = small_right.submit(*ON_RIGHT, "--", "echo", "before")
    assert small_right.run("wait", before).returncode == 0
    daemon = small_right.pid("right", "daemon")
    filler = fill(small_right.folder("right"))
    for process in processes:
        small_right.kill("right", process)
    eventually(lambda: not Path(f"/proc/{daemon}").exists())
    eventually(lambda: notes_of(small_right, "right") == [_FULL])
    assert not (small_right.folder("right") / "ballast").exists()
    waiting = small_right.submit(*ON_RIGHT, "--", "echo", "later")
    eventually(lambda: "no_space" in str(small_right.status(waiting)["reasons"]))
    assert "is full" in small_right.run("submit", "--module", "right", "--", "true").stderr
    # Once more, without the reserve for this case.
    second = fill(small_right.folder("right"), name="second")
    daemon = small_right.pid("right", "daemon")
    small_right.kill("right", "daemon")
    eventually(lambda: not Path(f"/proc/{daemon}").exists())
    eventually(lambda: notes_of(small_right, "right") == [_FULL])
    filler.unlink()
    assert small_right.run("wait", waiting).returncode == 0
    assert small_right.run("logs", waiting).stdout == "later\n"
    eventually(lambda: notes_of(small_right, "right") == [])
    assert small_right.run("logs", before).stdout == "before\n"
    second.unlink()


def test_a_module_is_prepared_on_a_full_disk_in_the_space_that_is_reserved_for_its_start(
    small_right: Federation,
) -> None:
    eventually((small_right.folder("right") / "ballast").exists)
    small_right.down()
    filler = fill(small_right.folder("right"))
    small_right.up()
    assert notes_of(small_right, "right") == [_FULL]
    filler.unlink()
    eventually(lambda: notes_of(small_right, "right") == [])


def test_a_file_that_cannot_be_stored_on_a_disk_with_room_is_to_be_sent_again(own_pair: Federation) -> None:
    folder = own_pair.folder("left")
    elsewhere = Path("/var/tmp").glob("messiahs-files-*/module")
    store = next((link.parent for link in elsewhere if link.resolve() == folder), folder / "files")

    def put_nothing() -> int:
        path = f"/v1/files/{hashlib.sha256().hexdigest()}"
        return own_pair.status_code_for(os.geteuid(), "PUT", path=path, module="left")

    with mounted(store, "--bind", str(store)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(store)], check=True)
        assert put_nothing() == http.client.SERVICE_UNAVAILABLE
    assert put_nothing() == http.client.OK


def test_a_module_refuses_new_work_while_the_disk_of_its_tasks_has_no_inode_left(own_pair: Federation) -> None:
    folder = own_pair.folder("right")
    elsewhere = Path("/var/tmp").glob("messiahs-files-*/module")
    store = next((link.parent for link in elsewhere if link.resolve() == folder), folder / "files")
    with mounted(store, "-t", "tmpfs", "-o", "size=64m,mode=711,nr_inodes=100", "tmpfs"):
        for number in itertools.takewhile(lambda _: os.statvfs(store).f_favail, itertools.count()):
            (store / f"filler-{number}").touch()
        eventually(lambda: notes_of(own_pair, "right") == [_FULL])
        waiting = own_pair.submit(*ON_RIGHT, "--", "echo", "later")
        eventually(lambda: "no_space" in str(own_pair.status(waiting)["reasons"]))
        assert own_pair.status(waiting)["attempt"] == 0
    assert own_pair.run("wait", waiting).returncode == 0
    assert own_pair.run("logs", waiting).stdout == "later\n"
    eventually(lambda: notes_of(own_pair, "right") == [])


@pytest.fixture
def tasks_of_right(own_pair: Federation) -> Iterator[Path]:
    """Put the folder of the tasks of the right module alone on a disk of 64 MiB, and return it."""
    folder = own_pair.folder("right")
    own_pair.down()
    elsewhere = Path("/var/tmp").glob("messiahs-tasks-*/module")
    tasks = next((link.parent for link in elsewhere if link.resolve() == folder), folder / "tasks")
    with mounted(tasks, "-t", "tmpfs", "-o", "size=64m,mode=711", "tmpfs"):
        own_pair.up()
        yield tasks
        own_pair.down()


def test_a_module_refuses_new_work_while_the_disk_of_its_tasks_alone_is_full(
    own_pair: Federation, tasks_of_right: Path
) -> None:
    filler = fill(tasks_of_right)
    eventually(lambda: notes_of(own_pair, "right") == [_FULL])
    assert f"the disk of {tasks_of_right} is full" in (own_pair.folder("right") / "module.log").read_text()
    waiting = own_pair.submit(*ON_RIGHT, "--", "sh", "-c", "echo later >written || exit 9; cat written")
    eventually(lambda: "no_space" in str(own_pair.status(waiting)["reasons"]))
    assert own_pair.status(waiting)["attempt"] == 0
    assert "no_space" in own_pair.run("submit", "--module", "right", "--", "true").stderr
    checks = json.loads(own_pair.run("doctor", "--module", "right", "--json").stdout)["checks"]
    (said,) = [each["text"] for each in checks if (each["what"], each["level"]) == ("disk", "FAIL")]
    assert f"free at {tasks_of_right}" in said
    filler.unlink()
    assert own_pair.run("wait", waiting).returncode == 0
    assert own_pair.run("logs", waiting).stdout == "later\n"
    eventually(lambda: notes_of(own_pair, "right") == [])


@pytest.mark.usefixtures("tasks_of_right")
def test_a_machine_has_as_much_disk_as_the_disk_of_its_tasks(own_pair: Federation) -> None:
    is_so = f'$side eq "right" and $total_disk = {64 << 20} and $avail_disk <= {64 << 20}'
    assert own_pair.run("run", "--require", is_so, "--", "echo", "small").stdout == "small\n"
    denied = own_pair.run("run", "--no-wait", *ON_RIGHT, "--disk", "1GiB", "--", "true")
    assert (denied.returncode, "left.2 denied" in denied.stderr) == (125, True), denied.stderr


def test_a_task_whose_output_is_lost_because_the_disk_is_full_says_so(
    own_pair: Federation, tasks_of_right: Path, shared: Path
) -> None:
    script = f"touch {shared}/runs; while [ ! -e {shared}/go ]; do sleep 0.1; done; echo lost; exit 0"
    running = own_pair.start("run", *ON_RIGHT, "--", "sh", "-c", script)
    eventually((shared / "runs").exists)
    filler = fill(tasks_of_right)
    (shared / "go").touch()
    out, err = running.communicate()
    filler.unlink()
    assert (running.returncode, out) == (0, "")
    assert "left.1: the disk of its folder was full when it ended: what it wrote may be missing" in err


@contextmanager
def inputs_on_a_small_disk(pair: Federation, module: str) -> Iterator[Path]:
    """Put the folder of the inputs of a module alone on a disk of 64 MiB, and return it."""
    folder = pair.folder(module)
    pair.down()
    elsewhere = Path("/var/tmp").glob("messiahs-files-*/module")
    inputs = next((link.parent for link in elsewhere if link.resolve() == folder), folder / "files")
    with mounted(inputs, "-t", "tmpfs", "-o", "size=64m,mode=711", "tmpfs"):
        pair.up()
        yield inputs
        pair.down()


@pytest.fixture
def inputs_of_left(own_pair: Federation) -> Iterator[Path]:
    """Give the left module a small disk for inputs."""
    with inputs_on_a_small_disk(own_pair, "left") as inputs:
        yield inputs


def test_inputs_of_more_tasks_than_a_disk_can_hold_come_and_go(
    own_pair: Federation, inputs_of_left: Path, shared: Path
) -> None:
    file = own_pair.state / "input"

    def new_input() -> tuple[str, str]:
        file.write_bytes(os.urandom(5 << 20))
        return "--input", f"{file}:input"

    failing = f"test -e {shared}/again && wc -c <input"
    failed = own_pair.submit(*new_input(), "--", "sh", "-c", failing)
    assert own_pair.run("wait", failed).returncode == 1
    first = own_pair.submit("--", "sh", "-c", f"while [ ! -e {shared}/again ]; do sleep 0.1; done")
    waiting = own_pair.submit(*new_input(), "--after-any", first, "--", "sh", "-c", "wc -c <input")
    for _ in range(16):
        done = own_pair.run("run", *new_input(), "--", "true")
        assert done.returncode == 0, done.stderr
    assert notes_of(own_pair, "left") == []
    with file.open("wb") as large:
        large.truncate(65 << 20)
    refused = own_pair.run("submit", "--input", str(file), "--", "true")
    assert (refused.returncode, "MiB of 64 MiB" in refused.stderr, "`messiahs clean`" in refused.stderr) == (
        1,
        True,
        True,
    )
    checks = json.loads(own_pair.run("doctor", "--module", "left", "--json").stdout)["checks"]
    (said,) = [
        each["text"] for each in checks if each["what"] == "disk" and f"free at {inputs_of_left}" in each["text"]
    ]
    assert "inputs of tasks take" in said
    (shared / "again").touch()
    assert own_pair.run("retry", failed).returncode == 0
    for task in (failed, waiting):
        assert own_pair.run("wait", task).returncode == 0
        assert own_pair.run("logs", task).stdout == f"{5 << 20}\n"


def test_inputs_that_no_task_needs_make_room_for_new_work_by_themselves(
    own_pair: Federation, inputs_of_left: Path
) -> None:
    file = own_pair.state / "input"
    for _ in range(4):
        file.write_bytes(os.urandom(5 << 20))
        assert own_pair.run("run", "--input", str(file), "--", "true").returncode == 0
    filler = fill(inputs_of_left, leave_bytes=4 << 20)
    eventually(lambda: own_pair.run("run", "--", "echo", "on").stdout == "on\n")
    assert filler.exists()


def test_inputs_that_neighbors_send_come_and_go_at_an_executor_with_a_small_disk(own_pair: Federation) -> None:
    file = own_pair.state / "input"
    with inputs_on_a_small_disk(own_pair, "right"):
        for _ in range(14):
            file.write_bytes(os.urandom(5 << 20))
            done = own_pair.run("run", *ON_RIGHT, "--input", str(file), "--", "true")
            assert done.returncode == 0, done.stderr


def notes_of(federation: Federation, module: str) -> list[str]:
    """Return a module's notes about its state, once it answers."""
    with federation.client(module) as client:
        return list(client.module()["notes"])
