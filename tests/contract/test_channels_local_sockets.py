"""Sockets of a module that nobody can dial: they belong to its account alone, and nothing of them stays."""

import asyncio
import os
import stat
import subprocess
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from messiahs.channel.contract import ChannelSettings
from messiahs.core.interface.events import LinkUp
from messiahs.wire.codec import ReadRequest
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    NYNEVE,
    TICKET,
    MakeChannels,
    Recorded,
    World,
    attempt,
    make_grpc,
    play,
)
from tests.waiting import until

NOBODY = 65534
DIAL = """
import os, socket, sys
os.chdir(sys.argv[1])
os.setuid(int(sys.argv[3]))
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[2])
"""
READ = "print(connection.recv(1))"


@pytest.fixture
def make(tmp_path: Path) -> MakeChannels:
    return make_grpc(tmp_path, make_root(FEDERATION))


async def pair(world: World) -> tuple[Recorded, Recorded]:
    """Start cs, which nobody can dial, and its parent nyneve, which has read an output of it."""
    nyneve = await world.start(NYNEVE, neighbors=((CS, None),))
    cs = await world.start(CS, listen="", neighbors=((NYNEVE, nyneve.channels.address),))
    cs.content = b"an output"
    await until(lambda: LinkUp(neighbor=CS) in nyneve.events, "a link")
    assert await fetched(nyneve) == cs.content
    return cs, nyneve


async def fetched(nyneve: Recorded) -> bytes:
    request = ReadRequest(claim=CLAIM, ticket=TICKET, attempt=attempt(1), name="stdout")
    return b"".join([piece async for piece in nyneve.channels.fetch(CS, "", request)])


def dial(module: Recorded, *, then: str = "", account: int) -> "subprocess.CompletedProcess[str]":
    """Connect to the socket of a module in another process, in which that account is the user."""
    (path,) = module.sockets.iterdir()
    words = (str(module.sockets.parent), str(path.relative_to(module.sockets.parent)), str(account))
    return subprocess.run(("python3", "-c", DIAL + then, *words), capture_output=True, text=True, check=False)


@pytest.mark.processes  # the other account's
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has processes of other accounts")
def test_no_other_account_can_dial_a_module_that_listens_nowhere(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        for module in await pair(world):
            assert stat.S_IMODE(module.sockets.stat().st_mode) == 0o700
            refused = dial(module, account=NOBODY)
            assert "PermissionError" in refused.stderr
            assert (refused.returncode, dial(module, account=0).returncode) == (1, 0)

    play(make, scene)


@pytest.mark.processes  # the other process
def test_other_processes_cannot_use_the_way_to_such_a_module(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        cs, nyneve = await pair(world)
        assert (await asyncio.to_thread(dial, nyneve, then=READ, account=os.getuid())).stdout == "b''\n"
        assert await fetched(nyneve) == cs.content
        assert cs.refused == []

    play(make, scene)


def test_sockets_of_a_process_that_was_killed_are_removed_and_nothing_is_left_at_the_end(make: MakeChannels) -> None:
    async def scene(world: World) -> None:
        left = Recorded(name=CS)
        left.sockets.mkdir()
        (left.sockets / "left").touch()
        channels = make(
            ChannelSettings(federation=FEDERATION, name=CS, listen="", sockets=left.sockets), left.callbacks()
        )
        await channels.start()
        assert not (left.sockets / "left").exists()
        await channels.stop()
        assert not left.sockets.exists()
        modules = await pair(world)
        await world.stop_all()
        assert [module.sockets.exists() for module in modules] == [False, False]

    play(make, scene)
