"""Inputs from a peer: which count against its claim, which remain, and which are stored together."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from messiahs.channel.contract import Peer
from messiahs.channel.memory import memory_key
from messiahs.core.interface.limits import INPUT_LIMIT_BYTES
from messiahs.core.interface.rows import GrantedClaimRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClaimId, Ticket
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.drafts import WrongContentError
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles, FilesReceipt, RefusedFilesError
from messiahs.errors import ChannelError
from messiahs.wire.codec import PutFile, PutRequest
from tests.contract.byte_sources import ContentSource
from tests.contract.channel_modules import CLAIM, GRANTED, NYNEVE, TICKET, transfer
from tests.waiting import until

OTHER = CLAIM._replace(number=6)
MEGABYTE = 1 << 20
PEER = Peer(system=NYNEVE, key=memory_key(NYNEVE))


class NotedStore(FileStore):
    """A store that notes in which threads it was asked for missing files (mutable)."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.threads: list[threading.Thread] = []

    def missing(self, hashes: Iterable[bytes], *, of: str | None = None) -> tuple[bytes, ...]:
        """Note the thread."""
        self.threads.append(threading.current_thread())
        return super().missing(hashes, of=of)


@dataclass(kw_only=True)
class Scene:
    """A store of files, and one origin that sends some for its claims."""

    arrivals: ArrivingFiles
    claims: dict[ClaimId, GrantedClaimRow]
    folder: Path

    async def begin(self, *files: PutFile, claim: ClaimId = CLAIM) -> FilesReceipt:
        """Open a stream for files."""
        receipt = self.arrivals.receive(PEER, PutRequest(claim=claim, ticket=TICKET, files=files))
        await receipt.begin()
        return receipt

    async def cut(self, file: PutFile, *, size: int, claim: ClaimId = CLAIM) -> None:
        """Send a part of a file, then break the stream."""
        receipt = await self.begin(file, claim=claim)
        with pytest.raises(ChannelError, match="ended in the middle"):
            await receipt.take(ContentSource(b"x"))
        await receipt.close()
        (draft,) = (self.folder / "drafts").glob(f"{file.sha256.hex()}.*")
        os.truncate(draft, size)

    def drafts(self) -> set[str]:
        """Return the incomplete files."""
        return {path.name.partition(".")[0] for path in (self.folder / "drafts").glob("*.*")}


def play(tmp_path: Path, scene: Callable[[Scene], Awaitable[None]]) -> None:
    claims = {CLAIM: GRANTED[CLAIM], OTHER: replace(GRANTED[CLAIM], id=OTHER)}
    arrivals = ArrivingFiles(FileStore(tmp_path), claim_of=claims.get, in_use=frozenset)
    asyncio.run(_played(scene, Scene(arrivals=arrivals, claims=claims, folder=tmp_path)))


async def _played(scene: Callable[[Scene], Awaitable[None]], made: Scene) -> None:
    async with asyncio.timeout(60):
        await scene(made)


def file_of(content: bytes) -> PutFile:
    return PutFile(hashlib.sha256(content).digest(), len(content))


def large(number: int, size: int) -> PutFile:
    return PutFile(bytes([number]) * 32, size)


