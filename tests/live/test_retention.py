"""Ended tasks are forgotten after the retention time of the policy, with their files, whatever is killed meanwhile."""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import messiahs
from messiahs.client import Submission
from messiahs.core.interface.actions import Forget
from messiahs.core.interface.rows import RowKind
from messiahs.daemon.api.clean import IDS_LIMIT
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.forgotten_outputs import numbers_in
from messiahs.daemon.transfer.output_arrivals import SMALL_BYTES
from messiahs.executor.protocol.layout import MODULE, Account, prepare_attempts_root, prepare_files_root
from messiahs.executor.protocol.left_folders import UNCHANGED_SECONDS
from tests.live.conftest import Federation, brought_up, fixed_machine
from tests.waiting import eventually

LARGE = ("sh", "-c", f"head -c {SMALL_BYTES + 1} /dev/zero; echo small >&2")
MEMBERS = 60_000
VAR_TMP = Path("/var/tmp")
KEEPS = 'policy "keeps" version 1;\naccept from users {{ }}\ntimeouts {{ retention {retention}; }}\n'
KINDS = {RowKind.SUBMISSION, RowKind.TASK, RowKind.FORGETTING}


def one_module(folder: Path, *, retention: str) -> Federation:
    write_policy(folder, retention=retention)
    topology = folder / "solo.yaml"
    defaults = f"defaults: {{policy: {folder}/keeps.policy, update_period: 200ms}}"
    machine = fixed_machine(slots=2)
    topology.write_text(f"version: 1\nfederation: solo\n{defaults}\nsystems:\n  solo: {{machine: {machine}}}\n")
    return Federation(topology=topology, name="solo", state=folder / "state", module="solo")


def write_policy(folder: Path, *, retention: str) -> None:
    (folder / "keeps.policy").write_text(KEEPS.format(retention=retention))


@pytest.fixture
def solo(tmp_path: Path) -> Iterator[Federation]:
    """Start a module that keeps all tasks."""
    made = one_module(tmp_path, retention="forever")
    with brought_up(made):
        yield made


def load(solo: Federation, *, retention: str) -> None:
    """Let another retention time hold from now on."""
    write_policy(solo.topology.parent, retention=retention)
    done = solo.run("policy", "load")
    assert done.returncode == 0, done.stderr


def rows(solo: Federation) -> dict[RowKind, int]:
    """Count the rows of tasks, without opening the database as a daemon does."""
    found = dict.fromkeys(KINDS, 0)
    with closing(sqlite3.connect(f"file:{solo.folder('solo') / 'module.db'}?mode=ro", uri=True)) as database:
        for table in ("rows", "later_rows"):
            for kind, count in database.execute(f"SELECT kind, count(*) FROM {table} GROUP BY kind"):
                if kind in KINDS:
                    found[RowKind(kind)] += count
        assert database.execute("SELECT count(*) FROM outputs").fetchone()[0] <= found[RowKind.TASK] * 2
    return found


def is_empty(solo: Federation) -> bool:
    return not any(rows(solo).values()) and not numbers_in(solo.folder("solo") / "outputs")


def test_an_ended_task_is_forgotten_with_its_files_and_one_that_runs_is_not(solo: Federation) -> None:
    task, running = solo.submit("--", *LARGE), solo.submit("--", "sleep", "1000")
    assert solo.run("wait", task).returncode == 0
    assert numbers_in(solo.folder("solo") / "outputs") == [int(task.split(".")[1])]
    assert solo.run("logs", task).returncode == 0
    eventually(lambda: solo.status(running)["substate"] == "running")
    load(solo, retention="1s")
    eventually(lambda: not numbers_in(solo.folder("solo") / "outputs"))
    eventually(lambda: rows(solo) == {RowKind.SUBMISSION: 1, RowKind.TASK: 1, RowKind.FORGETTING: 0})
    of_it = [(word, task) for word in ("status", "logs", "retry", "fetch", "cancel", "explain", "wait")]
    for words in (*of_it, ("submit", "--after", task, "--", "true")):
        done = solo.run(*words)
        assert done.returncode != 0
        assert f"no task {task} is known here any more: ended tasks are kept for 1s" in done.stderr, words
    assert solo.status(running)["substate"] == "running"
    assert solo.run("cancel", running).returncode == 0
    eventually(lambda: is_empty(solo))


