"""A machine behind a gate grants places to an origin and lies: nobody but its own tasks is affected."""

import asyncio
from collections.abc import Iterator
from secrets import randbelow

import pytest

from messiahs.core.interface.messages import ClaimEnd
from messiahs.core.model.ids import ClaimId, SystemId
from tests.live.conftest import Federation
from tests.live.hostile_module import EPOCH, TICKET, hostile, played_lab
from tests.waiting import PATIENCE_SECONDS

EVIL = SystemId("evil")
_TOPOLOGY = """
version: 1
federation: lab
defaults: {update_period: 300ms}
systems:
  home: {machine: {isolation: process, slots: 1, attributes: {site: home}}}
  gate: {parent: home, machine: {isolation: process, slots: 1, attributes: {site: gate}}}
  evil: {parent: gate}
"""
_THERE = ("--require", '$site eq "evil"')


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Share an origin and a gate whose only machine is played by the tests."""
    with played_lab(tmp_path_factory.mktemp("hostile"), _TOPOLOGY) as made:
        yield made


@pytest.mark.parametrize("server", [".x", "a..b"])
def test_tasks_take_the_path_if_the_server_of_their_claim_cannot_exist(home: Federation, server: str) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            task = await asyncio.to_thread(home.submit, *_THERE, "--", "true")
            accept = await evil.grant(server=server, hop_address=evil.address, hop_ticket=TICKET)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await evil.transfers.get()
            status = await asyncio.to_thread(home.status, task)
            assert "through gate" in status["history"][-1]["text"]
            await evil.send(ClaimEnd(claim=accept.claim))
            await asyncio.to_thread(home.run, "cancel", task)

    asyncio.run(scene())


@pytest.mark.parametrize("name", ["home", "gate"])
def test_tasks_run_on_a_machine_whose_name_another_one_uses(home: Federation, name: str) -> None:
    async def scene() -> None:
        async with hostile(home, EVIL) as evil:
            task = await asyncio.to_thread(home.submit, *_THERE, "--", "true")
            claim = ClaimId(SystemId(name), EPOCH, randbelow(1 << 40))
            await evil.grant(claim=claim, hop_address=evil.address, hop_ticket=TICKET)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await evil.transfers.get()
            # The name is the word of the hops; only a straight stream would prove it.
            status = await asyncio.to_thread(home.status, task)
            assert status["executed_on"] == name
            real = await asyncio.to_thread(home.run, "run", "--require", f'$site eq "{name}"', "--", "echo", "real")
            assert real.stdout == "real\n", real.stderr
            await evil.send(ClaimEnd(claim=claim))
            await asyncio.to_thread(home.run, "cancel", task)

    asyncio.run(scene())
