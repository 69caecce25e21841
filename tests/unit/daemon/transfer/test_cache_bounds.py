"""What files that pass may use of a hop: the cache with interrupted files, and how many suppliers a claim has."""

import asyncio
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import Peer
from messiahs.core.interface.messages import BoundTask, Command, TaskTransfer
from messiahs.core.model.ids import SystemId
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.files import draft_name
from messiahs.daemon.storage.suppliers import supplier_of
from messiahs.errors import ChannelError, DeclinedError
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, NYNEVE, TICKET, attempt
from tests.unit.daemon.transfer.passing import EVE, FILE, OTHER, Scene, play
from tests.waiting import until


async def _cut(scene: Scene, *, of: SystemId = NYNEVE, supplier: bytes = b"", file: PutFile, size: int) -> None:
    """Send a byte of a file, break the stream, and let the hop have a part of some size."""
    receipt = scene.passing.receive(
        Peer(system=of, key=b""),
        PutRequest(claim=CLAIM, ticket=TICKET, files=(file,), supplier=supplier),
        leg=scene.legs[CLAIM.number],
    )
    await receipt.begin()
    with pytest.raises((DeclinedError, ChannelError)):
        await receipt.take(ContentSource(b"x"))
    await receipt.close()
    name = draft_name(file.sha256, supplier_of(of, supplier))
    os.truncate(scene.passing.files.root / "drafts" / name, size)


def _drafts(scene: Scene) -> set[str]:
    return {path.name.partition(".")[0] for path in (scene.passing.files.root / "drafts").glob("*.*")}


def _file(number: int, size: int) -> PutFile:
    return PutFile(number.to_bytes(32), size)


async def _is_stored(scene: Scene, file: PutFile, *, of: SystemId = NYNEVE, supplier: bytes = b"") -> bool:
    """Begin to send a file, and report whether the hop would store it."""
    request = PutRequest(claim=CLAIM, ticket=TICKET, files=(file,), supplier=supplier)
    receipt = scene.passing.receive(Peer(system=of, key=b""), request, leg=scene.legs[CLAIM.number])
    await receipt.begin()
    is_stored = bool(receipt.left_bytes)
    await receipt.close()
    return is_stored


def test_what_is_left_of_interrupted_files_counts_against_the_cache(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        names = [bytes([number]) for number in range(6)]
        for name in names:
            await _cut(scene, supplier=name, file=FILE, size=FILE.size_bytes - 1)
            assert scene.passing.files.cached_bytes(()) <= 3 * FILE.size_bytes
        # The oldest gave way to the later ones, which continue where they were.
        sizes = [scene.passing.files.offset(FILE.sha256, of=supplier_of(NYNEVE, name)) for name in names]
        assert sizes == [0, 0, 0, *[FILE.size_bytes - 1] * 3]
        assert await _is_stored(scene, FILE, supplier=names[-1])

    play(tmp_path, scene, cache_bytes=3 * FILE.size_bytes)


def test_interrupted_files_of_one_neighbor_give_way_to_files_of_another(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await _cut(scene, file=_file(1, FILE.size_bytes), size=FILE.size_bytes - 1)
        for number in range(2, 5):
            await _cut(scene, of=EVE, file=_file(number, FILE.size_bytes), size=FILE.size_bytes - 1)
        assert await _is_stored(scene, _file(5, FILE.size_bytes))
        assert _drafts(scene) == {_file(number, 0).sha256.hex() for number in (1, 3, 4)}

    play(tmp_path, scene, cache_bytes=4 * FILE.size_bytes + 100)


def test_a_file_that_is_on_its_way_gives_way_to_none(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        assert not await _is_stored(scene, _file(1, 2 * FILE.size_bytes), of=EVE)
        scene.sources[0][1].go_on()
        await first
        assert scene.is_here()

    play(tmp_path, scene, cache_bytes=2 * FILE.size_bytes + 100)


def test_streams_that_begin_at_the_same_time_share_the_room_of_the_cache(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        legs, files = scene.legs[CLAIM.number], [_file(number, FILE.size_bytes) for number in range(8)]
        receipts = [
            scene.passing.receive(
                Peer(system=NYNEVE, key=b""), PutRequest(claim=CLAIM, ticket=TICKET, files=(file,)), leg=legs
            )
            for file in files
        ]
        await asyncio.gather(*(receipt.begin() for receipt in receipts))
        assert sum(receipt.left_bytes for receipt in receipts) == 2 * FILE.size_bytes
        for receipt in receipts:
            await receipt.close()

    play(tmp_path, scene, cache_bytes=3 * FILE.size_bytes - 1)


def test_a_claim_has_a_bounded_number_of_suppliers(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        leg, peer = scene.legs[CLAIM.number], Peer(system=NYNEVE, key=b"")
        requests = [
            PutRequest(claim=CLAIM, ticket=TICKET, files=(FILE,), supplier=bytes([number])) for number in range(17)
        ]
        for request in requests[:16]:
            scene.passing.receive(peer, request, leg=leg)
        with pytest.raises(DeclinedError, match="xinu: 16 systems have sent files for"):
            scene.passing.receive(peer, requests[16], leg=leg)
        command = Command(argv=("true",), inputs=(InputFile(name="in", sha256=FILE.sha256, size_bytes=1),))
        task = BoundTask(attempt=attempt(1), command=command)
        message = TaskTransfer(claim=CLAIM, ticket=TICKET, tasks=(task,), supplier=bytes([16]))
        assert "16 systems" in await scene.passing.keep(peer, message, contents=())
        scene.passing.receive(peer, requests[0], leg=leg)
        scene.passing.receive(peer, replace(requests[16], claim=OTHER), leg=leg)
        scene.passing.forget_ended()
        scene.passing.receive(peer, requests[16], leg=leg)

    play(tmp_path, scene)


def test_a_neighbor_has_a_bounded_number_of_interrupted_files(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        drafts = scene.passing.files.root / "drafts"
        for number in range(300):
            name = draft_name(_file(number, 0).sha256, supplier_of(NYNEVE, number.to_bytes(2)))
            (drafts / name).write_bytes(b"x")
            os.utime(drafts / name, (number, number))
        of_another = drafts / draft_name(FILE.sha256, EVE)
        of_another.write_bytes(b"x")
        os.utime(of_another, (0, 0))
        assert await _is_stored(scene, _file(1_000, 100))
        assert _drafts(scene) == {FILE.sha256.hex(), *(_file(number, 0).sha256.hex() for number in range(44, 300))}

    play(tmp_path, scene)


def test_small_files_of_tasks_pass_a_hop_without_a_cache(tmp_path: Path) -> None:
    contents = [b"%d" % number for number in range(2_000)]

    async def scene(scene: Scene) -> None:
        files = scene.passing.files
        for number, content in enumerate(contents):
            sha256 = hashlib.sha256(content).digest()
            inputs = (InputFile(name="in", sha256=sha256, size_bytes=len(content)),)
            task = BoundTask(attempt=attempt(number), command=Command(argv=("true",), inputs=inputs))
            message = TaskTransfer(claim=CLAIM, ticket=TICKET, tasks=(task,))
            assert await scene.passing.keep(Peer(system=NYNEVE, key=b""), message, contents=(content,)) == ""
            assert files.path(sha256).read_bytes() == content
            # They were sent on a while ago.
            os.utime(files.path(sha256), (number, number))
        assert files.cached_bytes(()) <= 80 << 20

    play(tmp_path, scene, cache_bytes=0)
