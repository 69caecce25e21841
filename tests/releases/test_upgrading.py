"""Daemons of an earlier release and of this tree beside each other, and one after the other in the same folder."""

import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from messiahs import __version__
from messiahs.daemon.storage.tables import LATER_ROWS
from tests.live.conftest import shared_folder
from tests.live.linked_pair import await_link, kill, linked_pair, only_on
from tests.live.small_sites import Site
from tests.live.workload import Workload
from tests.releases.released import VERSIONS, Installed, installed
from tests.waiting import eventually

pytestmark = pytest.mark.live
OLD = VERSIONS[-1]
"""The last release before this tree."""
TASKS = 60
THIS_TREE = (sys.executable, "-m", "messiahs.cli.main")
Pair = tuple[Site, Site]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the last release once."""
    return installed(OLD, tmp_path_factory.mktemp("release") / "venv")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Start two sites with this tree; no lease ends while a daemon is replaced on a slow machine."""
    with linked_pair(tmp_path, lease_seconds=600) as pair:
        yield pair


def go_on_with(site: Site, release: Installed | None, *, is_killed: bool = False) -> None:
    """Replace the daemon of a site by that of another release (None: this tree), in the same folder."""
    if is_killed:
        kill(site)
    else:
        assert site.end() == 0
    site.command = THIS_TREE if release is None else (str(release.command),)
    file, without = site.folder / "site.yaml", "machine: {"
    with_processes = f"{without}isolation: process, "
    # The last release has no such key: its tasks always are processes.
    text = file.read_text(encoding="utf-8").replace(with_processes, without)
    file.write_text(text.replace(without, with_processes) if release is None else text, encoding="utf-8")
    site.start()
    # A daemon that begins does not take a signal for an end.
    eventually(lambda: site.machines("up"))


def status(site: Site, task: str) -> dict[str, object]:
    (found,) = site.document("status", task)["tasks"]
    return dict(found)


@pytest.mark.parametrize("place", [0, 1], ids=["parent", "child"])
def test_an_old_and_a_new_daemon_run_each_others_tasks(pair: Pair, old: Installed, tmp_path: Path, place: int) -> None:
    go_on_with(pair[place], old)
    await_link(*pair)
    assert pair[place].run("version").stdout == f"messiahs {OLD}\n"
    assert pair[1 - place].run("version").stdout == f"messiahs {__version__}\n"
    # So large that the new one states its size.
    (tmp_path / "in.txt").write_bytes(b"an input\n" + bytes(2 << 20))
    for one, other in (pair, pair[::-1]):
        words = ("--input", str(tmp_path / "in.txt"), "--", "sh", "-c", 'head -n 1 in.txt; echo "$MESSIAHS_ATTEMPT"')
        done = one.run("run", *only_on(other), *words)
        assert (done.stdout, done.returncode) == ("an input\n1\n", 0), done.stderr
        assert one.executed_on() == other.name
        array = one.run("submit", "--quiet", "--array", "1-20", *only_on(other), "--", "true").stdout.strip()
        assert one.run("wait", array).returncode == 0
        task = one.run("submit", "--quiet", *only_on(other), "--", "sleep", "600").stdout.strip()
        eventually(lambda one=one, task=task: status(one, task)["substate"] == "running")  # type: ignore[misc]
        assert one.run("cancel", task).returncode == 0
        assert one.run("wait", task).returncode == 130


@pytest.mark.parametrize("place", [0, 1], ids=["parent", "child"])
def test_the_doctor_says_that_an_old_neighbor_cannot_dial_back_and_fails_nothing(
    pair: Pair, old: Installed, place: int
) -> None:
    go_on_with(pair[place], old)
    await_link(*pair)
    done = pair[1 - place].run("doctor")
    lines = [line for line in done.stdout.splitlines() if f"from {pair[place].name}" in line]
    (line,) = lines
    assert line.split()[0] == "ok"
    assert "not asked: its release does not know this question" in line
    assert (done.returncode, "FAIL" in done.stdout) == (0, False), done.stdout


def test_a_running_task_survives_the_upgrade_and_the_return_of_a_daemon_that_is_killed(
    pair: Pair, old: Installed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    alpha, beta = pair
    go_on_with(alpha, old)
    await_link(*pair)
    gate = shared_folder(tmp_path_factory) / "gate"
    command = ("--", "sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done; echo $MESSIAHS_ATTEMPT")
    tasks = [alpha.run("submit", "--quiet", *only_on(site), *command).stdout.strip() for site in pair]
    eventually(lambda: {status(alpha, task)["substate"] for task in tasks} == {"running"})
    go_on_with(alpha, None, is_killed=True)
    await_link(*pair)
    go_on_with(beta, old, is_killed=True)
    await_link(*pair)
    go_on_with(alpha, old, is_killed=True)
    await_link(*pair)
    gate.touch()
    assert alpha.run("wait", *tasks).returncode == 0
    assert [alpha.run("logs", task).stdout for task in tasks] == ["1\n", "1\n"]


def test_nothing_is_lost_and_nothing_runs_twice_at_once_when_both_are_upgraded_and_return_under_load(
    pair: Pair, old: Installed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for site in pair:
        go_on_with(site, old)
    await_link(*pair)
    alpha, beta = pair
    work = Workload(folder=shared_folder(tmp_path_factory), tasks=TASKS)
    array = alpha.run("submit", "--quiet", "--array", f"1-{TASKS}", "--", *work.command()).stdout.strip()
    steps = ((alpha, None, False), (beta, None, True), (alpha, old, True), (beta, old, False), (alpha, None, False))
    for number, (site, release, is_killed) in enumerate(steps):
        eventually(lambda number=number: len(work.written()) >= TASKS * number // 6)  # type: ignore[misc]
        go_on_with(site, release, is_killed=is_killed)
    assert alpha.run("wait", array).returncode == 0
    assert status(alpha, array)["counts"] == {"finished": TASKS}
    assert set(work.times_written()) == set(range(1, TASKS + 1))
    assert not work.doubles()


def test_rows_of_later_kinds_stay_while_the_old_release_runs_in_between(pair: Pair, old: Installed) -> None:
    alpha, _ = pair
    database = alpha.folder / "state" / "pact" / "alpha" / "module.db"
    kind, key, content = 200, b"a key", b"of a kind that neither release knows"
    later = (kind, key, b"\2" + zlib.crc32(content, zlib.crc32(key, kind)).to_bytes(4) + content)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(LATER_ROWS)
        connection.execute("INSERT INTO later_rows VALUES (?, ?, ?)", later)
        connection.commit()
    await_link(*pair)
    go_on_with(alpha, None)
    for release in (old, None):
        go_on_with(alpha, release)
        await_link(*pair)
        assert alpha.run("run", "--", "echo", "it runs").stdout == "it runs\n"
    alpha.end()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT * FROM later_rows WHERE kind = 200").fetchall() == [later]
