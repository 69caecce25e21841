"""Files that pass a hop: cached or passed on, once for each supplier, and refused by the module concerned."""

import asyncio
import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from messiahs.channel.contract import ChannelSettings
from messiahs.channel.memory import memory_channels
from messiahs.core.interface.transfer_answers import StraightFailed
from messiahs.core.model.ids import Ticket
from messiahs.core.model.routes import Leg
from messiahs.errors import BeyondError, ChannelError, RefusedError
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, FEDERATION, NYNEVE, TICKET, XINU, Recorded
from tests.unit.daemon.transfer.passing import CONTENT, EVE, FILE, OTHER, Scene, play
from tests.waiting import until


def test_a_cached_file_is_sent_once_for_any_number_of_claims(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await scene.put()
        await scene.put(claim=OTHER.number)
        assert scene.offsets == [0]
        assert scene.is_here()
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT
        assert not scene.passing.arriving
        assert not scene.passing.claims

    play(tmp_path, scene)


def test_many_small_and_empty_files_pass_on_one_stream(tmp_path: Path) -> None:
    contents = {hashlib.sha256(each).digest(): each for each in (b"", *(bytes([number]) * 500 for number in range(50)))}

    async def scene(scene: Scene) -> None:
        settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
        channels = memory_channels(settings, Recorded(name=NYNEVE).callbacks(), scene.network)
        files = tuple(PutFile(sha256, len(content)) for sha256, content in contents.items())
        for claim in (CLAIM, OTHER):
            request = PutRequest(claim=claim, ticket=TICKET, files=files)
            await channels.put(XINU, scene.hop, request, lambda sha256, _: ContentSource(contents[sha256]))
        for store in (scene.there, scene.passing.files):
            assert {sha256: store.path(sha256).read_bytes() for sha256 in contents} == contents

    play(tmp_path, scene)


def test_a_second_claim_follows_a_file_that_is_on_its_way_for_another(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: len(scene.passing.claims) == 2, "that the second stream has begun")
        assert not second.done()
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]

    play(tmp_path, scene)


@pytest.mark.parametrize("own", [CLAIM.number, OTHER.number])
def test_a_file_for_the_own_machine_and_for_the_next_system_comes_once(tmp_path: Path, own: int) -> None:
    async def scene(scene: Scene) -> None:
        scene.legs[OTHER.number] = scene.legs[CLAIM.number]
        scene.legs[own] = Leg(system=XINU, address=scene.hop, ticket=TICKET)
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: scene.begun == [CLAIM.number, OTHER.number], "that the second stream has begun")
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]
        assert scene.is_here()
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT

    play(tmp_path, scene)


def test_a_file_for_two_claims_of_one_executor_is_brought_by_one_stream(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        scene.legs[OTHER.number] = scene.legs[CLAIM.number]
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        second = asyncio.create_task(scene.put(claim=OTHER.number))
        await until(lambda: len(scene.passing.claims) == 2, "that the second stream has begun")
        scene.sources[0][1].go_on()
        await asyncio.gather(first, second)
        assert scene.offsets == [0]

    play(tmp_path, scene)


@pytest.mark.parametrize("cache_bytes", [1 << 30, 0])
def test_after_a_break_a_file_continues_at_what_has_arrived(tmp_path: Path, cache_bytes: int) -> None:
    async def scene(scene: Scene) -> None:
        first = asyncio.create_task(scene.put(stop_at=300_000))
        await until(lambda: scene.sources and scene.sources[0][1].is_blocked, "that a part has been sent")
        store = scene.passing.files if cache_bytes else scene.there
        await until(lambda: sum(path.stat().st_size for path in (store.root / "drafts").glob("*.*")), "a draft")
        first.cancel()
        await asyncio.wait([first])
        await until(lambda: not scene.passing.receipts, "that the hop has given up the stream")
        await scene.put()
        assert scene.offsets[0] == 0 < scene.offsets[1] <= 300_000
        assert scene.there.path(FILE.sha256).read_bytes() == CONTENT
        assert scene.is_here() == bool(cache_bytes)

    play(tmp_path, scene, cache_bytes=cache_bytes)


@pytest.mark.parametrize("cache_bytes", [1 << 30, 0])
def test_a_supplier_that_knows_only_the_hash_of_what_passed_must_bring_it(tmp_path: Path, cache_bytes: int) -> None:
    async def scene(scene: Scene) -> None:
        await scene.put()
        with pytest.raises(ChannelError):
            await scene.put(of=EVE, content=b"x" * len(CONTENT))
        known = [scene.passing.shown(name).hex() for name in (NYNEVE, EVE)]
        assert [scene.there.size_for(f"xinu/{name}", FILE.sha256) for name in known] == [len(CONTENT), None]
        await scene.put(of=EVE)
        assert scene.offsets == [0, 0, 0]
        assert scene.there.size_for(f"xinu/{known[1]}", FILE.sha256) == len(CONTENT)

    play(tmp_path, scene, cache_bytes=cache_bytes)


def test_a_refusal_of_the_next_system_is_told_in_its_words(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        with pytest.raises(RefusedError, match="cs/7 has ended here"):
            await scene.put(claim=7)
        assert not scene.events
        # The executor does not take it from this hop, and might be reached on another leg.
        leg = scene.legs[CLAIM.number]
        scene.legs[CLAIM.number] = replace(leg, ticket=Ticket(bytes(16)))
        with pytest.raises(BeyondError, match="cs: xinu has no ticket"):
            await scene.put()
        assert [type(event) for event in scene.events] == [StraightFailed]
        scene.legs[CLAIM.number] = leg
        wrong = FILE._replace(size_bytes=1)
        with pytest.raises(RefusedError, match="another file"):
            await _put_file(scene, wrong)

    play(tmp_path, scene)


async def _put_file(scene: Scene, file: PutFile) -> None:
    settings = ChannelSettings(federation=FEDERATION, name=NYNEVE, listen="127.0.0.1:0")
    channels = memory_channels(settings, Recorded(name=NYNEVE).callbacks(), scene.network)
    request = PutRequest(claim=CLAIM, ticket=TICKET, files=(file,))
    await channels.put(XINU, scene.hop, request, lambda _, offset: ContentSource(b"x", offset=offset))


def test_a_system_that_cannot_be_reached_is_named_and_another_leg_is_looked_for(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        await scene.executor.channels.stop()
        with pytest.raises(BeyondError, match=r"^cs: "):
            await scene.put()
        assert [type(event) for event in scene.events] == [StraightFailed]

    play(tmp_path, scene)


def test_a_hop_that_cannot_list_its_files_refuses_others_in_words_of_its_own(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        shutil.rmtree(scene.passing.files.root)
        with pytest.raises(ChannelError, match="xinu: it can store no files now"):
            await scene.put()

    play(tmp_path, scene)
