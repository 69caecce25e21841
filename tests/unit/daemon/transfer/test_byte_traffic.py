"""What a module takes from others before it is known whether it is the end of their way."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from messiahs.channel.contract import Peer
from messiahs.channel.memory import MemoryNetwork
from messiahs.config.settings import ByteSettings
from messiahs.core import queries
from messiahs.core.interface.audit_row import AuditRow
from messiahs.core.model.ids import Ticket
from messiahs.core.model.routes import Leg
from messiahs.daemon.storage.unsynced import SMALL_BYTES
from messiahs.daemon.transfer.budgets import BudgetError
from messiahs.executor.stub import StubExecutor
from messiahs.wire.codec import SpliceQuery
from tests.contract.channel_modules import CLAIM, TICKET, World, make_memory, transfer
from tests.unit.core.conftest import ModuleFactory, module, policy, rig
from tests.unit.core.rig import CHILD, PARENT, Rig
from tests.unit.daemon.transfer.byte_traffic import let_pass, traffic_of

__all__ = ["module", "policy", "rig"]


@pytest.mark.parametrize("is_hop", [False, True])
def test_a_large_file_that_comes_with_tasks_is_refused(rig: Rig, tmp_path: Path, *, is_hop: bool) -> None:
    leg = Leg(system=CHILD, address="", ticket=TICKET)
    if is_hop:
        let_pass(rig, CLAIM, leg)

    async def scene() -> None:
        world = World(make_memory(MemoryNetwork()))
        channels = (await world.start(CHILD)).channels
        limits = ByteSettings()
        traffic = traffic_of(rig, tmp_path, channels=lambda: channels, executor=StubExecutor(), limits=limits)
        keep = partial(traffic.keep, Peer(system=PARENT, key=b""), transfer())
        assert "more than 65536 bytes" in await keep((b"small", bytes(SMALL_BYTES + 1)))
        assert await keep((b"small", bytes(SMALL_BYTES))) == ""
        await world.stop_all()

    asyncio.run(scene())
    stored = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file() and len(path.name) == 64]
    assert sorted(stored) == ([5, SMALL_BYTES] if is_hop else [])


def test_connections_that_are_passed_on_are_bounded_in_number_and_bytes(rig: Rig, tmp_path: Path) -> None:
    leg = Leg(system=CHILD, address="", ticket=TICKET)
    let_pass(rig, CLAIM, leg)
    asked, peer = SpliceQuery(claim=CLAIM, ticket=TICKET), Peer(system=PARENT, key=b"")

    async def scene() -> None:
        world = World(make_memory(MemoryNetwork()))
        channels = (await world.start(CHILD)).channels
        limits = ByteSettings(streams=1, daily_bytes=10)
        traffic = traffic_of(rig, tmp_path, channels=lambda: channels, executor=StubExecutor(), limits=limits)
        with pytest.raises(PermissionError, match="has no ticket to pass connections on"):
            traffic.open_splice(asked, peer)
        rig.state.hop.passed[CLAIM] = replace(rig.state.hop.passed[CLAIM], is_spliced=True)
        with pytest.raises(PermissionError):
            traffic.open_splice(replace(asked, ticket=Ticket(bytes(16))), peer)
        first = traffic.open_splice(asked, peer)
        with pytest.raises(BudgetError, match="me: parent has 1 streams of running tasks open") as error:
            traffic.open_splice(asked, peer)
        assert error.value.is_brief
        first.close()
        second = traffic.open_splice(asked, peer)
        assert second.leg == leg
        await second.wait_for(7, 3)
        with pytest.raises(BudgetError, match="me: parent may move 10B in a day"):
            await second.wait_for(0, 1)
        second.close()
        await world.stop_all()

    asyncio.run(scene())


def test_bytes_that_are_passed_on_are_in_the_audit_log_at_the_end_of_their_connection(
    module: ModuleFactory, tmp_path: Path
) -> None:
    rig = module(apart=(PARENT, CHILD))
    let_pass(rig, CLAIM, Leg(system=CHILD, address="", ticket=TICKET))
    rig.state.hop.passed[CLAIM] = replace(rig.state.hop.passed[CLAIM], is_spliced=True)

    async def scene() -> None:
        world = World(make_memory(MemoryNetwork()))
        channels = (await world.start(CHILD)).channels
        traffic = traffic_of(rig, tmp_path, channels=lambda: channels, executor=StubExecutor(), limits=ByteSettings())
        asked = SpliceQuery(claim=CLAIM, ticket=TICKET)
        unused, used = (traffic.open_splice(asked, Peer(system=PARENT, key=b"")) for _ in range(2))
        unused.close()
        await used.wait_for(7, 0)
        await used.wait_for(0, 3)
        assert queries.unstored_audit_rows(rig.state) == {}
        used.close()
        await world.stop_all()

    asyncio.run(scene())
    counted = [(row.neighbor, row.count, row.in_bytes, row.out_bytes) for row in _audited(rig)]
    assert counted == [(PARENT, 1, 7, 3), (CHILD, 1, 3, 7)]


def _audited(rig: Rig) -> tuple[AuditRow, ...]:
    return tuple(queries.unstored_audit_rows(rig.state).values())
