"""A border that loses its state, continues with an older copy of it, or has a full disk, while a task runs behind it.

What it has forgotten it denies nobody: the executor ends the task with its lease, and the origin waits as long. So the
second attempt begins after the end of the first one, whichever side the origin is on.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.high_water_mark import Mark
from tests.live.conftest import Federation
from tests.live.disks import fill, mounted
from tests.live.lab import Lab, lab, short_lease_lab
from tests.live.test_leases import LEASE_SECONDS, beating_task
from tests.waiting import eventually

SYSTEMS = {
    "in": """
        home: {}
        gate: {parent: home, reach: proxy}
        one: {parent: gate, machine: {isolation: process, slots: 1}}
    """,
    "out": """
        top: {}
        gate: {parent: top, reach: proxy}
        home: {parent: gate}
        one: {parent: top, machine: {isolation: process, slots: 1}}
    """,
}


@pytest.fixture(params=SYSTEMS)
def short(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Start a border between a module with users and a machine, all with a short lease."""
    with short_lease_lab(tmp_path, SYSTEMS[request.param], seconds=LEASE_SECONDS) as made:
        yield made


def test_after_a_border_lost_its_state_the_second_attempt_begins_when_the_first_has_ended(short: Lab) -> None:
    with beating_task(short.federation) as beating:
        key = (short.federation.folder("gate") / "border.key").read_bytes()
        short.kill("gate")
        short.wipe("gate")
        short.start("gate")
        beating.await_beats(2)
        beating.check_second()
    assert (short.federation.folder("gate") / "border.key").read_bytes() != key


@pytest.mark.parametrize("short", ["out"], indirect=True)
def test_after_a_border_got_an_older_copy_of_its_rows_the_second_attempt_begins_when_the_first_has_ended(
    short: Lab,
) -> None:
    folder = short.federation.folder("gate")
    short.kill("gate")
    newest = _newest(folder)
    copies = {path: path.read_bytes() for path in folder.glob("module.db*")}
    short.start("gate")
    with beating_task(short.federation) as beating:
        # The mark beside the database follows it by up to a second; a copy that is less old is not known for one.
        eventually(lambda: _newest(folder) > newest)
        short.kill("gate")
        for path in folder.glob("module.db*"):
            path.unlink()
        for path, content in copies.items():
            path.write_bytes(content)
        short.start("gate")
        eventually(lambda: "older copy" in (folder / "module.log").read_text())
        beating.await_beats(2)
        beating.check_second()


@pytest.mark.parametrize("direction", SYSTEMS)
def test_while_the_disk_of_a_border_is_full_tasks_continue_and_afterwards_they_end_and_new_ones_begin(
    tmp_path: Path, direction: str
) -> None:
    place, topology = tmp_path / "lab" / "gate", tmp_path / "lab.yaml"
    place.mkdir(parents=True)
    (tmp_path / "lab").chmod(0o700)
    topology.write_text(
        f"version: 1\nfederation: lab\ndefaults: {{update_period: 500ms}}\nsystems:\n{SYSTEMS[direction]}"
    )
    with (
        mounted(place, "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"),
        lab(topology, name="lab", module="home") as made,
        beating_task(made.federation) as beating,
    ):
        here = made.federation
        filler = fill(place)
        eventually(lambda: _is_full(here))
        beating.await_beats(1)
        waiting = here.submit("--", "true")
        (beating.folder / "go").touch()
        filler.unlink()
        for task in (beating.task, waiting):
            assert here.run("wait", task).returncode == 0
            assert here.status(task)["attempt"] == 1


def _newest(folder: Path) -> Instant:
    reached = Mark(folder / "module.mark").reached
    assert reached is not None
    return reached.newest


def _is_full(here: Federation) -> bool:
    with here.client("gate") as client:
        return any("the disk is full" in note for note in client.module()["notes"])