def test_what_was_cut_counts_against_the_claim_and_makes_room_for_what_comes_next(tmp_path: Path) -> None:
    first, second, third = (large(number, INPUT_LIMIT_BYTES * 2 // 3) for number in (1, 2, 3))

    async def scene(scene: Scene) -> None:
        await scene.cut(first, size=first.size_bytes - 1)
        receipt = await scene.begin(second)
        source = ContentSource(b"x", stop_at=1)
        taking = asyncio.create_task(receipt.take(source))
        await until(lambda: source.is_blocked, "the first byte")
        assert scene.drafts() == {second.sha256.hex()}
        with pytest.raises(RefusedFilesError, match="may bring"):
            await scene.begin(third)
        source.close()
        with pytest.raises(ChannelError, match="closed"):
            await taking
        await receipt.close()

    play(tmp_path, scene)


def test_drafts_of_an_earlier_life_or_claim_of_the_same_origin_count_as_well(tmp_path: Path) -> None:
    first, second = (large(number, INPUT_LIMIT_BYTES * 2 // 3) for number in (1, 2))

    async def scene(scene: Scene) -> None:
        await scene.cut(first, size=first.size_bytes - 1)
        again = ArrivingFiles(scene.arrivals.files, claim_of=scene.claims.get, in_use=frozenset)
        receipt = again.receive(PEER, PutRequest(claim=OTHER, ticket=TICKET, files=(second,)))
        await receipt.begin()
        assert scene.drafts() <= {second.sha256.hex()}
        await receipt.close()

    play(tmp_path, scene)


def test_what_an_ended_claim_left_incomplete_is_removed(tmp_path: Path) -> None:
    ended, living, shared = (large(number, MEGABYTE) for number in (1, 2, 3))

    async def scene(scene: Scene) -> None:
        for file in (ended, shared):
            await scene.cut(file, size=1_000)
        for file in (living, shared):
            await scene.cut(file, size=1_000, claim=OTHER)
        await scene.arrivals.forget_ended()
        assert scene.drafts() == {file.sha256.hex() for file in (ended, living, shared)}
        del scene.claims[CLAIM]
        await scene.arrivals.forget_ended()
        assert scene.drafts() == {file.sha256.hex() for file in (living, shared)}

    play(tmp_path, scene)


def test_files_of_a_claim_that_has_ended_are_refused_and_a_wrong_ticket_has_no_right_to_one(tmp_path: Path) -> None:
    async def scene(made: Scene) -> None:
        wrong = PutRequest(claim=CLAIM, ticket=Ticket(bytes(16)), files=(large(1, MEGABYTE),))
        with pytest.raises(RefusedFilesError, match="has no ticket") as denied:
            made.arrivals.receive(PEER, wrong)
        del made.claims[CLAIM]
        with pytest.raises(RefusedFilesError, match="has ended here") as refused:
            await made.begin(large(1, MEGABYTE))
        assert (denied.value.is_denied, refused.value.is_denied) == (True, False)

    play(tmp_path, scene)


def test_streams_at_the_same_time_share_the_room_of_the_disk(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        for claim in (CLAIM, OTHER):
            scene.claims[claim] = replace(scene.claims[claim], tdv=TDV((("disk", 1 << 60),)))
        most = scene.arrivals.files.free_bytes() * 3 // 4
        receipt = await scene.begin(large(1, most))
        with pytest.raises(RefusedFilesError, match="has no room"):
            await scene.begin(large(2, most), claim=OTHER)
        await receipt.close()
        await (await scene.begin(large(2, most), claim=OTHER)).close()

    play(tmp_path, scene)


def test_many_small_files_are_all_there_when_the_stream_is_finished(tmp_path: Path) -> None:
    contents = [number.to_bytes(4) * 1_000 for number in range(600)]
    contents[300] = b""

    async def scene(scene: Scene) -> None:
        receipt = await scene.begin(*map(file_of, contents))
        assert scene.arrivals.arriving == (CLAIM,)
        await receipt.take(ContentSource(b"".join(contents)))
        await receipt.close()
        assert scene.arrivals.files.missing(file_of(content).sha256 for content in contents) == ()
        assert [scene.arrivals.files.path(file_of(each).sha256).read_bytes() for each in contents] == contents
        assert not scene.drafts()
        assert not scene.arrivals.arriving

    play(tmp_path, scene)


def test_small_files_that_came_before_the_stream_was_cut_need_not_come_again(tmp_path: Path) -> None:
    contents = [b"one", b"two", b"three"]

    async def scene(scene: Scene) -> None:
        receipt = await scene.begin(*map(file_of, contents))
        with pytest.raises(ChannelError, match="ended in the middle"):
            await receipt.take(ContentSource(contents[0]))
        await receipt.close()
        assert scene.arrivals.files.missing([file_of(contents[0]).sha256]) == ()

    play(tmp_path, scene)


def test_small_files_count_against_the_claim_whatever_comes_before_they_are_stored(tmp_path: Path) -> None:
    contents = [b"one", b"two", b"x"]

    async def scene(scene: Scene) -> None:
        receipt = await scene.begin(*map(file_of, contents))
        source = ContentSource(b"".join(contents), stop_at=6)
        taking = asyncio.create_task(receipt.take(source))
        await until(lambda: source.is_blocked, "two files")
        # Both have arrived, and are neither in a draft nor in the store.
        await (await scene.begin(large(1, MEGABYTE))).close()
        source.go_on()
        await taking
        await receipt.close()
        with pytest.raises(RefusedFilesError, match="may bring"):
            await scene.begin(large(2, INPUT_LIMIT_BYTES - 5))

    play(tmp_path, scene)


def test_a_small_file_that_is_another_one_is_refused_with_all_that_came_beside_it(tmp_path: Path) -> None:
    contents = [b"one", b"two"]

    async def scene(scene: Scene) -> None:
        receipt = await scene.begin(*map(file_of, contents))
        with pytest.raises(WrongContentError, match="another file"):
            await receipt.take(ContentSource(b"onetwx"))
        await receipt.close()
        assert len(scene.arrivals.files.missing(file_of(each).sha256 for each in (*contents, b"twx"))) == 3

    play(tmp_path, scene)


def test_a_peer_that_knows_only_the_hash_of_a_stored_file_must_bring_it(tmp_path: Path) -> None:
    content = b"of another system"
    bound = transfer(1)
    command = replace(
        bound.tasks[0].command, inputs=(InputFile(name="in", sha256=file_of(content).sha256, size_bytes=17),)
    )
    bound = replace(bound, tasks=(replace(bound.tasks[0], command=command),))

    async def scene(scene: Scene) -> None:
        scene.arrivals.files.keep(content, of="xinu")
        assert await scene.arrivals.keep(PEER, bound, ()) == "1 of its files are missing here"
        receipt = scene.arrivals.receive(PEER, PutRequest(claim=CLAIM, ticket=TICKET, files=(file_of(content),)))
        assert await receipt.begin() == (0,)
        await receipt.take(ContentSource(content))
        await receipt.close()
        assert await scene.arrivals.keep(PEER, bound, ()) == ""

    play(tmp_path, scene)


def test_small_files_that_ride_with_tasks_are_stored_at_once(tmp_path: Path) -> None:
    contents = tuple(number.to_bytes(4) for number in range(200))

    async def scene(scene: Scene) -> None:
        assert await scene.arrivals.keep(PEER, transfer(1), contents) == ""
        assert scene.arrivals.files.missing(file_of(content).sha256 for content in contents) == ()

    play(tmp_path, scene)


class Passing:
    """A receipt of files that pass through this module."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes


def test_drafts_of_files_that_pass_are_not_removed_for_those_of_this_machine(tmp_path: Path) -> None:
    passing, too_large = large(1, MEGABYTE), large(2, INPUT_LIMIT_BYTES)

    async def scene(scene: Scene) -> None:
        for claim in scene.claims.values():
            assert (
                await scene.arrivals.keep(PEER, replace(transfer(1), claim=claim.id), (b"%d" % claim.id.number,)) == ""
            )
        await scene.cut(passing, size=MEGABYTE - 1)
        scene.arrivals.underway.begin(receipt := Passing(1), OTHER._replace(number=7), NYNEVE, [passing])
        with pytest.raises(RefusedFilesError, match="may bring"):
            await scene.begin(too_large)
        del scene.claims[CLAIM]
        await scene.arrivals.forget_ended()
        assert scene.drafts() == {passing.sha256.hex()}
        scene.arrivals.underway.end(receipt)
        with pytest.raises(RefusedFilesError, match="may bring"):
            await scene.begin(too_large, claim=OTHER)
        assert not scene.drafts()

    play(tmp_path, scene)


def test_files_that_pass_and_those_of_this_machine_share_the_room_of_the_disk(tmp_path: Path) -> None:
    async def scene(scene: Scene) -> None:
        free = scene.arrivals.files.free_bytes()
        scene.arrivals.underway.begin(Passing(free), OTHER, NYNEVE, [large(1, free)])
        with pytest.raises(RefusedFilesError, match="no room"):
            await scene.begin(large(2, MEGABYTE))

    play(tmp_path, scene)


def test_what_is_in_use_is_asked_where_the_state_does_not_change_meanwhile(tmp_path: Path) -> None:
    asked_in: list[threading.Thread] = []

    def in_use() -> frozenset[bytes]:
        asked_in.append(threading.current_thread())
        return frozenset()

    async def scene(scene: Scene) -> None:
        again = ArrivingFiles(scene.arrivals.files, claim_of=scene.claims.get, in_use=in_use)
        assert await again.keep(PEER, transfer(1), (b"stored",)) == ""
        with pytest.raises(RefusedFilesError, match="may bring"):
            await again.admit(GRANTED[CLAIM], [large(1, INPUT_LIMIT_BYTES)], supplier=NYNEVE)

    play(tmp_path, scene)
    assert asked_in == [threading.current_thread()]


class Counting(FileStore):
    """A store that counts how often the size of a file was looked up, and how often in the main thread (mutable)."""

    looks = 0
    main_looks = 0

    def size(self, sha256: bytes) -> int | None:
        """Count, and return the size."""
        self.looks += 1
        self.main_looks += threading.current_thread() is threading.main_thread()
        return super().size(sha256)


def test_files_that_came_before_are_not_looked_at_for_each_that_comes(tmp_path: Path) -> None:
    contents = [b"%d" % number for number in range(300)]

    async def act() -> None:
        store = Counting(tmp_path)
        arrivals = ArrivingFiles(store, claim_of=GRANTED.get, in_use=frozenset)
        for content in contents:
            assert await arrivals.keep(PEER, transfer(), (content,)) == ""
        assert store.looks <= len(contents)
        assert store.missing(hashlib.sha256(one).digest() for one in contents) == ()

    asyncio.run(act())


def test_the_inputs_that_a_message_names_are_looked_at_beside_the_event_loop(tmp_path: Path) -> None:
    async def scene() -> None:
        store = NotedStore(tmp_path)
        arrivals = ArrivingFiles(store, claim_of=GRANTED.get, in_use=frozenset)
        assert await arrivals.keep(PEER, transfer(1), ()) == ""
        assert len(store.threads) == 1
        assert threading.current_thread() not in store.threads

    asyncio.run(scene())


def test_who_asks_for_too_much_has_no_file_looked_at_in_the_event_loop(tmp_path: Path) -> None:
    contents = tuple(b"%d" % number for number in range(300))

    async def act() -> None:
        store = Counting(tmp_path)
        arrivals = ArrivingFiles(store, claim_of=GRANTED.get, in_use=frozenset)
        assert await arrivals.keep(PEER, transfer(), contents) == ""
        store.looks = store.main_looks = 0
        with pytest.raises(RefusedFilesError, match="may bring"):
            await arrivals.admit(GRANTED[CLAIM], [large(1, INPUT_LIMIT_BYTES + 1)], supplier=NYNEVE)
        assert store.looks == 0
        with pytest.raises(RefusedFilesError, match="may bring"):
            await arrivals.admit(GRANTED[CLAIM], [large(1, INPUT_LIMIT_BYTES)], supplier=NYNEVE)
        assert store.looks >= len(contents)
        assert store.main_looks == 0

    asyncio.run(act())


def test_what_was_deleted_counts_no_more_and_what_comes_again_does(tmp_path: Path) -> None:
    kept, gone = b"kept", b"gone"

    async def scene(scene: Scene) -> None:
        store = scene.arrivals.files
        assert await scene.arrivals.keep(PEER, transfer(), (kept, gone)) == ""
        store.path(file_of(gone).sha256).unlink()
        await (await scene.begin(large(1, INPUT_LIMIT_BYTES - len(kept)))).close()
        assert await scene.arrivals.keep(PEER, transfer(), (gone,)) == ""
        with pytest.raises(RefusedFilesError, match="may bring"):
            await scene.begin(large(2, INPUT_LIMIT_BYTES - len(kept)))

    play(tmp_path, scene)