def test_a_kill_while_a_large_array_is_forgotten_leaves_nothing_of_it(solo: Federation) -> None:
    with solo.client() as user:
        array = user.submit(Submission(argv=LARGE, members=MEMBERS, tdv={"cpus": 1}))
        eventually(lambda: user.tasks(array)["tasks"][0]["counts"].get("finished", 0) > 2)
        user.cancel(array)
        assert sum(user.wait(array, timeout=60)["counts"].values()) == MEMBERS
    load(solo, retention="1s")
    eventually(lambda: rows(solo)[RowKind.FORGETTING])
    solo.kill("solo", "daemon")
    # The supervisor starts it again.
    eventually(lambda: is_empty(solo))


def test_files_of_forgotten_tasks_that_a_crash_left_are_deleted_at_the_next_start(tmp_path: Path) -> None:
    solo = one_module(tmp_path, retention="forever")
    outputs = solo.folder("solo") / "outputs"
    with brought_up(solo):
        first, second = solo.submit("--", *LARGE), solo.submit("--", *LARGE)
        assert solo.run("wait", first, second).returncode == 0
    (outputs / "77" / "0").mkdir(parents=True)
    forget_row(solo.folder("solo") / "module.db", number=1)
    with brought_up(solo):
        eventually(lambda: numbers_in(outputs) == [2, 77])
        assert solo.run("logs", second).returncode == 0


def forget_row(path: Path, *, number: int) -> None:
    """Delete the rows of a submission, as a daemon does before it is killed."""
    store = RowStore(path)
    (found,) = [row for row, _ in store.submissions(after=None) if row.id.number == number]
    store.commit([Forget(key=(RowKind.SUBMISSION, found.id)), Forget(key=(RowKind.TASK, found.id))], store.newest())
    store.close()


def test_a_user_forgets_ended_tasks_and_is_told_why_others_are_kept(solo: Federation) -> None:
    large, array = solo.submit("--", *LARGE), solo.submit("--array", "1-3", "--", "echo", "12345")
    assert solo.run("wait", large, array).returncode == 0
    running = solo.submit("--", "sleep", "1000")
    eventually(lambda: solo.status(running)["substate"] == "running")
    needing = solo.submit("--after-any", large, "--after-any", running, "--", "true")
    done = solo.run("clean", large, running, f"{array}.2", "solo.99", array)
    assert done.returncode == 1
    assert done.stdout == "3 tasks forgotten, 18 B of disk and 1.0 KiB of memory freed\n"
    assert done.stderr.splitlines() == [
        f"messiahs: {needing} depends on {large}, and has not ended",
        f"messiahs: {running} has not ended: `messiahs cancel {running}` ends it",
        f"messiahs: {array}.2 is kept as long as its array: clean {array}",
        "messiahs: no task solo.99 is known here",
    ]
    assert solo.run("status", array).returncode == 1
    assert solo.run("status", large).returncode == 0
    assert solo.run("cancel", needing, running).returncode == 0
    eventually(lambda: solo.status(running)["state"] == "killed" and rows(solo)[RowKind.SUBMISSION] == 3)
    nothing = {"schema": 1, "ids": [], "tasks": 0, "bytes": 0, "memory_bytes": 0, "kept": {}}
    assert solo.document("clean", "--older-than", "1d") == nothing
    eventually(lambda: solo.document("clean", "--older-than", "0s")["kept"] == {} and is_empty(solo))
    again = solo.run("clean", large)
    assert again.returncode == 1
    assert f"no task {large} is known here any more: it has ended, and was cleaned up" in again.stderr


def test_the_python_api_forgets_more_tasks_than_one_request_names(solo: Federation) -> None:
    with messiahs.connect("solo", solo.state) as client:
        ids = [client.submit(["true"]) for _ in range(IDS_LIMIT + 2)]
        client.wait(*ids)
        assert client.clean(*ids[:-1])["ids"] == ids[:-1]
        assert client.clean(older_than="0s")["ids"] == ids[-1:]
        with pytest.raises(TypeError, match="ids, or older_than"):
            client.clean()
    assert is_empty(solo)


def test_a_module_that_starts_removes_folders_of_modules_that_are_gone(solo: Federation, tmp_path: Path) -> None:
    gone = tmp_path / "gone" / "module"
    gone.mkdir(mode=0o700, parents=True)
    other = Account(name="other", uid=54_321, gid=54_321)
    left, kept = (place(gone, other, fallback=VAR_TMP) for place in (prepare_attempts_root, prepare_files_root))
    long_ago = time.time() - UNCHANGED_SECONDS - 60
    for path in (left / MODULE, left):
        os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    gone.rmdir()
    try:
        solo.kill("solo", "daemon")
        eventually(lambda: not left.exists())
        assert kept.exists()
    finally:
        shutil.rmtree(kept)
        shutil.rmtree(left, ignore_errors=True)
