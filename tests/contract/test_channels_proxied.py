"""Links and bytes through an HTTP proxy, and over IPv6 (MESSIAHS 5.3)."""

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import load, make_root
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.core.interface.events import LinkUp, TransferFailed, TransferReceived
from messiahs.core.model.ids import SystemId
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import (
    CLAIM,
    CS,
    FEDERATION,
    NYNEVE,
    TICKET,
    World,
    make_grpc,
    play,
    tls_files,
    transfer,
)
from tests.waiting import until

LARGE = os.urandom(3 << 20)
GATE = "gate.invalid:7101"


@contextmanager
def proxy(ports: dict[str, int]) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """Run a proxy that knows these names, and return its port and its process."""
    words = [f"{name}={port}" for name, port in ports.items()]
    command = [sys.executable, "-m", "tests.http_proxy", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline()), process
        finally:
            process.terminate()


def put() -> PutRequest:
    return PutRequest(claim=CLAIM, ticket=TICKET, files=(PutFile(hashlib.sha256(LARGE).digest(), len(LARGE)),))


@pytest.mark.processes  # the proxy
@pytest.mark.parametrize("way", ["setting", "https_proxy", "HTTPS_PROXY"])
def test_a_link_tasks_and_large_files_go_through_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    root = make_root(FEDERATION)
    url = ""

    def make(settings: ChannelSettings, callbacks: Callbacks) -> Channels:
        is_inside = settings.name == NYNEVE
        settings = replace(settings, bulk_least_bytes=1, http_proxy=url if is_inside and way == "setting" else None)
        return grpc_channels(settings, callbacks, load(tls_files(tmp_path, root, name=settings.name)))

    async def scene(world: World) -> None:
        nonlocal url
        cs = await world.start(CS, neighbors=((NYNEVE, None),))
        with proxy({GATE: int(cs.channels.address.rpartition(":")[2])}) as (port, process):
            url = f"http://ann:a%20b@127.0.0.1:{port}"
            if way != "setting":
                monkeypatch.setenv(way, url)
            nyneve = await world.start(NYNEVE, neighbors=((CS, GATE),))
            await until(lambda: LinkUp(neighbor=NYNEVE) in cs.events, "a link")
            nyneve.channels.send_tasks(CS, GATE, transfer(1))
            await until(lambda: cs.of_kind(TransferReceived), "the tasks")
            # Whatever the neighbor calls its address, the proxy is asked for the one in the topology.
            await nyneve.channels.put(
                CS, "inside.invalid:22", put(), lambda _, offset: ContentSource(LARGE, offset=offset)
            )
            assert cs.files.path(hashlib.sha256(LARGE).digest()).read_bytes() == LARGE
            assert nyneve.refused == []
            await world.stop(nyneve)
            process.terminate()
            assert process.stdout is not None
            asked = process.stdout.read().splitlines()
        known = f"Basic {base64.b64encode(b'ann:a b').decode()}"
        # Of each of three connections its certificate is looked at first; the last one is for the large file.
        assert asked[:-1] == [f"CONNECT {GATE} {known}"] * 6
        assert asked[-1].startswith("CONNECT gate.invalid:")
        assert asked[-1] != asked[0]

    play(make, scene)


@pytest.mark.processes  # the proxy
@pytest.mark.parametrize("neighbors", [(), ((CS, None),)])
def test_a_proxy_is_not_asked_for_addresses_that_others_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, neighbors: tuple[tuple[SystemId, str | None], ...]
) -> None:
    async def scene(world: World) -> None:
        with proxy({}) as (port, process):
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
            nyneve = await world.start(NYNEVE, neighbors=neighbors)
            nyneve.channels.send_tasks(CS, GATE, transfer(1))
            await until(lambda: nyneve.of_kind(TransferFailed), "a failure")
            (failed,) = nyneve.of_kind(TransferFailed)
            text = f"the HTTP proxy 127.0.0.1:{port} is asked only for addresses of neighbors in the topology"
            assert text in failed.text
            await world.stop(nyneve)
            process.terminate()
            assert process.stdout is not None
            assert process.stdout.read() == ""

    play(make_grpc(tmp_path, make_root(FEDERATION)), scene)


@pytest.mark.processes  # the proxy
def test_a_proxy_that_refuses_or_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        with proxy({}) as (port, _):
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
            refused = await world.start(NYNEVE, neighbors=((CS, GATE),))
            await until(lambda: refused.refused, "a refusal")
            text = f"the HTTP proxy 127.0.0.1:{port} does not connect to it: 403 Not this one"
            assert refused.refused[0] == (CS, text)
        await world.stop(refused)
        lonely = await world.start(NYNEVE, neighbors=((CS, GATE),))
        await until(lambda: lonely.refused, "a failure")
        assert lonely.refused[0][1].startswith(f"the HTTP proxy 127.0.0.1:{port} was not reached: ")

    play(make_grpc(tmp_path, make_root(FEDERATION)), scene)


@pytest.mark.parametrize("has_bulk", [False, True])
def test_links_tasks_and_files_travel_over_ipv6(tmp_path: Path, *, has_bulk: bool) -> None:
    async def scene(world: World) -> None:
        cs = await world.start(CS, listen="[::1]:0", neighbors=((NYNEVE, None),))
        assert cs.channels.address.startswith("[::1]:")
        nyneve = await world.start(NYNEVE, listen="[::1]:0", neighbors=((CS, cs.channels.address),))
        await until(lambda: LinkUp(neighbor=NYNEVE) in cs.events, "a link")
        nyneve.channels.send_tasks(CS, cs.channels.address, transfer(1))
        await until(lambda: cs.of_kind(TransferReceived), "the tasks")
        address = cs.channels.address
        await nyneve.channels.put(CS, address, put(), lambda _, offset: ContentSource(LARGE, offset=offset))
        assert cs.files.path(hashlib.sha256(LARGE).digest()).read_bytes() == LARGE
        assert (cs.refused, nyneve.refused) == ([], [])

    play(make_grpc(tmp_path, make_root(FEDERATION), has_bulk=has_bulk), scene)
