"""A daemon that crashes at any commit or action of a task's life loses nothing and repeats nothing.

A chain of three modules keeps running. For each point a task is submitted at the root; one daemon is killed at that
point and started again, and the result must always be the same. The points are tried in order until one is not reached,
so all of them are covered. In a second chain the root is a site of its own, so the middle module passes all bytes on.
In a third one the middle module is the border of the leaf, and tasks cross it in both directions.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import issue, make_root, write
from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.client import ModuleClient, Source, Submission, fetch, outputs_of, prepare_inputs, upload
from messiahs.client.progress import silent
from messiahs.client.workflows import submit_workflow
from messiahs.config.settings import TrustedFile, load_settings, save_settings
from messiahs.config.topology.reading import load_topology
from messiahs.core.interface.rows import Row
from tests.commands import Forked
from tests.live.conftest import ROOT, shared_folder, with_processes
from tests.live.crashing_daemon import ARMED
from tests.live.rows_of_work import rows_of_work
from tests.waiting import eventually

INPUT_BYTES = 100_000
"""Too large to be sent with its task: it is sent before. The output has the same size."""
AT_ROOT, AT_LEAF = "$speed < 900", "$speed >= 900"
MODULES = ("root", "middle", "leaf")


@dataclass(slots=True)
class CrashingChain:
    """Modules that are restarted whenever they end, and the number of their tasks so far (mutable)."""

    directory: Path
    shared: Path
    tasks: int = 0

    def arm(self, module: str, *, what: str, when: str, number: int) -> Path:
        """Arm a crash of a module, and return the file that exists until the crash."""
        file = self.directory / module / ARMED
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps({"what": what, "when": when, "number": number}))
        return draft.replace(file)

    def live(self, requirement: str, *, origin: str = "root") -> None:
        """Run a task with an input and outputs from submission to its end, and check the result."""
        self.tasks += 1
        number = str(self.tasks)
        source = self.shared / "input"
        source.write_bytes(number.encode() * (INPUT_BYTES // len(number)))
        script = f"cat input > output; echo {number} >> {self.shared}/numbers; sleep 0.1; echo done"
        prepared = prepare_inputs([Source(path=str(source))])
        submission = Submission(
            argv=("sh", "-c", script), requirement=requirement, inputs=prepared.inputs, outputs=("output",)
        )
        with ModuleClient(self.directory / f"{origin}.sock", patience=60) as user:
            upload(user, prepared.contents)
            task = user.submit(submission)
            ended = user.wait(task, timeout=60)
            assert (ended["state"], ended["exit_code"], ended["attempt"]) == ("finished", 0, 1), ended
            events = [step["event"] for step in ended["history"] if step["event"] != "route"]
            assert events == ["bound", "finished"]
            list(fetch(user, outputs_of(user, task), into=self.shared / number))
            assert b"".join(user.logs(task)) == b"done\n"
        assert (self.shared / number / "output").read_bytes() == source.read_bytes()
        assert (self.shared / "numbers").read_text().split().count(number) == 1
        eventually(lambda: not self.left_behind())

    def live_workflow(self) -> None:
        """Submit a file with two tasks, one after the other, and check that there are two, which ran once each."""
        before = self.tasks
        self.tasks += 2
        file, numbers = self.shared / "tasks.yaml", self.shared / "numbers"
        first, second = (f"echo {before + place} >> {numbers}" for place in (1, 2))
        require = "require: '$speed < 900'"
        file.write_text(
            f"tasks: {{b: {{command: {second}, after-ok: a, {require}}}, a: {{command: {first}, {require}}}}}"
        )
        with ModuleClient(self.directory / "root.sock", patience=60) as user:
            known = len(user.tasks()["tasks"])
            ids = submit_workflow(user, file, key=None, on_progress=silent)
            assert list(ids) == ["a", "b"]
            for task in ids.values():
                ended = user.wait(task, timeout=60)
                assert (ended["state"], ended["exit_code"], ended["attempt"]) == ("finished", 0, 1), ended
            assert len(user.tasks()["tasks"]) == known + 2
        assert numbers.read_text().split()[-2:] == [str(before + 1), str(before + 2)]
        eventually(lambda: not self.left_behind())

    def left_behind(self) -> list[Row]:
        """Return the remaining rows of claims, tasks and attempts of all modules; those about neighbors stay."""
        return [row for name in MODULES for row in rows_of_work(self.directory / name / "module.db")]


@pytest.fixture(scope="module")
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingChain]:
    """Share the running chain among the tests of this file."""
    directory = _prepared(tmp_path_factory.mktemp("crashing"))
    with _running(directory, shared_folder(tmp_path_factory)) as chain:
        yield chain


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingChain]:
    """Share a running chain whose first module is a site of its own."""
    directory = _prepared(tmp_path_factory.mktemp("passing"))
    _set_apart(directory)
    with _running(directory, shared_folder(tmp_path_factory)) as chain:
        yield chain


@pytest.fixture(scope="module")
def bordered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashingChain]:
    """Share a running chain whose middle module is the border of its last one."""
    directory = _prepared(tmp_path_factory.mktemp("bordered"))
    file = directory / "middle" / "settings.json"
    save_settings(replace(load_settings(file), is_border=True), file)
    with _running(directory, shared_folder(tmp_path_factory)) as chain:
        yield chain


def _prepared(folder: Path) -> Path:
    directory = federation_directory(folder, "trio")
    prepare(load_topology(with_processes("trio", folder / "trio.yaml")), directory)
    return directory


def _set_apart(directory: Path) -> None:
    """Give the root module a root certificate of its own, which only the middle module knows besides it."""
    own, theirs = directory / "tls" / "apart.pem", directory / "tls" / "root.pem"
    made = make_root("trio")
    write(made, certificate_file=own, key_file=own.with_suffix(".key"))
    place = directory / "root"
    write(
        issue(made, federation="trio", name="root"),
        certificate_file=place / "certificate.pem",
        key_file=place / "key.pem",
    )
    for module, other, roots, other_roots in (("root", "middle", own, theirs), ("middle", "root", theirs, own)):
        file = directory / module / "settings.json"
        settings = load_settings(file)
        recorded = (TrustedFile(file=other_roots, names=(other,)),)
        neighbors = tuple(
            replace(link, trust=recorded) if link.neighbor.system == other else link for link in settings.neighbors
        )
        save_settings(replace(settings, trust_file=roots, neighbors=neighbors), file)


@contextmanager
def _running(directory: Path, shared: Path) -> Iterator[CrashingChain]:
    with (directory / "supervisor.log").open("wb") as log:
        command = [sys.executable, "-m", "tests.live.crashing_daemon", str(directory)]
        supervisor = Forked[bytes](command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    try:
        yield CrashingChain(directory=directory, shared=shared)
    finally:
        os.kill(supervisor.pid, signal.SIGTERM)
        supervisor.wait(timeout=60)


@pytest.mark.parametrize(("what", "when"), [("commit", "before"), ("commit", "after"), ("action", "after")])
@pytest.mark.parametrize(
    ("module", "requirement", "at_least"),
    [
        pytest.param("root", AT_LEAF, 3, id="origin"),
        pytest.param("middle", AT_LEAF, 2, id="hop"),
        pytest.param("leaf", AT_LEAF, 4, id="executor"),
        pytest.param("root", AT_ROOT, 3, id="both"),
    ],
)
def test_a_daemon_that_crashes_anywhere_in_a_tasks_life_reaches_the_same_result(
    crashing: CrashingChain, module: str, requirement: str, at_least: int, *, what: str, when: str
) -> None:
    assert _points(crashing, module, requirement, what=what, when=when) >= at_least


@pytest.mark.parametrize(("what", "when"), [("commit", "before"), ("commit", "after"), ("action", "after")])
def test_a_daemon_that_crashes_anywhere_while_it_passes_bytes_on_reaches_the_same_result(
    passing: CrashingChain, *, what: str, when: str
) -> None:
    assert _points(passing, "middle", AT_LEAF, what=what, when=when) >= 2


@pytest.mark.parametrize(("what", "when"), [("commit", "before"), ("commit", "after"), ("action", "after")])
@pytest.mark.parametrize(("origin", "requirement"), [("root", AT_LEAF), ("leaf", AT_ROOT)], ids=["in", "out"])
def test_a_border_that_crashes_anywhere_while_a_task_crosses_it_reaches_the_same_result(
    bordered: CrashingChain, origin: str, requirement: str, *, what: str, when: str
) -> None:
    assert _points(bordered, "middle", requirement, what=what, when=when, origin=origin) >= 2


@pytest.mark.parametrize(("what", "when"), [("commit", "before"), ("commit", "after"), ("action", "after")])
def test_a_daemon_that_crashes_anywhere_while_a_file_of_tasks_is_submitted_and_run_has_all_of_them_once(
    crashing: CrashingChain, *, what: str, when: str
) -> None:
    assert _points_of(crashing, "root", crashing.live_workflow, what=what, when=when) >= 3


def _points(chain: CrashingChain, module: str, requirement: str, *, what: str, when: str, origin: str = "root") -> int:
    return _points_of(chain, module, lambda: chain.live(requirement, origin=origin), what=what, when=when)


def _points_of(chain: CrashingChain, module: str, live: Callable[[], None], *, what: str, when: str) -> int:
    """Try every point of a module, and return how many there are."""
    points = 0
    while True:
        armed = chain.arm(module, what=what, when=when, number=points + 1)
        live()
        try:
            armed.unlink()
        except FileNotFoundError:
            # It has crashed after the end of the task, just now at the latest.
            points += 1
        else:
            return points
