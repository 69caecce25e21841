"""What a hop refuses in the middle of transfers, and what remains: nothing, if nobody wants the bytes any more."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.live.disks import mounted
from tests.live.reissued import hidden, reissued
from tests.live.sites import MODULES, Sites, on
from tests.netns.conftest import Wired
from tests.netns.test_trouble_on_the_way import HOPS, in_the_middle
from tests.netns.traffic import Traffic
from tests.waiting import eventually

pytestmark = pytest.mark.netns

MIB = 1 << 20
LIFETIME = timedelta(seconds=6)
"""How long a certificate is valid: until its module has started, which refuses to start with an expired one."""
EXPIRING = ("gate-a", "group-a", "a1")
DIALED_BY = {"gate-b": "gate-a", "group-a": "gate-a", "a1": "group-a"}
"""Which module dials which one, at each hop."""


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


@contextmanager
def _expired(sites: Sites) -> Iterator[None]:
    """Start modules with certificates that expire while they run; they restart with new ones afterwards."""
    try:
        with hidden(sites.settings(EXPIRING[0]).trust_file.with_suffix(".key")) as root_key:
            for module in EXPIRING:
                sites.kill(module)
                file = sites.settings(module).certificate_file
                ends_at = datetime.now(UTC) + LIFETIME
                file.write_bytes(reissued(file.read_bytes(), root_key, ends_at=ends_at))
                sites.start(module)
            eventually(lambda: datetime.now(UTC) > ends_at)
            yield
    finally:
        for module in EXPIRING:
            sites.restart(module)


@pytest.mark.usefixtures("slow_link")
def test_certificates_that_expire_in_the_middle_stop_the_way_with_a_reason_until_they_are_renewed(
    wired: Wired, shared: Path
) -> None:
    here = wired.sites.at("b1")
    traffic = in_the_middle(wired, shared)
    for hop in HOPS:
        wired.network.cut(*hop)
    with _expired(wired.sites):
        for hop in HOPS:
            wired.network.join(*hop)
        for dialing, dialed in DIALED_BY.items():
            why = f"no link with {dialed}: its certificate is not valid: certificate has expired"
            eventually(lambda dialing=dialing, why=why: why in _notes(wired.sites, dialing), why)  # type: ignore[misc]
        for module in EXPIRING:
            expired = f"the certificate of this module, {wired.sites.settings(module).certificate_file}, expired at"
            assert expired in str(_notes(wired.sites, module))
        # Its module is two hops away from the link that is down.
        why = "gate-a is not linked: its certificate is not valid: certificate has expired"
        waiting = here.submit(*on("a1"), "--", "true")
        eventually(
            lambda: ("gate-b", why) in [(each["module"], each["text"]) for each in here.status(waiting)["reasons"]]
        )
        shown = wired.sites.at("gate-b").run("module", "preview", "group-b").stdout
        assert "gate-b is not linked with gate-a" in shown
    traffic.end()
    assert here.run("wait", waiting).returncode == 0
    wired.sites.leave_nothing()


def _notes(sites: Sites, module: str) -> list[str]:
    with sites.client(module) as client:
        return list(client.module()["notes"])
