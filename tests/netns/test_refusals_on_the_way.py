"""What a hop refuses in the middle of transfers, and what remains: nothing, if nobody wants the bytes any more."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.disks import mounted
from tests.live.sites import MODULES, Sites
from tests.netns.conftest import Wired
from tests.netns.test_trouble_on_the_way import in_the_middle
from tests.netns.traffic import Traffic
from tests.waiting import eventually

pytestmark = pytest.mark.netns

MIB = 1 << 20


@contextmanager
def _on_a_small_disk(sites: Sites, module: str, *, scratch: Path) -> Iterator[None]:
    """Keep the state of a module on a disk of 24 MiB for the block; the module restarts before and afterwards."""
    folder = sites.at(module).folder(module)
    sites.kill(module)
    _move_rows(folder, scratch)
    with mounted(folder, "-t", "tmpfs", "-o", "size=24m,mode=711", "tmpfs"):
        _move_rows(scratch, folder)
        sites.start(module)
        yield
        sites.kill(module)
        _move_rows(folder, scratch)
    _move_rows(scratch, folder)
    sites.start(module)


def _move_rows(source: Path, target: Path) -> None:
    """Move what a module stored, without its cache of files."""
    for path in source.iterdir():
        if path.is_file():
            shutil.move(path, target / path.name)


def test_a_hop_without_room_for_a_file_passes_it_on(wired: Wired, shared: Path, tmp_path: Path) -> None:
    with _on_a_small_disk(wired.sites, "gate-a", scratch=tmp_path):
        wired.sites.await_links()
        traffic = Traffic(sites=wired.sites, folder=shared, origin="b1", machine="a1", size_bytes=30 * MIB)
        traffic.begin()
        traffic.end()
        wired.sites.leave_nothing()
    wired.sites.await_links()


@pytest.mark.usefixtures("slow_link")
def test_a_cancel_in_the_middle_of_transfers_leaves_nothing_at_any_module(wired: Wired, shared: Path) -> None:
    traffic = in_the_middle(wired, shared)
    traffic.cancel()
    wired.sites.leave_nothing()
    drafts = [path for name in MODULES for path in wired.sites.at(name).folder(name).rglob("*.part")]
    eventually(lambda: not [path for path in drafts if path.exists()], drafts)
